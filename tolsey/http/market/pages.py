"""The market as a page: what is for sale, found by words, filters and orders; and what one watches."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import urlencode

from quart import Blueprint, Response, request

from tolsey.actors.refusals import Refusal
from tolsey.http.answers.market.selling import PublicListingAnswer, VerificationAnswer
from tolsey.http.layout import forms
from tolsey.http.layout.amounts import in_minor
from tolsey.http.layout.answers import answer_with_pages, filled_again, shown
from tolsey.http.layout.catalogue import _, marked
from tolsey.http.layout.forms import Filled, Misfilled
from tolsey.http.layout.templates import Page
from tolsey.http.layout.words import whole_money
from tolsey.http.market import searching, watching
from tolsey.http.market.searching import MarketQuery
from tolsey.http.selling.badge import metric
from tolsey.http.web.access import identify, page, public
from tolsey.http.web.paging import PageQuery

PART: Final = 25
"""How many listings are on a page."""
AMOUNTS: Final = ("minPrice", "maxPrice", "minRevenue", "maxRevenue")
ORDERS: Final[Mapping[str, str]] = {
    "newest": marked("Newest first"),
    "price_asc": marked("Price, lowest first"),
    "price_desc": marked("Price, highest first"),
    "revenue_desc": marked("Verified revenue, highest first"),
    "revenue_asc": marked("Verified revenue, lowest first"),
}

routes = Blueprint("market_pages", __name__, url_prefix="/market")
answer_with_pages(routes)


@dataclass(frozen=True, slots=True)
class MarketLine:
    """A business on the market: what is asked, and what is known of it by whom."""

    answer: PublicListingAnswer

    @property
    def address(self) -> str:
        """Where it is shown."""
        return f"/listings/{self.answer.slug}"

    @property
    def about(self) -> str:
        """What kind of business it is, and where."""
        said = (self.answer.category, self.answer.business_model, self.answer.country)
        return " · ".join(one for one in said if one)

    @property
    def price(self) -> str:
        """What the seller asks."""
        asked = self.answer.asking_price
        return whole_money(asked.amount, asked.currency) if asked else ""

    @property
    def revenue(self) -> str:
        """The verified revenue of 30 days, as its seller shows it; nothing without a proof."""
        return metric(self.answer.verification, "revenue30d")

    @property
    def profit(self) -> str:
        """The profit of a year that the seller states."""
        said = self.answer.self_reported.ttm_profit
        return whole_money(said.amount, said.currency) if said else ""

    @property
    def proof(self) -> VerificationAnswer:
        """How far the numbers are proven."""
        return self.answer.verification


@dataclass(frozen=True, kw_only=True)
class MarketPage(Page):
    """What is for sale, or what of it one watches."""

    template = "market/market.html"
    lines: Sequence[MarketLine]
    filled: Filled = field(default_factory=Filled)
    watched: bool = False
    following: str | None = None

    @property
    def orders(self) -> dict[str, str]:
        """In which orders businesses can be listed."""
        return {name: _(words) for name, words in ORDERS.items()}

    @property
    def is_narrowed(self) -> bool:
        """Whether something was asked for."""
        return any(name not in ("sort", "currency") for name in self.filled.values)

    @property
    def is_filtered(self) -> bool:
        """Whether more was asked for than words, in an order."""
        plain = {"q", "sort", "currency"}
        return bool((set(self.filled.values) | set(self.filled.errors)) - plain)

    @property
    def next_page(self) -> str:
        """The address of what follows; empty on the last page."""
        if self.following is None:
            return ""
        path = "/market/watched" if self.watched else "/market"
        return f"{path}?{urlencode({**self.filled.values, 'cursor': self.following})}"


@routes.get("")
@public
async def show_market() -> Response:
    """Show businesses for sale."""
    await identify()
    asked = {name: said.strip() for name, said in request.args.items() if said.strip()}
    values = {name: said for name, said in asked.items() if name != "cursor"}
    try:
        wanted = forms.read(MarketQuery, _read(asked))
        found = await searching.listed(wanted)
    except (Misfilled, Refusal) as wrong:
        again = MarketPage(lines=(), filled=filled_again(values, wrong))
        return shown(again, refusal=wrong)
    return shown(
        MarketPage(
            lines=[MarketLine(one) for one in found.items],
            filled=Filled(values),
            following=found.next_cursor,
        )
    )


@routes.get("/watched")
@page
async def show_watched() -> Response:
    """Show the listings that one watches."""
    found = await watching.list_watched(
        query_args=PageQuery(limit=PART, cursor=request.args.get("cursor"))
    )
    lines = [MarketLine(one) for one in found.items]
    return shown(MarketPage(lines=lines, watched=True, following=found.next_cursor))


def _read(asked: Mapping[str, str]) -> dict[str, Any]:
    """Read the form as the search takes it: amounts in minor units of their currency."""
    found: dict[str, Any] = {**asked, "limit": PART}
    currency = asked.get("currency", "").upper()
    for name in AMOUNTS:
        if name not in asked:
            continue
        if not currency:
            raise Misfilled({"currency": _("Say in which currency the amounts are.")})
        amount = in_minor(asked[name], currency)
        if amount is None:
            raise Misfilled({name: forms.OWN_SENTENCE})
        found[name] = amount
    if not currency and asked.get("sort", "newest") != "newest":
        raise Misfilled({"currency": _("Say in which currency the amounts are.")})
    return found
