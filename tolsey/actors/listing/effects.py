"""A listing's reach into the world: reading its shop's orders, and its account's payments."""

from collections.abc import Awaitable, Callable
from contextlib import aclosing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import orjson
import structlog

from tolsey.actors.listing.messages import (
    Former,
    PullRevenue,
    SyncFailed,
    SyncFoundDevelopment,
    SyncGrantRefused,
    SyncInsufficient,
    SyncPermissionDenied,
    SyncReport,
    SyncSucceeded,
)
from tolsey.actors.listing.verification import account, revenue
from tolsey.actors.listing.verification.accounts import (
    KeyRefused,
    ReadDenied,
    SellerAccounts,
    TooMuch,
)
from tolsey.actors.ports import (
    ApiVersionTooOld,
    CommercePlatform,
    GrantRefused,
    PlatformDenied,
    Shop,
    ShopFacts,
)
from tolsey.actors.reach import with_token
from tolsey.runtime.messages import Message
from tolsey.runtime.tasks import together
from tolsey.storage.database import Database
from tolsey.storage.records.selling.listing import PAYMENTS, RevenueSource
from tolsey.storage.records.selling.revenue import DEFINITION, Measure
from tolsey.storage.sealing.sealed import SealBroken, Vault
from tolsey.storage.selling import listings, snapshots

log = structlog.get_logger()

NEEDED_SCOPE: Final = "read_orders"
FORBIDDEN: Final = 403
TOO_OLD: Final = "api_version_too_old"
SPIKE: Final = "revenue_spike"
EARLIER: Final = (timedelta(days=30), timedelta(days=60))
PRICES_BEFORE: Final = timedelta(days=14)


