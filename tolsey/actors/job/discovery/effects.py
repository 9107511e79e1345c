"""The work of the jobs that find storefronts and have them scanned (rules/intelligence#jobs).

Every feeder asks the storefront's actor: it alone says whether a domain is left alone, held back, or being
scanned by somebody else already.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final, Protocol

import anyio
import structlog

from tolsey.actors.domains import domain_named
from tolsey.actors.job.effects import Progress, Work
from tolsey.actors.ports import DatasetReader, ScanQueue
from tolsey.actors.refusals import MissingCredential
from tolsey.actors.storefront.messages import (
    AwaitScan,
    DiscoverStorefront,
    RequestScan,
    storefront,
)
from tolsey.runtime.decision import Refused
from tolsey.runtime.errors import RuntimeFault, Stopping
from tolsey.runtime.ids import new_id
from tolsey.runtime.messages import ActorId, Message
from tolsey.storage.database import Database
from tolsey.storage.intelligence import feeding
from tolsey.storage.records.intelligence import ScanMode, StorefrontScan

log = structlog.get_logger()

MAX_ENQUEUE_PER_TICK: Final = 200
INLINE_FALLBACK_MAX: Final = 3
INLINE_SECONDS: Final = 100.0
"""How long a scan that is made without the queue is waited for: longer than a scan may take."""
MAX_REFRESHED_PER_TICK: Final = 100
HOT_AFTER: Final = timedelta(hours=6)
DEEP_AFTER: Final = timedelta(days=1)
"""When a shop that somebody competes with is looked at again: its first page, and all of it."""
ENOUGH_STORES: Final = 500
"""From so many on the registry fills itself."""
MOST_FAILURES: Final = 25
SYNC_SECONDS: Final = 60.0


class AskFor(Protocol):
    """How a job asks a storefront, for as long as a scan takes if need be."""

    def __call__(
        self,
        to: ActorId,
        message: Message[Any],
        *,
        timeout: float = 30.0,
    ) -> Awaitable[Any]:
        """Post a message and wait for its reply."""
        ...


class Discovery:
    """Feeds the registry, and keeps it fresh."""

    def __init__(
        self,
        database: Database,
        ask: AskFor,
        *,
        queue: ScanQueue,
        dataset: DatasetReader | None,
        calibrate: Callable[[datetime], Awaitable[int | None]],
        clock: Callable[[], datetime],
        sync_seconds: float = SYNC_SECONDS,
    ) -> None:
        self._database = database
        self._ask = ask
        self._queue = queue
        self._dataset = dataset
        self._calibrate = calibrate
        self._clock = clock
        self._sync_seconds = sync_seconds

    def work(self) -> Mapping[str, Work]:
        """List it by the jobs' names."""
        return {
            "discovery-harvest-tick": self.harvest,
            "discovery-bootstrap-tick": self.bootstrap,
            "discovery-apify-sync": self.sync,
            "intelligence-tick": self.refresh,
        }

    async def harvest(self, _: datetime, progress: Progress) -> Mapping[str, Any]:
        """Queue the domains whose scan is due; without the queue, scan a few of them here and now."""
        domains = await feeding.due(self._database, self._clock(), MAX_ENQUEUE_PER_TICK)
        enqueued, reason = 0, ""
        for domain in domains:
            try:
                await self._queue.publish(domain)
            except (MissingCredential, ConnectionError) as error:
                reason = str(error)
                log.warning("enqueue_failed", reason=reason)
            else:
                enqueued += 1
                progress({"enqueued": enqueued})
        counters: dict[str, Any] = {"due": len(domains), "enqueued": enqueued}
        if domains and not enqueued:
            scanned = 0
            for domain in domains[:INLINE_FALLBACK_MAX]:
                scanned += await self._scanned_here(domain)
            return {**counters, "queueUnready": True, "inlineScanned": scanned, "reason": reason}
        return counters

    async def _scanned_here(self, domain: str) -> bool:
        scan = await self._requested(domain, "full", "harvest")
        if scan is None:
            return False
        try:
            ended = await self._ask(
                storefront(domain), AwaitScan(scan_id=scan.id), timeout=INLINE_SECONDS
            )
        except Stopping:
            raise
        except (RuntimeFault, Refused):
            return False  # it goes on by itself, or the next tick finds it due again
        return bool(ended.state == "done")

    async def refresh(self, _: datetime, progress: Progress) -> Mapping[str, int]:
        """Look again at shops that somebody competes with, at their first page or all of it; and calibrate."""
        at = self._clock()
        deep = await feeding.hot(
            self._database, "snapshot_at", at - DEEP_AFTER, MAX_REFRESHED_PER_TICK
        )
        asked_deep = await self._each(deep, "full")
        log.info("refresh_hot_deep.done", due=len(deep), asked=asked_deep)
        progress({"refreshedDeep": asked_deep})
        light = await feeding.hot(
            self._database, "scanned_at", at - HOT_AFTER, MAX_REFRESHED_PER_TICK
        )
        light = [one for one in light if one not in deep]
        asked = await self._each(light, "light")
        log.info("refresh_hot.done", due=len(light), asked=asked)
        counters = {"refreshed": asked, "refreshedDeep": asked_deep}
        calibrated = await self._calibrate(at)
        return counters if calibrated is None else {**counters, "calibratedBy": calibrated}

    async def _each(self, domains: Sequence[str], mode: ScanMode) -> int:
        asked = 0
        for domain in domains:
            asked += await self._requested(domain, mode, "refresh") is not None
        return asked

    async def _requested(self, domain: str, mode: ScanMode, source: str) -> StorefrontScan | None:
        """Ask for a scan; None where the domain is left alone, or its actor has no time."""
        wanted = RequestScan(
            id=new_id("scan"), mode=mode, is_kept=True, source=source, at=self._clock()
        )
        try:
            scan: StorefrontScan = await self._ask(storefront(domain), wanted)
        except Stopping:
            raise
        except (RuntimeFault, Refused) as error:
            log.warning("intelligence.not_scanned", why=type(error).__name__)
            return None
        return scan

    async def bootstrap(self, _: datetime, progress: Progress) -> Mapping[str, Any]:
        """Take into the registry whom stores compete with and where shops led, until it holds enough."""
        stores = await feeding.count(self._database, ENOUGH_STORES)
        if stores >= ENOUGH_STORES:
            return {"stores": stores, "noop": True}
        heard = await feeding.unheard(self._database, ENOUGH_STORES - stores)
        discovered = 0
        for domain in heard:
            discovered += bool(await self._discovered(domain, "competitor"))
            progress({"discovered": discovered})
        return {"stores": stores, "discovered": discovered}

    async def sync(self, _: datetime, progress: Progress) -> Mapping[str, Any]:
        """Read the external data set in; nothing where none is set."""
        if self._dataset is None:
            return {"noop": True, "reason": "DATASET_TOKEN and DATASET_ID are not both set."}
        counters = {"read": 0, "discovered": 0, "skipped": 0, "failed": 0}
        failures, aborted = 0, ""
        with anyio.move_on_after(self._sync_seconds) as budget:
            async for text in self._dataset.domains():
                counters["read"] += 1
                domain = None if text is None else domain_named(text)
                is_new = None if domain is None else await self._discovered(domain, "dataset")
                if is_new is None:
                    counters["failed"] += 1
                    failures += 1
                    # After 25 in a row that are none, the rest is not worth the reading.
                    if failures >= MOST_FAILURES:
                        aborted = f"{MOST_FAILURES} entries in a row could not be taken"
                        break
                    continue
                failures = 0
                counters["discovered" if is_new else "skipped"] += 1
                progress(counters)
        if budget.cancelled_caught:
            aborted = f"{self._sync_seconds:g} seconds were over"
        return {**counters, "aborted": bool(aborted), "reason": aborted}

    async def _discovered(self, domain: str, source: str) -> bool | None:
        """Tell a domain that it was heard of; None where its actor could not be asked."""
        heard = DiscoverStorefront(source=source, at=self._clock())
        try:
            return bool(await self._ask(storefront(domain), heard))
        except Stopping:
            raise
        except RuntimeFault:
            return None
