"""The look at a shop of the pool that finds out whose it is."""

from collections.abc import Callable
from datetime import datetime
from typing import Any

import structlog

from tolsey.actors.ports import CommercePlatform, PlatformError, Shop
from tolsey.actors.reach import Ask
from tolsey.actors.refusals import Refusal
from tolsey.actors.store.effects import shops
from tolsey.actors.store.provisioning.messages import PlanSeen, WatchTransfer
from tolsey.runtime.messages import Call
from tolsey.storage.sealing.sealed import Vault

log = structlog.get_logger()


class TransferCalls:
    """Looks at shops that are to become their merchants' own."""

    def __init__(
        self, *, ask: Ask, platform: CommercePlatform, vault: Vault, clock: Callable[[], datetime]
    ) -> None:
        self._shops = shops(ask, vault, clock)
        self._platform = platform
        self._clock = clock

    def handlers(self) -> dict[type[Call[Any]], Any]:
        """Say which method answers which call."""
        return {WatchTransfer: self.watch}

    async def watch(self, call: WatchTransfer) -> PlanSeen:
        """Read the plan's name; a shop that lets nobody in, or is another by now, tells nothing."""

        async def named(shop: Shop) -> str | None:
            if shop.shop_domain != call.shop_domain:
                return None
            return await self._platform.plan_name(shop)

        plan_name: str | None = None
        try:
            plan_name = await self._shops.call(call.store_id, named)
        except (Refusal, PlatformError) as error:
            log.warning("devstore.plan_unknown", store_id=call.store_id, why=str(error))
        return PlanSeen(shop_domain=call.shop_domain, plan_name=plan_name, at=self._clock())
