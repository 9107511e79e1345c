"""Operators see what goes by its age, and how much of it is due (rules/service#retention)."""

from typing import Final

from quart import Blueprint
from quart_schema import tag_blueprint

from tolsey.http.answers.base import ListAnswer
from tolsey.http.answers.operators.diagnosis import RetentionAnswer
from tolsey.http.web.access import administrator
from tolsey.http.web.context import service
from tolsey.storage.lifecycle import retention

MOST_COUNTED: Final = 10_000

routes = Blueprint("retention", __name__, url_prefix="/api/admin")
tag_blueprint(routes, ["Operators"])


@routes.get("/retention")
@administrator
async def list_retention() -> ListAnswer[RetentionAnswer]:
    """List what goes by its age and how many rows are due, up to 10,000 of each; nothing is changed."""
    due = await retention.due(service().database, retention.RULES, MOST_COUNTED + 1)
    return ListAnswer(
        items=[
            RetentionAnswer.of(rule, count, MOST_COUNTED)
            for rule, count in zip(retention.RULES, due, strict=True)
        ],
        next_cursor=None,
    )
