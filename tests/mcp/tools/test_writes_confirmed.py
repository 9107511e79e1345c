"""What overwrites something is confirmed by a person where their client can ask them."""

import json
from datetime import timedelta
from typing import Any

import httpx
import pytest

from tests.http.people import Clock
from tests.mcp.tools.shop import PRODUCT, Counter, answered, opened
from tests.mcp.tools.two_stores import TwoStores, refused
from tests.mcp.wire import headers_of, message
from tolsey.http.mcp import wire
from tolsey.sandbox.commerce.platform import Platform

pytestmark = pytest.mark.anyio

YES = {"confirm": {"action": "accept", "content": {"confirm": True}}}


@pytest.fixture
async def counter(two_stores: TwoStores, platform: Platform) -> Counter:
    return await opened(two_stores, platform)


async def asked(
    counter: Counter, key: str = "key-00001", title: str = "Green shirt", **brought: Any
) -> httpx.Response:
    """Call as a client that can show forms does."""
    arguments = {"idempotency_key": key, "product_id": str(PRODUCT), "title": title}
    capabilities = brought.pop("capabilities", {"elicitation": {}})
    sent = message(
        "tools/call",
        {"name": "update_product", "arguments": arguments, **brought},
        **{wire.CLIENT_CAPABILITIES: capabilities},
    )
    return await counter.agent.post(sent, **headers_of(sent))


async def form_of(counter: Counter, **brought: Any) -> dict[str, Any]:
    answer = await asked(counter, **brought)
    assert answer.status_code == 200, answer.text
    told: dict[str, Any] = answer.json()["result"]
    assert told["resultType"] == "input_required", told
    return told


async def test_a_person_is_shown_the_change_and_makes_it(counter: Counter) -> None:
    form = await form_of(counter)
    params = form["inputRequests"]["confirm"]["params"]
    assert '"Blue shirt" -> "Green shirt"' in params["message"]
    assert params["requestedSchema"]["required"] == ["confirm"]
    assert counter.product.title == "Blue shirt"
    answer = await asked(counter, inputResponses=YES, requestState=form["requestState"])
    assert answered(answer)["status"] == "applied"
    assert counter.product.title == "Green shirt"
    again = await asked(counter, inputResponses=YES, requestState=form["requestState"])
    assert answered(again)["status"] == "replayed"
    assert counter.platform.admin.mutations == 1


@pytest.mark.parametrize(
    "answer",
    [
        {"action": "decline"},
        {"action": "cancel"},
        {"action": "accept", "content": {"confirm": False}},
        {"action": "accept", "content": {"confirm": "true"}},
        {"action": "accept"},
    ],
)
async def test_anything_but_a_yes_changes_nothing(counter: Counter, answer: dict[str, Any]) -> None:
    form = await form_of(counter)
    told = await asked(
        counter, inputResponses={"confirm": answer}, requestState=form["requestState"]
    )
    assert "declined" in refused(told)
    assert counter.platform.admin.mutations == 0


async def test_a_yes_that_nobody_was_asked_for_is_asked_for(counter: Counter) -> None:
    told = await form_of(counter, inputResponses=YES)
    assert "confirm" in told["inputRequests"]
    assert counter.platform.admin.mutations == 0


async def test_a_yes_to_one_change_is_none_to_another(counter: Counter) -> None:
    form = await form_of(counter)
    for changed in ({"title": "Red shirt"}, {"key": "key-00002"}):
        answer = await asked(
            counter, **changed, inputResponses=YES, requestState=form["requestState"]
        )
        assert answer.json()["error"]["code"] == wire.INVALID_PARAMS
    assert counter.platform.admin.mutations == 0


async def test_a_yes_that_comes_too_late_counts_for_nothing(counter: Counter, clock: Clock) -> None:
    form = await form_of(counter)
    clock.advance(timedelta(minutes=11))
    answer = await asked(counter, inputResponses=YES, requestState=form["requestState"])
    assert answer.json()["error"]["code"] == wire.INVALID_PARAMS


async def test_a_yes_to_what_has_changed_since_is_rejected(counter: Counter) -> None:
    form = await form_of(counter)
    counter.product.title = "Bluish shirt"
    told = answered(await asked(counter, inputResponses=YES, requestState=form["requestState"]))
    assert (told["status"], told["code"]) == ("rejected", "version_changed")
    assert counter.product.title == "Bluish shirt"


@pytest.mark.parametrize("capabilities", [{}, {"elicitation": {"url": {}}}, {"sampling": {}}])
async def test_a_client_that_shows_no_forms_needs_a_plan(
    counter: Counter, capabilities: dict[str, Any]
) -> None:
    answer = await asked(counter, capabilities=capabilities)
    assert "plan_required" in refused(answer)


@pytest.mark.parametrize("revision", wire.HANDSHAKE)
async def test_an_older_client_works_with_plans(counter: Counter, revision: str) -> None:
    async def update(**more: Any) -> str:
        arguments = {
            "idempotency_key": "key-00001",
            "product_id": str(PRODUCT),
            "title": "Green shirt",
            **more,
        }
        params = {"name": "update_product", "arguments": arguments}
        answer = await counter.agent.older(revision, "tools/call", params)
        assert answer.status_code == 200, answer.text
        return str(answer.json()["result"]["content"][0]["text"])

    assert "plan_required" in await update()
    plan = json.loads(await update(dry_run=True))
    done = json.loads(await update(plan_token=plan["plan_token"]))
    assert done["status"] == "applied"
    assert counter.product.title == "Green shirt"
