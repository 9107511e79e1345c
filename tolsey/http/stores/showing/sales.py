"""What a store sold, as pictures over time with their figures, and how long its stock lasts."""

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Final, Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from tolsey.http.answers.stores.stock import SELLING_DAYS, days_left
from tolsey.http.layout import words
from tolsey.http.layout.catalogue import _, marked
from tolsey.http.layout.charts import Chart, Mark
from tolsey.http.layout.standings import Tone
from tolsey.storage.database import Reader, Row
from tolsey.storage.records.commerce.shops import ShopKey
from tolsey.storage.records.money.currencies import in_units
from tolsey.storage.reports import products, sales

Period = Literal["7d", "30d", "12m"]

PERIODS: Final[Mapping[Period, str]] = {
    "7d": marked("7 days"),
    "30d": marked("30 days"),
    "12m": marked("12 months"),
}
USUAL: Final[Period] = "30d"
BEFORE: Final[Mapping[Period, str]] = {
    "7d": marked("on the 7 days before"),
    "30d": marked("on the 30 days before"),
    "12m": marked("on the 12 months before"),
}
DAYS: Final[Mapping[Period, int]] = {"7d": 7, "30d": 30}
MONTHS: Final = 12
DAY: Final = timedelta(days=1)
UNKNOWN: Final = "\N{EN DASH}"
FEW: Final = 5
THOUSAND: Final = 1_000
SOON_DAYS: Final = 7.0
VERY_SOON_DAYS: Final = 3.0


@dataclass(frozen=True, slots=True)
class Sold:
    """What was sold: as ordered, what edits and returns left of it, what was given back; in minor units."""

    orders: int = 0
    gross: int = 0
    current: int = 0
    refunded: int = 0

    def plus(self, other: "Sold") -> "Sold":
        """Add what else was sold."""
        return Sold(
            self.orders + other.orders,
            self.gross + other.gross,
            self.current + other.current,
            self.refunded + other.refunded,
        )

    @property
    def average(self) -> float | None:
        """What an order is worth, as ordered; None without any."""
        return self.gross / self.orders if self.orders else None

    @property
    def given_back(self) -> float | None:
        """How much of each hundred that was ordered was given back; None without any."""
        return 100 * self.refunded / self.gross if self.gross else None


@dataclass(frozen=True, slots=True)
class SoldThen:
    """What was sold in one day or month, and its name."""

    first: date
    label: str
    sold: Sold


@dataclass(frozen=True, slots=True)
class SalesFigure:
    """One number that a decision rests on, and how it moved."""

    title: str
    value: str
    moved: str
    tone: Tone


