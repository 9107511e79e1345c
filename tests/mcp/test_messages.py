import base64
import json
from typing import Any

import pytest

from tests.mcp.errors import require_valid
from tests.mcp.speaking import LOG_LEVEL
from tests.mcp.wire import Agent, envelope, events, headers_of, message
from tolsey.http.mcp import wire

pytestmark = pytest.mark.anyio

SIMPLE = {"name": "test_simple_text", "arguments": {}}


async def refused(agent: Agent, sent: Any, headers: dict[str, str]) -> tuple[int, int]:
    answer = await agent.post(sent, **headers)
    return answer.status_code, answer.json()["error"]["code"]


async def test_a_request_without_its_envelope_is_refused(agent: Agent) -> None:
    for missing in (wire.PROTOCOL_VERSION, wire.CLIENT_CAPABILITIES):
        sent = message("tools/list")
        del sent["params"]["_meta"][missing]
        assert await refused(agent, sent, headers_of(sent)) == (400, wire.INVALID_PARAMS)
    sent = message("tools/list")
    sent["params"]["_meta"] = "nothing"
    assert await refused(agent, sent, headers_of(sent)) == (400, wire.INVALID_PARAMS)


@pytest.mark.parametrize("name", ["MCP-Protocol-Version", "Mcp-Method", "Mcp-Name"])
async def test_a_header_that_says_something_else_is_refused(agent: Agent, name: str) -> None:
    sent = message("tools/call", SIMPLE)
    headers = headers_of(sent) | {name: "2027-01-01"}
    assert await refused(agent, sent, headers) == (400, wire.HEADER_MISMATCH)


@pytest.mark.parametrize("name", ["Mcp-Method", "Mcp-Name"])
async def test_a_header_that_is_not_sent_is_refused(agent: Agent, name: str) -> None:
    sent = message("tools/call", SIMPLE)
    headers = headers_of(sent)
    del headers[name]
    assert await refused(agent, sent, headers) == (400, wire.HEADER_MISMATCH)


async def test_a_header_that_is_sent_twice_is_refused(agent: Agent) -> None:
    sent = message("tools/list")
    pairs = [*headers_of(sent).items(), ("Mcp-Method", "tools/list")]
    pairs.append(("Content-Type", "application/json"))
    answer = await agent.client.post("/mcp", content=json.dumps(sent), headers=pairs)
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, wire.HEADER_MISMATCH)


async def test_a_header_may_be_written_as_base64_or_with_space_around_it(agent: Agent) -> None:
    sent = message("tools/call", SIMPLE)
    encoded = base64.b64encode(b"test_simple_text").decode()
    for written in (f"=?base64?{encoded}?=", "  test_simple_text\t"):
        answer = await agent.post(sent, **headers_of(sent) | {"Mcp-Name": written})
        assert answer.status_code == 200, answer.text
    for broken in ("=?base64?!!?=", f"=?base64?{encoded[:-1]}?="):
        headers = headers_of(sent) | {"Mcp-Name": broken}
        assert await refused(agent, sent, headers) == (400, wire.HEADER_MISMATCH)


