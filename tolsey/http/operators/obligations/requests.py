"""What operators owe shops and their customers (rules/shops#erasure)."""

from typing import Annotated

from pydantic import Field
from quart import Blueprint
from quart_schema import tag_blueprint

from tolsey.actors.refusals import Conflict, NotFound
from tolsey.http.answers.base import Accepted, ListAnswer, list_of
from tolsey.http.answers.people.compliance import ComplianceRequestAnswer
from tolsey.http.web.access import administrator, caller
from tolsey.http.web.api_model import Reason
from tolsey.http.web.context import now, service
from tolsey.http.web.paging import PageQuery
from tolsey.storage import audit
from tolsey.storage.commerce import compliance
from tolsey.storage.records.commerce.compliance import ComplianceRequest, PendingStep

routes = Blueprint("compliance", __name__, url_prefix="/api/admin/compliance")
tag_blueprint(routes, ["Operators"])


class ObligationQuery(PageQuery):
    """Which requests to list: all, or those that nobody closed in time."""

    overdue: Annotated[bool, Field(description="Only those not closed after 30 days.")] = False


@routes.get("")
@administrator
async def list_requests(query_args: ObligationQuery) -> ListAnswer[ComplianceRequestAnswer]:
    """List requests to tell or to forget, newest first, with what was done about each."""
    found = await compliance.page(
        service().database,
        query_args.after or None,
        query_args.limit + 1,
        overdue_at=now() if query_args.overdue else None,
    )
    receipts = await compliance.receipts(service().database, [one.id for one in found])
    return list_of(
        found,
        query_args.limit,
        key=lambda row: row.id,
        answer=lambda row: ComplianceRequestAnswer.of(row, receipts, now()),
    )


@routes.post("/<request_id>/steps/<step>/done")
@administrator
async def carry_out_step(
    request_id: str, step: str, data: Reason
) -> tuple[ComplianceRequestAnswer, Accepted]:
    """Have a pending step carried out by the next run of gdpr-erasure, which keeps its receipt."""
    request = await _found(request_id)
    if step not in request.pending_steps:
        raise NotFound("This request has no pending step with that name. Check its `steps`.")
    async with service().database.transaction() as tx:
        await audit.write(
            tx,
            "admin.compliance.step",
            request_id,
            actor=caller().user_id,
            step=step,
            reason=data.reason,
        )
        await compliance.ask_for(tx, request_id, PendingStep(step))
    return await _answered(request_id), 202


@routes.post("/<request_id>/handled")
@administrator
async def close_request(request_id: str, data: Reason) -> ComplianceRequestAnswer:
    """Close a request of which nothing is left to do."""
    request = await _found(request_id)
    async with service().database.transaction() as tx:
        await audit.write(
            tx, "admin.compliance.handled", request_id, actor=caller().user_id, reason=data.reason
        )
        # Only an operator closes a request, and none whose work is not done (rules/shops#erasure).
        if not await compliance.close(tx, request_id, caller().user_id, now()):
            raise Conflict(
                "The request still has pending steps. Complete them, then try again.",
                code="steps_open",
                pendingSteps=list(request.pending_steps),
                completed=request.completed_at is not None,
            )
    return await _answered(request_id)


async def _found(request_id: str) -> ComplianceRequest:
    request = await compliance.find(service().database, request_id)
    if request is None:
        raise NotFound("This request doesn't exist. Check its id in the list of requests.")
    return request


async def _answered(request_id: str) -> ComplianceRequestAnswer:
    receipts = await compliance.receipts(service().database, [request_id])
    return ComplianceRequestAnswer.of(await _found(request_id), receipts, now())
