"""What becomes of a change when an answer, a process, a token or a scope is missing."""

import asyncio
from typing import Any

import orjson
import pytest

from tests.mcp.tools.shop import (
    ANNS,
    PRODUCT,
    Counter,
    answered,
    looked_at_until_over,
    opened,
    state_of,
)
from tests.mcp.tools.two_stores import TwoStores, refused
from tolsey.actors.store.grants import CONNECT, RECONNECT
from tolsey.http.mcp.tools.writes import shop as writes
from tolsey.runtime.errors import Overloaded
from tolsey.sandbox.commerce.platform import Platform
from tolsey.sandbox.commerce.shop.state import ALL_SCOPES, WRITE_SCOPES

pytestmark = pytest.mark.anyio


@pytest.fixture
async def counter(two_stores: TwoStores, platform: Platform) -> Counter:
    return await opened(two_stores, platform)


async def test_stock_whose_answer_was_lost_is_sent_again_under_its_key_and_moves_once(
    counter: Counter,
) -> None:
    counter.platform.faults.lose()
    reported = await counter.adjust("key-00001", -3)
    assert (reported["status"], reported["after"]) == ("applied", {"available": 7})
    assert (counter.variant.available, counter.platform.admin.mutations) == (7, 2)
    assert (await counter.adjust("key-00001", -3))["status"] == "replayed"
    assert counter.platform.admin.mutations == 2


async def test_stock_that_the_platform_is_still_at_work_on_is_not_taken_for_refused(
    counter: Counter,
) -> None:
    under_way = {
        "code": "IDEMPOTENCY_CONCURRENT_REQUEST",
        "field": None,
        "message": "Another request with this key is under way.",
    }
    payload = {"inventoryAdjustmentGroup": None, "userErrors": [under_way]}
    answer = orjson.dumps({"data": {"inventoryAdjustQuantities": payload}})
    counter.platform.faults.status(200, on="mutation", body=answer)
    reported = await counter.adjust("key-00001", -3)
    assert (reported["status"], reported["after"]) == ("applied", {"available": 7})
    assert counter.variant.available == 7


async def test_stock_that_was_never_moved_is_planned_anew_from_what_is_there_now(
    counter: Counter,
) -> None:
    release = counter.platform.faults.hold(on="mutation")
    changing = asyncio.create_task(counter.adjust("key-00001", -3))
    while not counter.platform.faults.happened:
        await asyncio.sleep(0.01)
    counter.variant.available = 6  # a sale in the middle
    counter.platform.faults.reset(on="mutation")
    release.set()
    reported = await changing
    assert (reported["status"], reported["before"], reported["after"]) == (
        "applied",
        {"available": 6},
        {"available": 3},
    )
    assert counter.variant.available == 3


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("set_product_status", {"product_id": str(PRODUCT), "status": "DRAFT"}),
        ("tag_order", {"tags": ["gift"]}),
        ("add_order_note", {"note": "Wrap it"}),
    ],
)
async def test_every_change_is_recognised_in_the_shop(
    counter: Counter, name: str, arguments: dict[str, Any]
) -> None:
    counter.platform.faults.lose()
    if "product_id" not in arguments:
        arguments = {**arguments, "order_id": str(counter.order.id)}
    reported = answered(await counter.agent.call(name, idempotency_key="key-00001", **arguments))
    assert reported["status"] == "applied"
    assert counter.platform.admin.mutations == 1


async def put(counter: Counter, key: str, status: str) -> dict[str, Any]:
    """Change a product's status, for which the platform takes no key."""
    asked = {"idempotency_key": key, "product_id": str(PRODUCT), "status": status}
    return answered(await counter.agent.call("set_product_status", **asked))


