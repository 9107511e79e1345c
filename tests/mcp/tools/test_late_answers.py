"""An agent is told that the service is late or full, and never that something went wrong."""

from typing import Any

import pytest

from tests.mcp.tools.two_stores import TwoStores
from tolsey.actors.store.messages import store
from tolsey.runtime.errors import Overloaded, ShardUnavailable
from tolsey.runtime.registry import Runtime
from tolsey.storage.errors import StorageUnavailable

pytestmark = pytest.mark.anyio

CALLS: dict[str, dict[str, Any]] = {
    "get_connection_status": {},
    "platform_query": {"query": "{ shop { name } }"},
}


@pytest.mark.parametrize("name", CALLS)
async def test_a_store_that_does_not_answer_in_time_is_a_503_with_its_code(
    two_stores: TwoStores, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    agent, runtime = await two_stores.agent(two_stores.ann), two_stores.service.runtime
    runtime.scheduler.pause(store(two_stores.ann.store_id))
    defaults = Runtime.ask.__kwdefaults__
    assert defaults is not None
    monkeypatch.setitem(defaults, "timeout", 0.02)
    answer = await agent.call(name, **CALLS[name])
    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "1"), answer.text
    answered = answer.json()["error"]
    assert answered["data"] == {"code": "deadline_exceeded", "retryAfter": 1}
    assert "timed out" in answered["message"]


@pytest.mark.parametrize(
    ("fault", "code"),
    [
        (Overloaded("the mailbox"), "overloaded"),
        (ShardUnavailable("a shard without an owner"), "shard_unavailable"),
        (StorageUnavailable("cut"), "storage_unavailable"),
    ],
)
async def test_what_is_away_for_a_while_says_when_to_come_again(
    two_stores: TwoStores, monkeypatch: pytest.MonkeyPatch, fault: Exception, code: str
) -> None:
    async def ask(*_: object, **__: object) -> None:
        raise fault

    agent = await two_stores.agent(two_stores.ann)
    monkeypatch.setattr(two_stores.service.runtime, "ask", ask)
    answer = await agent.call("get_connection_status")
    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "1")
    assert answer.json()["error"]["data"]["code"] == code