@dataclass(frozen=True, kw_only=True)
class SalesPicture:
    """What a store sold in a period and in the one before, in the currency of most of its orders."""

    period: Period
    currency: str
    zone: str
    then: Sequence[SoldThen]
    before: Sequence[SoldThen]
    others: Sequence[tuple[str, Sold]]
    """What it sold in other currencies, which are never added up."""

    @property
    def all(self) -> Sold:
        """What was sold in the period."""
        return _sum(one.sold for one in self.then)

    @property
    def all_before(self) -> Sold:
        """What was sold in the period before, up to the same time."""
        return _sum(one.sold for one in self.before)

    @property
    def is_empty(self) -> bool:
        """Whether nothing was sold in either."""
        return self.all.orders == 0 and self.all_before.orders == 0

    @property
    def figures(self) -> Sequence[SalesFigure]:
        """The four numbers of the page."""
        now, ago = self.all, self.all_before
        average = now.average
        back, back_ago = now.given_back, ago.given_back
        points = None if back is None or back_ago is None else back - back_ago
        return [
            SalesFigure(
                _("Sold, less what came back"),
                self._headline(now.current),
                *self._moved(now.current, ago.current),
            ),
            SalesFigure(_("Orders"), f"{now.orders:,}", *self._moved(now.orders, ago.orders)),
            SalesFigure(
                _("Average order"),
                UNKNOWN if average is None else self._headline(round(average)),
                *self._moved(average, ago.average),
            ),
            SalesFigure(
                _("Given back"),
                UNKNOWN if back is None else f"{back:.1f}%",
                "" if points is None else _("%(points)s points") % {"points": _signed(points, 1)},
                "idle" if points is None or round(points, 1) >= 0 else "good",
            ),
        ]

    def money(self, minor: int) -> str:
        """Write an amount of the picture's currency."""
        return words.money(minor, self.currency)

    def _headline(self, minor: int) -> str:
        """Write an amount as a figure: whole units where there are a thousand of them."""
        units = in_units(minor, self.currency)
        return self.money(minor) if abs(units) < THOUSAND else f"{self.currency} {units:,.0f}"

    @property
    def compared_with(self) -> str:
        """Say what it is compared with."""
        return _(BEFORE[self.period])

    @property
    def revenue(self) -> Chart:
        """What was sold over time, as a line beside the one before."""
        unit = _("a month") if self.period == "12m" else _("a day")
        told = "; ".join(f"{one.label}: {self.money(one.sold.current)}" for one in self.then)
        return Chart(
            said=f"{_('Sold, less what came back')} {unit}. {told}",
            marks=[
                Mark(label=one.label, value=self._units(max(one.sold.current, 0)))
                for one in self.then
            ],
            is_over_time=True,
            is_line=True,
            before=[self._units(max(one.sold.current, 0)) for one in self.before],
        )

    @property
    def orders(self) -> Chart:
        """Orders over time, as bars."""
        unit = _("a month") if self.period == "12m" else _("a day")
        told = "; ".join(f"{one.label}: {one.sold.orders:,}" for one in self.then)
        last = len(self.then) - 1
        return Chart(
            said=f"{_('Orders')} {unit}. {told}",
            marks=[
                Mark(label=one.label, value=float(one.sold.orders), is_unfinished=n == last)
                for n, one in enumerate(self.then)
            ],
            is_over_time=True,
            is_bars=True,
        )

    @property
    def csv(self) -> str:
        """Write the numbers for a spreadsheet, each day or month on a line."""
        file = io.StringIO()
        table = csv.writer(file, lineterminator="\r\n")
        table.writerow(["from", "orders", "ordered", "after_returns", "given_back", "currency"])
        for one in self.then:
            sold = one.sold
            amounts = [self._written(n) for n in (sold.gross, sold.current, sold.refunded)]
            table.writerow([one.first.isoformat(), sold.orders, *amounts, self.currency])
        return file.getvalue()

    def _units(self, minor: int) -> float:
        return float(in_units(minor, self.currency))

    def _written(self, minor: int) -> str:
        return f"{in_units(minor, self.currency):f}"

    @staticmethod
    def _moved(now: float | None, ago: float | None) -> tuple[str, Tone]:
        if now is None or not ago or ago < 0:
            return "", "idle"
        percent = 100 * (now - ago) / ago
        return f"{_signed(percent, 0)}%", "good" if round(percent) > 0 else "idle"


@dataclass(frozen=True, slots=True)
class StockLine:
    """A variant that runs out: how many are left, and for how many days."""

    product: str
    available: int
    days: float
    earliest: float
    tone: Tone


async def sales_of(
    database: Reader, shop: ShopKey, store_id: str, period: Period, at: datetime
) -> SalesPicture:
    """Read what a store sold in a period up to now, and in the one before up to the same time of its last day."""
    zone = await sales.zone_of(database, store_id)
    today = at.astimezone(_zone(zone)).date()
    firsts, firsts_before = _firsts(period, today), _firsts(period, _before(period, today))
    group: sales.GroupBy = "month" if period == "12m" else "day"

    async def rows_of(first: date, until: datetime) -> list[Row]:
        start = datetime(first.year, first.month, first.day, tzinfo=_zone(zone)).astimezone(UTC)
        return await sales.report(database, shop, start, until, group_by=group, zone=zone)

    ago = datetime.combine(_before(period, today), at.astimezone(_zone(zone)).timetz()).astimezone(
        UTC
    )
    now, before = await rows_of(firsts[0], at), await rows_of(firsts_before[0], ago)
    currency, others = _currencies([*now, *before])
    return SalesPicture(
        period=period,
        currency=currency,
        zone=zone,
        then=_filled(firsts, now, currency, period),
        before=_filled(firsts_before, before, currency, period),
        others=[(one, _sum(_sold(row) for row in now if row["currency"] == one)) for one in others],
    )


