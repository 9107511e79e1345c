"""Operators see what goes by its age, and how much of it is due (rules/service#retention)."""

from typing import Final

from quart import Blueprint
from quart_schema import tag_blueprint

from tolsey.http.answers.base import ListAnswer
from tolsey.http.answers.operators import RetentionAnswer
from tolsey.http.web.access import administrator
from tolsey.http.web.context import service
from tolsey.storage import retention

MOST_COUNTED: Final = 100_000

routes = Blueprint("retention", __name__, url_prefix="/api/admin")
tag_blueprint(routes, ["Operators"])


@routes.get("/retention")
@administrator
async def list_retention() -> ListAnswer[RetentionAnswer]:
    """List what goes by its age and how many rows are due, up to 100,000 of each; nothing is changed."""
    return ListAnswer(
        items=[
            RetentionAnswer.of(
                rule, await retention.due(service().database, rule, MOST_COUNTED + 1), MOST_COUNTED
            )
            for rule in retention.RULES
        ],
        next_cursor=None,
    )
