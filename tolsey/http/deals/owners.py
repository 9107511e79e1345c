"""Finds out whose a shop is that a deal hands over, and tells the deal once it is the buyer's (rules/marketplace#escrow)."""

from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from typing import Any

import structlog

from tolsey.actors.listing.deals.messages import LookForOwner, StoreHandedOver
from tolsey.actors.listing.messages import listing
from tolsey.actors.ports import CommercePlatform, PlatformDenied, Shop
from tolsey.actors.reach import Ask
from tolsey.actors.refusals import Refusal
from tolsey.actors.store.effects import shops
from tolsey.actors.store.grants import is_lasting
from tolsey.runtime.messages import Call
from tolsey.storage.commerce import devstores
from tolsey.storage.database import Database
from tolsey.storage.people import members
from tolsey.storage.records.commerce.devstores import DevStoreState
from tolsey.storage.records.selling.deals import DealThread
from tolsey.storage.sealing.sealed import Vault
from tolsey.storage.selling import deals

log = structlog.get_logger()

Owned = tuple[str, str]
"""A shop's domain, and the address of whoever owns it."""


class OwnerLooks:
    """Compares the owner that the platform names with the people of a deal's buyer; keeps no address."""

    def __init__(
        self,
        ask: Ask,
        platform: CommercePlatform,
        database: Database,
        vault: Vault,
        clock: Callable[[], datetime],
    ) -> None:
        self._ask = ask
        self._shops = shops(ask, vault, clock)
        self._platform = platform
        self._database = database
        self._clock = clock

    def handlers(self) -> Mapping[type[Call[Any]], Callable[[Any], Awaitable[None]]]:
        """Say which call this performs."""
        return {LookForOwner: self.look}

    async def look(self, call: LookForOwner) -> None:
        """Tell the deal that hands a store over when its buyer owns the shop; nothing where none does."""
        deal = await deals.handing_over(self._database, call.store_id)
        if deal is None:
            return
        for look in (self._transferred, self._said):
            owned = await look(call.store_id)
            if owned is not None and await self._is_of_buyer(deal, owned[1]):
                message = StoreHandedOver(
                    deal_id=deal.id, store_id=call.store_id, shop_domain=owned[0], at=self._clock()
                )
                await self._ask(listing(deal.listing_id), message)
                return

    async def _transferred(self, store_id: str) -> Owned | None:
        """Read who took over a shop of the pool: whom the platform invited (rules/launch#dev-stores)."""
        held = (await devstores.holdings(self._database, [store_id])).get(store_id)
        if held is None or held.transfer is None or held.state != DevStoreState.TRANSFERRED:
            return None
        return held.claim.shop_domain, held.transfer.email

    async def _said(self, store_id: str) -> Owned | None:
        """Ask the platform; a shop that lets us in no more says nothing, and its seller says it by hand."""

        async def named(shop: Shop) -> Owned | None:
            email = await self._platform.owner_email(shop)
            return None if email is None else (shop.shop_domain, email)

        try:
            return await self._shops.call(store_id, named)
        except PlatformDenied as error:
            log.info("deals.owner_unknown", store_id=store_id, status=error.status)
        except Refusal as refusal:
            if not is_lasting(refusal):
                raise
            log.info("deals.owner_unknown", store_id=store_id, code=refusal.code)
        return None

    async def _is_of_buyer(self, deal: DealThread, email: str) -> bool:
        """Whether an address is of the buyer's people, and of none of the seller's."""
        of_buyer, of_seller = [
            await members.find_member(self._database, id, email.strip().lower())
            for id in (deal.buyer_id, deal.seller_id)
        ]
        return of_buyer is not None and of_seller is None
