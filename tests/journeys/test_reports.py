"""Reports against the shop's own data: what agents are told is what its orders add up to, to the cent."""

import json
import random
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from itertools import chain
from typing import Any

import httpx
import pytest

from tests.campaigns.sums import wrong_sums
from tests.journeys.conftest import SECRET, Seller, signed
from tests.journeys.strangers import deliver, quiet
from tests.journeys.test_shops import agent_of
from tests.mcp.tools.two_stores import result
from tolsey.sandbox.commerce.course.life import Item
from tolsey.sandbox.commerce.platform import Platform
from tolsey.sandbox.commerce.shop.orders import Order
from tolsey.sandbox.commerce.shop.products import Product, Variant
from tolsey.sandbox.commerce.shop.state import ShopSpec
from tolsey.sandbox.commerce.webhooks import bodies, order_bodies
from tolsey.service import Running

TRADING = "trading.myshopify.com"
PRICES = ((1_999, 450), (12_995,), (7, 333, 10_001))
"""Of each product's variants."""
BUYERS = [*(f"buyer-{n}@example.com" for n in range(7)), None]
VISITS: Mapping[tuple[str | None, str | None], tuple[str | None, str | None, str | None]] = {
    ("/?utm_source=News&utm_medium=email&utm_campaign=spring", None): ("news", "email", "spring"),
    ("/?utm_source=News&utm_medium=email&utm_campaign=autumn", None): ("news", "email", "autumn"),
    ("/x?gclid=1", "https://www.google.com/"): ("google", "cpc", None),
    ("/", "https://www.blog.example/post?name=jane"): ("blog.example", "referral", None),
    ("/", None): ("direct", None, None),
    (None, None): (None, None, None),
}
"""How buyers come, and what is to be known of it."""
ORDERS = """
query ($after: String) { orders(first: 5, after: $after) {
  nodes { id test cancelledAt processedAt currencyCode customer { id }
    cancelReason totalPriceSet { shopMoney { amount } }
    currentTotalPriceSet { shopMoney { amount } }
    refunds(first: 5) { processedAt totalRefundedSet { shopMoney { amount } }
      refundLineItems(first: 5) { nodes { quantity } } }
    lineItems(first: 5) { nodes { sku quantity currentQuantity
      originalTotalSet { shopMoney { amount } } totalDiscountSet { shopMoney { amount } } } } }
  pageInfo { hasNextPage endCursor } } }
"""
PRODUCTS = """
query { products(first: 10) { nodes { legacyResourceId title
  variants(first: 5) { nodes { legacyResourceId sku inventoryQuantity } } } } }
"""


class ShopsOwn:
    """What the shop itself says over its Admin API, as anybody else would ask it."""

    def __init__(self, orders: list[dict[str, Any]], products: list[dict[str, Any]]) -> None:
        self.orders = orders
        self.products = products
        self.variants = {
            variant["sku"]: (product, variant)
            for product in products
            for variant in product["variants"]["nodes"]
        }

    @classmethod
    async def ask(cls, platform: Platform) -> "ShopsOwn":
        async with httpx.AsyncClient(base_url=f"{platform.url}/{TRADING}") as client:
            given = {"client_id": "client-1", "client_secret": SECRET}
            granted = await client.post(
                "/admin/oauth/access_token", json={**given, "grant_type": "client_credentials"}
            )
            token = {"X-Shopify-Access-Token": granted.json()["access_token"]}

            async def read(query: str, **variables: Any) -> Any:
                answer = await client.post(
                    "/admin/api/2026-07/graphql.json",
                    json={"query": query, "variables": variables},
                    headers=token,
                )
                assert "errors" not in answer.json(), answer.text
                return answer.json()["data"]

            orders = list[dict[str, Any]]()
            after = None
            while True:
                page = (await read(ORDERS, after=after))["orders"]
                orders += page["nodes"]
                if not page["pageInfo"]["hasNextPage"]:
                    break
                after = page["pageInfo"]["endCursor"]
            return cls(orders, (await read(PRODUCTS))["products"]["nodes"])

    def sold(self, first: date, last: date) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
        """Give each line of a product that was really sold between two days, and its order."""
        for order in self.orders:
            if order["test"] or order["cancelledAt"]:
                continue
            if first <= _time(order["processedAt"]).date() <= last:
                for line in order["lineItems"]["nodes"]:
                    if line["sku"]:
                        yield line, order