async def running_out(database: Reader, shop: ShopKey, at: datetime) -> Sequence[StockLine]:
    """List what is left for the shortest time, as it sold in the last four weeks."""
    end = at.astimezone(UTC).date()
    rows = await products.running_out(database, shop, end - SELLING_DAYS * DAY, end, FEW)
    return [_stock_line(row) for row in rows]


def _stock_line(row: Row) -> StockLine:
    expected, earliest, _latest = days_left(row["available"], row["units"], SELLING_DAYS)
    title = row["product"] or _("Without a title")
    if row["variant"] and row["variant"] != "Default Title":
        title = f"{title}, {row['variant']}"
    tone: Tone = "bad" if expected < VERY_SOON_DAYS else "warn" if expected < SOON_DAYS else "idle"
    return StockLine(title, row["available"], round(expected, 1), round(earliest, 1), tone)


def _currencies(rows: Sequence[Row]) -> tuple[str, list[str]]:
    """Tell the currency of most orders, and the others by their names."""
    orders: dict[str, int] = {}
    for row in rows:
        orders[row["currency"]] = orders.get(row["currency"], 0) + row["orders"]
    if not orders:
        return "USD", []
    chosen = max(sorted(orders), key=lambda one: orders[one])
    return chosen, sorted(set(orders) - {chosen})


def _filled(
    firsts: Sequence[date], rows: Sequence[Row], currency: str, period: Period
) -> Sequence[SoldThen]:
    """Give each day or month what was sold in it; nothing where nothing was."""
    found = {row["bucket"]: _sold(row) for row in rows if row["currency"] == currency}
    return [
        SoldThen(one, _label(one, period), found.get(one.isoformat(), Sold())) for one in firsts
    ]


def _label(first: date, period: Period) -> str:
    at = datetime(first.year, first.month, first.day, tzinfo=UTC)
    return f"{at:%b %Y}" if period == "12m" else words.day(at).rsplit(" ", 1)[0]


def _firsts(period: Period, last: date) -> list[date]:
    """List the days or the first days of the months of a period that ends with a day."""
    if period == "12m":
        months = last.year * 12 + last.month - 1
        return [date(n // 12, n % 12 + 1, 1) for n in range(months - MONTHS + 1, months + 1)]
    return [last - n * DAY for n in range(DAYS[period] - 1, -1, -1)]


def _before(period: Period, day: date) -> date:
    """Give the same day of the period before; of 29 February the day before it."""
    if period != "12m":
        return day - DAYS[period] * DAY
    try:
        return day.replace(year=day.year - 1)
    except ValueError:
        return day.replace(year=day.year - 1, day=28)


def _sold(row: Row) -> Sold:
    return Sold(row["orders"], row["gross_minor"], row["current_minor"], row["refunded_minor"])


def _sum(parts: Iterable[Sold]) -> Sold:
    whole = Sold()
    for one in parts:
        whole = whole.plus(one)
    return whole


def _signed(figure: float, digits: int) -> str:
    rounded = round(figure, digits)
    sign = "+" if rounded > 0 else "\N{MINUS SIGN}" if rounded < 0 else ""
    return f"{sign}{abs(rounded):,.{digits}f}"


def _zone(name: str) -> ZoneInfo:
    """Open a zone by its name; one that this machine does not know is UTC."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError):
        return ZoneInfo("UTC")
