import re
from typing import Any

import pytest

from tests.mcp.tools.two_stores import Owner, TwoStores, connect, refused, result
from tests.mcp.wire import Agent
from tolsey.storage.sealing.sealed import base64url

FOREIGN = re.compile(r"bob|\b2[0-9]{6}\b|2000000")
"""What only Bob's store has: his name, and the numbers of his things."""

pytestmark = pytest.mark.anyio

CURSORS = (
    "x",
    "W10",
    "bnVsbA",
    "é",
    "W1sxXV0",
    "WyJsaXN0X29yZGVycyIsIjEiXQ",
    "A" * 600,
    "WyJsaXN0X29yZGVycyIsdHJ1ZV0",
    "WyJsaXN0X3Byb2R1Y3RzIiwxXQ",
    "WyJsaXN0X29yZGVycyIsOTk5OTk5OTk5OTk5OTk5OTk5OTk5OTk5XQ",
)


LISTS: dict[str, dict[str, Any]] = {
    "list_orders": {"include_tests": True},
    "list_products": {},
    "search_products": {"query": "shirt"},
    "list_inventory_levels": {},
    "get_low_stock_report": {"threshold": 1000, "include_unlisted": True},
    "list_customers": {},
    "list_credit_entries": {},
    "list_audit_events": {},
    "list_memory": {},
    "list_compliance_requests": {},
    "list_competitors": {},
    "list_deals": {},
}
"""How each list is asked for all it has."""


def singles(owner: Owner) -> dict[str, dict[str, Any]]:
    """Say how each single thing of an owner is asked for."""
    base = owner.base
    return {
        "get_order": {"order_id": str(base + 2)},
        "get_product": {"product_id": str(base + 1)},
        "get_customer": {"customer": owner.buyer},
        "fetch": {"id": f"product-{base + 1}"},
        "get_operation": {"operation_id": f"op_{owner.name}"},
        "get_deal": {"deal_id": owner.deal},
        "list_offers": {"deal_id": owner.deal},
        "get_competitor": {"domain": owner.rival},
        "compare_competitors": {"domains": [owner.rival]},
    }


def everything(owner: Owner) -> dict[str, dict[str, Any]]:
    """Say how every tool that reads is asked about an owner's store."""
    return {
        "get_store_summary": {},
        "get_connection_status": {},
        "get_verified_revenue": {},
        "get_sales_report": {"period": "365d", "group_by": "source"},
        "get_best_sellers": {"period": "365d"},
        "get_stock_forecast": {},
        "get_refund_report": {},
        "get_attribution_report": {"by": "campaign"},
        "get_customer_cohorts": {},
        "get_credit_balance": {},
        "get_plan_limits": {},
        "search": {"query": f"#{owner.base + 2}"},
        "search_memory": {"query": "voice"},
        "list_launch_milestones": {},
        "get_launch_milestone": {"milestone_id": "foundation.audit"},
        **LISTS,
        **singles(owner),
    }


async def told(agent: Agent, name: str, wanted: dict[str, Any]) -> str:
    answer = await agent.call(name, **wanted)
    assert answer.status_code == 200, answer.text
    return answer.text


async def test_nothing_that_names_another_store_is_found(two_stores: TwoStores) -> None:
    agent, bob = await two_stores.agent(two_stores.ann), two_stores.bob
    for name, wanted in singles(bob).items():
        assert "not_found" in refused(await agent.call(name, **wanted)), name
    assert result(await agent.call("search", query=f"#{bob.base + 2}"))["results"] == []
    assert result(await agent.call("list_orders", customer=bob.buyer))["items"] == []
    for wanted in (
        {"product_id": str(bob.base + 2)},
        {"inventory_item_id": str(bob.base + 2000)},
        {"product_id": str(two_stores.ann.base + 2), "inventory_item_id": str(bob.base + 2000)},
    ):
        assert result(await agent.call("list_inventory_levels", **wanted))["items"] == []


async def test_no_answer_holds_anything_of_another_store(two_stores: TwoStores) -> None:
    await connect(two_stores.service, two_stores.bob, "shpat_secret_of_bob", ["read_orders"])
    agent = await two_stores.agent(two_stores.ann)
    for name, wanted in everything(two_stores.ann).items():
        assert not FOREIGN.search(await told(agent, name, wanted)), name


async def test_a_place_in_another_stores_list_opens_nothing_of_it(two_stores: TwoStores) -> None:
    ann, bob = await two_stores.agent(two_stores.ann), await two_stores.agent(two_stores.bob)
    for name, wanted in LISTS.items():
        first = result(await bob.call(name, **{**wanted, "limit": 1}))
        if "next_cursor" in first:
            text = await told(ann, name, {**wanted, "cursor": first["next_cursor"]})
            assert not FOREIGN.search(text), name


async def test_no_tool_takes_a_store_or_an_organization(two_stores: TwoStores) -> None:
    agent = await two_stores.agent(two_stores.ann)
    for name, wanted in everything(two_stores.ann).items():
        for extra in ({"store_id": two_stores.bob.store_id}, {"organization_id": "org_bob"}):
            assert "Extra inputs" in refused(await agent.call(name, **wanted, **extra)), name


async def test_no_answer_names_a_person(two_stores: TwoStores) -> None:
    """Orders here have note attributes with an address in them; their tags are the merchant's own words."""
    agent = await two_stores.agent(two_stores.ann)
    for name, wanted in everything(two_stores.ann).items():
        text = (await told(agent, name, wanted)).replace("s1:", " s1:")
        assert not re.search(r"jane|\bdoe\b|@", text, re.IGNORECASE), name
        # The digest that was the same in every store is no pseudonym.
        assert "a" * 64 not in text, name


async def test_a_digest_of_every_store_cannot_be_asked_for(two_stores: TwoStores) -> None:
    await two_stores.database.execute(
        "UPDATE commerce_orders SET customer_hash = $1 WHERE store_id = $2",
        "a" * 64,
        two_stores.ann.store_id,
    )
    agent = await two_stores.agent(two_stores.ann)
    for name in ("list_orders", "get_customer"):
        assert "customer" in refused(await agent.call(name, customer="a" * 64))
    items = result(await agent.call("list_orders"))["items"]
    assert items
    assert not any("customer" in one for one in items)


async def test_an_id_that_we_never_gave_is_the_id_of_nothing(two_stores: TwoStores) -> None:
    agent = await two_stores.agent(two_stores.ann)
    for id in ("", "0x1", "-1", "1 OR 1=1", "9" * 19, "9" * 64, "\uff11", "1.0", "a" * 65):
        for name, argument in (("get_order", "order_id"), ("get_product", "product_id")):
            text = refused(await agent.call(name, **{argument: id}))
            assert "not_found" in text, id


async def test_a_cursor_that_this_list_never_gave_is_refused(two_stores: TwoStores) -> None:
    agent = await two_stores.agent(two_stores.ann)
    for cursor in CURSORS:
        text = refused(await agent.call("list_orders", cursor=cursor))
        assert "invalid_cursor" in text, cursor
    beyond = base64url(b'["list_orders_of_times",4611686018427387904,1]')
    text = refused(await agent.call("list_orders", until="2030-01-01T00:00:00Z", cursor=beyond))
    assert "invalid_cursor" in text


async def test_a_scope_that_is_missing_is_named_for_every_tool(two_stores: TwoStores) -> None:
    agent = await two_stores.agent(two_stores.ann, ["offers:write"])
    for name, wanted in everything(two_stores.ann).items():
        answer = await agent.call(name, **wanted)
        assert answer.status_code == 403, name
        assert 'error="insufficient_scope"' in answer.headers["www-authenticate"]
