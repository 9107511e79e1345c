"""The client against the stand-in platform, over real HTTP."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from itertools import count
from typing import Any

import anyio
import pytest

from tests.http.clients.commerce.wire import Time
from tolsey.actors.ports import (
    ApiVersionTooOld,
    GrantRefused,
    PlatformDenied,
    PlatformUnreachable,
    Shop,
)
from tolsey.http.clients.commerce.admin import ShopifyAdmin
from tolsey.http.clients.commerce.calls import CallLimits
from tolsey.sandbox.commerce.platform import Platform
from tolsey.sandbox.commerce.shop.orders import (
    Customer,
    Dispute,
    Line,
    Order,
    Refund,
    RefundedLine,
    SellingPlan,
    Transaction,
)
from tolsey.sandbox.commerce.shop.state import ALL_SCOPES, ShopSpec
from tolsey.storage.records.selling.revenue import (
    PulledLine,
    PulledOrder,
    PulledRefund,
    PulledTransaction,
)

DOMAIN = "demo.myshopify.com"
NOW = datetime(2026, 7, 1, tzinfo=UTC)
START = NOW - timedelta(days=30)
HOOK = "https://hooks.example/api/webhooks/commerce/events"
TOPICS = {
    "app/uninstalled": "revoke",
    "orders/create": "revenue",
    "products/update": "catalogue",
    "inventory_levels/update": "stock",
}
NUMBERS = count(7_205_759_403_792_794_000)


@dataclass
class Stand:
    """A platform with one shop, the client that calls it, and a token for it."""

    platform: Platform
    client: ShopifyAdmin
    shop: Shop
    time: Time


@asynccontextmanager
async def stand(
    orders: Iterator[Order] | list[Order] = (),  # type: ignore[assignment]
    *,
    bulk_above: int = 500,
    attempt_seconds: float = 20.0,
    **spec: Any,
) -> AsyncIterator[Stand]:
    platform = Platform(now=NOW, frozen_clock=True)
    platform.add_shop(
        ShopSpec(domain=DOMAIN, client_id="id", client_secret="s", orders=orders, **spec)
    )
    time = Time()

    async def sleep(seconds: float) -> None:
        platform.advance(seconds)
        await time.sleep(seconds)

    async with platform.serve() as url:
        client = ShopifyAdmin(
            url + "/{shop}",
            clock=lambda: time.now,
            sleep=sleep,
            luck=lambda: 1.0,
            bulk_above=bulk_above,
            limits=CallLimits(attempt_seconds=attempt_seconds),
        )
        async with client:
            with anyio.fail_after(60):
                grant = await client.exchange(DOMAIN, "id", "s")
                yield Stand(platform, client, Shop(DOMAIN, grant.access_token), time)


def order(
    at: datetime = NOW - timedelta(days=1), *, lines: int = 1, payments: int = 1, **fields: Any
) -> Order:
    return Order(
        id=next(NUMBERS),
        number=1001,
        currency="USD",
        created_at=at,
        processed_at=at,
        updated_at=at,
        lines=[Line(next(NUMBERS), f"thing {n}", 1000 + n) for n in range(lines)],
        transactions=[
            Transaction(next(NUMBERS), "SALE", "SUCCESS", 100 + n, "shopify_payments", at)
            for n in range(payments)
        ],
        **fields,
    )


async def pulled(s: Stand, start: datetime = START, end: datetime = NOW) -> dict[int, Any]:
    found = [each async for each in s.client.orders(s.shop, start, end)]
    by_id = {int(each.order_id): each for each in found}
    assert len(by_id) == len(found)
    return by_id


async def test_a_grant_opens_the_shop_and_tells_its_scopes_and_life() -> None:
    async with stand(scopes=("read_orders", "write_products")) as s:
        grant = await s.client.exchange(DOMAIN, "id", "s")
        assert grant.scopes == ("read_orders", "write_products")
        assert grant.expires_in == 86399


async def test_each_way_a_grant_is_refused_has_its_own_code() -> None:
    async with stand() as s:
        with pytest.raises(GrantRefused) as wrong:
            await s.client.exchange(DOMAIN, "id", "rotated")
        with pytest.raises(GrantRefused) as unknown:
            await s.client.exchange(DOMAIN, "nobody", "s")
        with pytest.raises(GrantRefused) as absent:
            await s.client.exchange("absent.myshopify.com", "id", "s")
        s.platform.uninstall(DOMAIN)
        with pytest.raises(GrantRefused) as removed:
            await s.client.exchange(DOMAIN, "id", "s")
        s.platform.shop(DOMAIN).permitted = False
        with pytest.raises(GrantRefused) as foreign:
            await s.client.exchange(DOMAIN, "id", "s")
        codes = [each.value.code for each in (wrong, unknown, absent, removed, foreign)]
        assert codes == [
            "invalid_client",
            "invalid_request",
            "shop_not_found",
            "app_not_installed",
            "shop_not_permitted",
        ]


async def test_the_probe_tells_what_a_connection_is_made_with() -> None:
    opened = datetime(2025, 3, 4, 5, tzinfo=UTC)
    async with stand(
        currency="EUR",
        name="Demo",
        timezone="Europe/Lisbon",
        plan="Grow",
        created_at=opened,
        primary_domain="demo.example",
        scopes=("read_orders",),
    ) as s:
        facts = await s.client.connect_probe(s.shop)
    assert (facts.shop_domain, facts.name, facts.currency) == (DOMAIN, "Demo", "EUR")
    assert (facts.plan, facts.partner_development) == ("Grow", False)
    assert (facts.primary_domain, facts.created_at) == ("demo.example", opened)
    assert (facts.timezone, facts.scopes) == ("Europe/Lisbon", ("read_orders",))


@pytest.mark.parametrize("bulk_above", [500, 0])
async def test_an_order_is_pulled_with_everything_revenue_is_made_of(bulk_above: int) -> None:
    sold = order(
        shipping=500,
        duties=1200,
        duties_included=True,
        additional_fees=70,
        disputes=[Dispute(next(NUMBERS), "WON")],
        checkout_token="c0ffee",
        payments=2,
    )
    sold.lines = [
        Line(next(NUMBERS), "box", 1000, 3, discount=300, returned=1),
        Line(next(NUMBERS), "card", 2500, gift_card=True, selling_plan=SellingPlan(7, "Monthly")),
    ]
    paid, by_hand = sold.transactions
    paid.amount, paid.fee, by_hand.manual = 5669, 3, True
    gone = Transaction(next(NUMBERS), "REFUND", "PENDING", 900, "shopify_payments", NOW)
    failed = Transaction(next(NUMBERS), "REFUND", "FAILURE", 5000, "shopify_payments", NOW)
    sold.transactions.append(gone)
    sold.refunds = [
        Refund(
            id=next(NUMBERS),
            created_at=NOW,
            amount=900,
            lines=[RefundedLine(next(NUMBERS), sold.lines[0], 1, 900, 45, "RETURN")],
            transactions=[gone, failed],
            shipping=100,
            shipping_tax=8,
            duties=20,
        )
    ]
    async with stand([sold], bulk_above=bulk_above) as s:
        got = (await pulled(s))[sold.id]
    assert got == PulledOrder(
        order_id=str(sold.id),
        processed_at=sold.processed_at,
        created_at=sold.created_at,
        currency="USD",
        test=False,
        cancelled_at=None,
        source_name="web",
        has_checkout=True,
        disputes=("WON",),
        total=Decimal("57.70"),
        current_total=Decimal("47.17"),
        tax=Decimal("-0.53"),
        shipping=Decimal(4),
        tip=Decimal(0),
        duties=Decimal("11.80"),
        duties_included=True,
        additional_fees=Decimal("0.70"),
        lines=(
            PulledLine(Decimal(18)),
            PulledLine(Decimal(25), is_gift_card=True, selling_plan="gid://shopify/SellingPlan/7"),
        ),
        transactions=(
            movement("SALE", "SUCCESS", "56.69", has_fees=True),
            movement("SALE", "SUCCESS", "1.01", manual=True),
            movement("REFUND", "PENDING", "9"),
        ),
        refunds=(
            PulledRefund(at=NOW, paid_back=Decimal(9), goods=Decimal(9), returned=Decimal("10.73")),
        ),
    )


def movement(
    kind: str, status: str, amount: str, *, manual: bool = False, has_fees: bool = False
) -> PulledTransaction:
    return PulledTransaction(
        kind=kind,
        status=status,
        test=False,
        manual_payment_gateway=manual,
        amount=Decimal(amount),
        gateway="shopify_payments",
        has_fees=has_fees,
    )


@pytest.mark.parametrize("bulk_above", [500, 0])
async def test_refunds_of_many_orders_are_read_beside_the_export_each_whole(
    bulk_above: int,
) -> None:
    sold = [refunded(charged(), returned=n % 3) for n in range(40)]
    large = refunded(charged(), returned=200)
    # What these refunds were for changes nothing: it does not count, or nothing of it was kept.
    cancelled, unproven = refunded(charged(), cancelled_at=NOW), refunded(order())
    plain, given_back = charged(), refunded(charged(), amount=100_000)
    worthless = [cancelled, unproven, given_back]
    orders = [*sold, large, *worthless, plain]
    async with stand(orders, bulk_above=bulk_above) as s:
        got = await pulled(s)
    assert got.keys() == {each.id for each in orders}
    for each in (*sold, large):
        (back,) = got[each.id].refunds
        assert back.goods == sum(line.subtotal for line in each.refunds[0].lines) / Decimal(100)
    assert all(not got[each.id].refunds for each in (*worthless, plain))


def charged() -> Order:
    """Sell something that the platform's own processor was paid for."""
    sold = order()
    sold.lines[0].unit_price = sold.transactions[0].amount = 100_000
    sold.transactions[0].fee = 3
    return sold


