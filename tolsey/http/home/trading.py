"""`/deals`: all that somebody sells and buys, in one place: deals, own listings, and those that they watch."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from quart import Blueprint, Response, request

from tolsey.http.deals import threads
from tolsey.http.deals.bodies_of_deals import DealQuery
from tolsey.http.deals.pages.room import PART, DealLine, other_party
from tolsey.http.home.pages import ListingLine, events_of_all, listing_line
from tolsey.http.layout.answers import answer_with_pages, shown
from tolsey.http.layout.templates import Page
from tolsey.http.market import watching
from tolsey.http.market.pages import MarketLine
from tolsey.http.web.access import caller, page
from tolsey.http.web.context import now, service
from tolsey.http.web.paging import PageQuery
from tolsey.storage.people import accounts
from tolsey.storage.selling import listings

FEW: Final = 10
"""How many listings stand beside the deals; their own pages have the others."""

routes = Blueprint("trading_pages", __name__, url_prefix="/deals")
answer_with_pages(routes)


@dataclass(frozen=True, kw_only=True)
class TradingPage(Page):
    """The deals of whoever is signed in, as a buyer and as a seller, what they sell, and what they watch."""

    template = "home/trading.html"
    lines: Sequence[DealLine]
    """Those in which it is their turn before the others, of each the newest first."""
    following: str | None
    listings: Sequence[ListingLine] = ()
    watched: Sequence[MarketLine] = ()
    is_first: bool = True
    """Whether it is not one of earlier deals alone."""
    events: str = ""
    """Where the page is told that something moved; nowhere for who belongs to no organization."""


@routes.get("")
@page
async def show_trading() -> Response:
    """Show the deals and listings of the caller's organizations, and the listings that the caller watches."""
    cursor = request.args.get("cursor")
    events = await events_of_all()
    found = await threads.list_deals(query_args=DealQuery(limit=PART, cursor=cursor))
    database, at = service().database, now()
    titles = await listings.titles_of(database, [one.listing_id for one in found.items])
    known = {one.id: other_party(one) for one in found.items if other_party(one) is not None}
    names = await accounts.names_of(database, [id for id in known.values() if id])
    lines = [
        DealLine(one, titles.get(one.listing_id, ""), names.get(known.get(one.id) or "", ""))
        for one in found.items
    ]
    lines.sort(key=lambda one: one.turn.tone != "you")
    if cursor:
        return shown(TradingPage(lines=lines, following=found.next_cursor, is_first=False))
    own = await listings.page_of_user(database, caller().user_id, None, None, FEW)
    watched = await watching.list_watched(query_args=PageQuery(limit=FEW))
    return shown(
        TradingPage(
            events=events,
            lines=lines,
            following=found.next_cursor,
            listings=[listing_line(view, at) for view in own],
            watched=[MarketLine(one) for one in watched.items],
        )
    )
