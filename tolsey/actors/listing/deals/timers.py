"""When time moves a deal or an offer: a durable message with a due time, under a key that says which."""

from datetime import datetime, timedelta
from typing import Final, NamedTuple

from tolsey.actors.listing.deals.cases import Stage, is_paused, stood_still
from tolsey.actors.listing.deals.messages import DealDue, OfferDue
from tolsey.actors.listing.messages import listing
from tolsey.actors.listing.state import ListingState
from tolsey.runtime.decision import Tell
from tolsey.storage.records.selling.deals import OPEN_OFFERS, DealOffer, DealThread

LASTS: Final = {
    Stage.INQUIRY: ("timer.14d", timedelta(days=14)),
    Stage.NDA_PENDING: ("timer.14d", timedelta(days=14)),
    Stage.UNDER_OFFER: ("timer.30d", timedelta(days=30)),
    Stage.APA_SIGNED: ("timer.21d_unfunded", timedelta(days=21)),
    Stage.REFUND_REQUESTED: ("timer.72h", timedelta(hours=72)),
}
"""How long a stage may last, and what happens then."""
LAPSED: Final = "exclusivity.lapsed"
LOOKED_AT_AGAIN: Final = timedelta(days=1)
"""A timer that comes while its deal waits for another looks again a day later."""


class Timer(NamedTuple):
    """What time does next to a deal, and when, if it never stood still."""

    event: str
    due_at: datetime


def timer_of(deal: DealThread) -> Timer | None:
    """Say what time does next to a deal; None when it has all the time."""
    if deal.stage in (Stage.LOI_SIGNED, Stage.DUE_DILIGENCE) and deal.exclusivity_until:
        return Timer(LAPSED, deal.exclusivity_until)
    # Who was asked for the money once too long is asked no more: an operator decides.
    if deal.escalated or deal.stage not in LASTS:
        return None
    event, lasts = LASTS[deal.stage]
    return Timer(event, deal.entered_at + lasts)


def due(state: ListingState, deal: DealThread, at: datetime) -> Timer | None:
    """Say when time really moves a deal, as far as it is known now: waiting for others counts for nothing."""
    timer = timer_of(deal)
    if timer is None or timer.event == LAPSED:
        return timer
    still = stood_still(state, deal.id, deal.entered_at, at)
    return Timer(timer.event, timer.due_at + still)


def ends(state: ListingState, offer: DealOffer, at: datetime) -> datetime:
    """Say when an offer ends, as far as it is known now: it stands still with its deal."""
    return offer.valid_until + stood_still(state, offer.deal_id, offer.made_at, at)


def set_for(deal: DealThread, at: datetime | None = None) -> list[Tell]:
    """Set the timer of a deal: at its time, or at another."""
    timer = timer_of(deal)
    if timer is None:
        return []
    due_at = at or timer.due_at
    message = DealDue(deal_id=deal.id, event=timer.event, at=due_at)
    return [_tell(deal.listing_id, message, f"{deal.id}/{timer.event}", due_at)]


def set_for_offer(listing_id: str, offer: DealOffer, at: datetime | None = None) -> list[Tell]:
    """Set the timer of an offer while it is open."""
    if offer.status not in OPEN_OFFERS:
        return []
    due_at = at or offer.valid_until
    message = OfferDue(deal_id=offer.deal_id, offer_id=offer.id, at=due_at)
    return [_tell(listing_id, message, offer.id, due_at)]


def later(state: ListingState, deal_id: str, due_at: datetime, at: datetime) -> datetime | None:
    """Say when to look again at what falls due at a time; None when that has come."""
    if is_paused(state, deal_id):
        return at + LOOKED_AT_AGAIN
    return due_at if due_at > at else None


def _tell(listing_id: str, message: DealDue | OfferDue, name: str, due_at: datetime) -> Tell:
    key = f"{name}/{due_at.isoformat()}"
    return Tell(to=listing(listing_id), message=message, key=key, due_at=due_at)
