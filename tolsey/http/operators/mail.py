"""What operators see of mails: to whom, about what, and what the server said; never what they say."""

from typing import Annotated, Literal

from pydantic import Field
from quart import Blueprint

from tolsey.http.answers.base import ListAnswer, list_of
from tolsey.http.answers.runtime import MailAnswer
from tolsey.http.web.access import administrator
from tolsey.http.web.api_model import EMAIL_CHARACTERS
from tolsey.http.web.context import service
from tolsey.http.web.paging import PageQuery
from tolsey.storage.people import mail as mails
from tolsey.storage.reports.pool import OPERATORS

routes = Blueprint("mail", __name__, url_prefix="/api/admin")


class MailQuery(PageQuery):
    """Which mails to list."""

    state: Literal["waiting", "kept", "sent", "refused", "given_up"] | None = None
    recipient: Annotated[str, Field(max_length=EMAIL_CHARACTERS)] | None = None


@routes.get("/mail")
@administrator
async def list_mail(query_args: MailQuery) -> ListAnswer[MailAnswer]:
    """List mails, newest first: to whom, about what, tries, and the last answer of the server."""
    found = await mails.listed(
        service().reports.of(OPERATORS),
        query_args.limit + 1,
        query_args.after_moment,
        state=query_args.state,
        recipient=query_args.recipient and query_args.recipient.strip().lower(),
    )
    return list_of(
        found,
        query_args.limit,
        key=lambda mail: f"{mail.created_at.isoformat()}|{mail.id}",
        answer=MailAnswer.read,
    )
