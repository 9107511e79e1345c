"""Orders and sales. What a buyer typed into an order, and its note, is read by no tool."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Final, Literal

import orjson
from pydantic import Field

from tolsey.http.mcp.gate import Principal
from tolsey.http.mcp.tools import answers
from tolsey.http.mcp.tools.answers import (
    DecimalMoney,
    Id,
    Instant,
    MaybeId,
    Pseudonym,
    Tags,
    known_money,
    money,
    number_of,
    one_of,
    said_of,
    written_money,
)
from tolsey.http.mcp.tools.building import ToolAnswer, ToolArguments, reads
from tolsey.http.mcp.tools.pages import PageArguments, Pages
from tolsey.http.mcp.tools.reads.facts import FactsAnswer, FactsPart, FactsTools
from tolsey.http.mcp.tools.shop_words import ShopText
from tolsey.http.web.context import Service
from tolsey.http.web.paging import InvalidCursor
from tolsey.storage.database import Row
from tolsey.storage.lookups import Lookups
from tolsey.storage.reports import orders, sales
from tolsey.storage.reports.orders import OrderFilter, OrderParts

SCOPES: Final = frozenset({"orders:read"})
Period = Annotated[Literal["7d", "30d", "90d", "365d"], Field(description="Days up to now.")]
PERIODS: Final[Mapping[Period, int]] = {"7d": 7, "30d": 30, "90d": 90, "365d": 365}
WHAT: Final = "order"
YEAR: Final = timedelta(days=365)
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND: Final = timedelta(microseconds=1)
PAYMENT: Final = {
    name: name
    for name in (
        "pending",
        "authorized",
        "partially_paid",
        "paid",
        "partially_refunded",
        "refunded",
        "voided",
        "expired",
    )
}
FULFILMENT: Final = {
    **{name: name for name in ("unfulfilled", "partial", "fulfilled", "restocked")},
    "partially_fulfilled": "partial",
}
"""The platform's words for the state of an order, as deliveries say them, and as its queries do."""


class OrderQuery(PageArguments):
    """Which orders."""

    financial_status: Annotated[str, one_of(PAYMENT), said_of(PAYMENT)] | None = None
    fulfillment_status: Annotated[str, one_of(FULFILMENT), said_of(FULFILMENT)] | None = None
    since: Annotated[Instant | None, Field(description="Made at this time or later.")] = None
    until: Annotated[Instant | None, Field(description="Made before.")] = None
    customer: Annotated[Pseudonym | None, Field(description="Of this buyer.")] = None
    include_tests: Annotated[bool, Field(description="Test orders too.")] = False


class OrderId(ToolArguments):
    """Which order."""

    order_id: answers.OrderId


class OrderSummary(ToolAnswer):
    """An order: `total` as it was made, `current_total` as edits and returns left it."""

    id: Id
    name: ShopText | None
    processed_at: datetime | None
    total: DecimalMoney | None
    current_total: DecimalMoney | None
    financial_status: str | None
    fulfillment_status: str | None
    source: ShopText | None
    customer: str | None
    test: bool
    tags: Tags
    cancelled_at: datetime | None
    updated_at: datetime


class RefundSummary(ToolAnswer):
    """Money given back."""

    id: Id
    amount: DecimalMoney | None
    processed_at: datetime | None


class Parcel(ToolAnswer):
    """Goods on their way."""

    id: Id
    status: str | None
    shipment_status: str | None
    carrier: ShopText | None
    updated_at: datetime


class OrderLine(ToolAnswer):
    """What was ordered of one thing; `quantity` as ordered, `current_quantity` after edits and returns."""

    title: ShopText | None
    variant_title: ShopText | None
    sku: ShopText | None
    product_id: MaybeId
    variant_id: MaybeId
    quantity: int | None
    current_quantity: int | None
    price: Annotated[DecimalMoney | None, Field(description="Of one.")]
    discount: Annotated[DecimalMoney | None, Field(description="On the line.")]


class OrderDiscount(ToolAnswer):
    """A code that was used."""

    code: ShopText | None
    amount: DecimalMoney | None


class OrderShipping(ToolAnswer):
    """How it is shipped."""

    title: ShopText | None
    price: DecimalMoney | None


class OrderDetail(OrderSummary):
    """An order whole; lines, discounts and shipping are absent where the shop did not tell them."""

    lines: list[OrderLine] | None
    discounts: list[OrderDiscount] | None
    total_discounts: DecimalMoney | None
    shipping: list[OrderShipping] | None
    refunds: list[RefundSummary]
    parcels: list[Parcel]


class SalesQuery(ToolArguments):
    """Which sales."""

    period: Period = "30d"
    group_by: Annotated[sales.GroupBy, Field(description="What a row adds up.")] = "day"
    compare_with: Annotated[
        Literal["nothing", "previous", "year_before"],
        Field(description="As many days before these, or the same ones 365 days ago."),
    ] = "nothing"


class SalesRow(ToolAnswer):
    """What was sold in one group and currency."""

    group: Annotated[ShopText, Field(description="First day of the group, the source, or all.")]
    orders: int
    gross: Annotated[DecimalMoney, Field(description="As ordered.")]
    current: Annotated[DecimalMoney, Field(description="After edits and returns.")]
    refunded: Annotated[DecimalMoney, Field(description="Given back within the group.")]


class SalesPeriod(ToolAnswer):
    """What a store sold in a period."""

    start: datetime
    end: datetime
    rows: list[SalesRow]


class SalesReport(SalesPeriod, FactsAnswer):
    """What a store sold, and beside it what it sold before; days begin in the shop's time zone."""

    time_zone: str
    compared: SalesPeriod | None


