"""What machines that watch or call the service are told, and how far operations and jobs are."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, Self

import orjson
from pydantic import ConfigDict, Field

from tolsey.actors.store.editing import edits
from tolsey.actors.store.editing.change_sets import MANY, state_of
from tolsey.http.answers.base import ApiAnswer, Omittable, Timestamp
from tolsey.http.answers.money.credits import written_out
from tolsey.storage.records.commerce.agent_operation import AgentOperation, OperationState
from tolsey.storage.records.intelligence import ScanStage, StorefrontScan
from tolsey.storage.records.runtime.executions import Execution
from tolsey.storage.records.runtime.operations import Operation, Stage


class ChecksAnswer(ApiAnswer):
    """Whether what the service stands on answers."""

    db: bool
    cache: bool


class HealthAnswer(ApiAnswer):
    """Whether the service serves; the reason why not is in its log."""

    ok: bool
    checks: ChecksAnswer
    version: str


class RefusedAnswer(ApiAnswer):
    """The refusal that whoever asked gets instead of a result."""

    status: int | None
    code: str
    detail: str | None


STAGES: Final[Mapping[str, Stage]] = {
    OperationState.PROPOSED: "running",
    OperationState.WAITING: "running",
    OperationState.STOPPED: "running",
    OperationState.RUNNING: "running",
    OperationState.SENT: "running",
    OperationState.UNKNOWN: "running",
    OperationState.APPLIED: "done",
    OperationState.REJECTED: "refused",
    OperationState.UNCLEAR: "failed",
    OperationState.NOT_SENT: "failed",
}
"""How far an agent's edit is, as everything else that takes calls is told."""


SCAN_STAGES: Final[Mapping[ScanStage, Stage]] = {
    "queued": "running",
    "running": "running",
    "done": "done",
    "failed": "failed",
    "cancelled": "refused",
}
"""How far a scan of a storefront is, likewise."""

NOT_SCANNED: Final[Mapping[ScanStage, str]] = {
    "failed": "scan_failed",
    "cancelled": "scan_cancelled",
}
"""The codes of scans that came to nothing."""


class OperationAnswer(ApiAnswer):
    """How far something is that takes calls to the outside.

    `result` is what its route answers with when it is done at once, `error` why it is not done, or stopped.
    Of many that were planned together each is one of `changes`.
    """

    id: str
    kind: str
    state: Stage
    created_at: Timestamp
    finished_at: Timestamp | None
    result: Omittable[dict[str, Any]] = None
    error: Omittable[RefusedAnswer] = None
    changes: Omittable[list["OperationAnswer"]] = None

    @classmethod
    def of(cls, operation: Operation) -> Self:
        """Show an operation to whoever asked for it."""
        refused = None
        if operation.code is not None:
            refused = RefusedAnswer(
                status=operation.status, code=operation.code, detail=operation.detail
            )
        return cls.read(
            operation,
            result=orjson.loads(operation.result or "{}") if operation.state == "done" else None,
            error=refused,
            changes=None,
        )

    @classmethod
    def of_edit(cls, edit: AgentOperation) -> Self:
        """Show what an agent had changed in a shop; `undo` is what its tool is given to have it as before."""
        stage, refused = STAGES[edit.state], None
        result = None
        if stage == "done":
            before, after = orjson.loads(edit.before or "{}"), orjson.loads(edit.after or "{}")
            result = {"before": before, "after": after, "version": edit.version}
            undo = _undo_of(edit)
            if undo is not None:
                result["undo"] = undo
        elif stage != "running" or edit.state == OperationState.STOPPED:
            refused = RefusedAnswer(status=None, code=edit.code or edit.state, detail=edit.detail)
        return cls(
            id=edit.operation_id,
            kind=edit.tool,
            state=stage,
            created_at=edit.created_at,
            finished_at=edit.finished_at,
            result=result,
            error=refused,
        )

    @classmethod
    def of_scan(cls, scan: StorefrontScan, result: ApiAnswer | None) -> Self:
        """Show a scan to whoever asked for it; `result` is what it came to when it is done."""
        code = NOT_SCANNED.get(scan.state)
        return cls(
            id=scan.id,
            kind="scan",
            state=SCAN_STAGES[scan.state],
            created_at=scan.asked_at,
            finished_at=scan.ended_at,
            result=None if result is None else result.model_dump(mode="json"),
            error=RefusedAnswer(status=None, code=code, detail=None) if code else None,
        )

    @classmethod
    def of_many(cls, changes: Sequence[AgentOperation]) -> Self:
        """Show what an agent had planned together; `undo` is what takes back all that was made, the last first."""
        first = changes[0]
        ends = [one.finished_at for one in changes if one.finished_at is not None]
        is_over = len(ends) == len(changes)
        result: dict[str, Any] = {"status": state_of(changes)}
        undone = [undo for one in reversed(changes) if (undo := _undo_of(one)) is not None]
        if is_over and undone:
            told = [{**one, "arguments": orjson.dumps(one["arguments"]).decode()} for one in undone]
            result["undo"] = {"tool": MANY, "arguments": {"changes": told}}
        return cls(
            id=first.change_set or "",
            kind=MANY,
            state="done" if is_over else "running",
            created_at=first.created_at,
            finished_at=max(ends) if is_over else None,
            result=result,
            changes=[OperationAnswer.of_edit(one) for one in changes],
        )


