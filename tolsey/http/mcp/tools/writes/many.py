"""The tool that makes many changes of the shop: planned together, made one by one, stopped and resumed."""

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Annotated, Any, Final, Literal, TypeAlias

import orjson
from pydantic import Field, Json, WithJsonSchema, model_validator
from pydantic.json_schema import SkipJsonSchema

from tolsey.actors.edit import Edit
from tolsey.actors.ports import PlatformDenied, PlatformUnreachable
from tolsey.actors.refusals import NotFound, Unprocessable
from tolsey.actors.store.editing import edits
from tolsey.actors.store.editing.asking import EditRequest, PlannedEdit, ShopEditor
from tolsey.actors.store.editing.change_sets import MANY, MOST_CHANGES, state_of
from tolsey.actors.store.editing.messages import (
    ResumeChangeSet,
    StopChangeSet,
)
from tolsey.actors.store.grants import to_platform_refusal
from tolsey.actors.store.messages import store
from tolsey.http.mcp.call import ToolCall
from tolsey.http.mcp.gate import Principal, require
from tolsey.http.mcp.registry import Hints, InvalidArguments, Tool, ToolResult
from tolsey.http.mcp.tools.building import ToolAnswer, ToolArguments, answered, reading
from tolsey.http.mcp.tools.schemas import answer_schema_of, schema_of
from tolsey.http.mcp.tools.shop_words import ShopText
from tolsey.http.mcp.tools.writes.changes import CHANGES
from tolsey.http.mcp.tools.writes.contract import EditArguments, WriteArguments, WriteTool
from tolsey.http.mcp.tools.writes.operations import (
    id_of,
    is_known,
    on_record,
    put_on_record,
    turned_away,
    wanted,
)
from tolsey.http.mcp.tools.writes.outcomes import ItemOutcome, items_of
from tolsey.http.mcp.tools.writes.plans import Plans, digest_of
from tolsey.http.web.context import Service
from tolsey.runtime.errors import DeadlineExceeded
from tolsey.storage.commerce import agent_operations

TITLE: Final = "Make many changes"
DESCRIPTION: Final = (
    f"Makes up to {MOST_CHANGES} changes, one by one, each by a tool of this list. Call with dry_run first, then"
    " with the plan_token. With operation_id and action it stops what has not begun, or resumes it."
)
PATIENCE_SECONDS: Final = 20.0
"""How long an agent waits for the end of all of them, before it is told where to look."""
OF_THE_WHOLE: Final = frozenset({"idempotency_key", "dry_run", "plan_token"})
"""What is said once for all changes."""
VERSION_BYTES: Final = 6
"""So much of each version stands in a plan's token, which a model has to repeat."""
PLAN_FIRST: Final = "Many changes are shown before they are made: call it with dry_run first, and with the plan_token that it answers."

Changing: TypeAlias = Literal[
    "update_product",
    "set_product_status",
    "change_price",
    "adjust_inventory",
    "add_order_note",
    "tag_order",
    "fulfil_order",
    "track_fulfilment",
    "create_discount",
    "save_collection",
    "save_page",
]
"""Not a refund: each has a person's word of its own (rules/agents#refunds)."""
TOOLS: Final[Mapping[str, WriteTool]] = {one.name: one for one in CHANGES}


class OneOfMany(ToolArguments):
    """One of the changes."""

    tool: Changing
    # A text: an object of any fields is none to clients that hold a model to a schema strictly.
    arguments: Annotated[
        Json[dict[str, Any]],
        WithJsonSchema({"type": "string"}),
        Field(description="Its arguments, without the key, as a JSON object in a text."),
    ]


class ManyChanges(WriteArguments):
    """Changes to plan and make, or a plan to stop or resume."""

    plan_token: str | None = None
    changes: Annotated[
        Annotated[list[OneOfMany], Field(min_length=1, max_length=MOST_CHANGES)] | None,
        Field(description="Each of another thing."),
    ] = None
    operation_id: Annotated[str | None, Field(description="What to stop or resume.")] = None
    action: Annotated[Literal["stop", "resume"] | None, Field(description="With operation_id.")] = (
        None
    )

    @model_validator(mode="after")
    def _one_wish(self) -> "ManyChanges":
        if (self.operation_id is None) != (self.action is None):
            raise ValueError("send operation_id and action together")
        if (self.changes is None) == (self.action is None):
            raise ValueError("send either changes, or operation_id with action")
        return self


@dataclass(frozen=True, slots=True)
class ReadChange:
    """A change as its tool reads it."""

    tool: WriteTool
    given: EditArguments