class OrderTools(FactsTools):
    """Reads orders for whoever the gate admitted."""

    pages = Pages("list_orders", int)
    of_times = Pages("list_orders_of_times", int, int)

    def __init__(self, service: Service) -> None:
        super().__init__(service)
        self._orders = Lookups(service.database, orders.BY_ID)

    @reads(
        "list_orders",
        "List orders",
        "Lists orders, newest first. Buyers appear as pseudonyms only.",
        scopes=SCOPES,
    )
    async def list(self, principal: Principal, asked: OrderQuery) -> FactsPart[OrderSummary]:
        """List orders."""
        wanted = OrderFilter(
            financial_status=asked.financial_status,
            fulfillment_status=asked.fulfillment_status,
            since=asked.since,
            until=asked.until,
            customer=asked.customer,
            tests=asked.include_tests,
        )
        database = self._reports(principal)
        shop, most = principal.shop_key, asked.limit + 1
        if wanted.since is wanted.until is None:
            before = self.pages.number_after(asked)
            found = await orders.page(database, shop, wanted, before, most)
            part = self.pages.part(
                found, asked, key=lambda row: (row["order_id"],), show=summary_of
            )
        else:
            key = self.of_times.after(asked)
            try:
                last = (EPOCH + key[0] * MICROSECOND, key[1]) if key else None
            except OverflowError as error:
                raise InvalidCursor from error
            found = await orders.page_of_times(database, shop, wanted, last, most)
            part = self.of_times.part(
                found,
                asked,
                key=lambda row: ((row["processed_at"] - EPOCH) // MICROSECOND, row["order_id"]),
                show=summary_of,
            )
        return FactsPart[OrderSummary].read(part, facts_since=await self._orders_since(principal))

    @reads(
        "get_order",
        "Get an order",
        "Reads one order with its lines, discounts, shipping, refunds and parcels.",
        scopes=SCOPES,
    )
    async def get(self, principal: Principal, asked: OrderId) -> OrderDetail:
        """Read one order."""
        order_id = number_of(asked.order_id, WHAT)
        found = await orders.find(self._orders, principal.shop_key, order_id)
        if found is None:
            raise await self._unknown(principal, WHAT)
        return detail_of(found)

    @reads(
        "get_sales_report",
        "Report sales",
        "Adds up real orders up to now by day, week, month or source, beside another period"
        " if wanted; currencies are never added together.",
        scopes=SCOPES,
    )
    async def report(self, principal: Principal, asked: SalesQuery) -> SalesReport:
        """Add up sales."""
        database, end = self._reports(principal), self._service.clock()
        length = timedelta(days=PERIODS[asked.period])
        zone = await sales.zone_of(database, principal.store_id)

        async def of(start: datetime) -> SalesPeriod:
            until = start + length
            rows = await sales.report(
                database, principal.shop_key, start, until, group_by=asked.group_by, zone=zone
            )
            return SalesPeriod(start=start, end=until, rows=[_sales_row(row) for row in rows])

        ago = {"previous": length, "year_before": YEAR}.get(asked.compare_with)
        return SalesReport.read(
            await of(end - length),
            facts_since=await self._orders_since(principal),
            time_zone=zone,
            compared=None if ago is None else await of(end - length - ago),
        )


def summary_of(row: Row) -> OrderSummary:
    """Show an order in a list."""
    return OrderSummary.read(row, **_head(row))


def _head(row: Row) -> dict[str, Any]:
    """Show what has another name in its row."""
    currency = row["currency"]
    return {
        "id": row["order_id"],
        "processed_at": row["processed_at"] or row["created_at_platform"],
        "total": money(row["total_minor"], currency),
        "current_total": money(row["current_total_minor"], currency),
        "source": row["source_name"],
    }


def detail_of(found: OrderParts) -> OrderDetail:
    """Show an order whole."""
    return OrderDetail.read(
        found.order,
        **_head(found.order),
        **_parts(found.order),
        refunds=[
            RefundSummary.read(
                row, id=row["refund_id"], amount=money(row["amount_minor"], row["currency"])
            )
            for row in found.refunds
        ],
        parcels=[
            Parcel.read(row, id=row["fulfillment_id"], carrier=row["tracking_company"])
            for row in found.parcels
        ],
    )


def _parts(row: Row) -> dict[str, Any]:
    """Show what an order is made of, as far as the shop told it."""
    kept: dict[str, Any] | None = None if row["parts"] is None else orjson.loads(row["parts"])
    if kept is None:
        return dict.fromkeys(("lines", "discounts", "total_discounts", "shipping"))

    def priced(amount: str | None) -> DecimalMoney | None:
        return written_money(amount, row["currency"])

    return {
        "lines": [
            OrderLine(
                title=one["title"],
                variant_title=one["variantTitle"],
                sku=one["sku"],
                product_id=one["productId"],
                variant_id=one["variantId"],
                quantity=one["quantity"],
                current_quantity=one["currentQuantity"],
                price=priced(one["price"]),
                discount=priced(one["discount"]),
            )
            for one in kept["lines"]
        ],
        "discounts": [
            OrderDiscount(code=one["code"], amount=priced(one["amount"]))
            for one in kept["discounts"]
        ],
        "total_discounts": priced(kept["totalDiscounts"]),
        "shipping": [
            OrderShipping(title=one["title"], price=priced(one["price"]))
            for one in kept["shipping"]
        ],
    }


def _sales_row(row: Row) -> SalesRow:
    currency = row["currency"]
    return SalesRow.read(
        row,
        group=row["bucket"],
        gross=known_money(row["gross_minor"], currency),
        current=known_money(row["current_minor"], currency),
        refunded=known_money(row["refunded_minor"], currency),
    )
