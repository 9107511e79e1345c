"""Changes that agents make in a shop, under one contract: key, plan, version, audit (rules/agents#tools)."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, cast

import orjson

from tolsey.actors.edit import Edit
from tolsey.actors.ports import CommerceEditor, PlatformDenied, PlatformUnreachable
from tolsey.actors.refusals import Conflict, Refusal, Unprocessable
from tolsey.actors.store.connection.messages import UseToken
from tolsey.actors.store.editing import edits
from tolsey.actors.store.editing.kinds.kind import MISSING, Planned, Rejected
from tolsey.actors.store.editing.messages import BeginOperation
from tolsey.actors.store.effects import shops
from tolsey.actors.store.grants import lacking
from tolsey.actors.store.messages import store
from tolsey.http.answers.money import written_out
from tolsey.http.mcp.call import ToolCall
from tolsey.http.mcp.gate import Principal
from tolsey.http.mcp.registry import InputRequired, Tool, ToolResult
from tolsey.http.mcp.server import answer_to
from tolsey.http.mcp.tools.building import reading
from tolsey.http.mcp.tools.platform.reading import refusal_of
from tolsey.http.mcp.tools.schemas import answer_schema_of, schema_of
from tolsey.http.mcp.tools.writes.changes import CHANGES
from tolsey.http.mcp.tools.writes.contract import EditArguments, WriteResult, WriteTool
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
    writer = Writer(service)
    recorded = (Refresh, SaveMemory, DeleteMemory)
    return [
        *(writer.tool(change) for change in CHANGES),
        *(one(service).tool() for one in recorded),
    ]


class Writer:
    """Makes changes for whoever the gate admitted."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._editor = cast("CommerceEditor", service.commerce)
        self._shops = shops(service.runtime.ask, service.vault, service.clock)
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
        digest = digest_of(change.name, wanted(given))
        operation_id = id_of(principal, given.idempotency_key)
        edit = change.edit(given)
        kept = await agent_operations.find(self._service.database, principal.store_id, operation_id)
        if is_known(kept):
            # What was asked before is answered as it was, however it is asked now.
            return await self._begin(change, principal, given, edit, digest, is_repeat=True)
        await self._check_grant(principal, edits.KINDS[edit.kind].platform_scope)
        if given.dry_run:
            return await self._planned(change, principal, given, edit)
        needs_person = edits.KINDS[edit.kind].needs_person
        # No agent's word that its user agreed is taken where money goes back (rules/agents#refunds).
        if needs_person and given.plan_token is None:
            raise Unprocessable(PLAN_FIRST, code="plan_required")
        if change.needs_plan and given.plan_token is None:
            reviewed = await self._reviewed(change, call, edit, key=given.idempotency_key)
            if not isinstance(reviewed, str):
                return reviewed
        elif given.plan_token is not None:
            planned = digest_of(change.name, wanted(given, but="expected_version"))
            reviewed = self._plans.take(principal, planned, given.plan_token)
        else:
            reviewed = None
        if reviewed and given.expected_version and reviewed != given.expected_version:
            raise Conflict(
                "expected_version is not the version of the plan.", code="version_changed"
            )
        edit = replace(edit, version=given.expected_version or reviewed)
        if needs_person:
            return await self._propose(change, principal, given, edit, digest)
        return await self._begin(change, principal, given, edit, digest)

    async def _planned(
        self,
        change: WriteTool,
        principal: Principal,
        given: EditArguments,
        edit: Edit,
    ) -> ToolResult:
        """Show what a change would do, and change nothing."""
        edit = replace(edit, version=given.expected_version)
        facts, planned = await self._look(principal, edit)
        version = None if facts is None else edits.version_of(edit, facts)
        operation_id = id_of(principal, given.idempotency_key)
        is_fit = facts is not None and isinstance(planned, Planned)
        result = WriteResult(
            operation_id=operation_id,
            status="planned" if is_fit else "rejected",
            before=None if facts is None else edits.shown(edit, facts),
            version=version,
            audit_id=await put_on_record(
                self._service, principal, "planned", change.name, operation_id
            ),
        )
        if isinstance(planned, Rejected):
            said = {"code": planned.code, "detail": planned.detail}
            return shown(result.model_copy(update=said))
        plan = self._plans.give(
            principal,
            digest_of(change.name, wanted(given, but="expected_version")),
            version or "",
        )
        return shown(
            result.model_copy(
                update={
                    "after": edits.shown(edit, planned.after),
                    "plan_token": plan.token,
                    "plan_expires_at": plan.expires_at,
                }
            )
        )

    async def _reviewed(
        self, change: WriteTool, call: ToolCall, edit: Edit, *, key: str
    ) -> str | InputRequired:
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
            raise Refusal("The user did not confirm this change.", status=409, code="declined")
        facts, planned = await self._look(call.principal, edit)
        if facts is None or isinstance(planned, Rejected):
            why = planned if isinstance(planned, Rejected) else MISSING
            raise Conflict(why.detail, code=why.code)
        before, after = edits.shown(edit, facts), edits.shown(edit, planned.after)
        operation_id = id_of(call.principal, key)
        await put_on_record(self._service, call.principal, "asked", change.name, operation_id)
        return InputRequired(
            {CONFIRM: form(change, edit, before, after)}, state=edits.version_of(edit, facts)
        )

    async def _begin(
        self,
        change: WriteTool,
        principal: Principal,
        given: EditArguments,
        edit: Edit,
        digest: str,
        **how: Any,
    ) -> ToolResult:
        """Hand the change to the store, which makes it once, and answer what became of it."""
        service, store_id = self._service, principal.store_id
        operation_id = id_of(principal, given.idempotency_key)
        wish = BeginOperation(
            operation_id=operation_id,
            user_id=principal.user_id,
            client_id=principal.client_id,
            tool=change.name,
            subject=edits.subject_of(edit),
            digest=digest,
            intent=agent_operations.seal_intent(
                service.vault, store_id, operation_id, edit.written()
            ),
            at=service.clock(),
            **how,
        )
        view = await service.runtime.ask(store(store_id), wish, timeout=ANSWER_SECONDS)
        audit_id = await agent_operations.audit_id(service.database, store_id, operation_id)
        result = result_of(view, audit_id)
        if result.status == "proposed":
            where = f"{service.settings.base_url}/stores/{store_id}/proposals"
            told = f"Nothing was done yet: an owner or admin of the store decides at {where}."
            result = result.model_copy(update={"detail": told})
        return shown(result)

    async def _propose(
        self,
        change: WriteTool,
        principal: Principal,
        given: EditArguments,
        edit: Edit,
        digest: str,
    ) -> ToolResult:
        """Have the change wait for a person, who is shown what its plan showed."""
        facts, planned = await self._look(principal, edit)
        if facts is None or isinstance(planned, Rejected):
            why = planned if isinstance(planned, Rejected) else MISSING
            raise Conflict(why.detail, code=why.code)
        before, after = edits.shown(edit, facts), edits.shown(edit, planned.after)
        return await self._begin(
            change,
            principal,
            given,
            edit,
            digest,
            is_proposal=True,
            before=orjson.dumps(before).decode(),
            after=orjson.dumps(after).decode(),
        )

    async def _check_grant(self, principal: Principal, platform_scope: str) -> None:
        """Refuse by its name a scope that is known to be missing."""
        service = self._service
        token = await service.runtime.ask(store(principal.store_id), UseToken(service.clock()))
        if token.scopes and platform_scope not in token.scopes:
            raise lacking(platform_scope)

    async def _look(
        self, principal: Principal, edit: Edit
    ) -> tuple[Mapping[str, Any] | None, Planned | Rejected]:
        try:
            facts = await self._shops.call(
                principal.store_id, lambda shop: self._editor.look(shop, edit)
            )
        except (PlatformDenied, PlatformUnreachable) as error:
            raise refusal_of(error) from error
        return facts, edits.plan(edit, facts)


def can_ask(call: ToolCall) -> bool:
    """Whether the client can show its user a form in the middle of this call."""
    declared = call.request.capabilities.get("elicitation")
    if not call.request.is_modern or not isinstance(declared, Mapping):
        return False
    return not declared or "form" in declared


def form(
    change: WriteTool, edit: Edit, before: Mapping[str, Any], after: Mapping[str, Any]
) -> dict[str, Any]:
    """Ask a person whether a change is to be made, showing what it does."""
    lines = [f"{change.title} ({edits.subject_of(edit)})?"]
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
