"""Orders and sales. What a buyer typed into an order, and its note, is read by no tool."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Final, Literal

import orjson
from pydantic import Field

from tolsey.http.mcp.gate import Principal
from tolsey.http.mcp.registry import READS, Tool
from tolsey.http.mcp.tools import answers
from tolsey.http.mcp.tools.answers import (
    Instant,
    Money,
    Pseudonym,
    id_of,
    known_money,
    money,
    number_of,
    one_of,
    said_of,
    tags_of,
)
from tolsey.http.mcp.tools.building import Answer, Arguments, tool
from tolsey.http.mcp.tools.pages import PageArguments, Pages
from tolsey.http.mcp.tools.reads import facts
from tolsey.http.mcp.tools.reads.facts import FactsAnswer
from tolsey.http.web.context import Service
from tolsey.http.web.paging import InvalidCursor
from tolsey.storage.database import Row
from tolsey.storage.lookups import Lookups
from tolsey.storage.reports import orders, sales
from tolsey.storage.reports.orders import OrderFilter, OrderParts

SCOPES: Final = frozenset({"orders:read"})
PERIODS: Final = {"7d": 7, "30d": 30, "90d": 90, "365d": 365}
WHAT: Final = "order"
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


class OrderId(Arguments):
    """Which order."""

    order_id: answers.OrderId


class OrderSummary(Answer):
    """An order: `total` as it was made, `current_total` as edits and returns left it."""

    id: str
    name: str | None
    processed_at: datetime | None
    total: Money | None
    current_total: Money | None
    financial_status: str | None
    fulfillment_status: str | None
    source: str | None
    customer: str | None
    test: bool
    tags: list[str]
    cancelled_at: datetime | None
    updated_at: datetime


class OrderPage(FactsAnswer):
    """A part of the orders."""

    items: list[OrderSummary]
    next_cursor: str | None


class RefundSummary(Answer):
    """Money given back."""

    id: str
    amount: Money | None
    processed_at: datetime | None


class Parcel(Answer):
    """Goods on their way."""

    id: str
    status: str | None
    shipment_status: str | None
    carrier: str | None
    updated_at: datetime


class OrderLine(Answer):
    """What was ordered of one thing; `quantity` as ordered, `current_quantity` after edits and returns."""

    title: str | None
    variant_title: str | None
    sku: str | None
    product_id: str | None
    variant_id: str | None
    quantity: int | None
    current_quantity: int | None
    price: Annotated[Money | None, Field(description="Of one.")]
    discount: Annotated[Money | None, Field(description="On the line.")]


class OrderDiscount(Answer):
    """A code that was used."""

    code: str | None
    amount: Money | None


class OrderShipping(Answer):
    """How it is shipped."""

    title: str | None
    price: Money | None


class OrderDetail(OrderSummary):
    """An order whole; lines, discounts and shipping are absent where the shop did not tell them."""

    lines: list[OrderLine] | None
    discounts: list[OrderDiscount] | None
    total_discounts: Money | None
    shipping: list[OrderShipping] | None
    refunds: list[RefundSummary]
    parcels: list[Parcel]


class SalesQuery(Arguments):
    """Which sales."""

    period: Annotated[Literal["7d", "30d", "90d", "365d"], Field(description="Days up to now.")] = (
        "30d"
    )
    group_by: Annotated[sales.GroupBy, Field(description="What a row adds up.")] = "day"


class SalesRow(Answer):
    """What was sold in one group and currency."""

    group: Annotated[str, Field(description="First day of the group, the source, or all.")]
    orders: int
    gross: Annotated[Money, Field(description="As ordered.")]
    current: Annotated[Money, Field(description="After edits and returns.")]
    refunded: Annotated[Money, Field(description="Given back within the group.")]


class SalesReport(FactsAnswer):
    """What a store sold in a period; days begin in the shop's time zone."""

    start: datetime
    end: datetime
    time_zone: str
    rows: list[SalesRow]