def refunded(
    sold: Order,
    *,
    returned: int = 1,
    amount: int | None = None,
    at: datetime = NOW,
    cancelled_at: datetime | None = None,
) -> Order:
    """Give back some of an order, line by line."""
    sold.cancelled_at = cancelled_at
    paid_back = returned if amount is None else amount
    gone = Transaction(next(NUMBERS), "REFUND", "SUCCESS", paid_back, "shopify_payments", at)
    sold.transactions.append(gone)
    lines = [RefundedLine(next(NUMBERS), sold.lines[0], 0, n, 0) for n in range(returned)]
    sold.refunds.append(Refund(next(NUMBERS), at, returned, lines=lines, transactions=[gone]))
    sold.updated_at = at
    return sold


@pytest.mark.parametrize("bulk_above", [500, 100])
async def test_every_order_of_many_pages_comes_once_and_only_those_of_the_window(
    bulk_above: int,
) -> None:
    inside = [order(START + timedelta(minutes=n)) for n in range(300)]
    outside = [order(START - timedelta(seconds=1)), order(NOW), order(test=True)]
    async with stand([*inside, *outside], bulk_above=bulk_above) as s:
        got = await pulled(s)
        assert got.keys() == {each.id for each in inside}
        bulk = s.platform.shop(DOMAIN).bulk_operations
        assert bool(bulk) is (bulk_above == 100)
        assert await s.client._count(s.shop, START, NOW, None) == 300


