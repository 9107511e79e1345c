import warnings
from typing import Any

import pytest

from tests.mcp.wire import Agent, events
from tolsey.http.mcp import wire

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # what this package says of its own dependencies
    from mcp_types import methods

pytestmark = pytest.mark.anyio

ASKED: list[tuple[str, dict[str, Any]]] = [
    ("tools/list", {}),
    ("resources/list", {}),
    ("resources/templates/list", {}),
    ("prompts/list", {}),
    ("tools/call", {"name": "test_simple_text"}),
    ("tools/call", {"name": "test_multiple_content_types", "arguments": {}}),
    ("tools/call", {"name": "test_error_handling"}),
    ("resources/read", {"uri": "test://static-text"}),
    ("resources/read", {"uri": "test://static-binary"}),
    ("resources/read", {"uri": "test://template/7/data"}),
    ("prompts/get", {"name": "test_simple_prompt"}),
    (
        "completion/complete",
        {
            "ref": {"type": "ref/resource", "uri": "test://template/{id}/data"},
            "argument": {"name": "id", "value": "1"},
        },
    ),
]
MODERN_ONLY: list[tuple[str, dict[str, Any]]] = [("server/discover", {})]
HANDSHAKE_ONLY: list[tuple[str, dict[str, Any]]] = [
    (
        "initialize",
        {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "t", "version": "1"},
        },
    ),
    ("ping", {}),
    ("logging/setLevel", {"level": "info"}),
    ("resources/subscribe", {"uri": "test://watched-resource"}),
]


@pytest.mark.parametrize(("method", "params"), [*ASKED, *MODERN_ONLY])
async def test_every_result_is_valid_against_the_newest_revisions_schema(
    agent: Agent, method: str, params: dict[str, Any]
) -> None:
    answer = await agent.ask(method, params)
    assert answer.status_code == 200, answer.text
    result = answer.json()["result"]
    assert result["resultType"] == "complete"
    methods.validate_server_result(method, wire.MODERN, result)


@pytest.mark.parametrize("revision", wire.HANDSHAKE)
@pytest.mark.parametrize(("method", "params"), [*ASKED, *HANDSHAKE_ONLY])
async def test_every_result_is_valid_against_an_older_revisions_schema(
    agent: Agent, revision: str, method: str, params: dict[str, Any]
) -> None:
    answer = await agent.older(revision, method, params)
    assert answer.status_code == 200, answer.text
    result = answer.json()["result"]
    assert not {"resultType", "ttlMs", "cacheScope"} & set(result)
    methods.validate_server_result(method, revision, result)


async def test_the_newest_revision_says_how_long_a_list_holds(agent: Agent) -> None:
    listed = (await agent.ask("tools/list")).json()["result"]
    assert (listed["ttlMs"], listed["cacheScope"]) == (300_000, "private")
    read = (await agent.ask("resources/read", {"uri": "test://static-text"})).json()["result"]
    assert read["ttlMs"] == 0


async def test_the_oldest_revision_is_spared_the_words_it_does_not_know(agent: Agent) -> None:
    answer = await agent.older("2025-03-26", "tools/list")
    assert all("title" not in tool for tool in answer.json()["result"]["tools"])
    newer = await agent.older("2025-06-18", "tools/list")
    assert all("title" in tool for tool in newer.json()["result"]["tools"])


@pytest.mark.parametrize(
    ("asked", "agreed"),
    [
        ("2025-03-26", "2025-03-26"),
        ("2025-11-25", "2025-11-25"),
        ("2024-11-05", "2025-11-25"),
        ("2026-07-28", "2025-11-25"),
    ],
)
async def test_a_handshake_agrees_on_a_revision_and_makes_no_session(
    agent: Agent, asked: str, agreed: str
) -> None:
    params = {
        "protocolVersion": asked,
        "capabilities": {},
        "clientInfo": {"name": "t", "version": "1"},
    }
    answer = await agent.older(None, "initialize", params)
    assert answer.json()["result"]["protocolVersion"] == agreed
    assert "mcp-session-id" not in answer.headers


async def test_who_names_no_revision_speaks_the_oldest(agent: Agent) -> None:
    batch = [
        {"jsonrpc": "2.0", "id": "a", "method": "ping"},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": "b", "method": "nonsense"},
    ]
    answer = await agent.post(batch)
    assert answer.status_code == 200
    first, second = answer.json()
    assert first == {"jsonrpc": "2.0", "id": "a", "result": {}}
    assert (second["id"], second["error"]["code"]) == ("b", wire.METHOD_NOT_FOUND)


@pytest.mark.parametrize("revision", ["2025-06-18", "2025-11-25", "2026-07-28"])
async def test_only_the_oldest_revision_sends_several_messages_at_once(
    agent: Agent, revision: str
) -> None:
    batch = [{"jsonrpc": "2.0", "id": 1, "method": "ping"}]
    answer = await agent.post(batch, **{"MCP-Protocol-Version": revision})
    assert answer.status_code == 400
    assert answer.json()["error"]["code"] == wire.INVALID_REQUEST


@pytest.mark.parametrize("size", [0, 51])
async def test_a_batch_has_a_bound(agent: Agent, size: int) -> None:
    answer = await agent.post([{"jsonrpc": "2.0", "id": 1, "method": "ping"}] * size)
    assert answer.status_code == 400


async def test_a_handshake_is_never_part_of_a_batch(agent: Agent) -> None:
    answer = await agent.post([{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}}])
    assert answer.status_code == 400


async def test_an_unknown_method_is_404_only_since_the_newest_revision(agent: Agent) -> None:
    newest = await agent.ask("tools/destroy")
    assert (newest.status_code, newest.json()["error"]["code"]) == (404, wire.METHOD_NOT_FOUND)
    older = await agent.older("2025-11-25", "tools/destroy")
    assert (older.status_code, older.json()["error"]["code"]) == (200, wire.METHOD_NOT_FOUND)


async def test_what_belonged_to_a_session_is_gone_from_the_newest_revision(agent: Agent) -> None:
    for method in ("ping", "initialize", "logging/setLevel", "resources/subscribe"):
        assert (await agent.ask(method)).status_code == 404


async def test_a_resource_that_is_not_there_has_each_revisions_own_code(agent: Agent) -> None:
    gone = {"uri": "test://nothing"}
    newest = await agent.ask("resources/read", gone)
    assert newest.json()["error"]["code"] == wire.INVALID_PARAMS
    older = await agent.older("2025-11-25", "resources/read", gone)
    assert older.json()["error"]["code"] == wire.RESOURCE_NOT_FOUND


@pytest.mark.parametrize("revision", wire.HANDSHAKE)
async def test_an_older_client_is_told_the_progress_it_asked_for(
    agent: Agent, revision: str
) -> None:
    params = {"name": "test_tool_with_progress", "_meta": {"progressToken": "p"}}
    *answered, last = events(await agent.older(revision, "tools/call", params))
    assert [one["params"]["progress"] for one in answered] == [0, 50, 100]
    methods.validate_server_result("tools/call", revision, last["result"])
