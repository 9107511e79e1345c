"""Which stores listen to a shop, and the secrets its deliveries may be signed with.

A cache in front of the database: losing it costs a read. A change is told to every process, which
then forgets the shop. What is never told is seen when a signature fits no secret that is known, or
when the entry is a minute old; the store's own decisions refuse what a stale entry lets through.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

import structlog

from tolsey.actors.store.deliveries.identity import PURPOSE
from tolsey.storage.commerce import connections
from tolsey.storage.commerce.connections import FORMER_SECRET_LIFE, Listener
from tolsey.storage.commerce.stores import open_salt
from tolsey.storage.database import Database
from tolsey.storage.sealing.sealed import SealBroken, Vault

log = structlog.get_logger()

KNOWN_SECONDS: Final = 60.0
UNKNOWN_SECONDS: Final = 5.0
DOUBT_SECONDS: Final = UNKNOWN_SECONDS
"""A forger cannot have a shop read more often than this, and not more often than an unknown one."""

TELL_SECONDS: Final = 1.0
"""How long the other processes are waited for when they are told of a change."""

MOST_SHOPS: Final = 10_000
MOST_REFUSING: Final = 1_000
"""Shops whose refused deliveries are counted; who has been quiet for longest is forgotten."""
READS_AT_ONCE: Final = 8
"""Deliveries of made-up shops must not take every connection of the pool."""


@dataclass(frozen=True, slots=True)
class ShopListener:
    """A store that listens to a shop: the secrets that sign for it, its key for pseudonyms."""

    store_id: str
    secrets: tuple[bytes, ...] = field(repr=False)
    identity: bytes | None = field(repr=False)


ShopListeners = tuple[ShopListener, ...]


@dataclass(slots=True)
class RefusedDeliveries:
    """Deliveries in the name of a connected shop that none of its secrets signed."""

    count: int
    last_at: datetime


async def _nobody(_: str) -> None:
    """Tell nobody: this process is alone."""


class ShopDirectory:
    """Finds the stores of a shop, each shop read once however many deliveries wait for it."""

    def __init__(
        self,
        database: Database,
        vault: Vault,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        *,
        monotonic: Callable[[], float] = time.monotonic,
        most_shops: int = MOST_SHOPS,
    ) -> None:
        self._database = database
        self._vault = vault
        self._clock = clock
        self._monotonic = monotonic
        self._most = most_shops
        self.tell_others: Callable[[str], Awaitable[object]] = _nobody
        """Has every other process forget a shop; set once the others are known."""
        # Apart, so that a flood of made-up shops pushes no real one out.
        self._known: dict[str, tuple[float, ShopListeners]] = {}
        self._unknown: dict[str, float] = {}
        self._doubted: dict[str, float] = {}
        self._reads: dict[str, asyncio.Task[ShopListeners]] = {}
        self._turns = asyncio.Semaphore(READS_AT_ONCE)
        self._refused: dict[str, RefusedDeliveries] = {}

    def cached(self, shop_domain: str) -> ShopListeners | None:
        """Return the stores of a shop as far as they are known now; None when they must be read."""
        known = self._known.get(shop_domain)
        if known is not None and self._monotonic() < known[0]:
            return known[1]
        until = self._unknown.get(shop_domain)
        if until is not None and self._monotonic() < until:
            return ()
        return None

    async def find(self, shop_domain: str) -> ShopListeners:
        """Return the stores of a shop, none for a shop that no store is connected to.

        Raises StorageError when they cannot be read.
        """
        found = self.cached(shop_domain)
        if found is not None:
            return found
        return await self._afresh(shop_domain)

    async def doubt(self, shop_domain: str, *, just_read: bool) -> ShopListeners | None:
        """Read a shop once more whose secrets signed nothing of a delivery; none when it was lately.

        Raises StorageError when it cannot be read.
        """
        reading = self._reads.get(shop_domain)
        if reading is not None:
            return await asyncio.shield(reading)
        now = self._monotonic()
        if shop_domain not in self._known or now < self._doubted.get(shop_domain, now):
            return None
        self._doubted.pop(shop_domain, None)
        self._doubted[shop_domain] = now + DOUBT_SECONDS
        if len(self._doubted) > self._most:
            del self._doubted[next(iter(self._doubted))]
        return None if just_read else await self._afresh(shop_domain)

    def note_refused(self, shop_domain: str) -> None:
        """Count a delivery that no secret signed; of a shop that nobody is connected to nothing is kept."""
        if shop_domain not in self._known:
            return
        before = self._refused.pop(shop_domain, None)
        count = before.count + 1 if before else 1
        self._refused[shop_domain] = RefusedDeliveries(count, self._clock())
        if len(self._refused) > MOST_REFUSING:
            del self._refused[next(iter(self._refused))]

    def refused(self, shop_domain: str) -> RefusedDeliveries | None:
        """Tell what of a shop was refused here since this process started."""
        return self._refused.get(shop_domain)

    async def invalidate(self, shop_domain: str) -> None:
        """Forget a shop whose connections have just changed, here at once and in every process.

        Waits a moment for the word of the others; one that keeps silent sees it a little later.
        """
        self.forget(shop_domain)
        with suppress(TimeoutError):
            async with asyncio.timeout(TELL_SECONDS):
                await self.tell_others(shop_domain)

    def forget(self, shop_domain: str) -> None:
        """Forget a shop in this process, also what is being read of it."""
        self._known.pop(shop_domain, None)
        self._unknown.pop(shop_domain, None)
        self._reads.pop(shop_domain, None)

    def forget_all(self) -> None:
        """Forget every shop: changes of some may not have been heard of."""
        self._known.clear()
        self._unknown.clear()
        self._reads.clear()

    async def _afresh(self, shop_domain: str) -> ShopListeners:
        reading = self._reads.get(shop_domain)
        if reading is None:
            reading = asyncio.create_task(self._read(shop_domain))
            self._reads[shop_domain] = reading
        # A delivery that is cut off must not end the read for the others.
        return await asyncio.shield(reading)

    async def _read(self, shop_domain: str) -> ShopListeners:
        mine = asyncio.current_task()
        try:
            async with self._turns:
                rows = await connections.listeners_of(self._database, shop_domain)
            listeners = tuple(
                listener for one in rows if (listener := self._opened(one)) is not None
            )
            if self._reads.get(shop_domain) is mine:
                self._remember(shop_domain, listeners)
            return listeners
        finally:
            if self._reads.get(shop_domain) is mine:
                del self._reads[shop_domain]

    def _remember(self, shop_domain: str, listeners: ShopListeners) -> None:
        now = self._monotonic()
        kept: dict[str, tuple[float, ShopListeners]] | dict[str, float]
        self._known.pop(shop_domain, None)
        self._unknown.pop(shop_domain, None)
        if listeners:
            kept = self._known
            self._known[shop_domain] = (now + KNOWN_SECONDS, listeners)
        else:
            kept = self._unknown
            self._unknown[shop_domain] = now + UNKNOWN_SECONDS
        if len(kept) > self._most:
            del kept[next(iter(kept))]

    def _opened(self, listener: Listener) -> ShopListener | None:
        """Open what a store's row holds; a store whose secret cannot be opened hears nothing."""
        secrets = [listener.client_secret]
        if (
            listener.former_secret is not None
            and self._clock() < listener.connected_at + FORMER_SECRET_LIFE
        ):
            secrets.append(listener.former_secret)
        try:
            opened = [
                connections.open_secret(self._vault, listener.store_id, sealed).encode()
                for sealed in secrets
            ]
        except SealBroken as error:
            log.error(  # noqa: TRY400 - a stack says nothing about a key that is not there
                "commerce.webhook.secret_unreadable", store_id=listener.store_id, why=str(error)
            )
            return None
        return ShopListener(
            listener.store_id, tuple(filter(None, opened)), self._identity(listener)
        )

    def _identity(self, listener: Listener) -> bytes | None:
        try:
            salt = open_salt(
                self._vault, listener.store_id, listener.sealed_salt, listener.shop_key
            )
        except SealBroken:
            return None  # erased, or not ours: the store's buyers can no longer be named
        return self._vault.subkey(salt, PURPOSE)