@pytest.mark.parametrize("bulk_above", [500, 0])
async def test_lines_and_payments_beyond_the_first_are_all_there(bulk_above: int) -> None:
    large, small = order(lines=240, payments=12), order(lines=5, payments=5)
    async with stand([large, small], bulk_above=bulk_above) as s:
        got = await pulled(s)
    assert len(got[large.id].lines) == 240
    assert sum(line.after_discounts_before_taxes for line in got[large.id].lines) == sum(
        Decimal(1000 + n) / 100 for n in range(240)
    )
    assert [len(got[small.id].lines), len(got[small.id].transactions)] == [5, 5]
    assert len(got[large.id].transactions) == 12


async def test_an_empty_window_has_no_orders_by_either_way() -> None:
    async with stand([order()]) as s:
        assert await pulled(s, START - timedelta(days=9), START) == {}
    async with stand([], bulk_above=-1) as s:
        assert await pulled(s) == {}


async def test_a_drained_bucket_slows_a_pull_and_loses_nothing() -> None:
    many = [order(START + timedelta(minutes=n), lines=4) for n in range(120)]
    async with stand(many, maximum_points=1000.0, restore_rate=50.0) as s:
        s.platform.shop(DOMAIN).bucket.drain(s.platform.now())
        assert len(await pulled(s)) == 120
        assert s.time.waits


async def test_a_pull_survives_limits_errors_garbage_and_cut_connections() -> None:
    many = [order(START + timedelta(minutes=n)) for n in range(200)]
    async with stand(many) as s:
        faults = s.platform.faults
        faults.rate_limit(2, "0.5")
        faults.status(503)
        faults.garbage()
        assert len(await pulled(s)) == 200
        faults.reset(2)
        faults.status(500, 2)
        assert len(await pulled(s)) == 200
        assert s.time.waits.count(0.5) >= 2


async def test_an_answer_that_takes_too_long_is_asked_for_again() -> None:
    async with stand([order()], attempt_seconds=0.3) as s:
        release = s.platform.faults.hold()
        assert await s.client._count(s.shop, START, NOW, None) == 1
        release.set()


