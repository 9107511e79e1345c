"""All that a service offers to read, as the service itself lists it: routes, pages and agents' tools.

Routes are those of its URL map, their parameters those of its `openapi.json`, tools those of its
`tools/list`; each is asked plainly and once more for every parameter that has a value to give. What
lacks a value is listed as not asked, so that nothing new is left out in silence.
"""

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import httpx
import orjson
from quart import Quart

from bench.world import Tenant
from tolsey.http.blueprints import BLUEPRINTS
from tolsey.http.description import documentation
from tolsey.http.mcp import wire
from tolsey.http.web.access import Access, access_of

OPENAPI: Final = "/openapi.json"
MUST: Final = frozenset({"organizationId"})
"""What says whose things are wanted: a list without it is not that of the tenant."""


NOT_ASKED: Final = {
    "/oauth/authorize": "it writes: each begins a grant",
    "/api/files/{file_id}/content": "it sends a file from an address that works for a minute",
    "/mail/unsubscribe/{token}": "its address is sealed, and it reads no row",
    "/status/confirm/{token}": "its address is sealed, and it reads no row",
    "/stores/{store_id}/launch/events": "it stays open for half a minute, whatever there is",
    "/stores/{store_id}/events": "it stays open for half a minute, whatever there is",
    "/deals/{deal_id}/events": "it stays open for half a minute, whatever there is",
    "/inbox/events": "it stays open for half a minute, whatever there is",
    "/billing/change": "a plan by contract, as these tenants have, is not changed there",
    "/selling/{listing_id}/remove/{source}": "a form, made of nothing but its address",
}
"""What is never asked, and why that is right."""
BEGINNING: Final = 1_000_000
"""So much of an answer is waited for: an export of 20,000,000 rows is told by how it begins."""
TOLD: Final = re.compile(rb"</h1>\s*<p>(.*?)</p>", re.DOTALL)
"""What a page says instead of being one."""
NEXT_PAGE: Final = "(the next page)"
"""Stands for the cursor that the answer to the plain form of an ask gave."""
CURSORS: Final = ("nextCursor", "next_cursor")


@dataclass(frozen=True, slots=True)
class Ask:
    """Something to ask; `values` are the names of a tenant's values that it takes."""

    name: str
    kind: str
    """`route`, `page`, `admin`, `key` or `tool`."""
    path: str
    query: Mapping[str, Any] = field(default_factory=dict)
    arguments: Mapping[str, Any] | None = None

    @property
    def plain(self) -> str:
        """The name of its plain form, whose answers say what comes next."""
        return self.name.partition("?")[0] if self.arguments is None else self.name.split()[0]

    def after(self, cursor: str | None) -> "Ask | None":
        """Give the ask with its cursor in place; None when there is no next page."""
        if NEXT_PAGE not in (*self.query.values(), *(self.arguments or {}).values()):
            return self
        if cursor is None:
            return None
        if self.arguments is None:
            return replace(self, query={**self.query, "cursor": cursor})
        return replace(self, arguments={**self.arguments, "cursor": cursor})


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What came back, or of a long document its beginning."""

    status: int
    is_document: bool
    """Whether it is sent as it is read, however much there is."""
    body: bytes

    @classmethod
    async def of(cls, response: httpx.Response) -> "Answer":
        """Read a response, as far as it is waited for."""
        body = bytearray()
        async for chunk in response.aiter_bytes():
            body += chunk
            if len(body) >= BEGINNING:
                break
        attached = response.headers.get("content-disposition", "").startswith("attachment")
        return cls(status=response.status_code, is_document=attached, body=bytes(body))

    @property
    def said(self) -> dict[str, Any]:
        """Give its JSON object; nothing where it is none."""
        if self.is_document or not self.body.startswith(b"{"):
            return {}
        said: dict[str, Any] = orjson.loads(self.body)
        return said

    @property
    def next_page(self) -> str | None:
        """Give the cursor of what comes after an answer of a route or a tool; None when nothing does."""
        said = self.said.get("result", {}).get("structuredContent", self.said)
        return next((said[name] for name in CURSORS if said.get(name)), None)

    @property
    def refusal(self) -> str:
        """Say why it is none; empty when it is one."""
        if self.status >= 400:
            page = TOLD.search(self.body)
            words = page[1].decode() if page else self.said.get("detail", "")
            return f"{self.status} {words}".strip()
        result = self.said.get("result")
        if isinstance(result, dict) and result.get("isError"):
            return orjson.dumps(result.get("content")).decode()[:80]
        return ""


@dataclass(frozen=True, slots=True)
class Surface:
    """What is asked of a tenant, and what is not, with the reason."""

    asks: list[Ask] = field(default_factory=list)
    left: dict[str, str] = field(default_factory=dict)
    documents: set[str] = field(default_factory=set)
    """What was answered with all that there is, as it was read."""


class Unknown(Exception):  # noqa: N818 - it names what happened
    """There is no value for a parameter."""


async def surface(client: httpx.AsyncClient, tenant: Tenant, values: Mapping[str, Any]) -> Surface:
    """List what can be asked for a tenant whose values are known by the parameters' names."""
    answer = await client.get(OPENAPI, timeout=120)
    described = answer.raise_for_status().json()
    found = Surface()
    for rule, access in _routes():
        if rule in NOT_ASKED:
            found.left[f"GET {rule}"] = NOT_ASKED[rule]
            continue
        try:
            found.asks.extend(_route(rule, access, described, values, found.left))
        except Unknown as error:
            found.left[f"GET {rule}"] = f"nothing is known to ask for {error}"
    for tool in await _tools(client, tenant):
        _tool(tool, tenant, values, found)
    return found


