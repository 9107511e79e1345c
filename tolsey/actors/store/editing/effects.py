"""The calls that make what agents ask for in a shop: planned, sent once, and looked for afterwards."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from functools import wraps
from typing import Any, Final

import orjson
import structlog

from tolsey.actors.edit import Edit
from tolsey.actors.ports import (
    CommerceEditor,
    EditRefused,
    PlatformDenied,
    PlatformError,
    PlatformThrottled,
    PlatformUnreachable,
)
from tolsey.actors.reach import Ask
from tolsey.actors.refusals import Refusal
from tolsey.actors.store.editing import edits
from tolsey.actors.store.editing.kinds.kind import MISSING, EditVerdict, Planned, Rejected
from tolsey.actors.store.editing.messages import (
    CarryOut,
    OperationApplied,
    OperationNotSent,
    OperationOvertaken,
    OperationRejected,
    OperationSending,
    OperationUnanswered,
    SendEdit,
)
from tolsey.actors.store.effects import shops
from tolsey.actors.store.grants import to_platform_refusal
from tolsey.actors.store.launch.stops import LAUNCH_CLIENT
from tolsey.runtime.messages import Call, LookFirst, Message
from tolsey.storage.commerce import agent_operations
from tolsey.storage.database import Database
from tolsey.storage.records.commerce.agent_operation import AgentOperation, OperationState
from tolsey.storage.sealing.sealed import SealBroken, Vault

log = structlog.get_logger()

KEY_HONOURED: Final = timedelta(hours=1)
"""How long after an operation began its key is relied on; the platform forgets keys at some time."""

CHANGED_SINCE: Final = "The change was applied, but another user edited the item afterwards. Check the item in the shop."

Told = Message[Any]
Step = Callable[["EditCalls", AgentOperation, Edit], Awaitable[Told]]


def _or_not_sent(step: Step) -> Step:
    """Say of what the platform or the store refuses that it was not sent, and why."""

    @wraps(step)
    async def told(self: "EditCalls", kept: AgentOperation, edit: Edit) -> Told:
        try:
            return await step(self, kept, edit)
        except Refusal as refusal:
            return self._not_sent(kept, refusal)
        except (PlatformDenied, PlatformUnreachable) as error:
            is_throttled = isinstance(error, PlatformThrottled)
            return self._not_sent(kept, to_platform_refusal(error), is_throttled=is_throttled)

    return told


class EditCalls:
    """Plans an edit from what the shop is, sends it, or finds out what became of it."""

    def __init__(
        self,
        *,
        ask: Ask,
        editor: CommerceEditor,
        database: Database,
        vault: Vault,
        clock: Callable[[], datetime],
    ) -> None:
        self._shops = shops(ask, vault, clock)
        self._editor = editor
        self._database = database
        self._vault = vault
        self._clock = clock

    def handlers(self) -> dict[type[Call[Any]], Any]:
        """Say which method answers which call."""
        return {CarryOut: self.carry_out, SendEdit: LookFirst(self.send, self.look)}

    async def carry_out(self, call: CarryOut) -> Told | None:
        """Plan an edit that was not sent yet, and look for one that was."""
        kept = await agent_operations.find(self._database, call.store_id, call.operation_id)
        if kept is None or kept.is_over or kept.intent is None:
            return None
        is_new = kept.state == OperationState.RUNNING
        try:
            edit = self._read(kept)
        except SealBroken:
            if not is_new:
                return self._unanswered(kept, EditVerdict.UNCLEAR)
            return self._rejected(
                kept,
                "unreadable",
                "The stored request was written by another version and can't be read. Send the"
                " request again.",
            )
        return await (self._plan(kept, edit) if is_new else self._find_out(kept, edit))

    async def send(self, call: SendEdit) -> Told | None:
        """Send an edit as it was planned, unless it has ended meanwhile."""
        return await self._with(call, self._send)

    async def look(self, call: SendEdit) -> Told | None:
        """Find out what became of an edit that may have been sent: it is never sent as if it were new."""
        return await self._with(call, self._find_out)

    async def _with(self, call: SendEdit, step: Callable[..., Awaitable[Told]]) -> Told | None:
        kept = await agent_operations.find(self._database, call.store_id, call.operation_id)
        if kept is None or kept.is_over or kept.sends != call.sends:
            return None
        try:
            edit = self._read(kept)
        except SealBroken:
            return self._unanswered(kept, EditVerdict.UNCLEAR)
        return await step(kept, edit)

    @_or_not_sent
    async def _plan(self, kept: AgentOperation, edit: Edit) -> Told:
        """Say what is to be sent, or why nothing is."""
        facts = await self._look(kept, edit)
        planned = edits.plan(edit, facts)
        if facts is None or isinstance(planned, Rejected):
            return self._unfit(kept, edit, facts, planned)
        before = edits.shown(edit, facts)
        if planned.change is None:
            return self._applied(kept, edit, before, planned.after)
        intent = agent_operations.seal_intent(
            self._vault,
            kept.store_id,
            kept.operation_id,
            replace(edit, change=planned.change, planned=edits.version_of(edit, facts)).written(),
        )
        told = orjson.dumps(before).decode()
        return OperationSending(
            operation_id=kept.operation_id,
            sends=kept.sends,
            before=told,
            at=self._clock(),
            intent=intent,
        )

    @_or_not_sent
    async def _send(self, kept: AgentOperation, edit: Edit) -> Told:
        """Send the change that was planned, if its thing is still as it was planned from.

        Of stock alone the platform compares that itself; of all else we read it right before, and look right after
        whether it is as it was made (rules/agents#races). The next step of a launch looks at all that it made: it needs
        no look at each.
        """
        is_compared = edits.KINDS[edit.kind].is_compared
        if not is_compared and edit.planned is not None:
            found = await self._look(kept, edit)
            if found is None or edits.version_of(edit, found) != edit.planned:
                return OperationOvertaken(kept.operation_id, kept.sends, self._clock())
        try:
            after = await self._change(kept, edit)
        except EditRefused as refused:
            return self._refused(kept, refused)
        except PlatformUnreachable as error:
            if not error.maybe_done:
                raise
            return await self._find_out(kept, edit)
        told = self._applied(kept, edit, _before(kept), after)
        is_looked_at = is_compared or kept.client_id == LAUNCH_CLIENT
        if is_looked_at or await self._stands(kept, edit):
            return told
        return replace(told, code="changed_since", detail=CHANGED_SINCE)

    async def _stands(self, kept: AgentOperation, edit: Edit) -> bool:
        """Tell that a thing is not another than it was made; one that is not seen yet may be read late."""
        try:
            found = await self._look(kept, edit)
        except (Refusal, PlatformError) as error:
            log.warning("agent.operation_unseen", store_id=kept.store_id, why=str(error))
            return True
        return edits.verdict(edit, _before(kept), found) is not EditVerdict.UNCLEAR

    async def _find_out(self, kept: AgentOperation, edit: Edit) -> Told:
        """Find out what became of a change whose answer was lost, by its key or from the shop.

        Stock is adjusted under a key that the platform honours (rules/shops#writing-to-the-platform): sent
        again it is made once, and nobody waits for the item. Other changes carry none.
        """
        began = kept.decided_at or kept.created_at
        is_fresh = self._clock() - began < KEY_HONOURED
        if edits.KINDS[edit.kind].is_keyed and edit.change is not None and is_fresh:
            try:
                after = await self._change(kept, edit)
            except EditRefused as refused:
                return self._refused(kept, refused)  # what is stale by now was never made
            except (Refusal, PlatformError) as error:
                log.warning("agent.operation_unanswered", store_id=kept.store_id, why=str(error))
            else:
                return self._applied(kept, edit, _before(kept), after)
        try:
            found = await self._look(kept, edit)
        except (Refusal, PlatformError) as error:
            log.warning("agent.operation_unseen", store_id=kept.store_id, why=str(error))
            return self._unanswered(kept, EditVerdict.UNCLEAR)
        verdict = edits.verdict(edit, _before(kept), found)
        if found is not None and verdict is EditVerdict.APPLIED:
            return self._applied(kept, edit, _before(kept), found)
        return self._unanswered(kept, verdict)

    def _read(self, kept: AgentOperation) -> Edit:
        sealed = kept.intent or ""
        whose = kept.store_id, kept.operation_id
        return Edit.read(agent_operations.open_intent(self._vault, *whose, sealed))

    async def _look(self, kept: AgentOperation, edit: Edit) -> Mapping[str, Any] | None:
        """Read the thing as it is now."""
        return await self._shops.call(kept.store_id, lambda shop: self._editor.look(shop, edit))

    async def _change(self, kept: AgentOperation, edit: Edit) -> Mapping[str, Any]:
        """Make the change, under the same key whichever token it is sent with."""
        key = f"{kept.operation_id}:{kept.sends - 1}"
        return await self._shops.call(
            kept.store_id, lambda shop: self._editor.change(shop, edit, key)
        )

    def _applied(
        self, kept: AgentOperation, edit: Edit, before: Mapping[str, Any], after: Mapping[str, Any]
    ) -> OperationApplied:
        return OperationApplied(
            operation_id=kept.operation_id,
            before=orjson.dumps(dict(before)).decode(),
            after=orjson.dumps(edits.shown(edit, after)).decode(),
            version=edits.version_of(edit, after),
            at=self._clock(),
        )

    def _unfit(
        self,
        kept: AgentOperation,
        edit: Edit,
        facts: Mapping[str, Any] | None,
        planned: Planned | Rejected,
    ) -> Told:
        """Say why the shop as it is now does not allow the change, and what it is."""
        why = planned if isinstance(planned, Rejected) else MISSING
        if facts is None:
            return self._rejected(kept, why.code, why.detail)
        told = orjson.dumps(edits.shown(edit, facts)).decode()
        return self._rejected(kept, why.code, why.detail, told, edits.version_of(edit, facts))

    def _refused(self, kept: AgentOperation, refused: EditRefused) -> Told:
        if refused.stale:
            return OperationOvertaken(kept.operation_id, kept.sends, self._clock())
        rejected = self._rejected(kept, "commerce_rejected", refused.message)
        return replace(rejected, platform_code=refused.code)

    def _rejected(
        self,
        kept: AgentOperation,
        code: str,
        detail: str,
        before: str | None = None,
        version: str | None = None,
    ) -> OperationRejected:
        return OperationRejected(
            operation_id=kept.operation_id,
            code=code,
            detail=detail,
            before=before,
            version=version,
            at=self._clock(),
        )

    def _not_sent(
        self, kept: AgentOperation, refusal: Refusal, *, is_throttled: bool = False
    ) -> Told:
        return OperationNotSent(
            operation_id=kept.operation_id,
            status=refusal.status,
            code=refusal.code,
            detail=refusal.detail,
            retry_after=refusal.fields.get("retryAfter"),
            at=self._clock(),
            platform_status=refusal.fields.get("platformStatus"),
            scope=refusal.fields.get("scope"),
            is_throttled=is_throttled,
        )

    def _unanswered(self, kept: AgentOperation, verdict: EditVerdict) -> Told:
        is_unchanged = verdict is EditVerdict.UNCHANGED
        return OperationUnanswered(kept.operation_id, is_unchanged=is_unchanged, at=self._clock())


def _before(kept: AgentOperation) -> Mapping[str, Any]:
    """Read how the thing was shown when the change was planned."""
    found: Mapping[str, Any] = orjson.loads(kept.before or "{}")
    return found
