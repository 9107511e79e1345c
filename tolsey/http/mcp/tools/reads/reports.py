"""Reports that add a store up, from kept sums: best sellers, what runs out, refunds, where buyers came from."""

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Annotated, Final, Literal

from pydantic import Field

from tolsey.http.answers.money.credits import in_digits_of
from tolsey.http.answers.stores.stock import SELLING_DAYS, days_left
from tolsey.http.mcp.gate import Principal
from tolsey.http.mcp.tools.answers import DecimalMoney, Id, known_money
from tolsey.http.mcp.tools.building import ToolAnswer, ToolArguments, reads
from tolsey.http.mcp.tools.reads.facts import FactsAnswer, FactsTools
from tolsey.http.mcp.tools.reads.orders import PERIODS, Period
from tolsey.http.mcp.tools.shop_words import ShopText
from tolsey.storage.database import Row
from tolsey.storage.reports import products, sales

DAY: Final = timedelta(days=1)


class BestSellersQuery(ToolArguments):
    """Best by what, and when."""

    period: Period = "30d"
    by: Annotated[products.Ranking, Field(description="What ranks them.")] = "revenue"
    limit: Annotated[int, Field(ge=1, le=100, description="So many of each currency.")] = 10


class BestSeller(ToolAnswer):
    """A product and what was sold of it; `kept_units` is what edits and returns left."""

    product_id: Id
    title: ShopText | None
    units: int
    kept_units: int
    sold: Annotated[DecimalMoney, Field(description="As ordered, less the discounts of its lines.")]


class BestSellers(FactsAnswer):
    """The best first, for each currency apart; days are those of UTC."""

    start: date
    end: Annotated[date, Field(description="The last day, as far as it has come.")]
    products: list[BestSeller]


class ForecastQuery(ToolArguments):
    """How many."""

    limit: Annotated[int, Field(ge=1, le=100, description="So many at most.")] = 25


class RunningOut(ToolAnswer):
    """A variant that will run out: when, and the days between which it will in 95 of 100 cases."""

    product_id: Id
    product_title: ShopText | None
    variant_id: Id
    variant_title: ShopText | None
    sku: ShopText | None
    available: int
    units_sold: int
    days_left: float
    earliest_days: float
    latest_days: Annotated[
        float | None, Field(description="Absent when too few were sold to tell.")
    ]


class StockForecast(FactsAnswer):
    """What runs out first, had it sold on as from `start` to before `end`, in UTC."""

    start: date
    end: date
    variants: list[RunningOut]


class RefundsQuery(ToolArguments):
    """When."""

    period: Period = "30d"


class RefundsOfReason(ToolAnswer):
    """What was given back for one reason, in one currency."""

    reason: Annotated[
        ShopText,
        Field(
            description="returned, not_returned, removed (before it was sent), amount_only or"
            " unknown; of a cancelled order why it was cancelled."
        ),
    ]
    order_cancelled: bool
    refunds: int
    amount: DecimalMoney


class RefundReport(FactsAnswer):
    """What was given back in a period, the most first."""

    start: datetime
    end: datetime
    rows: list[RefundsOfReason]


class AttributionQuery(ToolArguments):
    """When, and how fine."""

    period: Period = "30d"
    by: Annotated[Literal["source", "campaign"], Field(description="campaign: by medium, too.")] = (
        "source"
    )
    limit: Annotated[int, Field(ge=1, le=100, description="So many at most.")] = 50


class AttributedSales(ToolAnswer):
    """What one source sold; without a source, what nobody knows where it came from."""

    source: ShopText | None
    medium: ShopText | None
    campaign: ShopText | None
    orders: int
    gross: DecimalMoney
    current: Annotated[DecimalMoney, Field(description="After edits and returns.")]


class AttributionReport(FactsAnswer):
    """What sources sold, the most first; days are those of UTC."""

    start: date
    end: date
    rows: list[AttributedSales]