def _routes() -> Iterator[tuple[str, Access]]:
    """List the rules that can be read, and who may."""
    app = Quart("tolsey", static_folder=None)
    for blueprint in (*BLUEPRINTS, documentation.routes):
        app.register_blueprint(blueprint)
    for rule in app.url_map.iter_rules():
        access = access_of(app.view_functions[rule.endpoint])
        # Jobs are run by their own part of the bench.
        if "GET" in (rule.methods or ()) and access not in {None, Access.CRON}:
            assert access is not None
            yield documentation.PLACE.sub(r"{\1}", rule.rule), access


def _route(
    rule: str,
    access: Access,
    described: Mapping[str, Any],
    values: Mapping[str, Any],
    left: dict[str, str],
) -> Iterator[Ask]:
    kinds = {Access.ADMINISTRATOR: "admin", Access.PAGE: "page", Access.API_KEY: "key"}
    kind = kinds.get(access, "route")
    path = rule
    for name in (part.partition("}")[0] for part in rule.split("{")[1:]):
        path = path.replace(f"{{{name}}}", str(_value(f"{rule} {name}", name, values)))
    operation = described["paths"].get(rule, {}).get("get", {})
    schemas = {
        one["name"]: (_resolved(one["schema"], described), one.get("required", False))
        for one in operation.get("parameters", ())
        if one["in"] == "query"
    }
    plain = {
        name: _value(f"{rule} {name}", name, values)
        for name, (_, required) in schemas.items()
        if required or name in MUST
    }
    # A page says nothing of itself there; whose it is goes with the query all the same.
    if kind == "page":
        plain["organizationId"] = values["organizationId"]
    plain |= values.get(rule, {})
    yield Ask(f"GET {rule}", kind, path, plain)
    for name, (schema, _) in schemas.items():
        if name in plain:
            continue
        try:
            for value in _choices(f"{rule} {name}", name, schema, values):
                label = f"GET {rule}?{_label(name, schema, value)}"
                # What goes only with others, or without, is known as the whole of a query.
                whole = {**plain, **values.get(f"{rule} {name} with", {}), name: value}
                asked = value if isinstance(value, Mapping) else whole
                yield Ask(label, kind, path, asked)
        except Unknown:
            left[f"GET {rule}?{name}"] = "nothing is known to ask for it"


