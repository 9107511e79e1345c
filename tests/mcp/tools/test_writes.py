"""The write tools against a real shop on loopback: what changes, once, and what is told of it."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from tests.http.people import Clock
from tests.mcp.tools.shop import (
    BOBS,
    ITEM,
    NOTE,
    PRODUCT,
    Counter,
    answered,
    opened,
    state_of,
    stocked,
)
from tests.mcp.tools.two_stores import TwoStores, refused, result
from tolsey.sandbox.commerce.platform import Platform
from tolsey.sandbox.commerce.shop.products import LOCATION_ID

pytestmark = pytest.mark.anyio


@pytest.fixture
async def counter(two_stores: TwoStores, platform: Platform) -> Counter:
    return await opened(two_stores, platform)


async def test_stock_is_changed_and_both_quantities_are_told(counter: Counter) -> None:
    told = await counter.adjust("key-00001", -3)
    assert (told["status"], told["before"], told["after"]) == (
        "applied",
        {"available": 10},
        {"available": 7},
    )
    assert counter.variant.available == 7
    row = await counter.two_stores.database.fetchrow(
        "SELECT event, subject, actor FROM audit_log WHERE id = $1", int(told["audit_id"])
    )
    assert row is not None
    assert tuple(row) == (
        "agent.write",
        counter.two_stores.ann.store_id,
        counter.two_stores.ann.user_id,
    )


async def test_a_status_is_set(counter: Counter) -> None:
    answer = await counter.agent.call(
        "set_product_status",
        idempotency_key="key-00001",
        product_id=str(PRODUCT),
        status="ARCHIVED",
    )
    told = answered(answer)
    assert (told["status"], told["before"], told["after"]) == (
        "applied",
        {"status": "ACTIVE"},
        {"status": "ARCHIVED"},
    )
    assert counter.product.status == "ARCHIVED"


async def test_a_note_is_added_to_what_stands_there_and_only_once(counter: Counter) -> None:
    counter.order.note = "Ring twice"
    for key, status in (("key-00001", "applied"), ("key-00002", "applied")):
        answer = await counter.agent.call(
            "add_order_note", idempotency_key=key, order_id=str(counter.order.id), note=NOTE
        )
        told = answered(answer)
        assert told["status"] == status
        assert told["after"] == {"characters": len(f"Ring twice\n{NOTE}"), "has_text": True}
        assert "Ring" not in answer.text
    assert counter.order.note == f"Ring twice\n{NOTE}"
    assert counter.platform.admin.mutations == 1


async def test_tags_are_added_and_those_of_others_are_not_told(counter: Counter) -> None:
    counter.order.tags = ("Jane Doe", "VIP")
    answer = await counter.agent.call(
        "tag_order",
        idempotency_key="key-00001",
        order_id=str(counter.order.id),
        tags=["vip", "gift"],
    )
    told = answered(answer)
    assert (told["before"], told["after"]) == ({"tags": ["vip"]}, {"tags": ["vip", "gift"]})
    assert set(counter.order.tags) == {"Jane Doe", "VIP", "gift"}
    assert "Jane" not in answer.text


async def test_what_was_asked_is_nowhere_in_clear_and_gone_once_it_is_done(
    counter: Counter,
) -> None:
    database = counter.two_stores.database
    await counter.agent.call(
        "add_order_note", idempotency_key="key-00001", order_id=str(counter.order.id), note=NOTE
    )
    tables = await database.fetch(
        "SELECT table_name AS name FROM information_schema.tables WHERE table_schema = 'public'"
    )
    for table in tables:
        sql = f"SELECT to_jsonb(t)::text AS row FROM {table['name']} t"  # noqa: S608 - our tables
        rows = await database.fetch(sql)
        assert not [row for row in rows if "Elm Street" in row["row"]], table["name"]
    kept = await database.fetchrow("SELECT intent, state FROM agent_operations")
    assert kept is not None
    assert tuple(kept) == (None, "applied")


async def test_the_same_key_changes_nothing_twice(counter: Counter) -> None:
    first = await counter.adjust("key-00001", -3)
    again = await counter.adjust("key-00001", -3)
    assert again == {**first, "status": "replayed"}
    assert (counter.variant.available, counter.platform.admin.mutations) == (7, 1)


async def test_the_same_key_at_the_same_time_changes_nothing_twice(counter: Counter) -> None:
    told = await asyncio.gather(*(counter.adjust("key-00001", -3) for _ in range(6)))
    assert {one["status"] for one in told} <= {"applied", "replayed"}
    assert (counter.variant.available, counter.platform.admin.mutations) == (7, 1)


@pytest.mark.parametrize("changed", [{"delta": -4}, {"delta": -3, "compare_quantity": 10}])
async def test_a_key_is_never_used_for_other_arguments(
    counter: Counter, changed: dict[str, Any]
) -> None:
    await counter.adjust("key-00001", -3)
    answer = await counter.adjusting("key-00001", **changed)
    assert "idempotency_key_reused" in refused(answer)
    assert counter.variant.available == 7


async def test_a_key_of_one_tool_is_not_one_of_another(counter: Counter) -> None:
    await counter.adjust("key-00001", -3)
    answer = await counter.agent.call(
        "set_product_status", idempotency_key="key-00001", product_id=str(PRODUCT), status="DRAFT"
    )
    assert "idempotency_key_reused" in refused(answer)


async def test_no_change_is_lost_however_many_ask_at_once(counter: Counter) -> None:
    deltas = [-3, 5, 7, -1, 2, -8, 4, 1, 6, -2]
    told = await asyncio.gather(
        *(counter.adjust(f"key-{n:05}", delta) for n, delta in enumerate(deltas))
    )
    assert {one["status"] for one in told} == {"applied"}
    assert counter.variant.available == 10 + sum(deltas)
    # One after the other: each began where another ended.
    befores = {one["before"]["available"] for one in told}
    afters = {one["after"]["available"] for one in told}
    assert befores ^ afters <= {10, 10 + sum(deltas)}


async def test_a_sale_in_the_middle_of_a_change_is_not_lost(counter: Counter) -> None:
    def sold() -> None:
        counter.variant.available -= 4

    told = await counter.overtaken(counter.adjusting("key-00001", -3), sold)
    assert (told["before"], told["after"]) == ({"available": 6}, {"available": 3})
    assert counter.variant.available == 3


async def test_a_quantity_that_is_not_as_compared_is_left_alone(counter: Counter) -> None:
    told = await counter.adjust("key-00001", -3, compare_quantity=9)
    assert (told["status"], told["code"]) == ("rejected", "quantity_changed")
    assert told["before"] == {"available": 10}
    assert counter.platform.admin.mutations == 0


async def test_a_dry_run_changes_nothing_and_tells_what_would_be(counter: Counter) -> None:
    told = await counter.adjust("key-00001", -3, dry_run=True)
    assert (told["status"], told["before"], told["after"]) == (
        "planned",
        {"available": 10},
        {"available": 7},
    )
    assert told["plan_token"]
    assert (counter.variant.available, counter.platform.admin.mutations) == (10, 0)
    done = await counter.adjust("key-00001", -3, plan_token=told["plan_token"])
    assert (done["status"], done["operation_id"]) == ("applied", told["operation_id"])


async def test_a_plan_of_what_has_changed_since_is_not_carried_out(counter: Counter) -> None:
    plan = await counter.adjust("key-00001", -3, dry_run=True)
    counter.variant.available = 4
    told = await counter.adjust("key-00001", -3, plan_token=plan["plan_token"])
    assert (told["status"], told["code"]) == ("rejected", "version_changed")
    assert (counter.variant.available, told["before"]) == (4, {"available": 4})


async def test_an_expected_version_that_is_no_more_is_rejected_with_the_one_that_is(
    counter: Counter,
) -> None:
    version = (await counter.adjust("key-00001", -3))["version"]
    kept = await counter.adjust("key-00002", -3, expected_version=version)
    assert kept["status"] == "applied"
    late = await counter.adjust("key-00003", -3, expected_version=version)
    assert (late["status"], late["code"]) == ("rejected", "version_changed")
    assert late["version"] == kept["version"]
    assert counter.variant.available == 4


async def test_what_overwrites_needs_a_plan(counter: Counter) -> None:
    told = refused(await counter.update("key-00001", title="Green shirt"))
    assert "plan_required" in told
    plan = answered(await counter.update("key-00001", title="Green shirt", dry_run=True))
    assert (plan["before"], plan["after"]) == ({"title": "Blue shirt"}, {"title": "Green shirt"})
    done = answered(
        await counter.update("key-00001", title="Green shirt", plan_token=plan["plan_token"])
    )
    assert done["status"] == "applied"
    assert counter.product.title == "Green shirt"
    assert counter.product.tags == ("soft", "warm")


async def test_a_plan_token_opens_for_nothing_but_its_own_change(
    counter: Counter, clock: Clock
) -> None:
    plan = answered(await counter.update("key-00001", title="Green shirt", dry_run=True))
    token = plan["plan_token"]
    assert "plan_invalid" in refused(
        await counter.update("key-00002", title="Red shirt", plan_token=token)
    )
    assert "plan_invalid" in refused(
        await counter.update("key-00002", title="Green shirt", plan_token=token[:-2] + "AA")
    )
    other = await counter.two_stores.agent(counter.two_stores.ann)
    answer = await other.call(
        "update_product",
        idempotency_key="key-00002",
        product_id=str(PRODUCT),
        title="Green shirt",
        plan_token=token,
    )
    assert "plan_invalid" in refused(answer)  # another grant
    clock.advance(timedelta(minutes=5, seconds=1))
    assert "plan_expired" in refused(
        await counter.update("key-00002", title="Green shirt", plan_token=token)
    )
    assert counter.product.title == "Blue shirt"


async def test_nothing_of_another_store_can_be_changed(
    two_stores: TwoStores, platform: Platform, counter: Counter
) -> None:
    stocked(platform, BOBS)
    platform.shop(BOBS).products[88] = platform.shop(BOBS).products.pop(PRODUCT)
    told = answered(
        await counter.agent.call(
            "set_product_status", idempotency_key="key-00001", product_id="88", status="DRAFT"
        )
    )
    assert (told["status"], told["code"]) == ("rejected", "not_found")
    assert platform.shop(BOBS).products[88].status == "ACTIVE"
    # The same key in another store is another operation.
    mine = await counter.adjust("key-00002", -1)
    bobs = await two_stores.agent(two_stores.bob)
    answer = await bobs.call("get_operation", operation_id=mine["operation_id"])
    assert "not_found" in refused(answer)


async def test_every_call_leaves_an_audit_row(counter: Counter) -> None:
    await counter.update("key-00001", title="Green shirt")
    await counter.adjust("key-00002", -1, dry_run=True)
    await counter.adjust("key-00002", -1)
    await counter.adjust("key-00002", -1)
    await counter.adjust("key-00003", -1, compare_quantity=99)
    assert await counter.audited() == [
        ("agent.write.refused", None),
        ("agent.write.planned", None),
        ("agent.write", "applied"),
        ("agent.write.replayed", "applied"),
        ("agent.write", "rejected"),
    ]


async def test_a_call_that_never_reached_its_tool_leaves_an_audit_row(counter: Counter) -> None:
    await counter.adjusting("short", -1)
    narrow = await counter.two_stores.agent(counter.two_stores.ann, ["store:read"])
    answer = await narrow.call("tag_order", order_id="1", tags=["q"], idempotency_key="key-00001")
    assert answer.status_code == 403
    await counter.agent.ask("tools/call", {"name": "update_product", "arguments": []})
    left = [
        ("adjust_inventory", "invalid_arguments"),
        ("tag_order", "insufficient_scope"),
        ("update_product", "invalid_arguments"),
    ]
    assert await counter.refusals() == left
    events = result(await counter.agent.call("list_audit_events", event="agent."))["items"]
    told = [(one["detail"]["tool"], one["detail"]["code"]) for one in reversed(events)]
    assert told == left
    # Reads are not changes.
    await narrow.call("list_orders")
    assert await counter.refusals() == left


async def test_a_dry_run_is_found_by_the_operation_that_it_names(counter: Counter) -> None:
    plan = await counter.adjust("key-00001", -3, dry_run=True)
    found = await state_of(counter, plan["operation_id"])
    assert (found["state"], found["tool"]) == ("planned", "adjust_inventory")
    assert found["audit_id"] == plan["audit_id"]
    bobs = await counter.two_stores.agent(counter.two_stores.bob)
    other = await bobs.call("get_operation", operation_id=plan["operation_id"])
    assert "not_found" in refused(other)
    await counter.adjust("key-00001", -3, plan_token=plan["plan_token"])
    assert (await state_of(counter, plan["operation_id"]))["state"] == "applied"


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("adjust_inventory", {"delta": 1}),
        ("adjust_inventory", {"idempotency_key": "short", "delta": 1}),
        ("adjust_inventory", {"idempotency_key": "k" * 65, "delta": 1}),
        ("adjust_inventory", {"idempotency_key": "has spaces", "delta": 1}),
        ("adjust_inventory", {"idempotency_key": "key-00001", "delta": 10**7}),
        ("adjust_inventory", {"idempotency_key": "key-00001", "delta": 1, "store_id": "store_bob"}),
        ("update_product", {"idempotency_key": "key-00001", "product_id": "1"}),
        ("tag_order", {"idempotency_key": "key-00001", "order_id": "1", "tags": ["a,b"]}),
        ("tag_order", {"idempotency_key": "key-00001", "order_id": "1", "tags": []}),
        ("add_order_note", {"idempotency_key": "key-00001", "order_id": "1", "note": "  "}),
    ],
)
async def test_arguments_that_are_not_right_reach_nothing(
    counter: Counter, name: str, arguments: dict[str, Any]
) -> None:
    if name == "adjust_inventory":
        arguments = {
            "inventory_item_id": str(ITEM),
            "location_id": str(LOCATION_ID),
            **arguments,
        }
    assert "arguments are invalid" in refused(await counter.agent.call(name, **arguments))
    assert counter.platform.admin.mutations == 0


async def test_the_tools_say_what_they_do(counter: Counter) -> None:
    tools = (await counter.agent.ask("tools/list")).json()["result"]["tools"]
    writes = {one["name"]: one for one in tools if not one["annotations"]["readOnlyHint"]}
    assert set(writes) == {
        "update_product",
        "set_product_status",
        "change_price",
        "adjust_inventory",
        "add_order_note",
        "tag_order",
        "fulfil_order",
        "track_fulfilment",
        "refund_order",
        "create_discount",
        "change_many",
        "save_collection",
        "save_page",
        "refresh_revenue",
        "request_competitor_scan",
        "save_memory",
        "delete_memory",
        "run_launch_milestone",
        "request_launch_probe",
        "draft_offer_reply",
    }
    assert {n for n, one in writes.items() if one["annotations"]["destructiveHint"]} == {
        "update_product",
        "set_product_status",
        "change_price",
        "adjust_inventory",
        "fulfil_order",
        "track_fulfilment",
        "delete_memory",
        "refund_order",
        "change_many",
        "save_collection",
        "save_page",
    }
    for name, one in writes.items():
        assert "idempotency_key" in one["inputSchema"]["required"]
        like = "change_many" if name == "change_many" else "tag_order"
        assert one["outputSchema"] == writes[like]["outputSchema"]