async def test_a_revision_that_is_not_served_is_told_which_are(agent: Agent) -> None:
    sent = message("tools/list")
    sent["params"]["_meta"][wire.PROTOCOL_VERSION] = "2031-01-01"
    headers = headers_of(sent) | {"MCP-Protocol-Version": "2031-01-01"}
    answer = await agent.post(sent, **headers)
    assert answer.status_code == 400
    error = answer.json()["error"]
    assert error["code"] == wire.UNSUPPORTED_VERSION
    assert error["data"] == {"supported": list(wire.SUPPORTED), "requested": "2031-01-01"}


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"{", wire.PARSE_ERROR),
        (b"[" * 70 + b"]" * 70, wire.PARSE_ERROR),
        (b'"text"', wire.INVALID_REQUEST),
        (b'{"id": 1, "method": "ping"}', wire.INVALID_REQUEST),
        (b'{"jsonrpc": "2.0", "id": null, "method": "ping"}', wire.INVALID_REQUEST),
        (b'{"jsonrpc": "2.0", "id": 1.5, "method": "ping"}', wire.INVALID_REQUEST),
        (b'{"jsonrpc": "2.0", "id": 1, "result": {}}', wire.INVALID_REQUEST),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": []}', wire.INVALID_REQUEST),
        (b'{"jsonrpc": "2.0", "id": %d, "method": "ping"}' % 10**30, wire.INVALID_REQUEST),
        (b'{"jsonrpc": "2.0", "id": "\\u0000", "method": "ping"}', wire.INVALID_REQUEST),
    ],
)
async def test_what_is_no_message_is_refused_in_every_revision(
    agent: Agent, body: bytes, code: int
) -> None:
    for revision in (wire.MODERN, "2025-11-25"):
        answer = await agent.post(body, **{"MCP-Protocol-Version": revision})
        assert (answer.status_code, answer.json()["error"]["code"]) == (400, code)


@pytest.mark.parametrize("odd", ["\x00", 10**30, {"a": ["\x00"]}])
async def test_a_parameter_that_cannot_be_kept_is_no_parse_error(agent: Agent, odd: Any) -> None:
    sent = message("prompts/list")
    sent["params"]["cursor"] = odd
    assert await refused(agent, sent, headers_of(sent)) == (400, wire.INVALID_PARAMS)


async def test_parameters_that_are_null_are_none(agent: Agent) -> None:
    sent = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": None}
    answer = await agent.post(sent, **{"MCP-Protocol-Version": "2025-11-25"})
    assert answer.json()["result"]["tools"]


@pytest.mark.parametrize("revision", wire.SUPPORTED)
@pytest.mark.parametrize(
    ("body", "told"),
    [
        (b"{", {}),
        (b"[]", {}),
        (b'[{"jsonrpc": "2.0", "id": 1, "method": "initialize"}]', {}),
        (b'"text"', {}),
        (b'{"jsonrpc": "2.0", "id": null, "method": "ping"}', {}),
        (b'{"jsonrpc": "2.0", "id": true, "method": "ping"}', {}),
        (b'{"jsonrpc": "2.0", "method": "ping", "params": []}', {}),
        (b'{"id": 0, "method": "ping"}', {"id": 0}),
        (b'{"jsonrpc": "2.0", "id": "", "params": {}}', {"id": ""}),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": []}', {"id": 1}),
    ],
)
async def test_an_error_names_the_request_or_nothing(
    agent: Agent, revision: str, body: bytes, told: dict[str, Any]
) -> None:
    answer = await agent.post(body, **{"MCP-Protocol-Version": revision})
    assert answer.status_code == 400
    assert {name: one for name, one in answer.json().items() if name == "id"} == told


async def test_a_version_that_is_sent_twice_is_refused_under_the_requests_id(agent: Agent) -> None:
    sent = message("tools/list") | {"id": "mine"}
    twice = [*headers_of(sent).items(), ("MCP-Protocol-Version", wire.MODERN)]
    answer = await agent.client.post(agent.url, json=sent, headers=twice)
    require_valid(answer.json(), wire.MODERN)
    assert (answer.status_code, answer.json()["id"]) == (400, "mine")
    assert answer.json()["error"]["code"] == wire.HEADER_MISMATCH


async def test_a_refused_notification_is_answered_without_an_id(agent: Agent) -> None:
    sent = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}
    answer = await agent.post(sent, **{"MCP-Protocol-Version": "2031-01-01"})
    assert answer.status_code == 400
    assert "id" not in answer.json()


async def test_a_notification_is_taken_and_owed_nothing(agent: Agent) -> None:
    sent = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}
    for revision in (wire.MODERN, "2025-06-18"):
        answer = await agent.post(sent, **{"MCP-Protocol-Version": revision})
        assert (answer.status_code, answer.content) == (202, b"")


