"""A store that is pointed from one shop to another, and back: each shop's things are its own.

The two shops have things of the same numbers, which the platform never gives out twice: so nothing but
the shop tells them apart.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import anyio
import httpx
import pytest

from tests.campaigns.sums import differing
from tests.journeys.conftest import SECRET, SHOP, Seller, order_body, signed
from tests.journeys.strangers import deliver, quiet
from tests.mcp.tools.two_stores import Owner, TwoStores
from tests.mcp.wire import Agent
from tolsey.actors.store.deliveries.identity import PURPOSE, pseudonym
from tolsey.actors.store.deliveries.messages import OrderRead
from tolsey.actors.store.messages import store
from tolsey.http.chat import prompt
from tolsey.sandbox.commerce.platform import Platform
from tolsey.sandbox.commerce.shop.state import ShopSpec
from tolsey.service import Running
from tolsey.storage.commerce import stores
from tolsey.storage.commerce.connections import shop_key_of
from tolsey.storage.commerce.stores import StoreRow
from tolsey.storage.lifecycle import exports
from tolsey.storage.owners import RowOwner
from tolsey.storage.records.commerce.deliveries import CommerceOrder
from tolsey.storage.reports import sums

OTHER, OTHER_SECRET = "second.myshopify.com", "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"
NOW = datetime.now(UTC).isoformat()
VOLATILE = {
    *("facts_since", "connected_at", "start", "end"),
    *("orders_known_since", "order_import"),
}
"""What is of the connection, or of the moment."""

ASKED: Mapping[str, Mapping[str, Any]] = {
    "get_store_summary": {},
    "get_connection_status": {},
    "get_verified_revenue": {},
    "get_sales_report": {"period": "365d", "group_by": "source"},
    "get_credit_balance": {},
    "get_plan_limits": {},
    "list_orders": {},
    "list_products": {},
    "search_products": {"query": "shirt"},
    "list_inventory_levels": {},
    "get_low_stock_report": {"threshold": 1000, "include_unlisted": True},
    "get_best_sellers": {"period": "365d"},
    "get_stock_forecast": {},
    "get_refund_report": {},
    "get_attribution_report": {"by": "campaign"},
    "get_customer_cohorts": {},
    "list_customers": {},
    "list_credit_entries": {},
    "list_audit_events": {},
    "list_compliance_requests": {},
    "get_order": {"order_id": "1"},
    "get_product": {"product_id": "5"},
    "get_customer": {},
    "search": {"query": "#1"},
    "fetch": {"id": "product-5"},
    "get_operation": {"operation_id": "none"},
    "list_memory": {},
    "search_memory": {"query": "shirt"},
    "platform_query": {"query": "{ shop { myshopifyDomain } }"},
    "list_launch_milestones": {},
    "get_launch_milestone": {"milestone_id": "foundation.audit"},
    "list_competitors": {},
    "get_competitor": {"domain": "rival.example"},
    "compare_competitors": {"domains": ["rival.example"]},
    "list_deals": {},
    "get_deal": {"deal_id": "deal_none"},
    "list_offers": {"deal_id": "deal_none"},
}
"""How each tool that reads is asked for all it has. A tool that is not here fails the test."""

TELLING = (
    *("get_sales_report", "list_orders", "list_products", "search_products", "get_order"),
    *("get_product", "fetch", "get_low_stock_report"),
)
"""Those that name something of the shop's own."""


@dataclass(frozen=True)
class Trader:
    """One of the two shops, and the word that all its things bear."""

    shop: str
    secret: str
    word: str
    cents: int

    @property
    def things(self) -> list[tuple[str, dict[str, Any]]]:
        """Everything that a shop tells us of; of the same numbers in each shop."""
        order = json.loads(order_body(1, total_price=f"{self.cents}.00"))
        order |= {"source_name": self.word, "tags": self.word, "name": "#1", "processed_at": NOW}
        order |= {"email": f"{self.word}@example.com", "customer": {"id": 7}, "updated_at": NOW}
        parcel = {"id": 3, "order_id": 1, "updated_at": NOW, "tracking_company": self.word}
        paid = {"kind": "refund", "status": "success", "amount": "1.00", "currency": "USD"}
        refund = {"id": 2, "order_id": 1, "processed_at": NOW, "transactions": [paid]}
        variant = {"id": 6, "title": self.word, "sku": self.word, "price": "1.00"}
        variant |= {"inventory_item_id": 8, "inventory_management": "shopify"}
        product = {"id": 5, "title": f"{self.word} shirt", "handle": self.word, "updated_at": NOW}
        product |= {"vendor": self.word, "status": "active", "variants": [variant]}
        level = {"inventory_item_id": 8, "location_id": 1, "available": self.cents}
        buyer = {"id": 7, "email": f"{self.word}@example.com", "updated_at": NOW}
        return [
            ("orders/create", order),
            ("refunds/create", refund),
            ("fulfillments/create", parcel),
            ("products/create", product),
            ("inventory_levels/update", {**level, "updated_at": NOW}),
            ("customers/create", buyer),
        ]

    async def tell(self, browser: httpx.AsyncClient) -> list[int]:
        """Deliver everything; answer with which statuses it was taken."""
        answers = []
        for topic, body in self.things:
            raw = json.dumps(body).encode()
            headers = signed(raw, topic, shop=self.shop, secret=self.secret)
            answers.append((await deliver(browser, raw, headers)).status_code)
        return answers