class ListingEffects:
    """Calls that follow a listing's decisions."""

    def __init__(
        self,
        platform: CommercePlatform,
        accounts: SellerAccounts,
        vault: Vault,
        database: Database,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._platform = platform
        self._accounts = accounts
        self._vault = vault
        self._database = database
        self._clock = clock

    def handlers(self) -> dict[type[Any], Callable[[Any], Awaitable[Message[Any] | None]]]:
        """Say which method answers which call."""
        return {PullRevenue: self.pull}

    async def pull(self, call: PullRevenue) -> Message[Any] | None:
        """Measure the source; what may pass is raised to be tried again."""
        source = await listings.source_of(self._database, call.listing_id, call.provider)
        if source is None or source.sealed_secret is None:
            return None
        found = self._of_account if call.provider == PAYMENTS else self._of_shop
        try:
            return await found(call, source)
        except SealBroken:
            log.exception("revenue.seal_broken", listing_id=call.listing_id)
            return SyncFailed(
                generation=call.generation,
                reason="seal_broken",
                at=self._clock(),
                provider=call.provider,
            )

    async def _of_shop(self, call: PullRevenue, source: RevenueSource) -> Message[Any]:
        async def mint(_: Shop | None) -> Shop:
            return await self._open(source)

        async def measure(shop: Shop) -> Message[Any]:
            return await self._measure_shop(call, source, shop)

        try:
            self._platform.check_version()
            return await with_token(mint, measure)
        except ApiVersionTooOld:
            return SyncFailed(generation=call.generation, reason=TOO_OLD, at=self._clock())
        except GrantRefused as error:
            return SyncGrantRefused(generation=call.generation, code=error.code, at=self._clock())
        except PlatformDenied as error:
            return self._denied(call, error)

    async def _of_account(self, call: PullRevenue, source: RevenueSource) -> Message[Any]:
        try:
            return await self._measure_account(call, source)
        except KeyRefused as error:
            return SyncGrantRefused(
                generation=call.generation, code=error.code, at=self._clock(), provider=PAYMENTS
            )
        except ReadDenied as error:
            return SyncPermissionDenied(
                generation=call.generation,
                permission=error.read,
                at=self._clock(),
                provider=PAYMENTS,
            )
        except TooMuch:
            return SyncFailed(
                generation=call.generation,
                reason="account_too_large",
                at=self._clock(),
                provider=PAYMENTS,
            )

    async def _measure_account(self, call: PullRevenue, source: RevenueSource) -> Message[Any]:
        """Read the account's subscriptions, then payments as far back as they want them."""
        key = listings.open_secret(self._vault, source)
        seller = await self._accounts.account(key)
        if seller.account_id != source.shop_domain:
            return SyncGrantRefused(
                generation=call.generation,
                code="another_account",
                at=self._clock(),
                provider=PAYMENTS,
            )
        end = self._clock()
        tally = account.AccountTally(end)
        subscriptions = await self._accounts.subscriptions(key)
        since = end - account.reach(subscriptions, end)
        async for charge in self._accounts.charges(key, since):
            tally.add_charge(charge)
        for subscription in subscriptions:
            tally.add_subscription(subscription)
        report = SyncReport(
            generation=call.generation,
            shop_domain=source.shop_domain,
            shop_currency=seller.currency,
            primary_domain=seller.domain,
            window_start=tally.start,
            window_end=end,
            measure=tally.measure(await self._two_weeks_ago(source, end)),
            provider=PAYMENTS,
            former=await self._former(source),
        )
        first = tally.first_at
        is_grown = first is not None and first <= tally.start
        if is_grown or await self._accounts.was_paid_before(key, tally.start):
            return SyncSucceeded(report, self._clock())
        return SyncInsufficient(report, self._clock())

    async def _two_weeks_ago(
        self, source: RevenueSource, end: datetime
    ) -> dict[str, account.Earlier]:
        """Read what was said of each currency two weeks ago, if anything was."""
        found = await snapshots.earlier(
            self._database,
            source.listing_id,
            source.shop_domain,
            DEFINITION,
            [end - PRICES_BEFORE],
        )
        return {
            currency: account.Earlier(figures["mrr"], figures.get("subscribers", 0))
            for snapshot in found
            for currency, figures in orjson.loads(snapshot.figures).items()
        }

    async def _open(self, source: RevenueSource) -> Shop:
        """Mint a token for this sync alone; it is kept nowhere."""
        secret = listings.open_secret(self._vault, source)
        grant = await self._platform.exchange(source.shop_domain, source.client_id, secret)
        return Shop(source.shop_domain, grant.access_token)

    async def _measure_shop(
        self, call: PullRevenue, source: RevenueSource, shop: Shop
    ) -> Message[Any]:
        facts = await self._platform.connect_probe(shop)
        # One business is proved, not whichever shop answers at its address by now (rules/revenue#states).
        if facts.shop_domain != source.shop_domain:
            return SyncGrantRefused(
                generation=call.generation, code="another_shop", at=self._clock()
            )
        if revenue.is_development(facts):
            return SyncFoundDevelopment(call.generation, self._clock())
        start, end = revenue.window_of(self._clock())
        measure, is_grown = await measure_shop(self._platform, shop, facts, start, end)
        measure = await self._flagged(source, measure, end)
        report = SyncReport(
            generation=call.generation,
            shop_domain=shop.shop_domain,
            shop_currency=facts.currency,
            primary_domain=facts.primary_domain,
            window_start=start,
            window_end=end,
            measure=measure,
            former=await self._former(source),
        )
        if is_grown:
            return SyncSucceeded(report, self._clock())
        return SyncInsufficient(report, self._clock())

    async def _former(self, source: RevenueSource) -> Former | None:
        """Read what was said last, if that was under another definition."""
        last = await snapshots.latest(self._database, source.listing_id, source.shop_domain)
        if last is None or last.definition == DEFINITION:
            return None
        return Former(last.definition, last.figures)

    async def _flagged(self, source: RevenueSource, measure: Measure, end: datetime) -> Measure:
        """Add the flag that needs the shop's history."""
        earlier = await snapshots.earlier(
            self._database,
            source.listing_id,
            source.shop_domain,
            DEFINITION,
            [end - back for back in EARLIER],
        )
        before = [orjson.loads(snapshot.figures) for snapshot in earlier]
        for figures in measure.figures:
            windows = [kept.get(figures.currency, {}).get("revenue30d", 0) for kept in before]
            if revenue.is_spike(figures.revenue30d, windows):
                return replace(measure, flags=tuple(sorted({*measure.flags, SPIKE})))
        return measure

    def _denied(self, call: PullRevenue, error: PlatformDenied) -> Message[Any]:
        now = self._clock()
        if error.is_dead_token:
            return SyncGrantRefused(generation=call.generation, code="unauthorized", at=now)
        if error.status == FORBIDDEN:
            permission = error.missing_scope or NEEDED_SCOPE
            return SyncPermissionDenied(generation=call.generation, permission=permission, at=now)
        return SyncFailed(generation=call.generation, reason=f"platform_{error.status}", at=now)


async def measure_shop(
    platform: CommercePlatform, shop: Shop, facts: ShopFacts, start: datetime, end: datetime
) -> tuple[Measure, bool]:
    """Say what a shop's orders of [start, end) come to, and whether it sold anything before.

    The three reads are made at once: an export takes its time, and the others are a few calls.
    """
    tally = revenue.OrderTally(start=start, end=end)

    async def count() -> None:
        async for order in platform.orders(shop, start, end):
            tally.add(order)

    async def take_off() -> None:
        async for order in platform.orders_given_back(shop, start):
            tally.add_earlier(order)

    async def is_grown() -> bool:
        # The history is never older than the shop (rules/revenue#history).
        if facts.created_at > start:
            return False
        async with aclosing(platform.orders_before(shop, start)) as orders:
            async for order in orders:
                if revenue.proves_age(order):
                    return True
        return False

    *_, grown = await together((count, take_off, is_grown))
    return tally.measure(), bool(grown)
