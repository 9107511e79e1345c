"""Deals as they stand: whose turn it is, and what each may do next."""

from collections.abc import Mapping
from datetime import datetime
from typing import Final

from tolsey.actors.listing.deals import timers
from tolsey.actors.listing.deals.cases import DealCase, Stage, is_paused, is_taken, open_offer
from tolsey.actors.listing.deals.messages import DealView
from tolsey.actors.listing.deals.moves import allowed
from tolsey.actors.listing.machines import BUYER, OPERATOR, SELLER
from tolsey.actors.listing.state import DealHead, ListingState
from tolsey.storage.records.selling.deals import DealOffer, Side

TURNS: Final[Mapping[Stage, str]] = {
    Stage.INQUIRY: Side.SELLER,
    Stage.NDA_PENDING: "both",
    Stage.NDA_SIGNED: Side.BUYER,
    Stage.UNDER_OFFER: "both",
    Stage.LOI_SIGNED: Side.SELLER,
    Stage.DUE_DILIGENCE: Side.BUYER,
    Stage.APA_SIGNED: "both",
    Stage.ESCROW_FUNDED: Side.SELLER,
    Stage.TRANSFERRING: Side.SELLER,
    Stage.DISPUTED: "operator",
    Stage.REFUND_REQUESTED: Side.SELLER,
}


def turn_of(head: DealHead) -> str | None:
    """Say whose turn it is; None when nobody has to do anything."""
    offer, deal = open_offer(head), head.deal
    if deal.stage is Stage.NDA_SIGNED and offer is not None:
        return offer.side.other
    if deal.stage is Stage.TRANSFERRING and deal.inspection_ends_at is not None:
        return Side.BUYER
    if deal.escalated and deal.stage is Stage.REFUND_REQUESTED:
        return "operator"
    return TURNS.get(deal.stage)


def offer_verbs(offer: DealOffer, side: Side) -> list[str]:
    """List what a party does with an offer: who made it takes it back, who got it answers it."""
    return ["withdraw"] if side is offer.side else ["accept", "counter", "reject"]


def answers_of(state: ListingState, head: DealHead, at: datetime, side: Side) -> tuple[str, ...]:
    """List what a party may do with the open offer now."""
    offer, deal = open_offer(head), head.deal
    if offer is None or deal.stage is not Stage.NDA_SIGNED:
        return ()
    if timers.ends(state, offer, at) <= at:
        return ()
    names = offer_verbs(offer, side)
    if is_paused(state, deal.id) or is_taken(state, deal.id):
        names = [name for name in names if name in ("reject", "withdraw")]
    return tuple(names)


def view_of(state: ListingState, deal_id: str, at: datetime, *, may_sell: bool = True) -> DealView:
    """Show a deal as it stands, and what each may do next."""
    head = state.deals[deal_id]
    deal, timer = head.deal, timers.due(state, head.deal, at)

    def of(actor: str) -> tuple[str, ...]:
        return allowed(
            DealCase(
                state=state, deal=deal, offer=head.offer, actor=actor, at=at, may_sell=may_sell
            )
        )

    return DealView(
        deal=deal,
        offer=head.offer,
        paused=is_paused(state, deal_id),
        turn=turn_of(head),
        due_at=timer.due_at if timer else None,
        due_event=timer.event if timer else None,
        of_buyer=of(BUYER),
        of_seller=of(SELLER),
        of_operator=of(OPERATOR),
        offer_of_buyer=answers_of(state, head, at, Side.BUYER),
        offer_of_seller=answers_of(state, head, at, Side.SELLER),
        signature_id=head.signature.id if head.signature else None,
    )
