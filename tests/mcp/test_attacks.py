import asyncio
import contextlib
from typing import Any

import httpx
import pytest

from tests.mcp.fixture_server import Everyone, application, serving
from tests.mcp.fixtures import fixtures, tool
from tests.mcp.wire import Agent, envelope, headers_of, message, speaking_to
from tolsey.http.mcp import wire
from tolsey.http.mcp.call import ToolCall
from tolsey.http.mcp.opening import VaultSealer
from tolsey.http.mcp.registry import Registry, ToolResult
from tolsey.http.mcp.state import LIFE_SECONDS, RequestStates
from tolsey.http.mcp.wire import RpcError
from tolsey.http.web.edge import Headers
from tolsey.storage.sealing.sealed import Vault

pytestmark = pytest.mark.anyio

LISTED = message("tools/list")
STATEFUL = {"name": "test_input_required_result_request_state", "arguments": {}}


@pytest.mark.parametrize("method", ["GET", "DELETE", "PUT", "HEAD", "OPTIONS"])
async def test_messages_are_only_posted(agent: Agent, method: str) -> None:
    answer = await agent.client.request(method, "/mcp")
    assert (answer.status_code, answer.headers["allow"]) == (405, "POST")


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1.evil.example"},
        {"Origin": "http://localhost:80@evil.example"},
        {"Host": "evil.example"},
        {"Host": "localhost.evil.example:8000"},
    ],
)
async def test_a_page_of_elsewhere_cannot_reach_a_service_on_this_machine(
    agent: Agent, headers: dict[str, str]
) -> None:
    answer = await agent.post(LISTED, **headers_of(LISTED) | headers)
    assert answer.status_code == 403


async def test_a_public_service_takes_pages_of_its_own_origin_only() -> None:
    agent = speaking_to(serving(fixtures(), local=False, origins=("https://tolsey.example",)))
    ours = await agent.post(LISTED, **headers_of(LISTED), Origin="https://tolsey.example")
    assert ours.status_code == 200
    for foreign in ("http://tolsey.example", "http://localhost", "https://tolsey.example.evil"):
        answer = await agent.post(LISTED, **headers_of(LISTED), Origin=foreign)
        assert answer.json()["code"] == "foreign_origin"


async def test_a_page_of_ours_can_call_and_read_why_it_was_refused() -> None:
    agent = speaking_to(serving(fixtures(), local=False, origins=("https://tolsey.example",)))
    page = {"Origin": "https://tolsey.example"}
    asked = {"Access-Control-Request-Method": "POST", **page}
    asking = await agent.client.options("/mcp", headers=asked)
    assert (asking.status_code, asking.content) == (204, b"")
    assert asking.headers["access-control-allow-methods"] == "POST"
    wanted = {"authorization", "content-type", "mcp-protocol-version", "mcp-method", "mcp-name"}
    assert wanted <= set(asking.headers["access-control-allow-headers"].split(", "))
    taken = await agent.post(LISTED, **headers_of(LISTED), **page)
    refused = await agent.post(LISTED, **{"Content-Type": "text/plain"}, **page)
    assert (taken.status_code, refused.status_code) == (200, 415)
    for answer in (asking, taken, refused):
        assert answer.headers["access-control-allow-origin"] == page["Origin"]
        assert "www-authenticate" in answer.headers["access-control-expose-headers"]
        assert "access-control-allow-credentials" not in answer.headers
    foreign = await agent.client.options(
        "/mcp", headers={**asked, "Origin": "https://evil.example"}
    )
    assert foreign.status_code == 403
    assert "access-control-allow-origin" not in foreign.headers


class Full(Everyone):
    """Has no call left for anyone."""

    async def count(self, principal: Any, requests: int) -> Headers:
        """Refuse."""
        del principal, requests
        raise RpcError(429, "No call is left.", status=429, headers=((b"retry-after", b"7"),))


@pytest.mark.parametrize("revision", wire.SUPPORTED)
async def test_who_called_too_often_is_told_so_under_the_requests_id(revision: str) -> None:
    agent = speaking_to(serving(fixtures(), gate=Full()))
    sent = message("tools/list") | {"id": "mine"}
    answer = await agent.post(sent, **headers_of(sent) | {"MCP-Protocol-Version": revision})
    assert (answer.status_code, answer.headers["retry-after"]) == (429, "7")
    assert answer.json()["id"] == "mine"


async def test_a_batch_of_who_called_too_often_is_refused_as_a_whole() -> None:
    agent = speaking_to(serving(fixtures(), gate=Full()))
    answer = await agent.post([{"jsonrpc": "2.0", "id": 1, "method": "ping"}])
    assert answer.status_code == 429
    assert set(answer.json()) == {"jsonrpc", "error"}


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", ""])
async def test_a_form_of_another_page_is_no_message(agent: Agent, kind: str) -> None:
    answer = await agent.post(LISTED, **headers_of(LISTED), **{"Content-Type": kind})
    assert answer.status_code == 415