FIRST = Trader(SHOP, SECRET, "ALPHA", 11)
SECOND = Trader(OTHER, OTHER_SECRET, "BETA", 22)
ALL_TAKEN = [200] * len(FIRST.things)


@pytest.fixture(autouse=True)
def second_shop(platform: Platform) -> None:
    """Add another shop; neither sold anything before it was connected, which would be imported."""
    platform.shop(SHOP).orders.clear()
    platform.add_shop(ShopSpec(domain=OTHER, client_id="client-1", client_secret=OTHER_SECRET))


async def pointed_at(trader: Trader, live: Running, seller: Seller) -> None:
    assert (await seller.connect(trader.shop, trader.secret)).status_code == 200
    await quiet(live)


async def agent_of(live: Running, seller: Seller) -> Agent:
    """Let an agent work with the seller's store."""
    service = live.service
    row = await service.database.fetchrow("SELECT id FROM users LIMIT 1")
    assert row is not None
    await service.database.execute("UPDATE organizations SET plan = 'max_20x'")  # calls enough
    at = service.clock()
    owner = Owner("seller", row["id"], seller.organization_id, seller.store_id, 0, at)
    return await TwoStores(service, owner, owner).agent(owner)


def lasting(told: Any) -> Any:
    """Leave out what is not of the shop."""
    if isinstance(told, dict):
        return {name: lasting(one) for name, one in told.items() if name not in VOLATILE}
    return [lasting(one) for one in told] if isinstance(told, list) else told


async def answers(live: Running, seller: Seller, agent: Agent) -> dict[str, Any]:
    """Ask whatever can be asked about a store: every tool that reads, and all beside the tools."""
    tools = (await agent.ask("tools/list")).json()["result"]["tools"]
    reading = {one["name"] for one in tools if one["annotations"]["readOnlyHint"]}
    assert reading <= ASKED.keys(), "say in ASKED how a new tool is asked for all it has"
    service = live.service
    key = await shop_key_of(service.database, seller.store_id)
    rows = await service.database.fetch(
        "SELECT pseudonym FROM commerce_buyers WHERE store_id = $1", key
    )
    found: dict[str, Any] = {}
    for name in sorted(reading):
        asked = {"customer": rows[0]["pseudonym"]} if name == "get_customer" else ASKED[name]
        said = (await agent.call(name, **asked)).json()["result"]
        found[name] = said.get("structuredContent", said["content"])
    for kind in ("order", "product"):
        address = "store://order/1" if kind == "order" else "store://product/5"
        found[address] = (await agent.ask("resources/read", {"uri": address})).json()["result"]
        typed = {"ref": {"type": "ref/resource", "uri": f"store://{kind}/{{id}}"}}
        typed["argument"] = {"name": "id", "value": ""}
        found[f"ids of {kind}s"] = (await agent.ask("completion/complete", typed)).json()["result"]
    shown = await seller.browser.get(f"/api/stores/{seller.store_id}/export")
    found["export"] = {
        table.export: shown.json()[table.export] for table, _ in exports.sections(RowOwner.SHOP)
    }
    kept = StoreRow(
        id=seller.store_id,
        organization_id=seller.organization_id,
        name="A store",
        created_at=service.clock(),
    )
    found["the model's prompt"] = await prompt.written(
        service.database,
        service.reports.of(seller.organization_id),
        store=kept,
        remembered=(),
        at=service.clock(),
    )
    del found["list_audit_events"]  # of the store, whatever shop it was connected to
    del found["get_plan_limits"]  # which says how many calls are left
    return lasting(found)  # type: ignore[no-any-return]  # of a dict it makes one


def own(found: Mapping[str, Any], ours: Trader, theirs: Trader) -> None:
    """Check that whatever was answered is of one shop."""
    for name, said in found.items():
        text = json.dumps(said)
        assert theirs.word.lower() not in text.lower(), name
        if name in TELLING or name in {"export", "store://order/1", "the model's prompt"}:
            assert ours.word in text, name
    (sold,) = found["get_sales_report"]["rows"]
    assert (sold["group"], sold["orders"]) == (ours.word, 1), sold
    assert found["list_inventory_levels"]["items"][0]["available"] == ours.cents
    assert len(found["list_customers"]["items"]) == 1
    assert found["get_store_summary"]["products"] == 1
    assert found["get_store_summary"]["orders_30d"] == 1