class ManyResult(ToolAnswer):
    """What becomes of many changes; `partly` is the end of those of which not all were made."""

    operation_id: str
    status: Literal["planned", "rejected", "running", "stopped", "applied", "replayed", "partly"]
    items: list[ItemOutcome]
    plan_token: str | None = None
    plan_expires_at: SkipJsonSchema[datetime | None] = None
    audit_id: SkipJsonSchema[str | None] = None
    detail: SkipJsonSchema[ShopText | None] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedChanges:
    """What a call asks to have changed, as it was read."""

    principal: Principal
    given: ManyChanges
    changes: Sequence[ReadChange]
    edits: Sequence[Edit]

    @property
    def operation_id(self) -> str:
        """The plan that this becomes."""
        return id_of(self.principal, self.given.idempotency_key)

    @property
    def digest(self) -> str:
        """Name what is asked, whichever way and however often."""
        return digest_of(MANY, wanted(self.given))

    @property
    def requests(self) -> Sequence[EditRequest]:
        """Say each as the store is asked, under an id in the order of the plan."""
        return [
            EditRequest(
                store_id=self.principal.store_id,
                operation_id=f"{self.operation_id}.{place:03}",
                user_id=self.principal.user_id,
                client_id=self.principal.client_id,
                tool=change.tool.name,
                digest=self.digest,
                edit=edit,
            )
            for place, (change, edit) in enumerate(
                zip(self.changes, self.edits, strict=True), start=1
            )
        ]


class ManyWriter:
    """Makes many changes for whoever the gate admitted."""

    def __init__(self, service: Service, editor: ShopEditor) -> None:
        self._service = service
        self._editor = editor
        self._plans = Plans(service.vault, service.clock)

    def tool(self) -> Tool:
        """Make the tool."""

        async def called(call: ToolCall, given: ManyChanges) -> ToolResult:
            return await on_record(
                self._service, call, MANY, given, self._answer(call.principal, given)
            )

        return Tool(
            MANY,
            TITLE,
            DESCRIPTION,
            Hints(read_only=False, destructive=True, idempotent=True, open_world=False),
            schema_of(ManyChanges),
            _read,
            called,
            answer_schema_of(ManyResult),
            frozenset({"store:read"}),
            turned_away(self._service, MANY),
            frozenset(one.scope for one in CHANGES),
        )

    async def _answer(self, principal: Principal, given: ManyChanges) -> ToolResult:
        if given.action is not None:
            return await self._steered(principal, given)
        changes = read_changes(given)
        require(principal, frozenset(one.tool.scope for one in changes))
        made = [
            replace(one.tool.edit(one.given), version=one.given.expected_version) for one in changes
        ]
        asked = AskedChanges(principal=principal, given=given, changes=changes, edits=made)
        kept = await agent_operations.known(
            self._service.database, principal.store_id, asked.operation_id
        )
        if is_known(kept):
            # What was asked before is answered as it was, however it is asked now.
            return await self._begin(asked, plans=None)
        _require_apart(made)
        for edit in {one.kind: one for one in made}.values():
            await self._editor.require_grant(principal.store_id, edit)
        if given.dry_run:
            return await self._planned(asked)
        if given.plan_token is None:
            raise Unprocessable(PLAN_FIRST, code="plan_required")
        versions = _versions_in(self._plans.take(principal, asked.digest, given.plan_token))
        reviewed = [
            replace(edit, version=version) for edit, version in zip(made, versions, strict=True)
        ]
        asked = replace(asked, edits=reviewed)
        # The shop as it is now is what people of the store see of each change until its turn comes.
        return await self._begin(asked, plans=await self._plans_of(asked))

    async def _planned(self, asked: AskedChanges) -> ToolResult:
        """Show what each would do; the plan of all is of use only when each may be made."""
        principal, plans = asked.principal, await self._plans_of(asked)
        items = [
            _planned_item(request, plan)
            for request, plan in zip(asked.requests, plans, strict=True)
        ]
        is_fit = all(one.rejected is None for one in plans)
        result = ManyResult(
            operation_id=asked.operation_id,
            status="planned" if is_fit else "rejected",
            items=items,
            audit_id=await put_on_record(
                self._service, principal, "planned", MANY, asked.operation_id, changes=len(items)
            ),
        )
        if not is_fit:
            told = "Nothing is planned: mend or leave out what is rejected, and plan it anew."
            return _shown(result.model_copy(update={"detail": told}))
        short = _in_short([one.version for one in plans])
        plan = self._plans.give(principal, asked.digest, short)
        said = {"plan_token": plan.token, "plan_expires_at": plan.expires_at}
        return _shown(result.model_copy(update=said))

    async def _plans_of(self, asked: AskedChanges) -> list[PlannedEdit]:
        try:
            return await self._editor.plan_all(asked.principal.store_id, asked.edits)
        except (PlatformDenied, PlatformUnreachable) as error:
            raise to_platform_refusal(error) from error

    async def _begin(
        self, asked: AskedChanges, *, plans: Sequence[PlannedEdit] | None
    ) -> ToolResult:
        """Hand the changes to the store, and answer what became of each so far."""
        principal = asked.principal
        wish = self._editor.begin_many_message(
            asked.operation_id, asked.requests, digest=asked.digest, plans=plans
        )
        try:
            view = await self._service.runtime.ask(
                store(principal.store_id), wish, timeout=PATIENCE_SECONDS
            )
        except DeadlineExceeded:
            # They go on, though nobody waits for them here any more.
            await put_on_record(self._service, principal, "pending", MANY, asked.operation_id)
            return await self._told(principal, asked.operation_id)
        return await self._told(principal, asked.operation_id, is_replay=view.replayed)

    async def _steered(self, principal: Principal, given: ManyChanges) -> ToolResult:
        """Stop what has not begun of the user's own plan, or resume it."""
        id = given.operation_id or ""
        kept = await agent_operations.of_change_set(self._service.database, id)
        whose = (principal.store_id, principal.user_id)
        own = [one for one in kept if (one.store_id, one.user_id) == whose]
        if not own:
            raise NotFound(
                "This bulk change doesn't exist, or you don't have access to it. Check the link"
                " or the id."
            )
        is_resumed = given.action == "resume"
        if is_resumed:
            # Another agent of the user may have been allowed less (rules/agents#scopes).
            require(principal, frozenset(TOOLS[one.tool].scope for one in own))
        if not given.dry_run:
            wish = (ResumeChangeSet if is_resumed else StopChangeSet)(
                change_set=id, user_id=principal.user_id, is_person=False, at=self._service.clock()
            )
            await self._service.runtime.ask(store(principal.store_id), wish)
        return await self._told(principal, id)

    async def _told(
        self, principal: Principal, change_set: str, *, is_replay: bool = False
    ) -> ToolResult:
        """Answer what became of each, as it is on disk."""
        database, base = self._service.database, self._service.settings.base_url
        kept = await agent_operations.of_change_set(database, change_set)
        where = f"{base}/stores/{principal.store_id}/change-sets/{change_set}"
        state = state_of(kept)
        details = {
            "running": f"They go on. Ask get_operation; people of the store see and stop them at {where}.",
            "stopped": f"The rest waits. Resume it with action, or at {where}.",
        }
        return _shown(
            ManyResult(
                operation_id=change_set,
                status="replayed" if is_replay and state == "applied" else state,
                items=await items_of(database, kept),
                detail=details.get(state),
            )
        )


