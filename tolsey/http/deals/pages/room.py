"""The pages of a deal: one with everything in it, its private facts, and its ledger."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from quart import Blueprint, Response, request

from tolsey.actors.listing.deals.signatures.chain import signed_by
from tolsey.actors.refusals import Forbidden, NotFound
from tolsey.http.answers.market.deals import (
    DealAnswer,
    DealEventAnswer,
    DealListingAnswer,
    LedgerCheckAnswer,
)
from tolsey.http.deals import drafts, threads
from tolsey.http.deals import offers as offer_routes
from tolsey.http.deals.pages import words
from tolsey.http.deals.pages.showing import DealPage, DraftShown, OfferShown, PaperShown, amount
from tolsey.http.deals.parties import Party, party_to
from tolsey.http.deals.room import routes as rooms
from tolsey.http.layout.answers import answer_with_pages, sent_on, shown
from tolsey.http.layout.live import followed
from tolsey.http.layout.standings import ShownState
from tolsey.http.layout.templates import Page
from tolsey.http.layout.words import money
from tolsey.http.web.access import RANKS, page
from tolsey.http.web.context import service
from tolsey.http.web.paging import PageQuery
from tolsey.storage.people import accounts
from tolsey.storage.records.selling.deals import Side
from tolsey.storage.selling import deals, listings
from tolsey.storage.selling.listings import ListingView

PART: Final = 50
LATELY: Final = 8
"""How many lines of the ledger stand on the page of a deal."""

routes = Blueprint("deal_pages", __name__, url_prefix="/deals")
answer_with_pages(routes)


@dataclass(frozen=True, slots=True)
class DealLine:
    """A deal on a list: about what, with whom, and whose turn it is."""

    deal: DealAnswer
    title: str
    other: str

    @property
    def turn(self) -> ShownState:
        """Whose turn it is."""
        deal = self.deal
        return words.turn_of(deal.turn, deal.role, deal.stage, paused=deal.paused)

    @property
    def stage(self) -> str:
        """How far it is."""
        return words.stage(self.deal.stage)

    @property
    def price(self) -> str:
        """What was agreed, or is offered."""
        offer = self.deal.offer
        return amount(self.deal.price or (offer.amount if offer is not None else None))


@dataclass(frozen=True, kw_only=True)
class PrivatePage(Page):
    """What a listing shows to buyers under an NDA."""

    template = "deals/private.html"
    deal_id: str
    answer: DealListingAnswer

    def live(self, figure: int | None) -> str:
        """Write a verified figure; empty where nothing proves it."""
        figures = self.answer.figures
        return money(figure, figures.currency) if figures else ""


@dataclass(frozen=True, kw_only=True)
class LedgerPage(Page):
    """The ledger of a deal, and whether it is what was written."""

    template = "deals/ledger.html"
    deal_id: str
    title: str
    check: LedgerCheckAnswer
    events: Sequence[DealEventAnswer]
    following: str | None

    def happened(self, event: DealEventAnswer) -> str:
        """Say what a line tells."""
        return words.happened(event.event)

    def stage(self, name: str) -> str:
        """Say how far the deal was then."""
        return words.stage(name)


def other_party(deal: DealAnswer) -> str | None:
    """Name the organization across the table; a buyer learns the seller's with the signed NDA."""
    if deal.role == Side.BUYER:
        # Who sells an anonymous listing is told under the NDA alone (rules/marketplace#data-room).
        return deal.seller_organization_id if deal.nda_signed_at else None
    return deal.buyer_organization_id


@routes.get("/<deal_id>")
@page
async def show_deal(deal_id: str) -> Response:
    """Show a deal."""
    return shown(await deal_page(deal_id, done=request.args.get("done", "")))


@routes.get("/<deal_id>/events")
@page
async def follow_deal(deal_id: str) -> Response:
    """Tell `changed` each time that something of the deal moved that the caller sees, for half a minute."""
    party = await party_to(deal_id)
    return followed(partial(deals.version, service().database, deal_id, list(party.roles)))


async def deal_page(deal_id: str, **said: Any) -> DealPage:
    """Put the page of a deal together, for one of its parties or an operator."""
    party, database = await party_to(deal_id), service().database
    # First of all: what moves while the rest is read shows at once.
    version = await deals.version(database, deal_id, list(party.roles))
    deal, view = await threads.get_deal(deal_id), await listing_of_deal(party)
    offered = await offer_routes.list_offers(deal_id, query_args=PageQuery())
    papers = await deals.signatures_of(database, deal_id)
    other = other_party(deal)
    names = await accounts.names_of(database, [other] if other else [])
    lines = await deals.events(database, deal_id, max(deal.events - LATELY, 0), LATELY)
    try:
        files = (await rooms.list_files(deal_id, query_args=PageQuery())).items
        viewings = (await rooms.list_viewings(deal_id, query_args=PageQuery(limit=10))).items
    except Forbidden:
        files, viewings = None, []
    verbs = {deal.offer.id: deal.offer.allowed} if deal.offer is not None else {}
    return DealPage(
        version=version,
        deal=deal,
        title=view.listing.title,
        slug=view.listing.slug,
        other=names.get(other or "", ""),
        may_act=may_act(party),
        offers=[
            OfferShown(one, deal.role, verbs.get(one.id, []) if may_act(party) else [])
            for one in offered.items
        ],
        draft=await _draft(verbs, may_act=may_act(party)),
        papers=[PaperShown(one, deal.role in signed_by(one)) for one in papers],
        files=files,
        viewings=viewings,
        events=[DealEventAnswer.of(one) for one in reversed(lines)],
        **said,
    )


async def _draft(verbs: Mapping[str, Sequence[str]], *, may_act: bool) -> DraftShown | None:
    """Find what an agent prepared for the offer that waits for the reader's side."""
    for offer_id, names in verbs.items():
        try:
            found = await drafts.get_offer_draft(offer_id)
        except NotFound:
            continue
        return DraftShown(found, may_send=may_act and found.reply in names) if names else None
    return None


def may_act(party: Party) -> bool:
    """Whether the caller speaks for a party, or decides for all as an operator."""
    return party.operates or any(RANKS[role] >= RANKS["admin"] for role in party.roles.values())


async def listing_of_deal(party: Party) -> ListingView:
    """Read the listing that a deal is about."""
    view = await listings.find(service().database, party.deal.listing_id)
    if view is None:
        raise NotFound(
            "This deal doesn't exist, or you don't have access to it. Check the link or the id."
        )
    return view


@routes.get("/<deal_id>/business")
@page
async def show_business(deal_id: str) -> Response:
    """Show what only buyers under an NDA read of a listing; who looked is written down."""
    answer = await rooms.get_listing_of_deal(deal_id)
    return shown(PrivatePage(deal_id=deal_id, answer=answer))


@routes.get("/<deal_id>/files/<file_id>")
@page
async def open_file(deal_id: str, file_id: str) -> Response:
    """Give a file of the data room; who asked is written down."""
    found = await rooms.get_deal_file(deal_id, file_id)
    return sent_on(found.url)


@routes.get("/<deal_id>/ledger")
@page
async def show_ledger(deal_id: str) -> Response:
    """Show the whole ledger, and read it again from its first line."""
    party = await party_to(deal_id)
    view = await listing_of_deal(party)
    asked = PageQuery(limit=PART, cursor=request.args.get("cursor"))
    found = await threads.list_deal_events(deal_id, query_args=asked)
    return shown(
        LedgerPage(
            deal_id=deal_id,
            title=view.listing.title,
            check=await threads.verify_deal(deal_id),
            events=found.items,
            following=found.next_cursor,
        )
    )
