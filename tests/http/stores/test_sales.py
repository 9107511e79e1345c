"""The pictures of what a store sold: their days, what they are compared with, and their numbers."""

from datetime import UTC, date, datetime
from typing import Any

import pytest

from tolsey.http.layout.charts import Chart, Mark
from tolsey.http.stores.showing.sales import (
    Period,
    SalesPicture,
    Sold,
    SoldThen,
    _before,
    _firsts,
    sales_of,
)
from tolsey.storage.records.commerce.shops import ShopKey

AT = datetime(2026, 3, 1, 2, 30, tzinfo=UTC)
SHOP = ShopKey("sto_1")


class Books:
    """A reader that answers what was sold, and keeps between which moments it was asked."""

    def __init__(self, zone: str, *rows: dict[str, Any]) -> None:
        self.zone = zone
        self.rows = list(rows)
        self.asked: list[tuple[datetime, datetime]] = []

    async def fetchrow(self, sql: str, *_args: Any) -> Any:
        return {"name": self.zone} if "known_zone" in sql else None

    async def fetch(self, _sql: str, *args: Any) -> list[Any]:
        self.asked.append((args[1], args[2]))
        return self.rows


def row(
    bucket: str, orders: int, minor: int, *, currency: str = "USD", back: int = 0
) -> dict[str, Any]:
    return {
        "bucket": bucket,
        "currency": currency,
        "orders": orders,
        "gross_minor": minor,
        "current_minor": minor - back,
        "refunded_minor": back,
    }


@pytest.mark.anyio
async def test_days_begin_in_the_shops_zone_and_are_compared_up_to_the_same_hour() -> None:
    books = Books("America/New_York")
    picture = await sales_of(books, SHOP, "sto_1", "7d", AT)
    # It is still the evening of 28 February there.
    assert [one.first for one in picture.then] == [date(2026, 2, day) for day in range(22, 29)]
    now, before = books.asked
    assert now == (datetime(2026, 2, 22, 5, tzinfo=UTC), AT)
    assert before == (
        datetime(2026, 2, 15, 5, tzinfo=UTC),
        datetime(2026, 2, 22, 2, 30, tzinfo=UTC),
    )


@pytest.mark.anyio
async def test_currencies_are_never_added_up_and_days_without_sales_are_nothing() -> None:
    books = Books(
        "UTC",
        row("2026-02-27", 3, 60_00, back=15_00),
        row("2026-03-01", 1, 40_00),
        row("2026-03-01", 2, 900, currency="JPY"),
    )
    picture = await sales_of(books, SHOP, "sto_1", "7d", AT)
    assert picture.currency == "USD"
    assert [one.sold.orders for one in picture.then] == [0, 0, 0, 0, 3, 0, 1]
    assert picture.others == [("JPY", Sold(2, 900, 900, 0))]
    assert picture.all == Sold(4, 100_00, 85_00, 15_00)
    assert "100.00" not in picture.csv.splitlines()[1]
    assert picture.csv.splitlines()[5] == "2026-02-27,3,60.00,45.00,15.00,USD"


def test_the_year_before_a_leap_day_ends_a_day_earlier() -> None:
    leap = date(2028, 2, 29)
    assert _before("12m", leap) == date(2027, 2, 28)
    assert (_firsts("12m", leap)[0], _firsts("12m", leap)[-1]) == (
        date(2027, 3, 1),
        date(2028, 2, 1),
    )
    periods: tuple[Period, ...] = ("7d", "30d", "12m")
    assert [len(_firsts(one, leap)) for one in periods] == [7, 30, 12]


def shown(now: Sold, before: Sold) -> list[tuple[str, str]]:
    picture = SalesPicture(
        period="30d",
        currency="USD",
        zone="UTC",
        then=[SoldThen(AT.date(), "1 Mar", now)],
        before=[SoldThen(AT.date(), "1 Feb", before)],
        others=(),
    )
    return [(one.moved, one.tone) for one in picture.figures]


def test_a_figure_is_green_only_where_more_is_better_and_silent_without_a_before() -> None:
    up = shown(Sold(12, 120_00, 114_00, 6_00), Sold(10, 100_00, 100_00, 0))
    assert up == [("+14%", "good"), ("+20%", "good"), ("0%", "idle"), ("+5.0 points", "idle")]
    down = shown(Sold(10, 100_00, 90_00, 1_00), Sold(20, 100_00, 100_00, 9_00))
    assert down == [
        ("\N{MINUS SIGN}10%", "idle"),
        ("\N{MINUS SIGN}50%", "idle"),
        ("+100%", "good"),
        ("\N{MINUS SIGN}8.0 points", "good"),
    ]
    assert [moved for moved, _tone in shown(Sold(1, 1, 1, 0), Sold())] == ["", "", "", ""]


def test_bars_stand_on_the_ground_and_the_last_is_paler() -> None:
    chart = Chart(
        said="",
        marks=(Mark(label="a", value=4.0), Mark(label="b", value=2.0, is_unfinished=True)),
        is_bars=True,
        before=(4.0, 0.0),
    )
    first, last = chart.bars
    assert (first.y + first.height, last.y + last.height) == (100, 100)
    assert first.height == 2 * last.height
    assert (first.is_unfinished, last.is_unfinished) == (False, True)
    assert chart.dots == ()
    assert chart.line_before.startswith(f"M25.00 {first.y}L75.00 100")
