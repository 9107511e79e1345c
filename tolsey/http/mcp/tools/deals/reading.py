"""Deals and their offers, for an agent at a store of a party: it reads, and signs, accepts and advances nothing."""

from collections.abc import Sequence
from datetime import date, datetime
from typing import Annotated, Final

from pydantic import Field

from tolsey.actors.listing.deals.messages import ReadDeals
from tolsey.actors.listing.messages import listing
from tolsey.actors.refusals import NotFound
from tolsey.http.answers.market.deals import DealAnswer
from tolsey.http.answers.market.offers import OfferAnswer
from tolsey.http.mcp.gate import Principal
from tolsey.http.mcp.tools.answers import Amount
from tolsey.http.mcp.tools.building import ReadTools, ToolAnswer, ToolArguments, ToolPage, reads
from tolsey.http.mcp.tools.pages import PageArguments, Pages
from tolsey.http.mcp.tools.shop_words import ShopText
from tolsey.storage.database import Database
from tolsey.storage.records.selling.deals import DealThread, Side
from tolsey.storage.selling import deals, listings

SCOPES: Final = frozenset({"deals:read"})
DealId = Annotated[str, Field(max_length=128, description="As list_deals names it.")]


class DealStanding(ToolAnswer):
    """A deal in a list: how far it is, and whose turn it is."""

    id: str
    title: ShopText
    role: str
    stage: str
    turn: str | None
    paused: bool
    due_at: datetime | None
    due_event: str | None
    price: Amount


class DealOfferRead(ToolAnswer):
    """An offer: `side` is whose it is."""

    id: str
    side: str
    status: str
    amount: Amount
    type: str
    inventory: str
    contingencies: list[ShopText]
    closing_by: date | None
    proof_of_funds: ShopText | None
    message: ShopText | None
    valid_until: datetime


class DealDetail(DealStanding):
    """A deal with what is next; `allowed` is what a person of the party can do, and no agent."""

    message: ShopText | None
    reason: ShopText | None
    nda_signed_at: datetime | None
    loi_signed_at: datetime | None
    apa_signed_at: datetime | None
    escrow_funded_at: datetime | None
    closed_at: datetime | None
    exclusivity_until: datetime | None
    inspection_ends_at: datetime | None
    offer: DealOfferRead | None
    allowed: list[str]


class AskedDeal(ToolArguments):
    """Which deal is wanted."""

    deal_id: DealId


class AskedOffers(PageArguments):
    """Of which deal offers are wanted."""

    deal_id: DealId


async def deal_of(
    database: Database, principal: Principal, deal_id: str
) -> tuple[DealThread, Side]:
    """Find a deal of the store's organization; 404 for another's, as for one that is not there."""
    deal = await deals.find(database, deal_id)
    if deal is not None:
        sides = {deal.buyer_id: Side.BUYER, deal.seller_id: Side.SELLER}
        if (side := sides.get(principal.organization_id)) is not None:
            return deal, side
    raise NotFound(
        "This deal doesn't exist, or you don't have access to it. Check the link or the id."
    )


class DealTools(ReadTools):
    """Reads the deals of a store's organization for whoever the gate admitted."""

    pages = Pages("list_deals", str)
    offer_pages = Pages("list_offers", str)

    @reads(
        "list_deals",
        "List deals",
        "Lists the deals that the store's organization is party to, the newest first: stage and whose turn.",
        scopes=SCOPES,
    )
    async def list(self, principal: Principal, asked: PageArguments) -> ToolPage[DealStanding]:
        """List deals."""
        after = self.pages.after(asked)
        found = await deals.page_of_user(
            self._service.database,
            principal.user_id,
            principal.organization_id,
            after[0] if after else None,
            asked.limit + 1,
        )
        known = [(await self._answer(deal, side), deal) for deal, side in found]
        titles = await self._titles([deal for _, deal in known])
        return self.pages.part(
            known,
            asked,
            key=lambda one: (one[1].id,),
            show=lambda one: DealStanding.read(one[0], title=titles.get(one[1].listing_id, "")),
        )

    @reads(
        "get_deal",
        "Get a deal",
        "Reads a deal: its stage, terms, dates and open offer, and what a person can do next.",
        scopes=SCOPES,
    )
    async def get(self, principal: Principal, asked: AskedDeal) -> DealDetail:
        """Read a deal."""
        deal, side = await deal_of(self._service.database, principal, asked.deal_id)
        answer = await self._answer(deal, side)
        titles = await self._titles([deal])
        return DealDetail.read(
            answer,
            title=titles.get(deal.listing_id, ""),
            offer=DealOfferRead.read(answer.offer) if answer.offer is not None else None,
        )

    @reads(
        "list_offers",
        "List offers",
        "Lists the offers of a deal, the newest first.",
        scopes=SCOPES,
    )
    async def offers(self, principal: Principal, asked: AskedOffers) -> ToolPage[DealOfferRead]:
        """List offers."""
        after = self.offer_pages.after(asked)
        deal, _side = await deal_of(self._service.database, principal, asked.deal_id)
        found = await deals.offers(
            self._service.database, deal.id, after[0] if after else None, asked.limit + 1
        )
        return self.offer_pages.part(
            found,
            asked,
            key=lambda one: (one.id,),
            show=lambda one: DealOfferRead.read(OfferAnswer.of(one, ())),
        )

    async def _answer(self, deal: DealThread, side: Side) -> DealAnswer:
        message = ReadDeals((deal.id,), self._service.clock())
        (view,) = await self._service.runtime.ask(listing(deal.listing_id), message)
        return DealAnswer.of(view, side)

    async def _titles(self, found: Sequence[DealThread]) -> dict[str, str]:
        return await listings.titles_of(self._service.database, [one.listing_id for one in found])
