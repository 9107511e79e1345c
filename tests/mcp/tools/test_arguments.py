"""What a tool's published schema refuses is refused, and nothing is read as something else."""

from typing import Any

import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]  # it has no types

from tests.mcp.tools.shop import ITEM, PRODUCT, Counter, opened
from tests.mcp.tools.test_reads_apart import everything
from tests.mcp.tools.two_stores import TwoStores, refused, result
from tolsey.http.mcp.registry import InvalidArguments, Tool
from tolsey.http.mcp.tools.registry import stores_registry
from tolsey.sandbox.commerce.platform import Platform
from tolsey.sandbox.commerce.shop.products import LOCATION_ID

pytestmark = pytest.mark.anyio

KEY = {"idempotency_key": "key-00001"}
WRITES: dict[str, dict[str, Any]] = {
    "update_product": {**KEY, "product_id": "77", "title": "Shirt"},
    "set_product_status": {**KEY, "product_id": "77", "status": "DRAFT"},
    "change_price": {
        **KEY,
        "product_id": "77",
        "prices": [{"variant_id": "770", "price": {"amount": "17.90", "currency": "USD"}}],
    },
    "adjust_inventory": {**KEY, "inventory_item_id": "1", "location_id": "1", "delta": 1},
    "add_order_note": {**KEY, "order_id": "1", "note": "Wrap it"},
    "tag_order": {**KEY, "order_id": "1", "tags": ["gift"]},
    "fulfil_order": {**KEY, "order_id": "1"},
    "track_fulfilment": {**KEY, "fulfillment_id": "1", "tracking_number": "T1"},
    "refund_order": {**KEY, "order_id": "1", "amount": {"amount": "1", "currency": "USD"}},
    "create_discount": {**KEY, "code": "SPRING", "title": "Sale", "percentage": 15},
    "save_collection": {**KEY, "handle": "summer", "title": "Summer"},
    "save_page": {**KEY, "handle": "about-us", "body_html": "<p>We weave.</p>"},
    "change_many": {
        **KEY,
        "changes": [{"tool": "tag_order", "arguments": '{"order_id": "1", "tags": ["gift"]}'}],
    },
    "refresh_revenue": KEY,
    "request_competitor_scan": {**KEY, "domain": "rival.example"},
    "save_memory": {**KEY, "key": "brand.voice", "text": "Warm"},
    "delete_memory": {**KEY, "id": "1"},
    "run_launch_milestone": {**KEY, "milestone_id": "foundation.audit"},
    "request_launch_probe": KEY,
    "draft_offer_reply": {**KEY, "deal_id": "deal_ann", "offer_id": "offer_ann", "reply": "accept"},
}
LONG = "x" * 70_000
HOSTILE: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 1.0, 1.5, 101, 10**6 + 1, -(10**9) - 1, 10**30, 1e300, "", " ",
    "1", "-1", "1.0", "true", "no", "null", "short", "two words", "a,b", "ACTIVE", "active", "9d",
    "2026-11-01", "2026-11-01T00:00:00Z", "s1:0", f"s1:{'0' * 64}", f"s1:{'0' * 64}\n", "x" * 41,
    f" {'x' * 255}", LONG, "gid://shopify/Order/1", [], [None], [1], [" "], ["a"] * 21, ["a"] * 251,
    ["x" * 41], {}, {"a": 1},
)  # fmt: skip
"""Of every kind that JSON has, on both sides of each bound."""


def is_taken(tool: Tool, given: dict[str, Any]) -> bool:
    try:
        tool.read(given)
    except InvalidArguments:
        return False
    return True


async def test_what_a_schema_refuses_is_refused_by_its_tool(two_stores: TwoStores) -> None:
    tools = stores_registry(two_stores.service).tools
    usual = {
        **everything(two_stores.ann),
        **WRITES,
        "platform_query": {"query": "{ shop { name } }"},
    }
    assert usual.keys() == tools.keys()
    checked = 0
    for name, tool in tools.items():
        schema = Draft202012Validator(tool.input_schema)
        needed = tool.input_schema.get("required", ())
        assert is_taken(tool, usual[name]), name
        for argument in (*tool.input_schema["properties"], "store_id"):
            for value in HOSTILE:
                if value is None and argument not in needed:
                    continue  # as if it were left out
                given = {**usual[name], argument: value}
                if not schema.is_valid(given):
                    assert not is_taken(tool, given), (name, argument, value)
                    checked += 1
        for argument in needed:
            left = {key: value for key, value in usual[name].items() if key != argument}
            assert not is_taken(tool, left), (name, argument)
    assert checked > 1_000


@pytest.mark.parametrize("odd", ["a\x00b", 10**30, -(2**63) - 1, 1e300, ["\x00"], {"\x00": 1}])
async def test_an_argument_that_cannot_be_kept_is_refused_by_its_name(
    two_stores: TwoStores, odd: Any
) -> None:
    agent = await two_stores.agent(two_stores.ann)
    for name, argument in (
        ("list_orders", "limit"),
        ("search", "query"),
        ("get_order", "order_id"),
        ("adjust_inventory", "delta"),
        ("platform_query", "variables"),
    ):
        answer = await agent.call(name, **{argument: odd})
        told = refused(answer)
        assert f"problems: ['{argument}: it holds a" in told, name
    rows = await two_stores.database.fetch(
        "SELECT 1 FROM audit_log WHERE event = 'agent.write.refused'"
    )
    assert len(rows) == 1


