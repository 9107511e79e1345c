"""Changes that agents make in a shop, under one contract: key, plan, version, audit (rules/agents#tools)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, cast

import orjson

from tolsey.actors.edit import Edit
from tolsey.actors.ports import CommerceEditor, PlatformDenied, PlatformUnreachable
from tolsey.actors.refusals import Conflict, Refusal, Unprocessable
from tolsey.actors.store.editing import edits
from tolsey.actors.store.editing.asking import EditRequest, PlannedEdit, ShopEditor
from tolsey.actors.store.grants import to_platform_refusal
from tolsey.actors.store.messages import store
from tolsey.http.answers.money.credits import written_out
from tolsey.http.mcp.call import ToolCall
from tolsey.http.mcp.gate import Principal
from tolsey.http.mcp.registry import InputRequired, Tool, ToolResult
from tolsey.http.mcp.server import answer_to
from tolsey.http.mcp.tools.building import reading
from tolsey.http.mcp.tools.competitors.scanning import ScanWriter
from tolsey.http.mcp.tools.deals.drafting import OfferReplyWriter
from tolsey.http.mcp.tools.launch.running import RequestLaunchProbe, RunLaunchMilestone
from tolsey.http.mcp.tools.schemas import answer_schema_of, schema_of
from tolsey.http.mcp.tools.writes.changes import CHANGES
from tolsey.http.mcp.tools.writes.contract import EditArguments, WriteResult, WriteTool
from tolsey.http.mcp.tools.writes.many import ManyWriter
from tolsey.http.mcp.tools.writes.memory import DeleteMemory, SaveMemory
from tolsey.http.mcp.tools.writes.operations import (
    id_of,
    is_known,
    on_record,
    put_on_record,
    result_of,
    shown,
    turned_away,
    wanted,
)
from tolsey.http.mcp.tools.writes.plans import Plans, digest_of
from tolsey.http.mcp.tools.writes.refresh import Refresh
from tolsey.http.web.context import Service
from tolsey.storage.commerce import agent_operations

ELICIT: Final = "elicitation/create"
CONFIRM: Final = "confirm"
PLAN_FIRST: Final = (
    "This is shown before it is done: call it with dry_run first, and with the plan_token that it"
    " answers."
)
ANSWER_SECONDS: Final = 30.0
"""How long a change may take before its agent is told to ask for it later."""
SHOWN: Final = 300
"""How much of a text a person is shown before they confirm."""


def writers(service: Service) -> Sequence[Tool]:
    """List the tools that change something."""
    editor = ShopEditor(
        ask=service.runtime.ask,
        editor=cast("CommerceEditor", service.commerce),
        vault=service.vault,
        clock=service.clock,
    )
    writer = Writer(service, editor)
    recorded = (
        Refresh,
        ScanWriter,
        SaveMemory,
        DeleteMemory,
        RunLaunchMilestone,
        RequestLaunchProbe,
        OfferReplyWriter,
    )
    return [
        *(writer.tool(change) for change in CHANGES),
        ManyWriter(service, editor).tool(),
        *(one(service).tool() for one in recorded),
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedChange:
    """What a call asks to have changed, as it was read."""

    tool: WriteTool
    principal: Principal
    given: EditArguments
    edit: Edit

    @property
    def operation_id(self) -> str:
        """The operation that this becomes."""
        return id_of(self.principal, self.given.idempotency_key)

    @property
    def planned(self) -> str:
        """Name what a plan of this is bound to: the version is what the plan itself tells."""
        return digest_of(self.tool.name, wanted(self.given, but="expected_version"))

    @property
    def request(self) -> EditRequest:
        """Say it as the store is asked."""
        return EditRequest(
            store_id=self.principal.store_id,
            operation_id=self.operation_id,
            user_id=self.principal.user_id,
            client_id=self.principal.client_id,
            tool=self.tool.name,
            digest=digest_of(self.tool.name, wanted(self.given)),
            edit=self.edit,
        )


class Writer:
    """Makes changes for whoever the gate admitted."""

    def __init__(self, service: Service, editor: ShopEditor) -> None:
        self._service = service
        self._editor = editor
        self._plans = Plans(service.vault, service.clock)

    def tool(self, change: WriteTool) -> Tool:
        """Make the tool of a change."""

        async def called(call: ToolCall, given: EditArguments) -> ToolResult | InputRequired:
            return await on_record(
                self._service, call, change.name, given, self._answer(change, call, given)
            )

        return Tool(
            change.name,
            change.title,
            change.description,
            change.hints,
            schema_of(change.arguments),
            reading(change.arguments),
            called,
            answer_schema_of(WriteResult),
            frozenset({change.scope}),
            turned_away(self._service, change.name),
        )

    async def _answer(
        self, change: WriteTool, call: ToolCall, given: EditArguments
    ) -> ToolResult | InputRequired:
        principal: Principal = call.principal
        asked = AskedChange(tool=change, principal=principal, given=given, edit=change.edit(given))
        kept = await agent_operations.known(
            self._service.database, principal.store_id, asked.operation_id
        )
        if is_known(kept):
            # What was asked before is answered as it was, however it is asked now.
            return await self._begin(asked, is_repeat=True)
        await self._editor.require_grant(principal.store_id, asked.edit)
        if given.dry_run:
            return await self._planned(asked)
        needs_person = edits.KINDS[asked.edit.kind].needs_person
        # No agent's word that its user agreed is taken where money goes back (rules/agents#refunds).
        if needs_person and given.plan_token is None:
            raise Unprocessable(PLAN_FIRST, code="plan_required")
        if change.needs_plan and given.plan_token is None:
            reviewed = await self._reviewed(asked, call)
            if not isinstance(reviewed, str):
                return reviewed
        elif given.plan_token is not None:
            reviewed = self._plans.take(principal, asked.planned, given.plan_token)
        else:
            reviewed = None
        if reviewed and given.expected_version and reviewed != given.expected_version:
            raise Conflict(
                "expected_version doesn't match the plan's version. Fetch the item again and"
                " make a new plan.",
                code="version_changed",
            )
        version = given.expected_version or reviewed
        asked = replace(asked, edit=replace(asked.edit, version=version))
        # It waits for a person, who is shown what its plan showed.
        proposed = await self._fit(asked) if needs_person else None
        return await self._begin(asked, proposed=proposed)

    async def _planned(self, asked: AskedChange) -> ToolResult:
        """Show what a change would do, and change nothing."""
        version = asked.given.expected_version
        plan = await self._look(replace(asked, edit=replace(asked.edit, version=version)))
        result = WriteResult(
            operation_id=asked.operation_id,
            status="planned" if plan.rejected is None else "rejected",
            before=plan.before,
            after=plan.after,
            version=plan.version or None,
            audit_id=await put_on_record(
                self._service, asked.principal, "planned", asked.tool.name, asked.operation_id
            ),
        )
        if plan.rejected is not None:
            said = {"code": plan.rejected.code, "detail": plan.rejected.detail}
            return shown(result.model_copy(update=said))
        given = self._plans.give(asked.principal, asked.planned, plan.version)
        said_of_plan = {"plan_token": given.token, "plan_expires_at": given.expires_at}
        return shown(result.model_copy(update=said_of_plan))

    async def _reviewed(self, asked: AskedChange, call: ToolCall) -> str | InputRequired:
        """Answer the version that a person confirmed, or ask them where their client can."""
        if not can_ask(call):
            raise Unprocessable(
                PLAN_FIRST,
                code="plan_required",
            )
        answer = answer_to(call, CONFIRM, ELICIT)
        if answer is not None and isinstance(call.state, str):
            # Only with the state that we gave out was anybody asked.
            content = answer.get("content")
            said_yes = isinstance(content, Mapping) and content.get(CONFIRM) is True
            if answer["action"] == "accept" and said_yes:
                return call.state
            raise Refusal(
                "The user declined this change. Don't retry it unless the user asks for it.",
                status=409,
                code="declined",
            )
        plan = await self._fit(asked)
        await put_on_record(
            self._service, call.principal, "asked", asked.tool.name, asked.operation_id
        )
        return InputRequired({CONFIRM: form(asked, plan)}, state=plan.version)

    async def _begin(
        self, asked: AskedChange, *, is_repeat: bool = False, proposed: PlannedEdit | None = None
    ) -> ToolResult:
        """Hand the change to the store, which makes it once, and answer what became of it."""
        service, store_id = self._service, asked.principal.store_id
        wish = self._editor.begin_message(asked.request, is_repeat=is_repeat, proposed=proposed)
        view = await service.runtime.ask(store(store_id), wish, timeout=ANSWER_SECONDS)
        audit_id = await agent_operations.audit_id(service.database, store_id, asked.operation_id)
        result = result_of(view, audit_id)
        if result.status == "proposed":
            where = f"{service.settings.base_url}/stores/{store_id}/proposals"
            told = f"Nothing was done yet: an owner or admin of the store decides at {where}."
            result = result.model_copy(update={"detail": told})
        return shown(result)

    async def _fit(self, asked: AskedChange) -> PlannedEdit:
        """Plan a change that somebody is to confirm. Raises Conflict where the shop does not allow it."""
        plan = await self._look(asked)
        if plan.rejected is not None:
            raise Conflict(plan.rejected.detail, code=plan.rejected.code)
        return plan

    async def _look(self, asked: AskedChange) -> PlannedEdit:
        try:
            return await self._editor.plan(asked.principal.store_id, asked.edit)
        except (PlatformDenied, PlatformUnreachable) as error:
            raise to_platform_refusal(error) from error


def can_ask(call: ToolCall) -> bool:
    """Whether the client can show its user a form in the middle of this call."""
    declared = call.request.capabilities.get("elicitation")
    if not call.request.is_modern or not isinstance(declared, Mapping):
        return False
    return not declared or "form" in declared


def form(asked: AskedChange, plan: PlannedEdit) -> dict[str, Any]:
    """Ask a person whether a change is to be made, showing what it does."""
    before, after = plan.before or {}, plan.after or {}
    lines = [f"{asked.tool.title} ({edits.subject_of(asked.edit)})?"]
    lines += [f"{name}: {_short(before[name])} -> {_short(after[name])}" for name in after]
    schema = {
        "type": "object",
        "properties": {CONFIRM: {"type": "boolean", "title": "Make this change", "default": False}},
        "required": [CONFIRM],
    }
    params = {"mode": "form", "message": "\n".join(lines), "requestedSchema": schema}
    return {"method": ELICIT, "params": params}


def _short(value: Any) -> str:
    text = orjson.dumps(written_out(value)).decode()
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"