async def test_a_body_has_a_bound(agent: Agent) -> None:
    answer = await agent.post(b" " * (1024 * 1024 + 1))
    assert answer.status_code == 413


async def test_a_state_is_taken_back_only_as_it_was_given(agent: Agent) -> None:
    able = envelope(elicitation={})
    given = (await agent.ask("tools/call", STATEFUL, **able)).json()["result"]["requestState"]
    confirmed = {"confirm": {"action": "accept", "content": {"ok": True}}}
    used = {**STATEFUL, "inputResponses": confirmed, "requestState": given}
    assert "state-ok" in (await agent.ask("tools/call", used, **able)).text
    tampered = given[:-2] + ("AA" if given[-2:] != "AA" else "BB")
    other = {"name": "test_input_required_result_tampered_state", "arguments": {}}
    changed = {"name": STATEFUL["name"], "arguments": {"amount": 1}}
    for wrong in (
        {**used, "requestState": tampered},
        {**used, "requestState": ""},
        {**used, "requestState": 7},
        {**other, "inputResponses": confirmed, "requestState": given},
        {**changed, "inputResponses": confirmed, "requestState": given},
    ):
        answer = await agent.ask("tools/call", wrong, **able)
        assert answer.json()["error"]["code"] == wire.INVALID_PARAMS


def test_a_state_of_somebody_else_or_of_long_ago_is_refused() -> None:
    now = 0.0
    states = RequestStates(VaultSealer(Vault({"k1": bytes(32)})), lambda: now)
    given = states.give({"n": 1}, "tools/call", STATEFUL, "ann")
    assert states.take(given, "tools/call", STATEFUL, "ann") == {"n": 1}
    with pytest.raises(RpcError):
        states.take(given, "tools/call", STATEFUL, "bob")
    now = LIFE_SECONDS + 1.0
    with pytest.raises(RpcError):
        states.take(given, "tools/call", STATEFUL, "ann")


async def broken(call: ToolCall, given: Any) -> ToolResult:
    """Break in a way that tells a secret."""
    del call, given
    raise RuntimeError("postgresql://user:hunter2@db")


async def test_what_goes_wrong_inside_is_never_told() -> None:
    agent = speaking_to(serving(Registry.of(tool("broken", broken))))
    newest = await agent.call("broken")
    older = await agent.older("2025-11-25", "tools/call", {"name": "broken"})
    for answer in (newest, older):
        assert answer.json()["error"]["code"] == wire.INTERNAL_ERROR
        assert "hunter2" not in answer.text


async def test_a_client_that_goes_away_ends_what_was_done_for_it() -> None:
    started, ended = asyncio.Event(), asyncio.Event()

    async def slow(call: ToolCall, given: Any) -> ToolResult:
        """Take for ever."""
        del call, given
        started.set()
        try:
            await asyncio.sleep(3600)
        finally:
            ended.set()
        raise AssertionError

    endpoint = serving(Registry.of(tool("slow", slow)))
    sent = message("tools/call", {"name": "slow"})
    body = httpx.Request("POST", "http://127.0.0.1:8000/mcp", json=sent).content
    incoming: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
    incoming.put_nowait({"type": "http.request", "body": body})
    outgoing: list[Any] = []

    async def send(event: Any) -> None:
        outgoing.append(event)

    named = {**headers_of(sent), "content-type": "application/json"}
    headers = [(name.lower().encode(), value.encode()) for name, value in named.items()]
    scope = {"type": "http", "method": "POST", "path": "/mcp", "headers": headers}
    served = asyncio.ensure_future(endpoint(scope, incoming.get, send))
    await asyncio.wait_for(started.wait(), 60)
    incoming.put_nowait({"type": "http.disconnect"})
    await asyncio.wait_for(served, 60)
    assert ended.is_set()
    assert outgoing == []


async def test_a_server_that_stops_ends_what_it_does() -> None:
    ended = asyncio.Event()
    started = asyncio.Event()

    async def slow(call: ToolCall, given: Any) -> ToolResult:
        """Take for ever."""
        del call, given
        started.set()
        try:
            await asyncio.sleep(3600)
        finally:
            ended.set()
        raise AssertionError

    agent = speaking_to(serving(Registry.of(tool("slow", slow))))
    asked = asyncio.ensure_future(agent.call("slow"))
    await asyncio.wait_for(started.wait(), 60)
    asked.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await asked
    assert ended.is_set()


async def test_the_fixtures_are_no_part_of_the_service() -> None:
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(application()),
        base_url="http://127.0.0.1:8000",
    ) as client:
        assert (await client.post("/api/mcp/v1/store_1", json={})).status_code == 404