async def test_a_bulk_export_that_breaks_off_starts_over_and_gives_nothing_twice() -> None:
    many = [order(START + timedelta(minutes=n), lines=3) for n in range(250)]
    async with stand(many, bulk_above=10) as s:
        s.platform.faults.reset(on="bulk")
        s.platform.faults.status(503, on="bulk")
        assert len(await pulled(s)) == 250


async def test_a_bulk_export_waits_for_the_one_that_is_running() -> None:
    many = [order(START + timedelta(minutes=n)) for n in range(20)]
    async with stand(many, bulk_above=10) as s:
        s.platform.bulk_polls = 3
        first = s.client.orders(s.shop, START, NOW)
        second = s.client.orders(s.shop, START, NOW)
        assert (await anext(first)).lines
        found: list[str] = []

        async def pull(orders: AsyncIterator[Any]) -> None:
            found.extend([each.order_id async for each in orders])

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(pull, second)
            tasks.start_soon(pull, s.client.orders(s.shop, START, NOW))
        assert len(found) == 40
        assert len(s.platform.shop(DOMAIN).bulk_operations) == 3


async def test_a_dead_token_and_an_unpaid_shop_are_refusals() -> None:
    async with stand([order()]) as s:
        s.platform.freeze(DOMAIN)
        with pytest.raises(PlatformDenied) as unpaid:
            await s.client.connect_probe(s.shop)
        s.platform.revoke_tokens(DOMAIN)
        with pytest.raises(PlatformDenied) as dead:
            await pulled(s)
        assert (unpaid.value.status, dead.value.status) == (402, 401)


async def test_a_token_dies_when_its_life_is_over() -> None:
    async with stand([order()]) as s:
        s.platform.advance(86_400)
        with pytest.raises(PlatformDenied) as dead:
            await s.client._count(s.shop, START, NOW, None)
        assert dead.value.status == 401


@pytest.mark.parametrize("bulk_above", [500, -1])
async def test_orders_without_the_permission_name_the_missing_scope(bulk_above: int) -> None:
    async with stand([order()], bulk_above=bulk_above, scopes=("read_products",)) as s:
        with pytest.raises(PlatformDenied) as caught:
            await pulled(s)
        assert (caught.value.status, caught.value.missing_scope) == (403, "read_orders")


async def test_orders_from_before_a_moment_come_latest_first_and_not_without_end() -> None:
    old = [order(START - timedelta(hours=n)) for n in range(1, 40)]
    orders = [*old, order(START), order(START - timedelta(hours=1), test=True)]
    async with stand(orders) as s:
        found = [each.order_id async for each in s.client.orders_before(s.shop, START)]
    assert found == [str(each.id) for each in old]
    many = [order(START - timedelta(hours=n)) for n in range(1, 1200)]
    async with stand(many, maximum_points=10**9) as s:
        found = [each.order_id async for each in s.client.orders_before(s.shop, START)]
    assert len(found) < 1100


async def test_earlier_orders_of_which_money_went_back_since_are_found() -> None:
    before = START - timedelta(days=2)
    part, whole = refunded(order(before)), refunded(order(before), returned=100)
    cancelled = refunded(order(before), cancelled_at=NOW)
    inside, long_ago = refunded(order(START)), refunded(order(before), at=before)
    async with stand([part, whole, cancelled, inside, long_ago, order(before)]) as s:
        found = [each async for each in s.client.orders_given_back(s.shop, START)]
    assert {each.order_id for each in found} == {str(e.id) for e in (part, whole, cancelled)}
    assert all(len(each.refunds) == 1 for each in found)


@pytest.mark.parametrize(
    ("version", "is_old"),
    [
        ("2025-10", True),
        ("2026-04", True),
        ("2026-07", False),
        ("2026-10", False),
        ("unstable", False),
    ],
)
async def test_a_version_without_the_fields_that_are_measured_is_told(
    version: str, is_old: bool
) -> None:
    async with ShopifyAdmin(api_version=version) as client:
        if not is_old:
            client.check_version()
            return
        with pytest.raises(ApiVersionTooOld, match="COMMERCE_API_VERSION"):
            client.check_version()


