"""An export of a store as a file: asked for once at a time, written by a call."""

from typing import Final

from tolsey.actors.organization.files.messages import (
    AskForExport,
    ExportGivenUp,
    ExportKept,
    KeepExport,
)
from tolsey.actors.organization.operations import under_way
from tolsey.actors.organization.state import OrganizationState
from tolsey.actors.refusals import Refusal
from tolsey.runtime.decision import Decision, Perform
from tolsey.storage.records.journal import audit_record
from tolsey.storage.records.runtime.operations import Operation

EXPORT: Final = "store_export"


def begin(
    state: OrganizationState, message: AskForExport, kept: Operation | None
) -> Decision[OrganizationState, Operation]:
    """Begin to write an export, unless one of the store is being written; `kept` is what is on disk of it."""
    known = under_way.known(state, message.operation_id, kept) or under_way.about(
        state, EXPORT, message.store_id
    )
    if known is not None:
        return under_way.answer(state, known)
    operation = Operation(
        id=message.operation_id,
        organization_id=state.organization_id,
        user_id=message.user_id,
        kind=EXPORT,
        subject=message.store_id,
        state="running",
        wanted="{}",
        created_at=message.at,
    )
    call = KeepExport(
        organization_id=state.organization_id,
        operation_id=operation.id,
        store_id=message.store_id,
        user_id=message.user_id,
        file_id=operation.id.replace("operation_", "file_", 1),
        at=message.at,
    )
    audit = audit_record(
        "store.export_requested", message.store_id, state.organization_id, message.user_id
    )
    return Decision(
        under_way.begin(state, operation),
        operation,
        records=(audit,),
        effects=(Perform(call, key=f"export:{operation.id}"),),
    )


def kept(state: OrganizationState, message: ExportKept) -> Decision[OrganizationState, None]:
    """Say which file it is."""
    operation = under_way.find(state, message.operation_id)
    if operation is None:
        return Decision(state, None)
    facts = {"fileId": message.file_id, "sha256": message.sha256, "size": message.size}
    return under_way.end(Decision(state, None), operation, message.at, result=facts)


def given_up(state: OrganizationState, message: ExportGivenUp) -> Decision[OrganizationState, None]:
    """Say that there will be no file."""
    operation = under_way.find(state, message.operation_id)
    if operation is None:
        return Decision(state, None)
    why = Refusal(
        "The export couldn't be created. Request it again in a few minutes.",
        status=503,
        code="files_unavailable",
    )
    return under_way.end(Decision(state, None), operation, message.at, why=why)
