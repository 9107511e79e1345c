"""An agent that speaks the protocol by hand, so that it can also speak it wrongly."""

import itertools
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

import httpx

from tests.mcp.errors import require_valid, revision_of
from tolsey.http.mcp import wire
from tolsey.http.web.edge import ASGIApp

IDS = itertools.count(1)


def envelope(**capabilities: Any) -> dict[str, Any]:
    """What every request of 2026-07-28 says of itself."""
    return {wire.PROTOCOL_VERSION: wire.MODERN, wire.CLIENT_CAPABILITIES: capabilities}


def message(method: str, params: Mapping[str, Any] | None = None, **meta: Any) -> dict[str, Any]:
    """Write a request of 2026-07-28."""
    said = {**dict(params or {}), "_meta": {**envelope(), **meta}}
    return {"jsonrpc": "2.0", "id": next(IDS), "method": method, "params": said}


def headers_of(sent: Mapping[str, Any]) -> dict[str, str]:
    """Write the headers that repeat what a request says."""
    headers = {"MCP-Protocol-Version": wire.MODERN, "Mcp-Method": sent["method"]}
    named = wire.NAMED.get(sent["method"])
    if named and named in sent["params"]:
        headers["Mcp-Name"] = sent["params"][named]
    return headers


def events(answer: httpx.Response) -> list[dict[str, Any]]:
    """Read the messages of an event stream."""
    assert answer.headers["content-type"] == "text/event-stream"
    lines = [line for line in answer.text.splitlines() if line.startswith("data: ")]
    return [json.loads(line.removeprefix("data: ")) for line in lines]


def errors_of(answer: httpx.Response) -> list[dict[str, Any]]:
    """Read the errors of an answer; what is no message of the protocol has none."""
    match answer.headers.get("content-type"):
        case "application/json":
            said = answer.json()
        case "text/event-stream":
            said = events(answer)
        case _:
            return []
    answered = [one for each in listed(said) for one in listed(each)]
    return [one for one in answered if "error" in one]


def listed(said: Any) -> list[Any]:
    """See one message or several as several."""
    return said if isinstance(said, list) else [said]


@dataclass
class Agent:
    """One client of one address."""

    client: httpx.AsyncClient
    url: str = "/mcp"
    headers: dict[str, str] = field(default_factory=dict)

    async def post(self, body: Any, **headers: str) -> httpx.Response:
        """Post anything; an error that comes of it must be one that its revision knows."""
        sent = {"Accept": "application/json, text/event-stream", **self.headers, **headers}
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        sent.setdefault("Content-Type", "application/json")
        answer = await self.client.post(self.url, content=content, headers=sent)
        for error in errors_of(answer):
            require_valid(error, revision_of(sent.get("MCP-Protocol-Version")))
        return answer

    async def ask(
        self, method: str, params: Mapping[str, Any] | None = None, **meta: Any
    ) -> httpx.Response:
        """Ask as a client of 2026-07-28 does."""
        sent = message(method, params, **meta)
        return await self.post(sent, **headers_of(sent))

    async def call(self, name: str, **arguments: Any) -> httpx.Response:
        """Call a tool as a client of 2026-07-28 does."""
        return await self.ask("tools/call", {"name": name, "arguments": arguments})

    async def older(
        self, revision: str | None, method: str, params: Mapping[str, Any] | None = None
    ) -> httpx.Response:
        """Ask as a client of a handshake revision does."""
        sent = {"jsonrpc": "2.0", "id": next(IDS), "method": method, "params": dict(params or {})}
        return await self.post(sent, **({"MCP-Protocol-Version": revision} if revision else {}))


def speaking_to(application: ASGIApp) -> Agent:
    """Speak to an application in this process."""
    transport = httpx.ASGITransport(cast("Any", application), raise_app_exceptions=False)
    return Agent(httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8000"))
