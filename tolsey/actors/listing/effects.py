"""A listing's reach into the world: reading thirty days of orders from its shop."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import orjson
import structlog

from tolsey.actors.listing import revenue
from tolsey.actors.listing.messages import (
    PullRevenue,
    SyncFailed,
    SyncGrantRefused,
    SyncInsufficient,
    SyncPermissionDenied,
    SyncReport,
    SyncSucceeded,
)
from tolsey.actors.ports import (
    CommercePlatform,
    GrantRefused,
    PlatformDenied,
    PlatformUnreachable,
    Shop,
    ShopFacts,
)
from tolsey.runtime.messages import Message
from tolsey.storage import listings
from tolsey.storage.database import Database
from tolsey.storage.records.listing import RevenueSource
from tolsey.storage.records.revenue import Measure
from tolsey.storage.sealed import SealBroken, Vault

log = structlog.get_logger()

PATIENCE: Final = timedelta(minutes=2)
"""After this a sync that cannot be made is over: earlier than the runtime gives it up, so that the
listing hears of it and is free for the next one."""
NEEDED_SCOPE: Final = "read_orders"
UNAUTHORIZED, FORBIDDEN = 401, 403
DEVELOPMENT: Final = "development_store"
SPIKE: Final = "revenue_spike"
EARLIER: Final = (timedelta(days=30), timedelta(days=60))


class ListingEffects:
    """Calls that follow a listing's decisions."""

    def __init__(
        self,
        platform: CommercePlatform,
        vault: Vault,
        database: Database,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._platform = platform
        self._vault = vault
        self._database = database
        self._clock = clock

    def handlers(self) -> dict[type[Any], Callable[[Any], Awaitable[Message[Any] | None]]]:
        """Say which method answers which call."""
        return {PullRevenue: self.pull}

    async def pull(self, call: PullRevenue) -> Message[Any] | None:
        """Measure the shop; what may pass is raised to be tried again, until patience ends."""
        source = await listings.source_of(self._database, call.listing_id)
        if source is None or source.sealed_secret is None:
            return None
        try:
            shop = await self._open(source, source.sealed_secret)
            return await self._measure(call, shop)
        except GrantRefused as error:
            return SyncGrantRefused(call.generation, error.code, self._clock())
        except PlatformDenied as error:
            return self._denied(call, error)
        except SealBroken:
            log.exception("revenue.seal_broken", listing_id=call.listing_id)
            return SyncFailed(call.generation, "seal_broken", self._clock())
        except PlatformUnreachable:
            now = self._clock()
            if now - call.at < PATIENCE:
                raise
            return SyncFailed(call.generation, "commerce_unreachable", now)

    async def _open(self, source: RevenueSource, sealed_secret: str) -> Shop:
        """Mint a token for this sync alone; it is kept nowhere."""
        secret = listings.open_secret(self._vault, source.listing_id, sealed_secret)
        grant = await self._platform.exchange(source.shop_domain, source.client_id, secret)
        return Shop(source.shop_domain, grant.access_token)

    async def _measure(self, call: PullRevenue, shop: Shop) -> Message[Any]:
        facts = await self._platform.connect_probe(shop)
        start, end = revenue.window_of(self._clock())
        tally = revenue.Tally(start, end)
        async for order in self._platform.orders(shop, start, end):
            tally.add(order)
        first = await self._platform.first_order_at(shop)
        measure = await self._flagged(call.listing_id, facts, tally.measure(), end)
        report = SyncReport(
            generation=call.generation,
            shop_domain=shop.shop_domain,
            shop_currency=facts.currency,
            primary_domain=facts.primary_domain,
            window_start=start,
            window_end=end,
            measure=measure,
        )
        if first is not None and first <= start:
            return SyncSucceeded(report, self._clock())
        return SyncInsufficient(report, self._clock())

    async def _flagged(
        self, listing_id: str, facts: ShopFacts, measure: Measure, end: datetime
    ) -> Measure:
        """Add the flags that need the shop's plan or its history."""
        flags = set(measure.flags)
        if revenue.is_development(facts):
            flags.add(DEVELOPMENT)
        earlier = await listings.earlier_snapshots(
            self._database, listing_id, facts.shop_domain, [end - back for back in EARLIER]
        )
        before = [orjson.loads(snapshot.figures) for snapshot in earlier]
        for figures in measure.figures:
            windows = [kept.get(figures.currency, {}).get("revenue30d", 0) for kept in before]
            if revenue.is_spike(figures.revenue30d, windows):
                flags.add(SPIKE)
        return replace(measure, flags=tuple(sorted(flags)))

    def _denied(self, call: PullRevenue, error: PlatformDenied) -> Message[Any]:
        now = self._clock()
        if error.status == UNAUTHORIZED:
            return SyncGrantRefused(call.generation, "unauthorized", now)
        if error.status == FORBIDDEN:
            permission = error.missing_scope or NEEDED_SCOPE
            return SyncPermissionDenied(call.generation, permission, now)
        return SyncFailed(call.generation, f"platform_{error.status}", now)