def _time(said: str) -> datetime:
    return datetime.fromisoformat(said).astimezone(UTC)


def _amount(money: Mapping[str, Any]) -> Decimal:
    return Decimal(money["shopMoney"]["amount"])


@pytest.fixture
async def platform() -> AsyncIterator[Platform]:
    """A platform of two days ago, whose clock goes on from one change of a thing to the next."""
    made = Platform(now=datetime.now(UTC) - timedelta(days=2))
    made.add_shop(ShopSpec(domain=TRADING, client_id="client-1", client_secret=SECRET))
    async with made.serve():
        yield made


def stocked(platform: Platform) -> list[Variant]:
    """Put products into the shop."""
    now = platform.now()
    for n, prices in enumerate(PRICES, 1):
        made = Product(9_000 + n, f"Thing {n}", f"thing-{n}", now, now)
        for k, price in enumerate(prices):
            id = 9_000 + 10 * n + k
            variant = Variant(id, id + 500, f"Size {k}", f"T{n}-{k}", price, available=900)
            variant.product = made
            made.variants.append(variant)
        platform.save_product(TRADING, made)
    return [one for made in platform.shop(TRADING).products.values() for one in made.variants]


def changed(platform: Platform, luck: random.Random, order: Order, variants: list[Variant]) -> None:
    """Let a merchant do something with an order, half an hour after the one before."""
    platform.clock.advance(1_800)
    match luck.randrange(6):
        case 0:
            platform.cancel_order(TRADING, order.id, reason=luck.choice(["fraud", "customer"]))
        case 1:
            platform.refund_order(TRADING, order.id, returned={order.lines[0].id: 1})
        case 2:
            platform.refund_order(TRADING, order.id, amount=1)
        case 3:
            platform.edit_order(TRADING, order.id, [Item(variant=luck.choice(variants))])


class Trade:
    """What a shop sells in two months and what becomes of it, and all that is delivered of that."""

    def __init__(self, platform: Platform) -> None:
        self.platform = platform
        self.luck = random.Random(18)  # noqa: S311 - a trade of its seed
        self.shop, self.began = platform.shop(TRADING), platform.now()
        self.variants = stocked(platform)
        self.told: list[tuple[str, Mapping[str, Any]]] = []

    def sell(self, orders: int) -> list[Order]:
        """Sell to whoever comes."""
        return [self._sold() for _ in range(orders)]

    def _sold(self) -> Order:
        luck = self.luck
        items = [
            Item(variant=one, quantity=luck.randrange(1, 4), discount=luck.choice([0, 0, 5]))
            for one in luck.sample(self.variants, luck.randrange(1, 4))
        ]
        order = self.platform.place_order(
            TRADING,
            [*items, *([Item()] if luck.random() < 0.2 else [])],
            email=luck.choice(BUYERS),
            test=luck.random() < 0.1,
            source_name=luck.choice(["web", "pos"]),
            landing_site=(visit := luck.choice([*VISITS]))[0],
            referring_site=visit[1],
            processed_at=self.began - timedelta(minutes=luck.randrange(60 * 24 * 60)),
        )
        self.told.append(("orders/create", order_bodies.order_body(self.shop, order)))
        return order

    def change(self, orders: Iterable[Order]) -> None:
        """Cancel, give back or edit many of them."""
        for order in orders:
            changed(self.platform, self.luck, order, self.variants)
            self.told.append(("orders/updated", order_bodies.order_body(self.shop, order)))
            self.told += [
                ("refunds/create", order_bodies.refund_body(self.shop, order, one))
                for one in order.refunds
            ]

    async def tell(self, browser: httpx.AsyncClient) -> None:
        """Deliver all of it in any order, some of it twice."""
        shop = self.shop
        self.told += [
            ("products/create", bodies.product_body(shop, one)) for one in shop.products.values()
        ]
        self.told += [
            ("inventory_levels/update", bodies.stock_body(shop, one, self.began))
            for one in self.variants
        ]
        self.luck.shuffle(self.told)
        for topic, body in self.told:
            raw = json.dumps(body).encode()
            headers = signed(raw, topic, shop=TRADING)
            for _ in range(self.luck.choice([1, 1, 2])):
                assert (await deliver(browser, raw, headers)).status_code == 200


