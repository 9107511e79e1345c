"""What becomes of a shop whose app was removed: its erasure is announced, and then begun (rules/shops#who-asks)."""

from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from typing import Final

from tolsey.actors.mail import MailEvent, TellPeople
from tolsey.runtime.ids import new_id
from tolsey.storage import audit
from tolsey.storage.commerce import compliance
from tolsey.storage.commerce.compliance import UninstalledShop
from tolsey.storage.database import Database
from tolsey.storage.records.commerce.compliance import (
    ComplianceRequest,
    ComplianceTopic,
    PendingStep,
    RequestSource,
)

KEPT_FOR: Final = timedelta(days=30)
"""So long a shop may come back: many connect it again after a weekend."""
TOLD_AGAIN_AFTER: Final = timedelta(days=23)


class UninstalledShops:
    """Tells those who look after a store what is about to be erased, and has it erased."""

    def __init__(
        self,
        database: Database,
        tell: Callable[[TellPeople], Awaitable[None]],
        clock: Callable[[], datetime],
    ) -> None:
        self._database = database
        self._tell = tell
        self._clock = clock

    async def run(self) -> int:
        """Announce and begin what is due; answer how many erasures were begun."""
        at, begun = self._clock(), 0
        for one in await compliance.uninstalled(self._database, at - TOLD_AGAIN_AFTER):
            if one.uninstalled_at + KEPT_FOR <= at:
                begun += await self._begin(one, at)
            else:
                await self._announce(one)
        return begun

    async def _announce(self, shop: UninstalledShop) -> None:
        call = TellPeople(
            event=MailEvent.SHOP_ERASURE_NEARS,
            organization_id=shop.organization_id,
            about=_about(shop),
            facts={
                "store": shop.store_id,
                "name": shop.store_name,
                "shop": shop.shop_domain,
                "day": (shop.uninstalled_at + KEPT_FOR).date().isoformat(),
            },
        )
        await self._tell(call)

    async def _begin(self, shop: UninstalledShop, at: datetime) -> bool:
        about = _about(shop)
        request = ComplianceRequest(
            id=new_id("req"),
            topic=ComplianceTopic.SHOP_REDACT,
            shop_domain=shop.shop_domain,
            delivery_id=f"{RequestSource.UNINSTALL}:{about}",
            body_digest=about,
            email_hash=None,
            stores=(shop.store_id,),
            shop_keys=(shop.shop_key,),
            received_at=at,
            pending_steps=tuple(PendingStep),
            source=RequestSource.UNINSTALL,
        )
        async with self._database.transaction() as tx:
            if not await compliance.record(tx, request, ()):
                return False
            await audit.write(
                tx,
                "compliance.requested",
                shop.store_id,
                actor=str(RequestSource.UNINSTALL),
                organization_id=shop.organization_id,
                request=request.id,
                topic=request.topic,
            )
        return True


def _about(shop: UninstalledShop) -> str:
    """Name one uninstall of one store."""
    return f"{shop.store_id}:{shop.uninstalled_at.isoformat()}"
