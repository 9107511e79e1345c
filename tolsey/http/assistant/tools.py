"""What the chat's model can use: the tools of agents, with the rights of the person who asks.

What only reads is used at once. What changes something is planned, and the plan goes to the person: the
model is never the one who carries it out (rules/chat#tools).
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

import anyio
import orjson

from tolsey.actors.refusals import Unprocessable
from tolsey.http.chat.toolbox import ModelCall, ShownPlan, ToolUse
from tolsey.http.mcp import wire
from tolsey.http.mcp.envelope import Request
from tolsey.http.mcp.gate import Principal, grantable, name_of
from tolsey.http.mcp.registry import Tool
from tolsey.http.mcp.server import McpServer
from tolsey.http.mcp.wire import RpcError
from tolsey.http.oauth.resources import StoreResource
from tolsey.http.oauth.scopes import SCOPES, allowed, implied
from tolsey.http.web.context import Service
from tolsey.runtime.ids import new_id
from tolsey.storage.commerce import agent_operations
from tolsey.storage.commerce.connections import shop_key_of
from tolsey.storage.commerce.stores import StoreRow
from tolsey.storage.database import Database
from tolsey.storage.people import accounts
from tolsey.storage.sealing.sealed import SealBroken, Vault

CLIENT: Final = "chat"
"""Who asked, in audit rows: a person, through the chat."""
PLAN_LIFE: Final = timedelta(minutes=5)
TOOL_SECONDS: Final = 45.0
RESULT_CHARACTERS: Final = 24_000
NOT_OF_THE_MODEL: Final = frozenset({"plan_token", "dry_run", "idempotency_key"})
"""What the chat says of a change itself, whatever the model says."""
PLANNED: Final = (
    "Nothing is changed yet. The person now sees this plan with buttons to confirm or decline it:"
    " tell them what it does, and do not say that it is done."
)


class PersonsTools:
    """The tools of one store for one person."""

    def __init__(
        self,
        server: McpServer,
        principal: Principal,
        *,
        database: Database,
        vault: Vault,
        clock: Callable[[], datetime],
    ) -> None:
        self._server = server
        self._principal = principal
        self._database = database
        self._vault = vault
        self._clock = clock

    @property
    def offered(self) -> Sequence[Mapping[str, Any]]:
        """Describe the tools that the person's role allows, as the model is told of them."""
        return [_described(one) for one in self._server.registry.tools.values() if self._may(one)]

    def _may(self, tool: Tool) -> bool:
        return grantable(self._principal, tool.scopes_of_all)

    async def use(self, call: ModelCall) -> ToolUse:
        """Use a tool, or plan what it would change."""
        tool = self._server.registry.tools.get(call.name)
        if tool is None or not self._may(tool):
            return _failed(
                call.name, "There is no tool with this name. List the tools with tools/list."
            )
        try:
            given = orjson.loads(call.arguments or "{}")
        except orjson.JSONDecodeError:
            given = None
        if not isinstance(given, dict):
            return _failed(
                tool.title,
                "The arguments must be one JSON object. Correct them and call the tool again.",
            )
        # The model alone changes nothing, whatever it read and whoever wrote that (rules/chat#tools).
        if not tool.hints.read_only:
            kept = {name: one for name, one in given.items() if name not in NOT_OF_THE_MODEL}
            given = {**kept, "dry_run": True, "idempotency_key": new_id("chat")}
        answer = await self._answer(tool, given)
        text = str(answer["content"][0]["text"])[:RESULT_CHARACTERS]
        is_error = bool(answer.get("isError"))
        if tool.hints.read_only or is_error:
            return ToolUse(text=text, title=tool.title, is_error=is_error)
        plan = self._plan(tool, given, orjson.loads(answer["content"][0]["text"]))
        return ToolUse(text=f"{PLANNED}\n{text}", title=tool.title, is_error=False, plan=plan)

    async def confirm(self, sealed: str) -> Mapping[str, Any]:
        """Carry out a plan that the person confirmed; the same plan again is answered the same."""
        kept = self._opened(sealed)
        answer = await self._answer(self._server.registry.tools[kept["tool"]], kept["arguments"])
        text = answer["content"][0]["text"]
        try:
            done: Mapping[str, Any] = orjson.loads(text)
        except orjson.JSONDecodeError:
            return {"status": "rejected", "detail": text.partition("\n")[0]}
        return done

    async def decline(self, sealed: str) -> None:
        """Put on record that the person declined a plan; nothing was changed."""
        kept = self._opened(sealed)
        principal = self._principal
        await agent_operations.put_on_record(
            self._database,
            f"{agent_operations.EVENT}.declined",
            principal.store_id,
            principal.organization_id,
            principal.user_id,
            clientId=principal.client_id,
            tool=kept["tool"],
        )

    async def _answer(self, tool: Tool, given: Mapping[str, Any]) -> Mapping[str, Any]:
        """Call a tool as an agent of the person's would."""
        params = {"name": tool.name, "arguments": dict(given)}
        request = Request("tools/call", params, revision=wire.MODERN, id=1)
        try:
            with anyio.fail_after(TOOL_SECONDS):
                return await self._server.answer(request, self._principal)
        except RpcError as error:
            return _error(error.message)
        except TimeoutError:
            return _error("The tool timed out. Try again with a smaller request.")

    def _plan(self, tool: Tool, given: Mapping[str, Any], shown: Mapping[str, Any]) -> ShownPlan:
        """Seal a change for the person who is shown it."""
        arguments = {name: one for name, one in given.items() if name != "dry_run"}
        if "plan_token" in shown:
            arguments["plan_token"] = shown["plan_token"]
        until = self._clock() + PLAN_LIFE
        kept = {"tool": tool.name, "arguments": arguments, "until": until.timestamp()}
        return ShownPlan(
            sealed=self._vault.seal(orjson.dumps(kept).decode(), **self._place),
            tool=tool.name,
            title=tool.title,
            before=_of_plan(shown, "before"),
            after=_of_plan(shown, "after"),
            expires_at=until,
        )

    def _opened(self, sealed: str) -> Mapping[str, Any]:
        try:
            kept: Mapping[str, Any] = orjson.loads(self._vault.open(sealed, **self._place))
        except SealBroken as error:
            raise Unprocessable(
                "This plan isn't one you were shown. Ask the assistant for a new plan.",
                code="plan_invalid",
            ) from error
        if kept["until"] < self._clock().timestamp():
            raise Unprocessable(
                "This plan has expired. Ask the assistant for a new plan.", code="plan_expired"
            )
        return kept

    @property
    def _place(self) -> dict[str, str]:
        """Where a plan is sealed for: this person and this store."""
        principal = self._principal
        return {
            "table": "chat_plans",
            "column": "plan",
            "row": name_of(principal),
            "tenant": principal.store_id,
        }