async def test_every_report_is_what_the_shops_own_orders_add_up_to(
    live: Running, browser: httpx.AsyncClient, platform: Platform, seller: Seller
) -> None:
    """Half of what was sold is imported; deliveries tell that half again, and all the rest."""
    trade = Trade(platform)
    earlier = trade.sell(30)
    trade.change(earlier[:15])
    assert (await seller.connect(TRADING)).status_code == 200
    await quiet(live)
    imported = (await browser.get(f"/api/stores/{seller.store_id}/order-history")).json()
    assert imported["orderImport"]["orders"] == 30
    later = trade.sell(30)
    trade.change([*earlier[15:], *later])
    await trade.tell(browser)
    own = await ShopsOwn.ask(platform)
    assert len(own.orders) == 60
    agent = await agent_of(live, seller)

    async def told(name: str, **asked: Any) -> dict[str, Any]:
        said: dict[str, Any] = result(await agent.call(name, **asked))
        assert said.pop("facts_since")
        return said

    for period in ("7d", "30d", "90d"):
        right_best_sellers(own, await told("get_best_sellers", period=period, limit=100))
        right_refunds(own, await told("get_refund_report", period=period))
    for versus in ("previous", "year_before"):
        right_sales(own, await told("get_sales_report", group_by="none", compare_with=versus))
    came = {
        f"gid://shopify/Order/{one.id}": VISITS[one.landing_site, one.referring_site]
        for one in platform.shop(TRADING).orders.values()
    }
    right_attribution(own, came, await told("get_attribution_report", by="campaign"))
    right_attribution(
        own,
        {id: (source, None, None) for id, (source, _, _) in came.items()},
        await told("get_attribution_report", period="90d"),
    )
    right_cohorts(own, await told("get_customer_cohorts"))
    right_forecast(own, await told("get_stock_forecast", limit=100))
    assert await wrong_sums(live.service.database) == []


def right_best_sellers(own: ShopsOwn, said: dict[str, Any]) -> None:
    start, end = (date.fromisoformat(said[name]) for name in ("start", "end"))
    units, kept, worth = Counter[str](), Counter[str](), defaultdict[str, Decimal](Decimal)
    for line, _ in own.sold(start, end):
        title = own.variants[line["sku"]][0]["title"]
        units[title] += line["quantity"]
        kept[title] += line["currentQuantity"]
        worth[title] += _amount(line["originalTotalSet"]) - _amount(line["totalDiscountSet"])
    expected = [
        (title, units[title], kept[title], f"{worth[title]:.2f}")
        for title in sorted(worth, key=lambda title: -worth[title])
    ]
    found = [
        (one["title"], one["units"], one["kept_units"], one["sold"]["amount"])
        for one in said["products"]
    ]
    assert found == expected
    assert expected


def right_sales(own: ShopsOwn, said: dict[str, Any]) -> None:
    """Hold two periods that stand side by side against the orders and refunds of each."""
    for part in (said, said["compared"]):
        start, end = _time(part["start"]), _time(part["end"])
        assert end - start == timedelta(days=30)
        real = [one for one in own.orders if not one["test"] and not one["cancelledAt"]]
        sold = [one for one in real if start <= _time(one["processedAt"]) < end]
        back = [
            _amount(refund["totalRefundedSet"])
            for one in real
            for refund in one["refunds"]
            if start <= _time(refund["processedAt"]) < end
        ]
        found = [
            (row["orders"], row["gross"], row["current"], row["refunded"]) for row in part["rows"]
        ]
        sums = (
            sum(_amount(one["totalPriceSet"]) for one in sold),
            sum(_amount(one["currentTotalPriceSet"]) for one in sold),
            sum(back),
        )
        worth = [{"amount": f"{amount:.2f}", "currency": "USD"} for amount in sums]
        assert found == ([(len(sold), *worth)] if sold or back else [])
    assert said["rows"]


