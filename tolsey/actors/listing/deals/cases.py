"""A deal as it stands at a moment: among the others of its listing, on its clock, and in its lists."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

import orjson

from tolsey.actors.listing.deals.messages import NO_FIELDS, DealFields
from tolsey.actors.listing.machines import BUYER, SELLER
from tolsey.actors.listing.state import DealHead, ListingState
from tolsey.storage.records.selling.deals import (
    BINDING,
    OPEN_OFFERS,
    DealOffer,
    DealStage,
    DealThread,
    Side,
)

Stage = DealStage

LETTERS: Final = {Side.BUYER: BUYER, Side.SELLER: SELLER}
SIDES: Final = {letter: side for side, letter in LETTERS.items()}
LEADING: Final = tuple(stage for stage in BINDING if stage is not Stage.UNDER_OFFER)
"""While one thread stands here all others wait: stage kept, timers stopped, access suspended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DealCase:
    """A deal when something is to happen to it: who wants it, when, and with what words."""

    state: ListingState
    deal: DealThread
    offer: DealOffer | None
    actor: str
    at: datetime
    given: DealFields = NO_FIELDS
    may_sell: bool = True
    """Whether the seller has a payout account, as far as whoever asks knows."""

    @property
    def side(self) -> Side | None:
        """Which party wants it; None for an operator, a provider or the clock."""
        return SIDES.get(self.actor)


def is_taken(state: ListingState, deal_id: str) -> bool:
    """Whether another buyer's offer was accepted: one business is sold once (rules/marketplace#one-buyer)."""
    return state.bound not in (None, deal_id)


def is_paused(state: ListingState, deal_id: str) -> bool:
    """Whether the thread waits for another one that has a letter of intent."""
    bound = state.bound
    return bound is not None and bound != deal_id and state.deals[bound].deal.stage in LEADING


def stood_still(state: ListingState, deal_id: str, since: datetime, until: datetime) -> timedelta:
    """Say for how long of a time a thread waited for others: its timers stood still then."""
    still = timedelta()
    for other in state.led:
        leads = [] if other == deal_id else orjson.loads(state.deals[other].deal.leads)
        for begun, ended in leads:
            first = max(since, datetime.fromisoformat(begun))
            last = min(until, datetime.fromisoformat(ended)) if ended else until
            still += max(last - first, timedelta())
    return still


def open_offer(head: DealHead) -> DealOffer | None:
    """Find the offer of a thread that waits for an answer."""
    offer = head.offer
    return offer if offer is not None and offer.status in OPEN_OFFERS else None


def items(text: str) -> list[Any]:
    """Read a list of a deal: what is to be looked at, or handed over, or who agreed."""
    found: list[Any] = orjson.loads(text)
    return found


def item_of(found: Sequence[Any], id: str | None) -> Any | None:
    """Find one item of a list."""
    return next((one for one in found if one["id"] == id), None)


def changed(text: str, id: str | None, **values: Any) -> str:
    """Write a list with one item changed."""
    found = ({**one, **values} if one["id"] == id else one for one in items(text))
    return orjson.dumps(list(found)).decode()


def is_accepted(deal: DealThread) -> bool:
    """Whether the buyer has accepted everything that was to be handed over."""
    found = items(deal.transfer)
    return bool(found) and all(one["verdict"] == "accepted" for one in found)
