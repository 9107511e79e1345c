"""A call that takes long: it keeps its status, and it ends."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import pytest

from tests.mcp.fixture_server import serving
from tests.mcp.fixtures import said, text, tool
from tests.mcp.wire import Agent, speaking_to
from tolsey.http.mcp import endpoint, wire
from tolsey.http.mcp.call import ToolCall
from tolsey.http.mcp.registry import Registry, ToolResult
from tolsey.http.mcp.wire import RpcError

pytestmark = pytest.mark.anyio

Run = Callable[[ToolCall, Mapping[str, Any]], Awaitable[ToolResult]]
REFUSALS = [
    (503, (b"retry-after", b"5")),
    (403, (b"www-authenticate", b'Bearer error="insufficient_scope"')),
    (429, (b"retry-after", b"7")),
]


def agent_of(**tools: Run) -> Agent:
    return speaking_to(serving(Registry.of(*(tool(name, run) for name, run in tools.items()))))


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """End a call soon."""
    monkeypatch.setattr(endpoint, "QUIET_SECONDS", 0.0)
    monkeypatch.setattr(endpoint, "SLOW_SECONDS", 0.01)


async def for_ever(call: ToolCall, given: Mapping[str, Any]) -> ToolResult:
    """Never answer."""
    del call, given
    await asyncio.Event().wait()
    raise AssertionError


async def at_once(call: ToolCall, given: Mapping[str, Any]) -> ToolResult:
    """Answer."""
    del call, given
    return said(text("done"))


@pytest.mark.parametrize("revision", wire.SUPPORTED)
@pytest.mark.parametrize(("status", "header"), REFUSALS)
async def test_a_call_that_is_refused_late_keeps_its_status_and_its_headers(
    monkeypatch: pytest.MonkeyPatch, revision: str, status: int, header: tuple[bytes, bytes]
) -> None:
    watched, watch = asyncio.Event(), endpoint._watch

    async def watching(*given: Any) -> None:
        watched.set()
        await watch(*given)

    async def late(call: ToolCall, given: Mapping[str, Any]) -> ToolResult:
        """Refuse when it is watched already whether the client is there."""
        del call, given
        await watched.wait()
        raise RpcError(status, "Not now.", status=status, headers=(header,))

    monkeypatch.setattr(endpoint, "QUIET_SECONDS", 0.0)
    monkeypatch.setattr(endpoint, "_watch", watching)
    agent = agent_of(late=late)
    if revision == wire.MODERN:
        answer = await agent.call("late")
    else:
        answer = await agent.older(revision, "tools/call", {"name": "late"})
    name, value = (part.decode() for part in header)
    assert (answer.status_code, answer.headers[name]) == (status, value)
    assert answer.json()["error"]["code"] == status


@pytest.mark.usefixtures("impatient")
async def test_a_call_that_takes_too_long_is_ended_and_its_client_told_so() -> None:
    ended = asyncio.Event()

    async def slow(call: ToolCall, given: Mapping[str, Any]) -> ToolResult:
        """Take for ever."""
        try:
            return await for_ever(call, given)
        finally:
            ended.set()

    answer = await agent_of(slow=slow).call("slow")
    assert (answer.status_code, answer.json()["error"]["code"]) == (504, 504)
    assert answer.json()["error"]["data"] == {"code": "too_slow"}
    assert ended.is_set()


@pytest.mark.usefixtures("impatient")
async def test_a_batch_that_took_too_long_keeps_the_answers_there_are() -> None:
    agent = agent_of(at_once=at_once, for_ever=for_ever)
    batch = [
        {"jsonrpc": "2.0", "id": name, "method": "tools/call", "params": {"name": name}}
        for name in ("at_once", "for_ever")
    ]
    answer = await agent.post([*batch, {"jsonrpc": "2.0", "id": "after", "method": "ping"}])
    first, *rest = answer.json()
    assert (first["id"], first["result"]["content"]) == ("at_once", [text("done")])
    assert [(one["id"], one["error"]["code"]) for one in rest] == [
        ("for_ever", 504),
        ("after", 504),
    ]