async def test_a_store_pointed_to_another_shop_and_back_shows_each_shops_own_things(
    live: Running, browser: httpx.AsyncClient, seller: Seller
) -> None:
    await pointed_at(FIRST, live, seller)
    agent = await agent_of(live, seller)
    assert await FIRST.tell(browser) == ALL_TAKEN
    at_first = await answers(live, seller, agent)
    own(at_first, FIRST, SECOND)

    await pointed_at(SECOND, live, seller)
    empty = (await agent.call("list_orders")).json()["result"]["structuredContent"]
    assert empty["items"] == []
    assert await SECOND.tell(browser) == ALL_TAKEN
    elsewhere = await answers(live, seller, agent)
    own(elsewhere, SECOND, FIRST)
    assert await FIRST.tell(browser) == [401] * len(FIRST.things), "nobody listens to it now"
    assert await answers(live, seller, agent) == elsewhere

    await pointed_at(FIRST, live, seller)
    assert await answers(live, seller, agent) == at_first
    assert await SECOND.tell(browser) == [401] * len(SECOND.things)
    assert await answers(live, seller, agent) == at_first

    database = live.service.database
    keys = {row["shop_key"] for row in await database.fetch("SELECT shop_key FROM shops_of_stores")}
    assert len(keys) == 2
    for key in keys:
        for kind in sums.KINDS:
            assert await differing(database, kind, key) == 0
    exported = (await browser.get(f"/api/stores/{seller.store_id}/export")).json()
    periods = [(one["shopDomain"], one["ending"]) for one in exported["connections"]]
    assert periods == [(SHOP, "replaced"), (OTHER, "replaced"), (SHOP, None)]
    ends = [one["endedAt"] for one in exported["connections"][:2]]
    assert ends == [one["connectedAt"] for one in exported["connections"][1:]]


async def test_a_buyer_has_another_pseudonym_in_each_shop_of_a_store(
    live: Running, browser: httpx.AsyncClient, seller: Seller
) -> None:
    service, salts = live.service, []
    for trader in (FIRST, SECOND, FIRST):
        await pointed_at(trader, live, seller)
        body = order_body(1)
        headers = signed(body, shop=trader.shop, secret=trader.secret)
        assert (await deliver(browser, body, headers)).status_code == 200
        salt = await stores.salt_of(service.database, service.vault, seller.store_id, trader.shop)
        assert salt is not None
        salts.append(salt)
        rows = await service.database.fetch(
            "SELECT customer_hash FROM commerce_orders WHERE store_id = $1",
            await shop_key_of(service.database, seller.store_id),
        )
        known = pseudonym(service.vault.subkey(salt, PURPOSE), "buyer@example.com", 7)
        assert [row["customer_hash"] for row in rows] == [known]
    assert salts[0] == salts[2] != salts[1]


async def test_an_order_read_for_a_shop_that_the_store_left_meanwhile_is_not_kept(
    live: Running, browser: httpx.AsyncClient, seller: Seller, platform: Platform
) -> None:
    """An edited order is read from the platform; the store is pointed elsewhere before the answer."""
    await pointed_at(FIRST, live, seller)
    await pointed_at(SECOND, live, seller)
    order = CommerceOrder(store_id=seller.store_id, order_id=9, updated_at=live.service.clock())
    await live.service.runtime.ask(store(seller.store_id), OrderRead(SHOP, order))
    assert not await live.service.database.fetch("SELECT FROM commerce_orders")
    await live.service.runtime.ask(store(seller.store_id), OrderRead(OTHER, order))
    (row,) = await live.service.database.fetch("SELECT store_id FROM commerce_orders")
    assert row["store_id"] == await shop_key_of(live.service.database, seller.store_id)


async def test_deliveries_under_way_while_a_store_is_pointed_elsewhere_go_to_their_own_shop(
    live: Running, browser: httpx.AsyncClient, seller: Seller
) -> None:
    """Whichever comes first, each order that was taken is its own shop's."""
    database, taken = live.service.database, set[int]()
    await pointed_at(FIRST, live, seller)

    async def one(number: int) -> None:
        body = order_body(number, tags=FIRST.word)
        if (await deliver(browser, body, signed(body))).status_code == 200:
            taken.add(number)

    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            for number in range(1, 41):
                tasks.start_soon(one, number)
                if number == 20:
                    tasks.start_soon(seller.connect, OTHER, OTHER_SECRET)
    await quiet(live)
    rows = await database.fetch("SELECT DISTINCT store_id FROM commerce_orders")
    assert {row["store_id"] for row in rows} == {seller.store_id}, "the first shop's key"
    assert await shop_key_of(database, seller.store_id) != seller.store_id
    kept = {row["order_id"] for row in await database.fetch("SELECT order_id FROM commerce_orders")}
    told = "SELECT count(*) AS n FROM audit_log WHERE metadata->>'ignored' = 'not_connected'"
    (ignored,) = await database.fetch(told)
    assert kept <= taken
    assert len(taken) - len(kept) == ignored["n"]
