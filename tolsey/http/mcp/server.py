"""The methods of the protocol over a registry: one request in, one result out.

It knows neither HTTP nor who is asked for what: the endpoint admits, limits and carries.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final, Protocol

import structlog

from tolsey.http.mcp import wire
from tolsey.http.mcp.call import ToolCall
from tolsey.http.mcp.envelope import Request
from tolsey.http.mcp.registry import (
    InputRequired,
    InvalidArguments,
    OfferedResource,
    Prompt,
    Registry,
    Template,
    Tool,
    ToolFailed,
    ToolResult,
)
from tolsey.http.mcp.revisions import finish
from tolsey.http.mcp.state import RequestStates
from tolsey.http.mcp.wire import RpcError
from tolsey.http.web.json import oddity

log = structlog.get_logger()

MOST_COMPLETIONS: Final = 100
INVALID_ARGUMENTS: Final = "invalid_arguments"
ARGUMENTS: Final = "arguments"
BEYOND_ROLE: Final = (
    "The user's role in the organization doesn't allow this, and new consent won't change that."
    " Ask an owner or admin to do it."
)
KINDS: Final = {
    "elicitation/create": "elicitation",
    "sampling/createMessage": "sampling",
    "roots/list": "roots",
}
"""What can be asked of a client, and the capability it must have declared for it."""
ANSWERS: Final = {
    "elicitation/create": "action",
    "sampling/createMessage": "content",
    "roots/list": "roots",
}
"""The field that an answer to each must have."""


class Scopes(Protocol):
    """Refuses a principal that lacks a scope, by raising RpcError with the challenge."""

    def __call__(self, principal: Any, scopes: frozenset[str], /) -> None:
        """Let go on who has them all."""


class McpServer:
    """What is offered, as answers to requests.

    `require` is asked before anything that needs scopes, and `grantable` whether a principal could
    ever be let use them; `states` seals what waits for input; `name_of` names a principal in one text,
    for what is bound to it.
    """

    def __init__(
        self,
        registry: Registry,
        info: Mapping[str, Any],
        instructions: str,
        *,
        require: Scopes,
        grantable: Callable[[Any, frozenset[str]], bool],
        states: RequestStates,
        name_of: Callable[[Any], str],
    ) -> None:
        self.registry = registry
        self._info = info
        self._instructions = instructions
        self._require = require
        self._grantable = grantable
        self._states = states
        self._name_of = name_of
        shared: dict[str, Callable[[ToolCall], Awaitable[Mapping[str, Any]]]] = {
            "tools/list": self._tools,
            "tools/call": self._call,
            "resources/list": self._resources,
            "resources/templates/list": self._templates,
            "resources/read": self._read,
            "prompts/list": self._prompts,
            "prompts/get": self._prompt,
            "completion/complete": self._complete,
        }
        self._modern = {**shared, "server/discover": self._discover}
        self._handshake = {**shared, "initialize": self._initialize, "ping": self._ping}
        self._listed = {
            "resources": [one.listed for one in registry.resources.values()],
            "resourceTemplates": [one.listed for one in registry.templates],
            "prompts": [one.listed for one in registry.prompts.values()],
        }
        self._listed_tools = [(one.scopes_of_all, one.listed) for one in registry.tools.values()]

    async def answer(self, request: Request, principal: Any) -> dict[str, Any]:
        """Answer a request with its result. Raises RpcError for what is not one."""
        methods = self._modern if request.is_modern else self._handshake
        method = methods.get(request.method)
        if method is None:
            raise RpcError(
                wire.METHOD_NOT_FOUND,
                f"The method {request.method[:100]!r} isn't supported. Use a method of the protocol.",
            )
        call = ToolCall(request, principal)
        # What a tool is given is the model's to mend; all else is its client's.
        said = {name: one for name, one in request.params.items() if name != ARGUMENTS}
        odd = oddity(said if request.method == "tools/call" else request.params)
        if odd is not None:
            raise RpcError(wire.INVALID_PARAMS, f"The parameters contain {odd}. Remove it.")
        if request.method in wire.NAMED and request.is_modern:
            self._take_input(call)
        result = await method(call)
        return finish(result, request.method, request.revision, self._info)

    def _capabilities(self) -> dict[str, Any]:
        registry = self.registry
        found: dict[str, Any] = {"tools": {}}
        if registry.resources or registry.templates:
            found["resources"] = {}
        if registry.prompts:
            found["prompts"] = {}
        completed: list[Prompt | Template] = [*registry.templates, *registry.prompts.values()]
        if any(one.completions for one in completed):
            found["completions"] = {}
        return found

    async def _discover(self, call: ToolCall) -> Mapping[str, Any]:
        del call
        return {
            "supportedVersions": list(wire.SUPPORTED),
            "capabilities": self._capabilities(),
            "instructions": self._instructions,
        }

    async def _initialize(self, call: ToolCall) -> Mapping[str, Any]:
        """Agree on a revision; nothing is remembered of it (2025-11-25, "Lifecycle")."""
        asked = _text(call.request.params, "protocolVersion")
        return {
            "protocolVersion": asked if asked in wire.HANDSHAKE else wire.HANDSHAKE[0],
            "capabilities": self._capabilities(),
            "serverInfo": dict(self._info),
            "instructions": self._instructions,
        }

    async def _ping(self, call: ToolCall) -> Mapping[str, Any]:
        del call
        return {}

    async def _tools(self, call: ToolCall) -> Mapping[str, Any]:
        """List what the user's role may use: no step-up would open the rest (rules/agents#scopes)."""
        may = partial(self._grantable, call.principal)
        return self._page(call, "tools", [one for needs, one in self._listed_tools if may(needs)])

    async def _resources(self, call: ToolCall) -> Mapping[str, Any]:
        return self._page(call, "resources", self._listed["resources"])

    async def _templates(self, call: ToolCall) -> Mapping[str, Any]:
        return self._page(call, "resourceTemplates", self._listed["resourceTemplates"])

    async def _prompts(self, call: ToolCall) -> Mapping[str, Any]:
        return self._page(call, "prompts", self._listed["prompts"])

    @staticmethod
    def _page(call: ToolCall, name: str, listed: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
        """Answer a whole list: it has one page, so no cursor was ever given out."""
        if call.request.params.get("cursor") not in (None, ""):
            raise RpcError(
                wire.INVALID_PARAMS,
                "The cursor isn't valid for this list. Start again from the first page.",
            )
        return {name: listed}

    async def _call(self, call: ToolCall) -> Mapping[str, Any]:
        params = call.request.params
        tool = self.registry.tools.get(_text(params, "name"))
        if tool is None:
            raise RpcError(
                wire.INVALID_PARAMS,
                "There is no tool with this name. List the tools with tools/list.",
            )
        given = params.get(ARGUMENTS)
        given = {} if given is None else given
        if not isinstance(given, dict):
            await tool.turned_away(call, INVALID_ARGUMENTS)
            raise RpcError(wire.INVALID_PARAMS, "arguments is invalid. Send an object.")
        # Whom a role keeps from a tool no consent helps, so they are sent to none (rules/agents#scopes).
        if not self._grantable(call.principal, tool.scopes_of_all):
            await tool.turned_away(call, "forbidden")
            return failure(BEYOND_ROLE, code="forbidden").result
        try:
            self._require(call.principal, tool.scopes)
        except RpcError:
            await tool.turned_away(call, "insufficient_scope")
            raise
        outcome = await _run(tool, call, given)
        if isinstance(outcome, InputRequired):
            return self._ask(call, outcome)
        return outcome.result

    async def _read(self, call: ToolCall) -> Mapping[str, Any]:
        uri = _text(call.request.params, "uri")
        resource, variables = self._find(uri)
        if resource is None:
            raise self._no_resource(call, uri)
        self._require(call.principal, resource.scopes)
        if isinstance(resource, Template):
            contents = await resource.read(call, variables)
        else:
            contents = await resource.read(call)
        if contents is None:
            raise self._no_resource(call, uri)
        return {"contents": [{"uri": uri, "mimeType": resource.mime_type, **contents}]}

    def _find(self, uri: str) -> tuple[OfferedResource | Template | None, Mapping[str, str]]:
        found = self.registry.resources.get(uri)
        if found is not None:
            return found, {}
        for pattern, template in self.registry.patterns:
            matched = pattern.fullmatch(uri)
            if matched:
                return template, matched.groupdict()
        return None, {}

    @staticmethod
    def _no_resource(call: ToolCall, uri: str) -> RpcError:
        code = wire.INVALID_PARAMS if call.request.is_modern else wire.RESOURCE_NOT_FOUND
        return RpcError(
            code,
            "There is no resource with this URI. List the resources with resources/list.",
            {"uri": uri},
        )

    async def _prompt(self, call: ToolCall) -> Mapping[str, Any]:
        params = call.request.params
        prompt = self.registry.prompts.get(_text(params, "name"))
        if prompt is None:
            raise RpcError(
                wire.INVALID_PARAMS,
                "There is no prompt with this name. List the prompts with prompts/list.",
            )
        given = params.get(ARGUMENTS)
        given = {} if given is None else given
        if isinstance(given, dict):
            given = {name: one for name, one in given.items() if one is not None}
        if not isinstance(given, dict) or not all(isinstance(one, str) for one in given.values()):
            raise RpcError(wire.INVALID_PARAMS, "The prompt's arguments are invalid. Send strings.")
        missing = [one.name for one in prompt.arguments if one.required and one.name not in given]
        if missing:
            raise RpcError(
                wire.INVALID_PARAMS,
                f"The prompt requires {', '.join(missing)}. Add the missing arguments.",
            )
        messages = await prompt.get(call, given)
        if isinstance(messages, InputRequired):
            return self._ask(call, messages)
        return {"description": prompt.description, "messages": list(messages)}

    async def _complete(self, call: ToolCall) -> Mapping[str, Any]:
        params = call.request.params
        ref, argument = params.get("ref"), params.get("argument")
        if not isinstance(ref, dict) or not isinstance(argument, dict):
            raise RpcError(
                wire.INVALID_PARAMS, "The completion request is invalid. Send `ref` and `argument`."
            )
        known = self._referred(ref).completions.get(_text(argument, "name"))
        found = await known(call, _text(argument, "value")) if known is not None else ()
        values = list(found[:MOST_COMPLETIONS])
        if len(found) > len(values):
            # How many more there are would take to count them all.
            return {"completion": {"values": values, "hasMore": True}}
        return {"completion": {"values": values, "total": len(values), "hasMore": False}}

    def _referred(self, ref: Mapping[str, Any]) -> Prompt | Template:
        found: Prompt | Template | None = None
        match ref.get("type"):
            case "ref/prompt":
                found = self.registry.prompts.get(_text(ref, "name"))
            case "ref/resource":
                uri = _text(ref, "uri")
                found = next(
                    (one for one in self.registry.templates if one.uri_template == uri), None
                )
        if found is None:
            raise RpcError(
                wire.INVALID_PARAMS, "There is no prompt or resource with this name. Check `ref`."
            )
        return found

    def _take_input(self, call: ToolCall) -> None:
        """Take what the client brought back after an InputRequired."""
        request = call.request
        responses, sealed = request.params.get("inputResponses"), request.params.get("requestState")
        if responses is not None:
            if not isinstance(responses, dict):
                raise RpcError(wire.INVALID_PARAMS, "inputResponses is invalid. Send an object.")
            call.responses = responses
        if sealed is not None:
            if not isinstance(sealed, str):
                raise RpcError(
                    wire.INVALID_PARAMS,
                    "requestState is invalid. Send the string from the earlier response.",
                )
            who = self._name_of(call.principal)
            call.state = self._states.take(sealed, request.method, request.params, who)

    def _ask(self, call: ToolCall, wanted: InputRequired) -> Mapping[str, Any]:
        """Ask the client for input, of kinds that it declared; before 2026-07-28 nobody can."""
        if not call.request.is_modern:
            raise RpcError(
                wire.INVALID_REQUEST,
                "This call requires protocol revision 2026-07-28. Use a client that supports it.",
            )
        for one in wanted.requests.values():
            call.require(KINDS[one["method"]])
        asked: dict[str, Any] = {"resultType": "input_required"}
        if wanted.requests:
            asked["inputRequests"] = dict(wanted.requests)
        if wanted.state is not None:
            request = call.request
            who = self._name_of(call.principal)
            asked["requestState"] = self._states.give(
                wanted.state, request.method, request.params, who
            )
        return asked


def answer_to(call: ToolCall, name: str, method: str) -> Mapping[str, Any] | None:
    """Return the client's answer to one request for input; None when it brought none.

    Raises RpcError for an answer that is not of the kind that was asked for.
    """
    found = call.responses.get(name)
    if found is None:
        return None
    if not isinstance(found, dict) or ANSWERS[method] not in found:
        raise RpcError(
            wire.INVALID_PARAMS,
            f"The response {name[:100]!r} doesn't belong to a request of type {method}. Send the responses that were requested.",
        )
    return found


async def _run(tool: Tool, call: ToolCall, given: Mapping[str, Any]) -> ToolResult | InputRequired:
    """Run a tool; what the model can mend comes back as its result."""
    try:
        _require_keepable(given)
        return await tool.run(call, tool.read(given))
    except InvalidArguments as error:
        await tool.turned_away(call, INVALID_ARGUMENTS)
        return failure(
            "The arguments are invalid. Correct the fields that the error names.",
            problems=list(error.problems),
        )
    except ToolFailed as error:
        return failure(error.message, **error.fields)


def _require_keepable(given: Mapping[str, Any]) -> None:
    """Refuse by their names arguments that nothing behind this edge can keep."""
    odd = [f"{name}: it holds {said}" for name, one in given.items() if (said := oddity(one))]
    if odd:
        raise InvalidArguments(odd)


def failure(message: str, **fields: Any) -> ToolResult:
    """Make a result that says what went wrong."""
    said = [message, *(f"{name}: {value}" for name, value in fields.items())]
    return ToolResult([{"type": "text", "text": "\n".join(said)}], is_error=True)


def _text(holder: Mapping[str, Any], name: str) -> str:
    found = holder.get(name)
    if not isinstance(found, str):
        raise RpcError(wire.INVALID_PARAMS, f"{name} is invalid. Send a string.")
    return found
