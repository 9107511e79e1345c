"""The pages of a store's competitors: all of them, one with its pictures over time, and up to five side by side."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final

from quart import Blueprint, Response, request

from tolsey.actors.refusals import NotFound, Refusal
from tolsey.actors.storefront.effects import CALIBRATION_LASTS
from tolsey.http.intelligence import competitors as routes_of_competitors
from tolsey.http.intelligence import showing
from tolsey.http.intelligence.competitors import NewCompetitor, competitor_of
from tolsey.http.intelligence.known import MOST_COMPARED, change_after, change_key
from tolsey.http.intelligence.own_books import own_facts
from tolsey.http.intelligence.showing import Gap, SeenChange, ShopLine
from tolsey.http.layout import forms
from tolsey.http.layout.answers import answer_with_pages, filled_again, sent_on, sentence, shown
from tolsey.http.layout.catalogue import _
from tolsey.http.layout.charts import Chart
from tolsey.http.layout.forms import Filled, Misfilled
from tolsey.http.layout.templates import Page
from tolsey.http.web.access import page, store_of
from tolsey.http.web.context import now, service
from tolsey.http.web.paging import PageQuery, cut
from tolsey.storage.commerce.stores import StoreRow
from tolsey.storage.database import Row
from tolsey.storage.intelligence import calibrating, competitors, reading, registry
from tolsey.storage.records.intelligence import FittedCalibration

LISTED: Final = 50
CHANGES: Final = 25
LATELY: Final = timedelta(days=7)
PICTURED: Final = 240
"""Snapshots that a picture is made of: sixty days of four a day."""
KEPT: Final = timedelta(days=400)

routes = Blueprint("competitor_pages", __name__, url_prefix="/stores/<store_id>/competitors")
answer_with_pages(routes)


@dataclass(frozen=True, kw_only=True)
class CompetitorsPage(Page):
    """Whom a store competes with, and what changed there of late."""

    template = "competitors/all.html"
    store: StoreRow
    shops: Sequence[ShopLine]
    more: str | None
    changes: Sequence[SeenChange]
    filled: Filled = field(default_factory=Filled)
    done: str = ""
    most_compared = MOST_COMPARED

    @property
    def address(self) -> str:
        """The address of the page."""
        return address_of(self.store.id)


@dataclass(frozen=True, kw_only=True)
class CompetitorPage(Page):
    """One competitor: its figures, its pictures over time, what changed, and why the rest is not known."""

    template = "competitors/one.html"
    store: StoreRow
    shop: ShopLine
    pictures: Sequence[tuple[str, Chart]]
    snapshots: Sequence[Row]
    changes: Sequence[SeenChange]
    more: str | None
    gaps: Sequence[Gap]
    refused: str = ""
    done: str = ""

    @property
    def address(self) -> str:
        """The address of the page."""
        return f"{address_of(self.store.id)}/{self.shop.domain}"


@dataclass(frozen=True, kw_only=True)
class ComparePage(Page):
    """Up to five competitors beside each other, by one figure in a picture and by all in a table."""

    template = "competitors/compare.html"
    store: StoreRow
    own: ShopLine | None
    """The store itself; None while it has no shop."""
    shops: Sequence[ShopLine]
    figure: str
    figures: Sequence[tuple[str, str]]
    picture: Chart
    gaps: Sequence[Gap]
    changes: Sequence[SeenChange]
    calibration: FittedCalibration | None

    @property
    def address(self) -> str:
        """The address of the page of all."""
        return address_of(self.store.id)

    def shown_by(self, figure: str) -> str:
        """Give the address of the same shops by another figure."""
        named = "".join(f"&domain={one.domain}" for one in self.shops)
        return f"{self.address}/compare?figure={figure}{named}"


def address_of(store_id: str) -> str:
    """Give the address of the page of a store's competitors."""
    return f"/stores/{store_id}/competitors"


@routes.get("")
@page
async def show_competitors(store_id: str) -> Response:
    """Show whom a store competes with."""
    return shown(await _all(store_id, done=request.args.get("done", "")))


@routes.post("")
@page
async def name_competitor(store_id: str) -> Response:
    """Name a competitor."""
    values = await forms.sent()
    try:
        wanted = forms.read(NewCompetitor, values)
        await routes_of_competitors.add_competitor(store_id, data=wanted)
    except (Misfilled, Refusal) as wrong:
        again = await _all(store_id, filled=filled_again(values, wrong, place="domain"))
        return shown(again, refusal=wrong)
    return sent_on(f"{address_of(store_id)}?done=added")


