"""The payment processor's events as operators see them, and what they do about those that failed."""

from quart import Blueprint
from quart_schema import tag_blueprint

from tolsey.actors.refusals import NotFound
from tolsey.http.answers.base import ListAnswer, list_of
from tolsey.http.answers.money.billing import PaymentEventAnswer, RetriedAnswer
from tolsey.http.web.access import administrator, caller
from tolsey.http.web.api_model import Reason
from tolsey.http.web.context import service
from tolsey.http.web.paging import OrganizationQuery
from tolsey.storage import audit
from tolsey.storage.money import payment_events
from tolsey.storage.records.money.payment_event import EventState
from tolsey.storage.reports.pool import OPERATORS

routes = Blueprint("payment_events", __name__, url_prefix="/api/admin/payment-events")
tag_blueprint(routes, ["Operators"])


class PaymentEventQuery(OrganizationQuery):
    """Which events to list."""

    state: EventState | None = None


@routes.get("")
@administrator
async def list_events(query_args: PaymentEventQuery) -> ListAnswer[PaymentEventAnswer]:
    """List the processor's events, newest first: which, whose, and what became of each."""
    rows = await payment_events.listed(
        service().reports.of(OPERATORS),
        query_args.limit + 1,
        state=query_args.state,
        organization_id=query_args.organization_id,
        before=query_args.after_moment,
    )
    return list_of(
        rows,
        query_args.limit,
        key=lambda row: f"{row['received_at'].isoformat()}|{row['event_id']}",
        answer=PaymentEventAnswer.of,
    )


@routes.post("/<event_id>/retry")
@administrator
async def retry_event(event_id: str, data: Reason) -> RetriedAnswer:
    """Let an event that failed be applied again, within seconds; audited with the reason."""
    async with service().database.transaction() as tx:
        if not await service().payment_inbox.retry(tx, event_id):
            raise NotFound(
                "No failed event with this id can be retried. Check the list of failed events."
            )
        await audit.write(
            tx,
            "admin.payment_event.retry",
            event_id,
            actor=caller().user_id,
            reason=data.reason,
        )
    return RetriedAnswer(id=event_id, state=EventState.NEW)
