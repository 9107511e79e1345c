"""A seller's page of a sale: whether they can be paid, who looks, and the buyers with their offers side by side."""

from collections.abc import Awaitable, Sequence
from dataclasses import dataclass

from quart import Blueprint, Response, request

from tolsey.actors.listing import lifecycle
from tolsey.actors.listing.deals.messages import ReadDeals
from tolsey.actors.listing.messages import listing
from tolsey.actors.refusals import Refusal
from tolsey.http.answers.market.deals import DealAnswer
from tolsey.http.answers.market.selling import SellerAccountAnswer
from tolsey.http.billing.hosted import hosted_pages
from tolsey.http.billing.payout_accounts import seller_account
from tolsey.http.deals.pages.room import PART, DealLine
from tolsey.http.deals.pages.showing import OfferShown
from tolsey.http.layout.answers import answer_with_pages, sent_on, sentence, shown
from tolsey.http.layout.catalogue import _
from tolsey.http.layout.templates import Page
from tolsey.http.selling import sell
from tolsey.http.web.access import RANKS, listing_of, member_of, page
from tolsey.http.web.context import ask, now, service
from tolsey.http.web.paging import PageQuery, cut
from tolsey.storage.people import accounts
from tolsey.storage.records.selling.deals import Side
from tolsey.storage.selling import deals, market
from tolsey.storage.selling.listings import ListingView
from tolsey.storage.selling.market import Attention

BESIDE = 4
"""How many offers stand side by side; more are in the table alone."""

routes = Blueprint("sale_pages", __name__, url_prefix="/selling/<listing_id>/sale")
answer_with_pages(routes)


@dataclass(frozen=True, kw_only=True)
class SalePage(Page):
    """A sale to its seller."""

    template = "deals/sale.html"
    view: ListingView
    may_act: bool
    account: SellerAccountAnswer
    attention: Attention
    lines: Sequence[DealLine]
    following: str | None
    refused: str = ""

    @property
    def address(self) -> str:
        """The address of the page."""
        return f"/selling/{self.view.listing.id}/sale"

    @property
    def allowed(self) -> Sequence[str]:
        """What the seller can do with the listing now."""
        return lifecycle.allowed(self.view.listing.status) if self.may_act else ()

    @property
    def offers(self) -> Sequence[tuple[DealLine, OfferShown]]:
        """The offers that are open or were accepted, those to be answered first."""
        found = [
            (one, OfferShown(one.deal.offer, Side.SELLER, one.deal.offer.allowed))
            for one in self.lines
            if one.deal.offer is not None
            and (one.deal.offer.ended_at is None or one.deal.offer.status == "ACCEPTED")
        ]
        return sorted(found, key=lambda pair: "accept" not in pair[1].verbs)[:BESIDE]

    @property
    def missing(self) -> Sequence[str]:
        """What the processor still wants, as people read it."""
        if self.account.missing == ["payout_account"]:
            return [_("a payout account")]
        return [one.replace("_", " ").replace(".", ": ") for one in self.account.missing]


@routes.get("")
@page
async def show_sale(listing_id: str) -> Response:
    """Show a sale to its seller."""
    return await _shown(listing_id)


@routes.post("/<any(submit, publish, pause, withdraw):verb>")
@page
async def act_on_sale(listing_id: str, verb: str) -> Response:
    """Hand the listing in, show it, pause it or give the sale up."""
    acts = {
        "submit": sell.submit_listing,
        "publish": sell.publish_listing,
        "pause": sell.pause_listing,
        "withdraw": sell.withdraw_listing,
    }
    return await _acted(listing_id, acts[verb](listing_id))


async def _acted(listing_id: str, act: Awaitable[object]) -> Response:
    try:
        await act
    except Refusal as refusal:
        return await _shown(listing_id, refusal)
    return sent_on(f"/selling/{listing_id}/sale")


async def _shown(listing_id: str, refusal: Refusal | None = None) -> Response:
    view, database = await listing_of(listing_id), service().database
    role = await member_of(view.listing.organization_id)
    asked = PageQuery(cursor=request.args.get("cursor"))
    found = await deals.about(database, listing_id, asked.after or None, PART + 1)
    part, following = cut(found, PART, key=lambda deal: deal.id)
    views = await ask(listing(listing_id), ReadDeals(tuple(one.id for one in part), now()))
    names = await accounts.names_of(database, [one.buyer_id for one in part])
    written = SalePage(
        view=view,
        may_act=RANKS[role] >= RANKS["admin"],
        account=await seller_account(view.listing.organization_id),
        attention=(await market.attention_of(database, [listing_id]))[listing_id],
        lines=[
            DealLine(DealAnswer.of(one, Side.SELLER), view.listing.title, names[one.deal.buyer_id])
            for one in views
        ],
        following=following,
        refused=sentence(refusal) if refusal else "",
    )
    return shown(written, refusal=refusal, form_targets=hosted_pages())
