"""What is known of competitors, in people's words: figures with their intervals, what changed, what is not known and why."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import orjson

from tolsey.actors.storefront.observed import CATEGORIES, Provenance, ScanVerdict
from tolsey.actors.storefront.registry import shown_state
from tolsey.http.answers.market.intelligence import HighlightAnswer, highlights
from tolsey.http.layout.catalogue import _, marked
from tolsey.http.layout.charts import Chart, Mark, thinned
from tolsey.http.layout.words import day
from tolsey.storage.database import Row
from tolsey.storage.records.intelligence import StorefrontRow

SOLD: Final = "best_seller_velocity"
FIGURES: Final[Mapping[str, str]] = {
    SOLD: marked("Sold a day, best seller"),
    "monthly_revenue": marked("Revenue a month"),
    "median_price": marked("Median price"),
    "product_count": marked("Products"),
    "in_stock_share": marked("In stock"),
    "monthly_visits": marked("Visits a month"),
}
PICTURED: Final = (SOLD, "monthly_revenue", "median_price")
"""By which figures shops are put side by side in a picture."""
STATES: Final[Mapping[str, tuple[str, str]]] = {
    "discovered": ("wait", marked("Waits for its first scan")),
    "active": ("good", marked("Read")),
    "stale": ("warn", marked("Stale")),
    "unreachable": ("bad", marked("Out of reach")),
    "robots_denied": ("idle", marked("Wants not to be read")),
    "not_commerce": ("idle", marked("Shows no shop")),
    "password_protected": ("idle", marked("Behind a password")),
    "redirected": ("idle", marked("Leads elsewhere")),
}
NOWHERE: Final = ("idle", marked("Left alone"))
VERDICTS: Final[Mapping[str, tuple[str, str]]] = {
    ScanVerdict.PARTIAL: ("idle", marked("In part")),
    ScanVerdict.EMPTY: ("idle", marked("Not shown")),
    ScanVerdict.MISSING_CREDENTIAL: ("warn", marked("No provider")),
    ScanVerdict.ROBOTS_DENIED: ("idle", marked("Robots")),
    ScanVerdict.BLOCKED: ("bad", marked("Blocked")),
    ScanVerdict.FAILED: ("bad", marked("Failed")),
}
CATEGORY_NAMES: Final[Mapping[str, str]] = {
    "identity": marked("who it is"),
    "platform": marked("platform"),
    "catalogue": marked("catalogue"),
    "pricing": marked("prices"),
    "velocity": marked("what it sells"),
    "technology": marked("apps and theme"),
    "content": marked("what search engines read"),
    "shipping": marked("deliveries"),
    "reviews": marked("reviews"),
    "social": marked("followers"),
    "traffic": marked("visits"),
    "revenue": marked("revenue"),
    "ads": marked("advertisements"),
}
KNOWN_BY: Final[Mapping[str, str]] = {
    Provenance.OBSERVED: marked("observed"),
    Provenance.DETECTED: marked("detected"),
    Provenance.INFERRED: marked("inferred"),
    Provenance.ESTIMATED: marked("estimated"),
    Provenance.UNAVAILABLE: marked("not known"),
}
KINDS: Final[Mapping[str, str]] = {
    "price": marked("Price %(before)s → %(after)s"),
    "compare_at_price": marked("Former price %(before)s → %(after)s"),
    "quantity": marked("Stock %(before)s → %(after)s"),
    "new": marked("New"),
    "gone": marked("Gone"),
}


@dataclass(frozen=True, kw_only=True)
class ShownFigure:
    """A figure as people read it: with its interval, how it is known, and where from or why not."""

    title: str
    value: str
    span: str
    known_by: str
    source: str


@dataclass(frozen=True, kw_only=True)
class ShopLine:
    """A competitor among others."""

    domain: str
    tone: str
    state: str
    scanned_at: datetime | None
    highlights: Mapping[str, HighlightAnswer]
    is_own: bool = False
    """Whether it is the store itself, whose books are read instead."""

    def figure(self, name: str) -> ShownFigure:
        """Show one of its figures."""
        one = self.highlights[name]
        return ShownFigure(
            title=_(FIGURES[name]),
            value=_value(one),
            span=_span(one),
            known_by=_("your orders") if self.is_own else _(KNOWN_BY[one.provenance]),
            source=one.source,
        )

    @property
    def figures(self) -> Sequence[ShownFigure]:
        """Show all of them."""
        return [self.figure(name) for name in FIGURES]


@dataclass(frozen=True, kw_only=True)
class SeenChange:
    """Something that changed at a shop."""

    at: datetime
    domain: str
    title: str
    what: str


@dataclass(frozen=True, kw_only=True)
class Gap:
    """What is not known of a shop, and why."""

    domain: str
    category: str
    reason: str
    tone: str
    word: str


def line_of(domain: str, row: StorefrontRow | None, now: datetime) -> ShopLine:
    """Show a competitor; the registry has none whose owner asked to be left alone since."""
    tone, word = NOWHERE if row is None else STATES[shown_state(row, now)]
    facts = {} if row is None else orjson.loads(row.facts)
    scanned_at = None if row is None else row.scanned_at
    return ShopLine(
        domain=domain,
        tone=tone,
        state=_(word),
        scanned_at=scanned_at,
        highlights=highlights(facts, scanned_at),
    )


def own_line(name: str, facts: Mapping[str, Any], now: datetime) -> ShopLine:
    """Show the store itself among its competitors."""
    return ShopLine(
        domain=_("%(store)s, you") % {"store": name},
        tone="good",
        state="",
        scanned_at=now,
        highlights=highlights(facts, now),
        is_own=True,
    )


def gaps_of(domain: str, row: StorefrontRow | None) -> Sequence[Gap]:
    """List what is not known of a shop, in the order of the categories."""
    judged = {} if row is None else orjson.loads(row.diagnosis)
    return [
        Gap(
            domain=domain,
            category=_(CATEGORY_NAMES[category]),
            reason=judged[category]["reason"],
            tone=VERDICTS[judged[category]["verdict"]][0],
            word=_(VERDICTS[judged[category]["verdict"]][1]),
        )
        for category in CATEGORIES
        if category in judged and judged[category]["verdict"] != ScanVerdict.OK
    ]


def change_lines(rows: Sequence[Row], known: Mapping[str, StorefrontRow]) -> Sequence[SeenChange]:
    """Say what changed."""
    return [
        SeenChange(
            at=row["at"],
            domain=row["domain"],
            title=row["title"],
            what=_changed(row, known.get(row["domain"])),
        )
        for row in rows
    ]


def compared_by(name: str, shops: Sequence[ShopLine]) -> Chart:
    """Draw a figure of some shops beside each other; amounts in other currencies than the first's have no mark."""
    currency = next(
        (one.highlights[name].currency for one in shops if one.highlights[name].value), None
    )
    marks = []
    for shop in shops:
        one = shop.highlights[name]
        is_like = one.currency in {None, currency}
        marks.append(
            Mark(
                label=shop.domain,
                value=one.value if is_like else None,
                low=one.low if is_like else None,
                high=one.high if is_like else None,
                is_own=shop.is_own,
            )
        )
    told = "; ".join(
        f"{shop.domain} {shown.value}{f', {shown.span}' if shown.span else ''}"
        for shop in shops
        for shown in [shop.figure(name)]
    )
    return Chart(said=f"{_(FIGURES[name])}: {told}", marks=marks)