def _resolved(schema: Mapping[str, Any], described: Mapping[str, Any]) -> Mapping[str, Any]:
    """Take the one form of a schema that is not null."""
    for one in schema.get("anyOf", ()):
        if one.get("type") != "null":
            return _resolved(one, described)
    if "$ref" in schema:
        *_, name = schema["$ref"].split("/")
        named: Mapping[str, Any] = (
            described.get("components", {}).get("schemas", {}).get(name)
            or described.get("$defs", {})[name]
        )
        return named
    return schema


def _value(place: str, name: str, values: Mapping[str, Any]) -> Any:
    """Give the tenant's value for a parameter: of this very place, else of the name."""
    if place in values:
        return values[place]
    if name in values:
        return values[name]
    raise Unknown(name)


def _choices(
    place: str, name: str, schema: Mapping[str, Any], values: Mapping[str, Any]
) -> Sequence[Any]:
    """List what a parameter is asked with: all words it may be, else the value that is known."""
    if "enum" in schema:
        return list(schema["enum"])
    if schema.get("type") == "boolean":
        return [True]
    return [_value(place, name, values)]


def _label(name: str, schema: Mapping[str, Any], value: Any) -> str:
    """Name a parameter, with its value where that is one of few; others change with the sizes."""
    return f"{name}={value}" if "enum" in schema else name


def call(method: str, **params: Any) -> tuple[dict[str, str], dict[str, Any]]:
    """Make the headers and the message of a call of a store's endpoint."""
    said = {
        wire.PROTOCOL_VERSION: wire.MODERN,
        wire.CLIENT_CAPABILITIES: {},
        "io.modelcontextprotocol/clientInfo": {"name": "bench", "version": "1"},
    }
    headers = {
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": wire.MODERN,
        "Mcp-Method": method,
        **({"Mcp-Name": params["name"]} if "name" in params else {}),
    }
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {"_meta": said, **params}}
    return headers, message


async def _tools(client: httpx.AsyncClient, tenant: Tenant) -> list[dict[str, Any]]:
    """List the tools of a store's endpoint, all pages of them."""
    tools: list[dict[str, Any]] = []
    cursor: dict[str, str] = {}
    while True:
        headers, message = call("tools/list", **cursor)
        answer = await client.post(
            f"/api/mcp/v1/{tenant.store_id}",
            headers={**headers, "Authorization": f"Bearer {tenant.token}"},
            json=message,
        )
        result = answer.raise_for_status().json()["result"]
        tools += result["tools"]
        if not result.get("nextCursor"):
            return tools
        cursor = {"cursor": result["nextCursor"]}


def _tool(
    tool: Mapping[str, Any], tenant: Tenant, values: Mapping[str, Any], found: Surface
) -> None:
    name, schema = tool["name"], tool["inputSchema"]
    if not tool.get("annotations", {}).get("readOnlyHint"):
        found.left[name] = "it writes"
        return
    properties = {
        one: _resolved(shape, schema) for one, shape in schema.get("properties", {}).items()
    }
    path = f"/api/mcp/v1/{tenant.store_id}"
    try:
        plain = {
            one: _choices(f"{name} {one}", one, properties[one], values)[0]
            for one in schema.get("required", ())
        }
    except Unknown as error:
        found.left[name] = f"nothing is known to ask for {error}"
        return
    found.asks.append(Ask(name, "tool", path, arguments=plain))
    for one, shape in properties.items():
        try:
            choices = _choices(f"{name} {one}", one, shape, values)
        except Unknown:
            if one not in plain:
                found.left[f"{name} {one}"] = "nothing is known to ask for it"
            continue
        for value in itertools.islice(choices, 1 if one in plain else 0, None):
            asked = {**plain, one: value}
            label = f"{name} {_label(one, shape, value)}"
            found.asks.append(Ask(label, "tool", path, arguments=asked))