class OrderTools:
    """Reads orders for whoever the gate admitted."""

    pages = Pages("list_orders", int)
    of_times = Pages("list_orders_of_times", int, int)

    def __init__(self, service: Service) -> None:
        self._service = service
        self._orders = Lookups(service.database, orders.BY_ID)

    def tools(self) -> Sequence[Tool]:
        """List the tools."""
        return [
            tool(
                "list_orders",
                "List orders",
                "Lists orders, newest first. Buyers appear as pseudonyms only.",
                arguments=OrderQuery,
                answer=OrderPage,
                run=self.list,
                scopes=SCOPES,
                hints=READS,
            ),
            tool(
                "get_order",
                "Get an order",
                "Reads one order with its lines, discounts, shipping, refunds and parcels.",
                arguments=OrderId,
                answer=OrderDetail,
                run=self.get,
                scopes=SCOPES,
                hints=READS,
            ),
            tool(
                "get_sales_report",
                "Report sales",
                "Adds up real orders up to now by day, week, month or source; currencies are"
                " never added together.",
                arguments=SalesQuery,
                answer=SalesReport,
                run=self.report,
                scopes=SCOPES,
                hints=READS,
            ),
        ]

    async def list(self, principal: Principal, asked: OrderQuery) -> OrderPage:
        """List orders."""
        wanted = OrderFilter(
            financial_status=asked.financial_status,
            fulfillment_status=asked.fulfillment_status,
            since=asked.since,
            until=asked.until,
            customer=asked.customer,
            tests=asked.include_tests,
        )
        database = self._service.reports.of(principal.organization_id)
        shop, most = principal.shop_key, asked.limit + 1
        if wanted.since is wanted.until is None:
            before = self.pages.number_after(asked)
            found = await orders.page(database, shop, wanted, before, most)
            part, following = self.pages.cut(found, asked, lambda row: (row["order_id"],))
        else:
            key = self.of_times.after(asked)
            try:
                last = (EPOCH + key[0] * MICROSECOND, key[1]) if key else None
            except OverflowError as error:
                raise InvalidCursor from error
            found = await orders.page_of_times(database, shop, wanted, last, most)
            part, following = self.of_times.cut(
                found,
                asked,
                lambda row: ((row["processed_at"] - EPOCH) // MICROSECOND, row["order_id"]),
            )
        return OrderPage(
            facts_since=await facts.since(self._service, principal),
            items=[summary_of(row) for row in part],
            next_cursor=following,
        )

    async def get(self, principal: Principal, asked: OrderId) -> OrderDetail:
        """Read one order."""
        order_id = number_of(asked.order_id, WHAT)
        found = await orders.find(self._orders, principal.shop_key, order_id)
        if found is None:
            raise await facts.unknown(self._service, principal, WHAT)
        return detail_of(found)

    async def report(self, principal: Principal, asked: SalesQuery) -> SalesReport:
        """Add up sales."""
        database, end = self._service.reports.of(principal.organization_id), self._service.clock()
        start = end - timedelta(days=PERIODS[asked.period])
        zone = await sales.zone_of(database, principal.store_id)
        rows = await sales.report(
            database, principal.shop_key, start, end, group_by=asked.group_by, zone=zone
        )
        return SalesReport(
            facts_since=await facts.since(self._service, principal),
            start=start,
            end=end,
            time_zone=zone,
            rows=[_sales_row(row) for row in rows],
        )


def summary_of(row: Row) -> OrderSummary:
    """Show an order in a list."""
    return OrderSummary(**_head(row))


def _head(row: Row) -> dict[str, Any]:
    currency = row["currency"]
    return {
        "id": str(row["order_id"]),
        "name": row["name"],
        "processed_at": row["processed_at"] or row["created_at_platform"],
        "total": money(row["total_minor"], currency),
        "current_total": money(row["current_total_minor"], currency),
        "financial_status": row["financial_status"],
        "fulfillment_status": row["fulfillment_status"],
        "source": row["source_name"],
        "customer": row["customer"],
        "test": row["test"],
        "tags": tags_of(row["tags"]),
        "cancelled_at": row["cancelled_at"],
        "updated_at": row["updated_at"],
    }


def detail_of(found: OrderParts) -> OrderDetail:
    """Show an order whole."""
    return OrderDetail(
        **_head(found.order),
        **_parts(found.order),
        refunds=[
            RefundSummary(
                id=str(row["refund_id"]),
                amount=money(row["amount_minor"], row["currency"]),
                processed_at=row["processed_at"],
            )
            for row in found.refunds
        ],
        parcels=[
            Parcel(
                id=str(row["fulfillment_id"]),
                status=row["status"],
                shipment_status=row["shipment_status"],
                carrier=row["tracking_company"],
                updated_at=row["updated_at"],
            )
            for row in found.parcels
        ],
    )


def _parts(row: Row) -> dict[str, Any]:
    """Show what an order is made of, as far as the shop told it."""
    kept: dict[str, Any] | None = None if row["parts"] is None else orjson.loads(row["parts"])
    if kept is None:
        return dict.fromkeys(("lines", "discounts", "total_discounts", "shipping"))

    def priced(amount: str | None) -> Money | None:
        if amount is None or row["currency"] is None:
            return None
        return Money(amount=amount, currency=row["currency"])

    return {
        "lines": [
            OrderLine(
                title=one["title"],
                variant_title=one["variantTitle"],
                sku=one["sku"],
                product_id=id_of(one["productId"]),
                variant_id=id_of(one["variantId"]),
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
    return SalesRow(
        group=row["bucket"],
        orders=row["orders"],
        gross=known_money(row["gross_minor"], currency),
        current=known_money(row["current_minor"], currency),
        refunded=known_money(row["refunded_minor"], currency),
    )
