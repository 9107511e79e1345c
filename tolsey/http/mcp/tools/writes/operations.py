"""What all write tools share: the operation of a key, its answer, and a row in the audit log per call."""

import hashlib
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, Final, TypeVar

import orjson

from tolsey.actors.refusals import Refusal, Unavailable
from tolsey.actors.store.editing.messages import OperationView
from tolsey.http.answers.money.credits import written_out
from tolsey.http.mcp.call import ToolCall
from tolsey.http.mcp.gate import Principal
from tolsey.http.mcp.registry import ToolFailed, ToolResult
from tolsey.http.mcp.tools.building import answered, tool_error
from tolsey.http.mcp.tools.writes.contract import Status, WriteArguments, WriteResult
from tolsey.http.mcp.wire import RpcError
from tolsey.http.web.context import Service
from tolsey.runtime import errors
from tolsey.storage.commerce import agent_operations
from tolsey.storage.errors import StorageError
from tolsey.storage.records.commerce.agent_operation import AgentOperation, OperationState

Found = TypeVar("Found")

REFUSED: Final = "refused"
UNSAID: Final = frozenset({"idempotency_key", "dry_run", "plan_token"})
"""ToolArguments that do not say what is wanted."""


async def on_record(
    service: Service, call: ToolCall, tool: str, given: WriteArguments, answer: Awaitable[Found]
) -> Found:
    """Wait for a tool's answer; what is none is put on record too, and told where it belongs."""
    principal: Principal = call.principal
    operation_id = id_of(principal, given.idempotency_key)
    try:
        return await answer
    except errors.DeadlineExceeded as error:
        await put_on_record(service, principal, "pending", tool, operation_id)
        raise ToolFailed(
            "The operation is still running. Check it with get_operation, or repeat the call"
            " with the same idempotency_key.",
            code="operation_pending",
            operation_id=operation_id,
        ) from error
    except (errors.Overloaded, errors.ShardUnavailable) as fault:
        wait = max(1, round(fault.retry_after))
        refusal: Refusal = Unavailable(
            "The store can't be changed at the moment. Try again with the same idempotency_key.",
            retryAfter=wait,
        )
        with suppress(StorageError):  # what is away may be the disk that the row belongs on
            await put_on_record(service, principal, REFUSED, tool, operation_id, code=refusal.code)
        raise tool_error(refusal) from fault
    except Refusal as refused:
        await put_on_record(service, principal, REFUSED, tool, operation_id, code=refused.code)
        raise tool_error(refused) from refused
    except RpcError as error:
        said = error.data if isinstance(error.data, dict) else {}
        code = said.get("code", "invalid_request")
        await put_on_record(service, principal, REFUSED, tool, operation_id, code=code)
        raise


def turned_away(service: Service, tool: str) -> Callable[[ToolCall, str], Awaitable[None]]:
    """Put calls of a tool on record that never came as far as to name an operation."""

    async def note(call: ToolCall, code: str) -> None:
        await put_on_record(service, call.principal, REFUSED, tool, None, code=code)

    return note


async def put_on_record(
    service: Service,
    principal: Principal,
    what: str,
    tool: str,
    operation_id: str | None,
    **more: Any,
) -> str:
    """Put a call that changed nothing on record; answers the audit row's id."""
    if operation_id is not None:
        more = {"operationId": operation_id, **more}
    return await agent_operations.put_on_record(
        service.database,
        f"{agent_operations.EVENT}.{what}",
        principal.store_id,
        principal.organization_id,
        principal.user_id,
        clientId=principal.client_id,
        tool=tool,
        **more,
    )


def id_of(principal: Principal, key: str) -> str:
    """Name an operation by its key: the same for every client of a user, since clients come and go."""
    named = f"{principal.store_id}\n{principal.user_id}\n{key}"
    return f"op_{hashlib.sha256(named.encode()).hexdigest()[:32]}"


def result_of(view: OperationView, audit_id: str | None) -> WriteResult:
    """Write down what became of an operation."""
    status: Status = "unknown"
    if view.state == OperationState.APPLIED:
        status = "replayed" if view.replayed else "applied"
    elif view.state == OperationState.PROPOSED:
        status = "proposed"
    elif view.state == OperationState.REJECTED:
        status = "rejected"
    return WriteResult(
        operation_id=view.operation_id,
        status=status,
        before=None if view.before is None else orjson.loads(view.before),
        after=None if view.after is None else orjson.loads(view.after),
        version=view.version,
        audit_id=audit_id,
        code=view.code,
        detail=view.detail,
    )


def shown(result: WriteResult) -> ToolResult:
    """Make the answer: what was not done is an error that the model is told."""
    values = {"before": written_out(result.before), "after": written_out(result.after)}
    is_error = result.status in {"rejected", "unknown"}
    return answered(result.model_copy(update=values), is_error=is_error)


def wanted(given: WriteArguments, but: str = "") -> dict[str, Any]:
    """Say what a call wants, whichever way and however often it asks."""
    return given.model_dump(mode="json", exclude={*UNSAID, but})


def is_known(kept: AgentOperation | None) -> bool:
    """Whether a key was used before, and for more than a try that came to nothing."""
    return kept is not None and kept.state != OperationState.NOT_SENT