@routes.get("/compare")
@page
async def compare_competitors(store_id: str) -> Response:
    """Put up to five competitors side by side."""
    row, at, database = await store_of(store_id), now(), service().database
    domains = list(dict.fromkeys(request.args.getlist("domain")))[:MOST_COMPARED]
    if not domains:
        return sent_on(f"/stores/{store_id}/competitors")
    kept = {one.domain for one in await competitors.load(database, store_id, domains)}
    domains = [one for one in domains if one in kept]
    if not domains:
        raise NotFound(
            _("No competitors are selected. Select up to %(most)s to compare.")
            % {"most": MOST_COMPARED}
        )
    known = await registry.load(database, domains)
    shops = [showing.line_of(one, known.get(one), at) for one in domains]
    books = await own_facts(row, at)
    own = None if books is None else showing.own_line(row.name, books, at)
    wanted = request.args.get("figure", "")
    figure = wanted if wanted in showing.PICTURED else showing.SOLD
    changed = await reading.changes(database, at - LATELY, CHANGES, domains=domains, before=None)
    compared = ComparePage(
        store=row,
        own=own,
        shops=shops,
        figure=figure,
        figures=[(name, _(showing.FIGURES[name])) for name in showing.PICTURED],
        picture=showing.compared_by(figure, shops if own is None else [own, *shops]),
        gaps=[gap for one in domains for gap in showing.gaps_of(one, known.get(one))],
        changes=showing.change_lines(changed, known),
        calibration=await calibrating.latest(database, at - CALIBRATION_LASTS),
    )
    return shown(compared)


@routes.get("/<domain>")
@page
async def show_competitor(store_id: str, domain: str) -> Response:
    """Show one competitor."""
    return shown(await _one(store_id, domain, done=request.args.get("done", "")))


@routes.post("/<domain>/scan")
@page
async def scan_competitor(store_id: str, domain: str) -> Response:
    """Have a competitor looked at now."""
    try:
        await routes_of_competitors.scan_competitor(store_id, domain)
    except Refusal as refusal:
        from_here = await _one(store_id, domain, refused=sentence(refusal))
        return shown(from_here, refusal=refusal)
    return sent_on(f"{address_of(store_id)}/{domain}?done=asked")


@routes.post("/<domain>/remove")
@page
async def remove_competitor(store_id: str, domain: str) -> Response:
    """Name a storefront a competitor no more."""
    await routes_of_competitors.remove_competitor(store_id, domain)
    return sent_on(f"{address_of(store_id)}?done=removed")


async def _all(store_id: str, **said: Any) -> CompetitorsPage:
    row, at, database = await store_of(store_id), now(), service().database
    asked = PageQuery(cursor=request.args.get("cursor"))
    found = await competitors.page(database, store_id, LISTED + 1, asked.after_moment)
    listed, more = cut(found, LISTED, key=lambda one: f"{one.added_at.isoformat()}|{one.domain}")
    domains = [one.domain for one in listed]
    known = await registry.load(database, domains)
    changed = await reading.changes(database, at - LATELY, CHANGES, domains=domains, before=None)
    return CompetitorsPage(
        store=row,
        shops=[showing.line_of(one, known.get(one), at) for one in domains],
        more=more,
        changes=showing.change_lines(changed, known),
        **said,
    )


async def _one(store_id: str, domain: str, **said: Any) -> CompetitorPage:
    row, at, database = await store_of(store_id), now(), service().database
    kept = await competitor_of(store_id, domain)
    known = await registry.load(database, [kept.domain])
    shop = known.get(kept.domain)
    taken = await reading.snapshots(database, kept.domain, PICTURED, None)
    found = await reading.changes(
        database,
        at - KEPT,
        CHANGES + 1,
        domains=[kept.domain],
        before=change_after(PageQuery(cursor=request.args.get("cursor")).after),
    )
    changed, more = cut(
        found,
        CHANGES,
        key=change_key,
    )
    return CompetitorPage(
        store=row,
        shop=showing.line_of(kept.domain, shop, at),
        pictures=showing.pictures_of(taken[::-1], None if shop is None else shop.currency),
        snapshots=taken[:LISTED],
        changes=showing.change_lines(changed, known),
        more=more,
        gaps=showing.gaps_of(kept.domain, shop),
        **said,
    )