def _undo_of(edit: AgentOperation) -> dict[str, Any] | None:
    """Say what has a thing as it was before an edit that was made; None where nothing does."""
    if edit.state != OperationState.APPLIED:
        return None
    before, after = orjson.loads(edit.before or "{}"), orjson.loads(edit.after or "{}")
    undo = edits.undo(edit.tool, edit.subject, before, after, edit.version)
    return None if undo is None else {"tool": edit.tool, "arguments": written_out(undo)}


class OperationBodyAnswer(ApiAnswer):
    """An operation, where a route answers that it takes longer."""

    operation: OperationAnswer


class OutcomeAnswer(ApiAnswer):
    """How a run of a job ended: its status, what it counted, its error if it has one."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, bool | int | str] = Field(init=False)

    status: str
    error: Omittable[str] = None

    @classmethod
    def of(cls, execution: Execution) -> Self:
        """Show how a run ended."""
        counted = orjson.loads(execution.outcome or "{}")
        return cls(status=execution.status, error=execution.error, **counted)


class RunAnswer(ApiAnswer):
    """What a call of a job's address came to."""

    job: str
    execution_id: str
    outcome: OutcomeAnswer


class ExecutionAnswer(ApiAnswer):
    """A run of a job."""

    execution_id: str
    trigger: str
    scheduled_at: Timestamp
    started_at: Timestamp
    finished_at: Timestamp | None
    status: str
    outcome: OutcomeAnswer
    error: str | None

    @classmethod
    def of(cls, execution: Execution, **more: Any) -> Self:
        """Show a run."""
        outcome = OutcomeAnswer.of(execution)
        return cls.read(execution, execution_id=execution.id, outcome=outcome, **more)


class NamedExecutionAnswer(ExecutionAnswer):
    """A run that an operator asked for."""

    job: str


class RunningAnswer(ApiAnswer):
    """A run that goes on without whoever asked for it."""

    job: str
    execution_id: str
    status: str


class PlannedRunAnswer(ApiAnswer):
    """What a run of a job would be: what it is for, the run that it would join, and how the last one ended."""

    job: str
    does: str
    joins: str | None
    last: ExecutionAnswer | None


class JobAnswer(ApiAnswer):
    """A job: when it is due, its last runs and what they counted."""

    name: str
    expression: str
    reason: str
    next_due_at: Timestamp
    history: list[ExecutionAnswer]
