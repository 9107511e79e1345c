"""What operators see of mails: to whom, about what, and what the server said; never what they say."""

from typing import Annotated, Literal

from pydantic import Field
from quart import Blueprint

from tolsey.actors.refusals import NotFound
from tolsey.http.answers.base import ListAnswer, NoBody, NoContent, list_of
from tolsey.http.answers.operators.runtime import BounceAnswer, MailAnswer
from tolsey.http.web.access import administrator, caller
from tolsey.http.web.api_model import EMAIL_CHARACTERS, Email, Reason
from tolsey.http.web.context import service
from tolsey.http.web.paging import PageQuery
from tolsey.storage import audit
from tolsey.storage.people import mail as mails
from tolsey.storage.reports.pool import OPERATORS

routes = Blueprint("mail", __name__, url_prefix="/api/admin")


class MailQuery(PageQuery):
    """Which mails to list."""

    state: Literal["waiting", "kept", "sent", "refused", "given_up"] | None = None
    recipient: Annotated[str, Field(max_length=EMAIL_CHARACTERS)] | None = None


class ClearedBounce(Reason):
    """Which address may be written to again, and why."""

    recipient: Email


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


@routes.get("/mail/bounces")
@administrator
async def list_bounces(query_args: PageQuery) -> ListAnswer[BounceAnswer]:
    """List addresses that bounced or whose reader complained, newest first."""
    found = await mails.marks(
        service().reports.of(OPERATORS), query_args.limit + 1, query_args.after_moment
    )
    return list_of(
        found,
        query_args.limit,
        key=lambda one: f"{one.since.isoformat()}|{one.recipient}",
        answer=BounceAnswer.read,
    )


@routes.post("/mail/bounces/clear")
@administrator
async def clear_bounce(data: ClearedBounce) -> tuple[NoBody, NoContent]:
    """Write to an address again that bounced; audited with the reason."""
    async with service().database.transaction() as tx:
        if not await mails.unmark(tx, data.recipient):
            raise NotFound("No email to this address has bounced. Check the address.")
        # The audit log outlives the address: it names the act and who did it (rules/accounts#people-who-leave).
        await audit.write(
            tx, "admin.mail.bounce_cleared", "mail", actor=caller().user_id, reason=data.reason
        )
    return "", 204
