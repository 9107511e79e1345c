"""A call of which nothing is heard for long: it keeps its status, and it ends."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import pytest

from tests.mcp.fixture_server import serving
from tests.mcp.fixtures import said, text, tool
from tests.mcp.wire import Agent, events, speaking_to
from tolsey.http.mcp import endpoint, wire
from tolsey.http.mcp.call import Call
from tolsey.http.mcp.registry import Registry, ToolResult
from tolsey.http.mcp.replies import Reply
from tolsey.http.mcp.wire import RpcError

pytestmark = pytest.mark.anyio

Run = Callable[[Call, Mapping[str, Any]], Awaitable[ToolResult]]
REFUSALS = [
    (503, (b"retry-after", b"5")),
    (403, (b"www-authenticate", b'Bearer error="insufficient_scope"')),
    (429, (b"retry-after", b"7")),
]


def agent_of(**tools: Run) -> Agent:
    return speaking_to(serving(Registry.of(*(tool(name, run) for name, run in tools.items()))))


@pytest.fixture
def silences(monkeypatch: pytest.MonkeyPatch) -> asyncio.Queue[bool]:
    """Let the silence before a keep-alive be short; each one tells whether a stream was open."""
    passed: asyncio.Queue[bool] = asyncio.Queue()
    kept = Reply.keep_alive

    async def keep_alive(reply: Reply) -> bool:
        passed.put_nowait(await kept(reply))
        return reply.is_stream

    monkeypatch.setattr(endpoint, "QUIET_SECONDS", 0.0)
    monkeypatch.setattr(endpoint, "KEEP_ALIVE_SECONDS", 0.001)
    monkeypatch.setattr(Reply, "keep_alive", keep_alive)
    return passed


async def for_ever(call: Call, given: Mapping[str, Any]) -> ToolResult:
    """Never answer."""
    del call, given
    await asyncio.Event().wait()
    raise AssertionError


async def at_once(call: Call, given: Mapping[str, Any]) -> ToolResult:
    """Answer."""
    del call, given
    return said(text("done"))


@pytest.mark.parametrize("revision", wire.SUPPORTED)
@pytest.mark.parametrize(("status", "header"), REFUSALS)
async def test_a_call_that_is_refused_late_keeps_its_status_and_its_headers(
    silences: asyncio.Queue[bool], revision: str, status: int, header: tuple[bytes, bytes]
) -> None:
    async def late(call: Call, given: Mapping[str, Any]) -> ToolResult:
        """Refuse after a silence."""
        del call, given
        assert not await silences.get()
        raise RpcError(status, "Not now.", status=status, headers=(header,))

    agent = agent_of(late=late)
    if revision == wire.MODERN:
        answer = await agent.call("late")
    else:
        answer = await agent.older(revision, "tools/call", {"name": "late"})
    name, value = (part.decode() for part in header)
    assert (answer.status_code, answer.headers[name]) == (status, value)
    assert answer.json()["error"]["code"] == status


async def test_a_call_without_a_word_is_ended_and_its_client_told_so(
    silences: asyncio.Queue[bool],
) -> None:
    ended = asyncio.Event()

    async def slow(call: Call, given: Mapping[str, Any]) -> ToolResult:
        """Take for ever."""
        try:
            return await for_ever(call, given)
        finally:
            ended.set()

    answer = await agent_of(slow=slow).call("slow")
    assert (answer.status_code, answer.json()["error"]["code"]) == (504, 504)
    assert answer.json()["error"]["data"] == {"code": "too_slow"}
    assert ended.is_set()
    assert silences.qsize() == endpoint.MOST_SILENCES


async def test_who_tells_progress_may_take_its_time(silences: asyncio.Queue[bool]) -> None:
    async def patient(call: Call, given: Mapping[str, Any]) -> ToolResult:
        """Tell of progress, and then nothing for long."""
        del given
        await call.progress(1)
        for _ in range(2 * endpoint.MOST_SILENCES):
            await silences.get()
        return said(text("done"))

    agent = agent_of(patient=patient)
    answer = await agent.ask("tools/call", {"name": "patient"}, progressToken=1)
    told, last = events(answer)
    assert told["method"] == "notifications/progress"
    assert last["result"]["content"] == [text("done")]
    assert ":\n\n" in answer.text


@pytest.mark.usefixtures("silences")
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