async def tools_of(
    service: Service, server: McpServer, store: StoreRow, user_id: str, client_id: str = CLIENT
) -> PersonsTools:
    """Give a person the tools of a store that they are a member of; `client_id` says by what, in audit rows."""
    found = await accounts.find_organization(service.database, store.organization_id, user_id)
    role, plan = (found.role, found.plan) if found else ("member", "free")
    address = f"{service.settings.base_url}/api/mcp/v1/{store.id}"
    principal = Principal(
        user_id=user_id,
        organization_id=store.organization_id,
        store_id=store.id,
        shop_key=await shop_key_of(service.database, store.id),
        role=role,
        plan=plan,
        client_id=client_id,
        grant_id=f"{client_id}:{user_id}",
        scopes=implied(allowed(SCOPES, role)),
        resource=StoreResource(store.id, address, address, address),
    )
    return PersonsTools(
        server, principal, database=service.database, vault=service.vault, clock=service.clock
    )


def _of_plan(shown: Mapping[str, Any], when: str) -> Mapping[str, Any]:
    """Take what a plan shows of before or after; of many changes, by what each is of."""
    if "items" not in shown:
        found: Mapping[str, Any] = shown.get(when, {})
        return found
    return {f"{one['tool']} {one['subject']}": one.get(when) for one in shown["items"]}


def _described(tool: Tool) -> Mapping[str, Any]:
    schema = {**tool.input_schema}
    if not tool.hints.read_only:
        ours = NOT_OF_THE_MODEL
        said = {name: one for name, one in schema["properties"].items() if name not in ours}
        needed = [name for name in schema.get("required", ()) if name not in ours]
        schema = {**schema, "properties": said, "required": needed}
    function = {"name": tool.name, "description": tool.description, "parameters": schema}
    return {"type": "function", "function": function}


def _failed(title: str, why: str) -> ToolUse:
    return ToolUse(text=why, title=title, is_error=True)


def _error(message: str) -> Mapping[str, Any]:
    return {"content": [{"type": "text", "text": message}], "isError": True}