def pictures_of(snapshots: Sequence[Row], currency: str | None) -> Sequence[tuple[str, Chart]]:
    """Draw a shop over time, the oldest snapshot first: what sells, what it costs, what is in stock."""
    price = _("Median price") if currency is None else f"{_('Median price')}, {currency}"
    wanted = (
        (_("Sold a day, best seller"), "velocity", False),
        (price, "median_price", True),
        (_("Units in stock"), "units", True),
    )
    pictures = []
    for title, name, is_line in wanted:
        marks = thinned([_mark(row, name) for row in snapshots])
        known = [one for one in marks if one.value is not None]
        said = "; ".join(f"{one.label}: {one.value:,.6g}" for one in known)
        pictures.append(
            (title, Chart(said=f"{title}. {said}", marks=marks, is_over_time=True, is_line=is_line))
        )
    return pictures


def _mark(row: Row, name: str) -> Mark:
    label = day(row["taken_at"])
    if name != "velocity":
        return Mark(label=label, value=_float(row[name]))
    low, high = _float(row["velocity_low"]), _float(row["velocity_high"])
    return Mark(label=label, value=_float(row["velocity"]), low=low, high=high)


def _float(value: Any) -> float | None:
    return None if value is None else float(value)


def _value(one: HighlightAnswer) -> str:
    if one.value is None:
        return _("at least %(low)s") % {"low": _number(one.low, one)} if one.low else ""
    return _number(one.value, one)


def _span(one: HighlightAnswer) -> str:
    if one.low is None or one.high is None:
        return ""
    return _("%(low)s to %(high)s") % {"low": _number(one.low, one), "high": _number(one.high, one)}


def _number(value: float, one: HighlightAnswer) -> str:
    match one.unit:
        case "currency":
            return f"{one.currency or ''} {value:,.2f}".strip()
        case "share":
            return f"{value:.0%}"
        case "units a day":
            return f"{value:,.1f}"
        case _:
            return f"{value:,.0f}"


def _changed(row: Row, shop: StorefrontRow | None) -> str:
    if row["kind"] == "available":
        return _("Back in stock") if row["after"] == "true" else _("Sold out")
    currency = shop.currency if shop is not None and "price" in row["kind"] else None
    unit = f"{currency} " if currency else ""
    none = _("none")
    return _(KINDS[row["kind"]]) % {
        name: none if row[name] is None else f"{unit}{row[name]}" for name in ("before", "after")
    }