async def test_a_change_that_the_shop_does_not_show_is_unknown_until_it_is_surely_not_made(
    counter: Counter,
) -> None:
    counter.platform.faults.reset(on="mutation")
    reported = await put(counter, "key-00001", "DRAFT")
    assert (reported["status"], reported["code"]) == ("unknown", "unknown")
    again = await put(counter, "key-00001", "DRAFT")
    assert (again["status"], again["operation_id"]) == ("unknown", reported["operation_id"])
    assert (await state_of(counter, reported["operation_id"]))["state"] == "unknown"
    over = await looked_at_until_over(counter, reported["operation_id"])
    assert (over["state"], over["code"]) == ("rejected", "not_applied")
    last = await put(counter, "key-00001", "DRAFT")
    assert (last["status"], last["code"]) == ("rejected", "not_applied")
    assert (counter.product.status, counter.platform.admin.mutations) == ("ACTIVE", 0)


async def test_a_change_that_shows_late_is_recognised_when_it_does(counter: Counter) -> None:
    counter.platform.faults.reset(on="mutation")
    reported = await put(counter, "key-00001", "DRAFT")
    counter.product.status = "DRAFT"  # the platform was only slow
    over = await looked_at_until_over(counter, reported["operation_id"])
    assert (over["state"], over["after"]) == ("applied", {"status": "DRAFT"})
    assert (await put(counter, "key-00001", "DRAFT"))["status"] == "replayed"


async def test_a_change_that_others_have_covered_stays_unclear_and_is_never_sent_again(
    counter: Counter,
) -> None:
    counter.platform.faults.reset(on="mutation")
    reported = await put(counter, "key-00001", "DRAFT")
    counter.product.status = "ARCHIVED"
    over = await looked_at_until_over(counter, reported["operation_id"])
    assert (over["state"], over["code"]) == ("unclear", "unclear")
    assert (await put(counter, "key-00001", "DRAFT"))["status"] == "unknown"
    assert counter.platform.admin.mutations == 0
    # It holds nobody up.
    assert (await put(counter, "key-00002", "ACTIVE"))["after"] == {"status": "ACTIVE"}


async def test_who_comes_after_an_unknown_change_waits_for_it(counter: Counter) -> None:
    counter.platform.faults.reset(on="mutation")
    first = await put(counter, "key-00001", "DRAFT")
    second = asyncio.create_task(put(counter, "key-00002", "ARCHIVED"))
    over = await looked_at_until_over(counter, first["operation_id"])
    assert over["state"] == "rejected"
    assert (await second)["before"] == {"status": "ACTIVE"}


async def test_an_agent_that_goes_away_finds_its_change_made(counter: Counter) -> None:
    release = counter.platform.faults.hold(on="mutation")
    changing = asyncio.create_task(counter.adjusting("key-00001", -3))
    while not counter.platform.faults.happened:
        await asyncio.sleep(0.01)
    changing.cancel()
    await asyncio.wait({changing})
    release.set()
    assert (await counter.adjust("key-00001", -3))["status"] in {"applied", "replayed"}
    assert (counter.variant.available, counter.platform.admin.mutations) == (7, 1)


async def test_a_change_that_takes_long_is_pending_and_found_later(
    counter: Counter, monkeypatch: pytest.MonkeyPatch
) -> None:
    release = counter.platform.faults.hold(on="mutation")
    with monkeypatch.context() as patched:
        patched.setattr(writes, "ANSWER_SECONDS", 0.1)
        reported = refused(await counter.adjusting("key-00001", -3))
    assert "operation_pending" in reported
    assert await counter.audited() == [("agent.write.pending", None)]
    operation_id = reported.split("operation_id: ")[1]
    release.set()
    over = await looked_at_until_over(counter, operation_id)
    assert (over["state"], over["after"]) == ("applied", {"available": 7})
    assert (await counter.adjust("key-00001", -3))["status"] == "replayed"


async def test_a_platform_that_turns_a_change_away_may_be_asked_with_the_same_key(
    counter: Counter,
) -> None:
    counter.platform.faults.rate_limit(times=200, retry_after="599.2", on="mutation")
    answer = await counter.adjusting("key-00001", -3)
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "600")
    assert answer.json()["error"]["data"]["code"] == "commerce_throttled"
    counter.platform.faults.clear()
    assert (await counter.adjust("key-00001", -3))["status"] == "applied"
    assert counter.variant.available == 7