class ReportTools(FactsTools):
    """Adds up a store for whoever the gate admitted."""

    @reads(
        "get_best_sellers",
        "Report best sellers",
        "Ranks products by revenue or units; real orders that were not cancelled.",
        scopes=frozenset({"orders:read"}),
    )
    async def best(self, principal: Principal, asked: BestSellersQuery) -> BestSellers:
        """Rank products."""
        today = self._today()
        start = today - (PERIODS[asked.period] - 1) * DAY
        rows = await products.best_sellers(
            self._reports(principal),
            principal.shop_key,
            start,
            today + DAY,
            by=asked.by,
            limit=asked.limit,
        )
        return BestSellers(
            facts_since=await self._orders_since(principal),
            start=start,
            end=today,
            products=[BestSeller.read(row, sold=_sold(row)) for row in rows],
        )

    @reads(
        "get_stock_forecast",
        "Forecast stock",
        "Tells which variants run out first at the rate of the last four weeks, with the"
        " range that this rate allows. A rate is no promise.",
        scopes=frozenset({"inventory:read", "orders:read"}),
    )
    async def forecast(self, principal: Principal, asked: ForecastQuery) -> StockForecast:
        """Tell what runs out."""
        end = self._today()
        start = end - SELLING_DAYS * DAY
        rows = await products.running_out(
            self._reports(principal), principal.shop_key, start, end, asked.limit
        )
        return StockForecast(
            facts_since=await self._orders_since(principal),
            start=start,
            end=end,
            variants=[_running_out(row) for row in rows],
        )

    @reads(
        "get_refund_report",
        "Report refunds",
        "Adds up refunds by reason; those of cancelled orders, which sales do not count, apart.",
        scopes=frozenset({"orders:read"}),
    )
    async def refunds(self, principal: Principal, asked: RefundsQuery) -> RefundReport:
        """Add up what was given back."""
        end = self._service.clock()
        start = end - timedelta(days=PERIODS[asked.period])
        rows = await sales.refunds(self._reports(principal), principal.shop_key, start, end)
        return RefundReport(
            facts_since=await self._since(principal),
            start=start,
            end=end,
            rows=[
                RefundsOfReason.read(
                    row,
                    order_cancelled=row["is_cancelled"],
                    amount=known_money(row["amount_minor"], row["currency"]),
                )
                for row in rows
            ],
        )

    @reads(
        "get_attribution_report",
        "Report attribution",
        "Adds up sales by where the buyer of each order came from, as its order said.",
        scopes=frozenset({"orders:read"}),
    )
    async def attribution(self, principal: Principal, asked: AttributionQuery) -> AttributionReport:
        """Add up sales by source."""
        today = self._today()
        start = today - (PERIODS[asked.period] - 1) * DAY
        rows = await sales.attributed(
            self._reports(principal),
            principal.shop_key,
            start,
            today + DAY,
            campaigns=asked.by == "campaign",
            limit=asked.limit,
        )
        return AttributionReport(
            facts_since=await self._since(principal),
            start=start,
            end=today,
            rows=[_attributed(row) for row in rows],
        )

    def _today(self) -> date:
        return self._service.clock().astimezone(UTC).date()


def _running_out(row: Row) -> RunningOut:
    expected, earliest, latest = days_left(row["available"], row["units"], SELLING_DAYS)
    return RunningOut.read(
        row,
        product_title=row["product"],
        variant_title=row["variant"],
        units_sold=row["units"],
        days_left=round(expected, 1),
        earliest_days=round(earliest, 1),
        latest_days=None if latest is None else round(latest, 1),
    )


def _attributed(row: Row) -> AttributedSales:
    words = {name: row[name] or None for name in ("source", "medium", "campaign")}
    return AttributedSales.read(
        row,
        **words,
        gross=known_money(row["gross_minor"], row["currency"]),
        current=known_money(row["current_minor"], row["currency"]),
    )


def _sold(row: Row) -> DecimalMoney:
    amount: Decimal = row["sold"]
    return DecimalMoney(
        amount=f"{in_digits_of(amount, row['currency']):f}", currency=row["currency"]
    )