async def test_an_error_carries_the_id_of_its_request(agent: Agent) -> None:
    sent = message("tools/call", {"name": "nothing"}) | {"id": "mine"}
    answer = await agent.post(sent, **headers_of(sent))
    assert answer.json()["id"] == "mine"
    assert answer.json()["error"]["code"] == wire.INVALID_PARAMS


async def test_progress_turns_the_answer_into_a_stream_and_ends_with_it(agent: Agent) -> None:
    asked = {"name": "test_tool_with_progress", "arguments": {}}
    *told, last = events(await agent.ask("tools/call", asked, progressToken=7))
    assert [one["method"] for one in told] == ["notifications/progress"] * 3
    assert {one["params"]["progressToken"] for one in told} == {7}
    assert last["result"]["content"][0]["text"] == "7"


async def test_nobody_hears_of_progress_or_logs_who_did_not_ask(agent: Agent) -> None:
    for name in ("test_tool_with_progress", "test_tool_with_logging"):
        answer = await agent.call(name)
        assert answer.headers["content-type"] == "application/json"


async def test_log_messages_come_from_the_asked_severity_on(agent: Agent) -> None:
    asked = {"name": "test_tool_with_logging", "arguments": {}}
    told = events(await agent.ask("tools/call", asked, **{LOG_LEVEL: "info"}))
    assert [one["params"]["level"] for one in told[:-1]] == ["info"] * 3
    quiet = await agent.ask("tools/call", asked, **{LOG_LEVEL: "error"})
    assert quiet.headers["content-type"] == "application/json"


async def test_who_takes_no_stream_is_answered_in_one_piece(agent: Agent) -> None:
    sent = message("tools/call", {"name": "test_tool_with_progress"}, progressToken=1)
    answer = await agent.post(sent, **headers_of(sent) | {"Accept": "application/json"})
    assert answer.json()["result"]["content"][0]["text"] == "1"


async def test_input_is_asked_only_of_who_can_give_it(agent: Agent) -> None:
    asked = {"name": "test_input_required_result_elicitation", "arguments": {}}
    answer = await agent.ask("tools/call", asked)
    error = answer.json()["error"]
    assert (answer.status_code, error["code"]) == (400, wire.MISSING_CAPABILITY)
    assert error["data"] == {"requiredCapabilities": {"elicitation": {}}}
    able = envelope(elicitation={})
    answer = await agent.ask("tools/call", asked, **able)
    assert answer.json()["result"]["resultType"] == "input_required"


async def test_an_older_client_cannot_be_asked_and_is_told_so(agent: Agent) -> None:
    asked = {"name": "test_input_required_result_elicitation"}
    answer = await agent.older("2025-11-25", "tools/call", asked)
    assert answer.json()["error"]["code"] == wire.INVALID_REQUEST


@pytest.mark.parametrize("url", ["test://template/a/b/data", "test://template//data", "test://"])
async def test_an_address_that_only_looks_like_one_is_none(agent: Agent, url: str) -> None:
    answer = await agent.ask("resources/read", {"uri": url})
    assert answer.json()["error"]["code"] == wire.INVALID_PARAMS


@pytest.mark.parametrize("cursor", [None, ""])
async def test_an_empty_cursor_starts_at_the_first_page(agent: Agent, cursor: str | None) -> None:
    answer = await agent.ask("tools/list", {"cursor": cursor})
    assert answer.json()["result"]["tools"]


async def test_a_cursor_that_was_never_given_is_refused(agent: Agent) -> None:
    answer = await agent.ask("tools/list", {"cursor": "2"})
    assert answer.json()["error"]["code"] == wire.INVALID_PARAMS


async def test_the_list_of_tools_is_the_same_bytes_each_time(agent: Agent) -> None:
    sent = message("tools/list")
    first, second = [await agent.post(sent, **headers_of(sent)) for _ in range(2)]
    assert first.content == second.content