def read_changes(given: ManyChanges) -> list[ReadChange]:
    """Read each change as its tool does. Raises InvalidArguments."""
    found, problems = [], list[str]()
    for place, one in enumerate(given.changes or ()):
        where = f"changes.{place}.arguments"
        problems += [
            f"{where}.{name}: it is said once, for all changes"
            for name in OF_THE_WHOLE & one.arguments.keys()
        ]
        tool = TOOLS[one.tool]
        try:
            alone = {**one.arguments, "idempotency_key": given.idempotency_key}
            found.append(ReadChange(tool, reading(tool.arguments)(alone)))
        except InvalidArguments as wrong:
            problems += [f"{where}.{problem}" for problem in wrong.problems]
    if problems:
        raise InvalidArguments(problems)
    return found


def _read(given: Mapping[str, Any]) -> ManyChanges:
    """Read the arguments, and those of each change."""
    found = reading(ManyChanges)(given)
    read_changes(found)
    return found


def _require_apart(made: Sequence[Edit]) -> None:
    """Refuse two changes of one thing: the plan could not show what the second makes of it."""
    seen = set[tuple[str, tuple[str, ...]]]()
    for edit in made:
        if (edit.kind, edit.ids) in seen:
            raise Unprocessable(
                f"The request changes {edits.subject_of(edit)} twice. Send one change per item.",
                code="same_thing_twice",
            )
        seen.add((edit.kind, edit.ids))


def _planned_item(asked: EditRequest, plan: PlannedEdit) -> ItemOutcome:
    why = plan.rejected
    return ItemOutcome.read(
        {
            "operation_id": asked.operation_id,
            "tool": asked.tool,
            "subject": edits.subject_of(asked.edit),
            "state": "planned" if why is None else "rejected",
            "before": _json(plan.before),
            "after": _json(plan.after),
            "code": why and why.code,
            "detail": why and why.detail,
            "audit_id": None,
        }
    )


def _json(shown: Mapping[str, Any] | None) -> str | None:
    """Write what is shown as it is kept."""
    return None if shown is None else orjson.dumps(shown).decode()


def _in_short(versions: Sequence[str]) -> str:
    """Write the beginnings of versions in as few characters as there can be."""
    return base64.b64encode(
        b"".join(bytes.fromhex(one)[:VERSION_BYTES] for one in versions)
    ).decode()


def _versions_in(short: str) -> list[str]:
    """Read the beginnings of versions, as each change is to find its thing."""
    known = base64.b64decode(short).hex()
    size = 2 * VERSION_BYTES
    return [known[begin : begin + size] for begin in range(0, len(known), size)]


def _shown(result: ManyResult) -> ToolResult:
    """Make the answer: what was not done is an error that the model is told."""
    return answered(result, is_error=result.status in {"rejected", "partly"})