def outcome(tool: Tool, given: dict[str, Any]) -> Any:
    """Return what a tool reads from arguments, or why it refuses them."""
    try:
        read = tool.read(given)
    except InvalidArguments as error:
        return error.problems
    return read, read.model_fields_set


async def test_every_tool_takes_null_for_an_optional_argument_as_absent(
    two_stores: TwoStores,
) -> None:
    usual = {
        **everything(two_stores.ann),
        **WRITES,
        "platform_query": {"query": "{ shop { name } }"},
    }
    wrong, checked = [], 0
    for name, tool in stores_registry(two_stores.service).tools.items():
        needed = tool.input_schema.get("required", ())
        taken: dict[str, Any] = tool.input_schema["properties"]
        nulls = {one: None for one in taken if one not in needed}
        bare = {one: value for one, value in usual[name].items() if one in needed}
        cases = [(bare, {**bare, **nulls})]
        for one in nulls:
            rest = {key: value for key, value in usual[name].items() if key != one}
            cases.append((rest, {**rest, one: None}))
            if one == "cursor":
                cases.append((rest, {**rest, one: ""}))
        wrong += [
            (name, given)
            for absent, given in cases
            if outcome(tool, given) != outcome(tool, absent)
        ]
        wrong += [(name, one) for one in needed if is_taken(tool, {**usual[name], one: None})]
        checked += len(cases) + len(needed)
    assert wrong == []
    assert checked > 200


async def test_a_client_that_sends_every_argument_reads_the_first_page(
    two_stores: TwoStores,
) -> None:
    agent = await two_stores.agent(two_stores.ann)
    whole = result(await agent.call("list_orders"))
    nulls = {"limit": None, "since": None, "customer": None, "include_tests": None}
    assert result(await agent.call("list_orders", cursor="", **nulls)) == whole
    assert result(await agent.call("list_orders", limit=25.0)) == whole


@pytest.fixture
async def counter(two_stores: TwoStores, platform: Platform) -> Counter:
    return await opened(two_stores, platform)


@pytest.mark.parametrize(
    "odd", [{"delta": True}, {"delta": "-1"}, {"dry_run": "no"}, {"expected_version": ""}]
)
async def test_an_argument_that_is_not_right_changes_no_stock(
    counter: Counter, odd: dict[str, Any]
) -> None:
    told = refused(await counter.adjusting("key-00001", **{"delta": 1, **odd}))
    assert f"that the error names.\nproblems: ['{next(iter(odd))}:" in told
    assert (counter.variant.available, counter.platform.admin.mutations) == (10, 0)


@pytest.mark.parametrize(
    "when",
    [
        "2026-11-01",
        "2026-11-01T00:00:00",
        "1793491200",
        "2026-13-01T00:00:00Z",
        "0001-01-01T00:00:00+14:00",
        "20261101T000000Z",
    ],
)
async def test_a_time_that_names_no_instant_is_answered_with_an_example(
    two_stores: TwoStores, when: str
) -> None:
    agent = await two_stores.agent(two_stores.ann)
    told = refused(await agent.call("list_orders", since=when))
    assert "for example 2026-11-01T00:00:00Z" in told
    assert result(await agent.call("list_orders", until="2020-11-01t00:00:00z"))["items"] == []


async def test_ids_of_the_platform_are_ids(counter: Counter) -> None:
    base = counter.two_stores.ann.base
    product, order = f"gid://shopify/Product/{base + 1}", f"gid://shopify/Order/{base + 2}"
    for name, ours, theirs in (
        ("get_product", {"product_id": str(base + 1)}, {"product_id": product}),
        ("get_order", {"order_id": str(base + 2)}, {"order_id": order}),
        ("fetch", {"id": f"order-{base + 2}"}, {"id": order}),
        (
            "list_inventory_levels",
            {"location_id": "2"},
            {"location_id": "gid://shopify/Location/2"},
        ),
    ):
        whole = result(await counter.agent.call(name, **ours))
        assert result(await counter.agent.call(name, **theirs)) == whole, name
    first = await counter.adjust("key-00001", -3)
    again = await counter.agent.call(
        "adjust_inventory",
        idempotency_key="key-00001",
        inventory_item_id=f"gid://shopify/InventoryItem/{ITEM}",
        location_id=f"gid://shopify/Location/{LOCATION_ID}",
        delta=-3,
    )
    assert result(again) == {**first, "status": "replayed"}


async def test_an_id_of_something_else_is_told_from_one_of_nothing(counter: Counter) -> None:
    for name, argument, id, said in (
        ("get_product", "product_id", f"gid://shopify/ProductVariant/{PRODUCT}", "ProductVariant"),
        (
            "get_order",
            "order_id",
            f"gid://shopify/Product/{PRODUCT}",
            "must be an id of type Order",
        ),
        ("fetch", "id", "gid://shopify/Customer/1", "id of a product or order"),
    ):
        assert said in refused(await counter.agent.call(name, **{argument: id}))
    for id in ("gid://shopify/Product/x", "gid://shopify/Product/9", "gid://other/Product/77", "9"):
        assert "not_found" in refused(await counter.agent.call("get_product", product_id=id)), id