async def test_one_order_reads_like_its_webhook() -> None:
    buyer = Customer(42, "Ann@Example.com", "Ann", "Lee", NOW, NOW)
    sold = order(customer=buyer)
    async with stand([sold]) as s:
        got = await s.client.order(s.shop, sold.id)
        assert await s.client.order(s.shop, 1) is None
    assert got is not None
    assert (got["id"], got["name"], got["currency"]) == (sold.id, "#1001", "USD")
    assert (Decimal(got["total_price"]), got["test"]) == (Decimal(10), False)
    assert got["fulfillment_status"] is None
    assert got["customer"] == {"id": 42, "email": "Ann@Example.com"}
    assert "Lee" not in repr(got)


async def test_subscriptions_are_made_once_and_found_again() -> None:
    async with stand() as s:
        made = await s.client.reconcile_subscriptions(s.shop, HOOK, TOPICS)
        again = await s.client.reconcile_subscriptions(s.shop, HOOK, TOPICS)
        assert made.topics == dict.fromkeys(TOPICS, "created")
        assert again.topics == dict.fromkeys(TOPICS, "ok")
        assert (made.removed, again.removed) == ((), ())
        kept = s.platform.shop(DOMAIN).subscriptions.values()
        assert {(each.topic, each.uri, each.format) for each in kept} == {
            ("APP_UNINSTALLED", HOOK, "JSON"),
            ("ORDERS_CREATE", HOOK, "JSON"),
            ("PRODUCTS_UPDATE", HOOK, "JSON"),
            ("INVENTORY_LEVELS_UPDATE", HOOK, "JSON"),
        }


async def test_ours_outside_the_catalogue_are_removed_and_others_left_alone() -> None:
    async with stand() as s:
        await s.client.reconcile_subscriptions(s.shop, HOOK, {**TOPICS, "orders/paid": ""})
        await s.client.reconcile_subscriptions(
            s.shop, "https://other.example/", {"orders/paid": ""}
        )
        report = await s.client.reconcile_subscriptions(s.shop, HOOK, TOPICS)
        assert report.removed == ("ORDERS_PAID",)
        paid = [
            x for x in s.platform.shop(DOMAIN).subscriptions.values() if x.topic == "ORDERS_PAID"
        ]
        assert [x.uri for x in paid] == ["https://other.example/"]


async def test_a_subscription_that_leaves_things_out_is_made_anew() -> None:
    async with stand() as s:
        await s.client.reconcile_subscriptions(s.shop, HOOK, TOPICS)
        for each in s.platform.shop(DOMAIN).subscriptions.values():
            if each.topic == "ORDERS_CREATE":
                each.filter = "total_price:>100"
        report = await s.client.reconcile_subscriptions(s.shop, HOOK, TOPICS)
        assert report.removed == ("orders/create",)
        assert report.topics["orders/create"] == "created"


async def test_a_refused_topic_is_named_and_the_others_are_made() -> None:
    async with stand(scopes=("read_products",)) as s:
        topics = {**TOPICS, "no_such/topic": "a mistake in the catalogue"}
        report = await s.client.reconcile_subscriptions(s.shop, HOOK, topics)
    assert report.topics["orders/create"] == "missing_scope"
    assert report.topics["inventory_levels/update"] == "missing_scope"
    assert report.topics["products/update"] == "created"
    assert report.topics["app/uninstalled"] == "created"
    assert report.topics["no_such/topic"].startswith("refused: ")


async def test_topics_with_customer_data_say_why_they_are_refused() -> None:
    async with stand(approved_for_customer_data=False, scopes=ALL_SCOPES) as s:
        report = await s.client.reconcile_subscriptions(s.shop, HOOK, TOPICS)
    assert "protected customer data" in report.topics["orders/create"]
    assert report.topics["products/update"] == "created"


async def test_subscribing_survives_a_lost_answer() -> None:
    async with stand() as s:
        await s.client.reconcile_subscriptions(s.shop, HOOK, {"orders/create": ""})
        s.platform.faults.reset()
        s.platform.faults.status(502)
        report = await s.client.reconcile_subscriptions(s.shop, HOOK, TOPICS)
        assert report.topics == dict.fromkeys(TOPICS, "created") | {"orders/create": "ok"}


async def test_a_failed_bulk_export_is_unreachable_and_not_an_empty_shop() -> None:
    async with stand([order()], bulk_above=0) as s:
        s.platform.faults.fail_bulk("TIMEOUT")
        with pytest.raises(PlatformUnreachable, match="FAILED"):
            await pulled(s)
        s.platform.faults.fail_bulk("ACCESS_DENIED")
        with pytest.raises(PlatformDenied, match="requires a scope"):
            await pulled(s)
