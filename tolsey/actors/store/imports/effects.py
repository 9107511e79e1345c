"""The calls of an import: have the platform make an export of a shop's orders, and read it part by part."""

import asyncio
from collections.abc import Callable
from contextlib import aclosing
from datetime import datetime
from typing import Any, Final

import structlog

from tolsey.actors.bodies import Unreadable
from tolsey.actors.ports import (
    BulkExport,
    CommercePlatform,
    PlatformDenied,
    PlatformUnreachable,
    Shop,
)
from tolsey.actors.reach import Ask
from tolsey.actors.refusals import Refusal
from tolsey.actors.store.deliveries.identity import PURPOSE
from tolsey.actors.store.deliveries.messages import Delivery
from tolsey.actors.store.deliveries.payloads import imported_order
from tolsey.actors.store.deliveries.reading import Reading
from tolsey.actors.store.effects import shops
from tolsey.actors.store.grants import is_lasting
from tolsey.actors.store.imports.messages import (
    BulkExportLost,
    BulkExportRunning,
    BulkExportStarted,
    FindPlaceInExport,
    ImportedOrder,
    ImportEnded,
    ImportFailed,
    ImportPaused,
    ImportRun,
    KeepImported,
    PartOutcome,
    PlaceInExport,
    ReadBulkExport,
    StartBulkExport,
)
from tolsey.actors.store.messages import store
from tolsey.runtime.messages import Call, Message
from tolsey.storage.commerce import stores
from tolsey.storage.database import Database
from tolsey.storage.sealing.sealed import Vault

log = structlog.get_logger()

ORDERS_AT_ONCE: Final = 250
"""So many are written in one commit, which deliveries of the same shop wait for."""
READ_SECONDS: Final = 60.0
"""How long one call reads before it gives its place in the lane to others."""
DISCONNECTED: Final = "disconnected"


class ReadElsewhere(Exception):  # noqa: N818 - what happened
    """Another call of the same import is further: this one is tried again from where that is."""


class OrderImportCalls:
    """Has the orders of shops exported, and reads the exports."""

    def __init__(
        self,
        *,
        ask: Ask,
        platform: CommercePlatform,
        database: Database,
        vault: Vault,
        clock: Callable[[], datetime],
        orders_at_once: int = ORDERS_AT_ONCE,
        read_seconds: float = READ_SECONDS,
    ) -> None:
        self._ask = ask
        self._shops = shops(ask, vault, clock)
        self._platform = platform
        self._database = database
        self._vault = vault
        self._clock = clock
        self._orders_at_once = orders_at_once
        self._read_seconds = read_seconds

    def handlers(self) -> dict[type[Call[Any]], Any]:
        """Say which method answers which call."""
        return {StartBulkExport: self.start, ReadBulkExport: self.read}

    async def start(self, call: StartBulkExport) -> Message[None] | None:
        """Have the platform begin an export, while it is wanted. One that nobody heard of ends by itself."""
        if await self._ask(store(call.store_id), FindPlaceInExport(call.run)) is None:
            return None

        async def begun(shop: Shop) -> str | None:
            if shop.shop_domain != call.shop_domain:
                return None
            return await self._platform.start_export(shop, call.since)

        found = await self._with_shop(call, begun)
        if isinstance(found, ImportFailed):
            return found
        return BulkExportStarted(call.run, found, self._clock())

    async def read(self, call: ReadBulkExport) -> Message[None] | None:
        """Read on in an export from where it was left, for a while; nothing once nobody wants it."""
        place = await self._ask(store(call.store_id), FindPlaceInExport(call.run))
        if place is None or place.bulk_export is None:
            return None
        bulk_export = place.bulk_export

        async def looked(shop: Shop) -> BulkExport | None:
            if shop.shop_domain != place.shop_domain:
                return None
            return await self._platform.export(shop, bulk_export)

        found = await self._with_shop(call, looked)
        if isinstance(found, ImportFailed):
            return found
        if found.is_lost:
            return BulkExportLost(call.run, self._clock())
        if not found.is_whole:
            return BulkExportRunning(call.run, found.orders, self._clock())
        return await self._read_on(call, place, found)

    async def _with_shop(self, call: Any, ask: Callable[[Shop], Any]) -> Any:
        """Ask a store's shop; a lasting refusal ends the import, any other is tried again."""
        try:
            found = await self._shops.call(call.store_id, ask)
        except Refusal as refusal:
            if not is_lasting(refusal):
                raise
            return self._failed(call.run, refusal.code)
        except PlatformDenied as error:
            log.warning("commerce.import_denied", store_id=call.store_id, why=error.message)
            return self._failed(call.run, "platform_denied")
        return self._failed(call.run, DISCONNECTED) if found is None else found

    async def _read_on(
        self, call: ReadBulkExport, place: PlaceInExport, export: BulkExport
    ) -> Message[None]:
        reading = await self._reading(call, place)
        part = _Part(start=place.read_bytes)
        until = asyncio.get_running_loop().time() + self._read_seconds
        try:
            async with aclosing(self._platform.exported_orders(export, part.start)) as orders:
                async for end, body in orders:
                    part.add(reading, body, end)
                    if part.size < self._orders_at_once:
                        continue
                    if not await self._kept(call, part):
                        return self._failed(call.run, DISCONNECTED)
                    part = _Part(start=end)
                    if asyncio.get_running_loop().time() >= until:
                        return ImportPaused(call.run, export.orders, self._clock())
        except PlatformUnreachable:
            if part.start == place.read_bytes:
                raise
            # Some of it was read, so the platform is there: that is no failure that counts.
            return ImportPaused(call.run, export.orders, self._clock())
        if part.size and not await self._kept(call, part):
            return self._failed(call.run, DISCONNECTED)
        return ImportEnded(call.run, export.orders, self._clock())

    async def _kept(self, call: ReadBulkExport, part: "_Part") -> bool:
        """Have a part written; False where nobody wants the import any more."""
        message = KeepImported(
            run=call.run,
            start=part.start,
            end=part.end,
            orders=tuple(part.orders),
            unread=part.unread,
            at=self._clock(),
        )
        kept = await self._ask(store(call.store_id), message)
        if kept is PartOutcome.ELSEWHERE:
            raise ReadElsewhere(call.store_id)
        return kept is PartOutcome.KEPT

    async def _reading(self, call: ReadBulkExport, place: PlaceInExport) -> Reading:
        salt = await stores.salt_of(self._database, self._vault, call.store_id, place.shop_domain)
        identity = None if salt is None else self._vault.subkey(salt, PURPOSE)
        delivery = Delivery(
            id=f"import:{place.bulk_export}",
            topic="orders/updated",
            shop_domain=place.shop_domain,
            at=self._clock(),
        )
        return Reading(call.store_id, identity, delivery)

    def _failed(self, run: ImportRun, code: str) -> ImportFailed:
        return ImportFailed(run, code, self._clock())


class _Part:
    """Orders that are written together."""

    def __init__(self, start: int) -> None:
        self.start = self.end = start
        self.orders: list[ImportedOrder] = []
        self.unread = 0

    @property
    def size(self) -> int:
        return len(self.orders) + self.unread

    def add(self, reading: Reading, body: dict[str, Any], end: int) -> None:
        """Take the next order; one that is not as documented is counted, and no other waits for it."""
        self.end = end
        try:
            self.orders.append(imported_order(body, reading))
        except Unreadable as error:
            self.unread += 1
            log.warning("commerce.order_unreadable", store_id=reading.store_id, field=error.field)
