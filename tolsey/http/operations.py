"""Operations: what takes longer than an answer waits, asked for and looked up (rules/requests#operations)."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Final, TypeVar

from quart import Blueprint
from quart_schema import tag_blueprint

from tolsey.actors.organization.operations.messages import AwaitOperation
from tolsey.actors.refusals import NotFound
from tolsey.actors.storefront.messages import AwaitScan, storefront
from tolsey.http.answers.base import Accepted, ApiAnswer
from tolsey.http.answers.market.intelligence import ScanReportAnswer
from tolsey.http.answers.operators.operations import OperationAnswer, OperationBodyAnswer
from tolsey.http.web.access import caller, is_administrator, session
from tolsey.http.web.context import ask, now, service
from tolsey.runtime.errors import DeadlineExceeded, Overloaded, ShardUnavailable
from tolsey.runtime.messages import ActorId, Message
from tolsey.storage.commerce import agent_operations
from tolsey.storage.intelligence import registry
from tolsey.storage.records.intelligence import StorefrontScan
from tolsey.storage.records.runtime.operations import Operation
from tolsey.storage.runtime import operations

AcceptedOperation = tuple[OperationBodyAnswer, Accepted, Mapping[str, str]]
"""What a route answers with while it takes longer."""
Status = TypeVar("Status", bound=int)
Shape = TypeVar("Shape", bound=ApiAnswer)

routes = Blueprint("operations", __name__, url_prefix="/api/operations")
tag_blueprint(routes, ["Operations"])

LOOKED_FOR: Final = timedelta(days=7)
"""How long after its end whoever asked may look (rules/requests#operations)."""
WAIT_SECONDS: Final = 10.0
"""How long whoever asks waits; after that they are told where to look."""


async def carried_out(to: ActorId, message: Message[Operation]) -> Operation:
    """Ask an organization for an operation: answers its end, or how far it is after ten seconds.

    Raises what it was refused with.
    """
    begun = await ask(to, message)
    if begun.finished_at is not None:
        return begun
    try:
        waits = AwaitOperation(begun.id)
        return await service().runtime.ask(to, waits, timeout=WAIT_SECONDS)
    except (DeadlineExceeded, Overloaded, ShardUnavailable):
        return begun  # it goes on, though nobody waits for it here any more


def answer_of(
    operation: Operation, shape: type[Shape], status: Status
) -> tuple[Shape, Status] | AcceptedOperation:
    """Answer what an operation came to with a status, or that it takes longer and where to look."""
    if operation.state == "done":
        # What else was written down of it is for its own actor.
        said = operation.result or "{}"
        done = shape.model_validate_json(said, by_alias=True, by_name=False, extra="ignore")
        return done, status
    where = {"Location": f"/api/operations/{operation.id}"}
    return OperationBodyAnswer(operation=OperationAnswer.of(operation)), 202, where


async def scanned(domain: str, scan: StorefrontScan) -> StorefrontScan:
    """Wait for the end of a scan for ten seconds; answers how it stands then."""
    if scan.ended_at is not None:
        return scan
    try:
        waits = AwaitScan(scan_id=scan.id)
        return await service().runtime.ask(storefront(domain), waits, timeout=WAIT_SECONDS)
    except (DeadlineExceeded, Overloaded, ShardUnavailable):
        return scan  # it goes on, though nobody waits for it here any more
    except NotFound:
        return await registry.find_scan(service().database, scan.id) or scan


@routes.get("/<id>")
@session
async def read_operation(id: str) -> OperationBodyAnswer:
    """Tell how far an operation is that the caller asked for; kept for seven days after its end."""
    database, user_id = service().database, caller().user_id
    since = now() - LOOKED_FOR
    changes = [
        one
        for one in await agent_operations.of_change_set(database, id)
        if one.finished_at is None or one.finished_at > since
    ]
    if changes and user_id in {one for row in changes for one in (row.user_id, row.decided_by)}:
        return OperationBodyAnswer(operation=OperationAnswer.of_many(changes))
    edit = await agent_operations.asked_for(database, id, now())
    if edit is not None and user_id in {edit.user_id, edit.decided_by}:
        return OperationBodyAnswer(operation=OperationAnswer.of_edit(edit))
    scan = await registry.find_scan(service().database, id)
    # Two operators who ask for the same domain at once share a scan.
    if scan is not None and scan.organization_id is None and await is_administrator():
        is_done = scan.state == "done"
        result = ScanReportAnswer.of(scan, service().settings.provider_keys) if is_done else None
        return OperationBodyAnswer(operation=OperationAnswer.of_scan(scan, result))
    return OperationBodyAnswer(operation=OperationAnswer.of(await of_caller(id)))


async def of_caller(id: str) -> Operation:
    """Read an operation that the caller asked for. Raises NotFound."""
    found = await operations.find(service().database, id)
    if found is None or found.user_id != caller().user_id:
        raise NotFound(
            "This operation doesn't exist, has expired, or belongs to another user. Check its id."
        )
    return found