def right_refunds(own: ShopsOwn, said: dict[str, Any]) -> None:
    start, end = _time(said["start"]), _time(said["end"])
    count, back = Counter[tuple[bool, str]](), defaultdict[tuple[bool, str], Decimal](Decimal)
    for order in own.orders:
        for refund in () if order["test"] else order["refunds"]:
            if not start <= _time(refund["processedAt"]) < end:
                continue
            if order["cancelledAt"]:
                why = (True, order["cancelReason"].lower())
            else:
                why = (False, "returned" if refund["refundLineItems"]["nodes"] else "amount_only")
            count[why] += 1
            back[why] += _amount(refund["totalRefundedSet"])
    found = {
        (row["order_cancelled"], row["reason"]): (row["refunds"], row["amount"]["amount"])
        for row in said["rows"]
    }
    assert found == {why: (count[why], f"{back[why]:.2f}") for why in count}
    assert {why for _, why in found} == {"returned", "amount_only", "fraud", "customer"}


def right_attribution(
    own: ShopsOwn, came: Mapping[str, tuple[str | None, ...]], said: dict[str, Any]
) -> None:
    start, end = (date.fromisoformat(said[name]) for name in ("start", "end"))
    expected = defaultdict[tuple[str | None, ...], list[Decimal]](lambda: [Decimal()] * 3)
    for order in own.orders:
        if order["test"] or order["cancelledAt"]:
            continue
        if start <= _time(order["processedAt"]).date() <= end:
            worth = [
                Decimal(1),
                *map(_amount, (order["totalPriceSet"], order["currentTotalPriceSet"])),
            ]
            sums = expected[came[order["id"]]]
            expected[came[order["id"]]] = [a + b for a, b in zip(sums, worth, strict=True)]
    found = {
        (row.get("source"), row.get("medium"), row.get("campaign")): [
            Decimal(row["orders"]),
            *(Decimal(row[name]["amount"]) for name in ("gross", "current")),
        ]
        for row in said["rows"]
    }
    assert found == expected
    assert len(found) > 4


def right_cohorts(own: ShopsOwn, said: dict[str, Any]) -> None:
    made = defaultdict[str, list[dict[str, Any]]](list)
    for order in own.orders:
        if order["customer"] and not order["test"] and not order["cancelledAt"]:
            made[order["customer"]["id"]].append(order)
    months = defaultdict[str, list[list[dict[str, Any]]]](list)
    for orders in made.values():
        first = min(_time(one["processedAt"]) for one in orders)
        months[f"{first:%Y-%m}"].append(orders)
    expected = [
        {
            "month": month,
            "buyers": len(cohort),
            "returning_buyers": sum(len(orders) > 1 for orders in cohort),
            "orders": sum(map(len, cohort)),
            "spent": [
                {
                    "amount": f"{sum(_amount(one['currentTotalPriceSet']) for one in chain(*cohort)):.2f}",
                    "currency": "USD",
                }
            ],
        }
        for month, cohort in sorted(months.items(), reverse=True)
    ]
    assert said["cohorts"] == expected
    assert len(expected) > 0


def right_forecast(own: ShopsOwn, said: dict[str, Any]) -> None:
    start, end = (date.fromisoformat(said[name]) for name in ("start", "end"))
    assert (end - start).days == 28
    units = Counter[str]()
    for line, _ in own.sold(start, end - timedelta(days=1)):
        units[line["sku"]] += line["currentQuantity"]
    left = {sku: one["inventoryQuantity"] for sku, (_, one) in own.variants.items()}
    expected = {
        sku: (left[sku], sold, round(left[sku] * 28 / sold, 1))
        for sku, sold in units.items()
        if sold and left[sku] > 0
    }
    found = {
        one["sku"]: (one["available"], one["units_sold"], one["days_left"])
        for one in said["variants"]
    }
    assert found == expected
    days = [one["days_left"] for one in said["variants"]]
    assert days == sorted(days)
    assert len(days) > 3
    for one in said["variants"]:
        assert one["earliest_days"] < one["days_left"] < one.get("latest_days", float("inf"))