async def test_a_store_that_is_too_busy_to_be_changed_says_so_on_record(
    counter: Counter, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def ask(*_: object, **__: object) -> None:
        raise Overloaded("the mailbox")

    monkeypatch.setattr(counter.two_stores.service.runtime, "ask", ask)
    assert (await counter.adjusting("key-00001", -3)).status_code == 503
    assert await counter.refusals() == [("adjust_inventory", "unavailable")]


async def test_a_change_that_was_overtaken_and_then_cut_off_may_be_tried_again(
    counter: Counter,
) -> None:
    faults = counter.platform.faults
    release = faults.hold(on="mutation")
    changing = asyncio.create_task(counter.adjusting("key-00001", -3))
    while not faults.happened:
        await asyncio.sleep(0.01)
    counter.variant.available = 6
    faults.rate_limit(times=200, retry_after="600")
    release.set()
    assert (await changing).status_code == 503
    faults.clear()
    assert (await counter.adjust("key-00001", -3))["after"] == {"available": 3}


async def test_what_the_platform_refuses_is_told_in_its_words(counter: Counter) -> None:
    plan = answered(await counter.update("key-00001", title="Green shirt", dry_run=True))
    del counter.shop.products[PRODUCT]
    reported = answered(
        await counter.update("key-00001", title="Green shirt", plan_token=plan["plan_token"])
    )
    assert (reported["status"], reported["code"]) == ("rejected", "not_found")
    counter.platform.freeze(ANNS)
    drafting = {"idempotency_key": "key-00002", "product_id": "1", "status": "DRAFT"}
    refusal = refused(await counter.agent.call("set_product_status", **drafting))
    assert refusal == "Unavailable Shop\ncode: platform_denied\nplatformStatus: 402"
    counter.platform.freeze(ANNS, frozen=False)
    reported = answered(await counter.agent.call("set_product_status", **drafting))
    assert reported["code"] == "not_found"  # asked again, with the same key


async def test_a_scope_known_to_be_missing_is_refused_before_the_call_by_its_name(
    two_stores: TwoStores, platform: Platform
) -> None:
    counter = await opened(two_stores, platform, ALL_SCOPES)
    before = platform.requests
    reported = refused(await counter.adjusting("key-00001", -3))
    assert "missing_scope" in reported
    assert "write_inventory" in reported
    assert platform.requests == before


async def test_scopes_that_are_not_known_refuse_nothing_and_the_platforms_words_arrive(
    two_stores: TwoStores, platform: Platform
) -> None:
    counter = await opened(two_stores, platform, (*ALL_SCOPES, *WRITE_SCOPES))
    await two_stores.database.execute(
        "UPDATE integration_connections SET metadata = '{\"scopes\": []}'"
    )
    counter.shop.scopes = ALL_SCOPES
    reported = refused(await counter.adjusting("key-00001", -3))
    assert reported == (
        "Access denied for inventoryAdjustQuantities field."
        " Required access: `write_inventory` access scope."
        "\ncode: platform_denied\nplatformStatus: 403\nscope: write_inventory"
    )
    assert counter.platform.admin.mutations == 1
    counter.shop.scopes = (*ALL_SCOPES, *WRITE_SCOPES)
    assert (await counter.adjust("key-00001", -3))["status"] == "applied"


async def test_a_change_that_the_platform_refuses_by_its_status_says_so_in_its_words(
    counter: Counter,
) -> None:
    words = "This needs <b>merchant approval</b> for write_inventory.\n" + "Read on. " * 99
    counter.platform.faults.status(403, on="mutation", body=orjson.dumps({"errors": words}))
    reported = refused(await counter.adjusting("key-00001", -3))
    assert (
        reported == f"{words}\ncode: platform_denied\nplatformStatus: 403\nscope: write_inventory"
    )
    kept = await state_of(counter, (await counter.adjust("key-00001", -3))["operation_id"])
    assert (kept["state"], counter.variant.available) == ("applied", 7)


@pytest.mark.parametrize("when", ["graphql", "mutation"])
async def test_a_token_that_dies_under_a_change_is_renewed_and_the_change_made_once(
    counter: Counter, when: str
) -> None:
    granted = counter.platform.grants
    counter.platform.faults.status(401, on=when)
    reported = await counter.adjust("key-00001", -3)
    assert (reported["status"], reported["after"]) == ("applied", {"available": 7})
    assert (counter.platform.admin.mutations, counter.platform.grants) == (1, granted + 1)


async def test_a_token_that_died_before_a_dry_run_is_renewed(counter: Counter) -> None:
    counter.platform.revoke_tokens(ANNS)
    reported = answered(await counter.update("key-00001", title="Green shirt", dry_run=True))
    assert reported["status"] == "planned"


async def test_a_change_without_a_token_is_made_with_the_same_key_once_there_is_one(
    counter: Counter,
) -> None:
    counter.platform.revoke_tokens(ANNS)
    counter.platform.faults.status(503, times=50, on="token")
    error = (await counter.adjusting("key-00001", -3)).json()["error"]
    assert error["data"]["code"] == "commerce_unreachable"
    counter.platform.faults.clear()
    assert (await counter.adjust("key-00001", -3))["status"] == "applied"
    counter.platform.revoke_tokens(ANNS)
    counter.shop.permitted = False
    answer = await counter.adjusting("key-00002", -3)
    error = answer.json()["error"]
    assert answer.status_code == 503
    assert (error["message"], error["data"]["code"]) == (RECONNECT, "token_unavailable")
    assert counter.platform.admin.mutations == 1


async def test_a_store_that_was_never_connected_is_told_to_be_connected_first(
    two_stores: TwoStores,
) -> None:
    agent = await two_stores.agent(two_stores.bob)
    answer = await agent.call(
        "set_product_status", idempotency_key="key-00001", product_id="1", status="DRAFT"
    )
    assert answer.status_code == 503
    error = answer.json()["error"]
    assert (error["message"], error["data"]["code"]) == (CONNECT, "never_connected")


async def test_a_token_without_the_scope_is_asked_to_step_up(two_stores: TwoStores) -> None:
    for scopes, asked in (
        (("store:read",), "store:read inventory:write"),
        (
            ("inventory:read", "orders:write"),
            "orders:read orders:write inventory:read inventory:write",
        ),
    ):
        agent = await two_stores.agent(two_stores.ann, scopes)
        answer = await agent.call("adjust_inventory", idempotency_key="key-00001")
        assert answer.status_code == 403
        assert f'scope="{asked}"' in answer.headers["www-authenticate"]
        error = answer.json()["error"]
        assert (
            error["message"]
            == "This requires the scope inventory:write. Authorize again with that scope."
        )
        assert (error["data"]["scope"], error["data"]["needed"]) == (asked, ["inventory:write"])
        assert [*error["data"]["held"], "inventory:write"] == asked.split()


async def test_a_member_is_shown_what_only_looks_and_sent_to_no_consent_for_the_rest(
    two_stores: TwoStores,
) -> None:
    await two_stores.database.execute(
        "UPDATE members SET role = 'member' WHERE user_id = 'usr_ann'"
    )
    agent = await two_stores.agent(two_stores.ann)
    listed = (await agent.ask("tools/list")).json()["result"]["tools"]
    changing = [one["name"] for one in listed if not one["annotations"]["readOnlyHint"]]
    assert changing == ["refresh_revenue"]  # of the service, not of the shop
    assert "list_orders" in {one["name"] for one in listed}
    assert "list_audit_events" not in {one["name"] for one in listed}
    for name, wanted in (
        ("adjust_inventory", {"idempotency_key": "key-00001"}),
        ("list_audit_events", {}),
    ):
        answer = await agent.call(name, **wanted)
        assert "Ask an owner or admin to do it" in refused(answer)
        assert "www-authenticate" not in answer.headers
    rows = await two_stores.database.fetch(
        "SELECT metadata->>'code' AS code FROM audit_log WHERE event = 'agent.write.refused'"
    )
    assert [row["code"] for row in rows] == ["forbidden"]
