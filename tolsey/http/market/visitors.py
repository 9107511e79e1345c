"""Whoever looks at a listing: for whom they can buy it, and what they began about it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from tolsey.http.layout.forms import Filled
from tolsey.http.web.access import RANKS, caller
from tolsey.http.web.context import service
from tolsey.storage.people import accounts
from tolsey.storage.selling import deals, market
from tolsey.storage.selling.listings import ListingView

MOST_ORGANIZATIONS: Final = 200


@dataclass(frozen=True, kw_only=True)
class Visitor:
    """Whoever is signed in, before a listing: for whom they can buy, and what they began."""

    buyers: Mapping[str, str]
    """The organizations that they may ask access for, by id."""
    deal_id: str | None
    """Their deal about it that is not over."""
    is_seller: bool
    watches: bool
    filled: Filled = field(default_factory=Filled)


async def visitor_of(view: ListingView, filled: Filled | None = None) -> Visitor:
    """Say what the caller can do about a listing."""
    database, user_id = service().database, caller().user_id
    own = await accounts.organizations_of(database, user_id, "", MOST_ORGANIZATIONS)
    seller_id = view.listing.organization_id
    return Visitor(
        buyers={
            one.id: one.name
            for one in own
            if one.id != seller_id and RANKS[one.role] >= RANKS["admin"]
        },
        deal_id=await deals.open_of_buyer(database, user_id, view.listing.id),
        is_seller=any(one.id == seller_id for one in own),
        watches=await market.is_watched(database, view.listing.id, user_id),
        filled=filled or Filled(),
    )
