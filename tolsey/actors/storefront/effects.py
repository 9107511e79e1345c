"""The calls of storefronts: look at one, keep its catalogue, tell its sales; forget one."""

from collections.abc import Awaitable, Callable
from dataclasses import asdict, replace
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any, Final

import anyio.to_thread
import orjson
import structlog

from tolsey.actors.storefront import calibration, sales
from tolsey.actors.storefront.calibration import Calibration, Verified
from tolsey.actors.storefront.messages import (
    ForgetStorefront,
    ScanEnded,
    ScanStorefront,
    StorefrontForgotten,
)
from tolsey.actors.storefront.observed import (
    Fact,
    Judged,
    Observation,
    Provenance,
    Reached,
    ScanVerdict,
    StorefrontScanner,
    Validators,
    unavailable,
)
from tolsey.actors.storefront.velocity import Figure, unknown
from tolsey.runtime.messages import Call
from tolsey.storage.database import Database, Row
from tolsey.storage.errors import SchemaDrift, StorageError
from tolsey.storage.intelligence import calibrating, catalogue, history, registry
from tolsey.storage.intelligence.catalogue import Snapshot
from tolsey.storage.records.intelligence import FittedCalibration
from tolsey.storage.records.money.currencies import in_units

log = structlog.get_logger()

CENT: Final = Decimal("0.0001")
CALIBRATED_AGAIN: Final = timedelta(days=1)
CALIBRATION_LASTS: Final = timedelta(days=30)
"""What shops took a month ago says nothing of what they take now."""


class StorefrontCalls:
    """Looks at storefronts, and writes what they sell beside their actors."""

    def __init__(
        self,
        scanner: StorefrontScanner,
        database: Database,
        clock: Callable[[], datetime],
        heal: Callable[[], Awaitable[object]],
    ) -> None:
        self._scanner = scanner
        self._database = database
        self._clock = clock
        self._heal = heal

    def handlers(self) -> dict[type[Call[Any]], Any]:
        """Say which method answers which call."""
        return {ScanStorefront: self.scan, ForgetStorefront: self.forget}

    async def scan(self, call: ScanStorefront) -> ScanEnded:
        """Look at a storefront; what could not be kept is said among the verdicts."""
        known = Validators(etag=call.etag, last_modified=call.last_modified)
        seen = await self._scanner.scan(
            call.domain,
            is_deep=call.is_deep,
            known=known if call.takes_snapshot and (call.etag or call.last_modified) else None,
        )
        why, snapshot_at = await self._kept(call, seen) if call.is_kept else (None, None)
        facts, diagnosis = dict(seen.facts), dict(seen.diagnosis)
        if why is not None:
            diagnosis["registry"] = Judged(verdict=ScanVerdict.FAILED, reason=why)
        best = await self._tell_sales(call.domain, snapshot_at, facts, diagnosis)
        listed = seen.facts.get("product_count")
        report = {
            "reached": seen.reached,
            "facts": {name: asdict(fact) for name, fact in facts.items()},
            "diagnosis": {name: asdict(judged) for name, judged in diagnosis.items()},
            "cost": asdict(seen.cost),
        }
        return ScanEnded(
            scan_id=call.scan_id,
            reached=seen.reached.value,
            report=orjson.dumps(report).decode(),
            is_persisted=call.is_kept and why is None,
            at=self._clock(),
            canonical=seen.canonical,
            snapshot_at=snapshot_at,
            velocity=best,
            product_count=listed.value if listed else None,
            retry_after_seconds=seen.retry_after_seconds,
            etag=seen.validators.etag if seen.validators else None,
            last_modified=seen.validators.last_modified if seen.validators else None,
        )

    async def _kept(
        self, call: ScanStorefront, seen: Observation
    ) -> tuple[str | None, datetime | None]:
        """Write the catalogue; answers why it could not be, and when the snapshot was taken."""
        has_catalogue = seen.products is not None or seen.is_unchanged
        if not call.takes_snapshot or not has_catalogue or seen.reached is not Reached.ACTIVE:
            return None, None
        snapshot = Snapshot(
            domain=call.domain,
            scan_id=call.scan_id,
            taken_at=seen.observed_at,
            products=seen.products,
            is_whole=seen.is_whole,
        )
        try:
            try:
                written = await catalogue.keep(self._database, snapshot)
            except SchemaDrift as drift:
                # What is missing is made, and the write tried once more (rules/intelligence#snapshots).
                log.warning("intelligence.schema_drift", error=str(drift))
                await self._heal()
                written = await catalogue.keep(self._database, snapshot)
        except StorageError as error:
            log.warning("intelligence.scan_not_kept", error=str(error))
            return f"It could not be written down ({type(error).__name__}).", None
        if written is None:
            return "The scan was called off.", None
        return None, seen.observed_at if seen.is_whole or seen.is_unchanged else None

    async def _tell_sales(
        self,
        domain: str,
        snapshot_at: datetime | None,
        facts: dict[str, Fact],
        diagnosis: dict[str, Judged],
    ) -> Decimal | None:
        """Put what the shop sells among the facts, and note it with the snapshot; answers its best seller's rate."""
        try:
            told = await shop_sales(self._database, domain, self._clock())
            corrected = await calibration_of(self._database, self._clock())
            figure = told.best_seller
            value, low, high = map(_kept, (figure.value, figure.low, figure.high))
            if snapshot_at is not None and figure.method is not Provenance.UNAVAILABLE:
                await catalogue.note_velocity(
                    self._database, domain, snapshot_at, value=value, low=low, high=high
                )
        except StorageError as error:
            log.warning("intelligence.sales_not_told", error=str(error))
            none = unknown("What was sold could not be read.")
            told = sales.ShopSales(best_seller=none, best_seller_title=None, monthly_revenue=none)
            corrected, value = None, None
        revenue = (
            told.monthly_revenue if corrected is None else corrected.applied(told.monthly_revenue)
        )
        named = {"best_seller_velocity": told.best_seller, "monthly_revenue": revenue}
        for name, figure in named.items():
            facts[name] = _fact(figure)
        for category, figure in (
            ("velocity", told.best_seller),
            ("revenue", revenue),
        ):
            if diagnosis[category].verdict not in {ScanVerdict.BLOCKED, ScanVerdict.ROBOTS_DENIED}:
                diagnosis[category] = _judged(figure)
        return value

    async def forget(self, call: ForgetStorefront) -> StorefrontForgotten:
        """Delete what is kept of a domain that is to be left alone."""
        return StorefrontForgotten(rows=await registry.forget(self._database, call.domain))


async def shop_sales(
    database: Database, domain: str, now: datetime, *, most: int = history.MOST_CHANGES
) -> sales.ShopSales:
    """Tell what a shop of the registry sells, from its last sixty days, or fewer where too much changed in them."""
    since = now - timedelta(days=history.LONGEST_DAYS)
    times = await history.snapshot_times(database, domain, since)
    if len(times) < 2:  # noqa: PLR2004 - an interval has two ends
        return sales.of_shop((), times, ())
    products = [tracked(row) for row in await history.stocked(database, domain)]
    changed = await history.stock_changes(database, domain, since, most=most)
    # Products of which not all changes are read would look as if they sold less: half the time is told whole.
    while len(changed) == most and len(times) > 2:  # noqa: PLR2004 - as above
        times = times[len(times) // 2 :]
        changed = await history.stock_changes(database, domain, times[0], most=most)
    # A large shop takes a second to tell, in which others are answered.
    return await anyio.to_thread.run_sync(
        lambda: sales.of_shop(products, times, map(stock_move, changed))
    )


async def calibration_of(database: Database, now: datetime) -> Calibration | None:
    """Say by what estimates of revenue are corrected now; None while too few shops take part."""
    fitted = await calibrating.latest(database, now - CALIBRATION_LASTS)
    if fitted is None:
        return None
    return Calibration(
        factor=float(fitted.factor),
        spread=float(fitted.spread),
        shops=fitted.shops,
        median_error=float(fitted.median_error),
    )


async def calibrate(database: Database, now: datetime) -> int | None:
    """Compare what is estimated of shops with their books, once a day; None where it is not due or they are too few."""
    if await calibrating.latest(database, now - CALIBRATED_AGAIN) is not None:
        return None
    shops = list[Verified]()
    for row in await calibrating.verified(database, now):
        estimate = (await shop_sales(database, row["domain"], now)).monthly_revenue.value
        taken = in_units(row["taken"], row["currency"])
        if estimate and taken > 0:
            shops.append(Verified(taken=float(taken), estimated=estimate))
    found = calibration.fit(shops)
    if found is None:
        return None
    fitted = FittedCalibration(
        fitted_at=now,
        factor=Decimal(str(found.factor)),
        spread=Decimal(str(found.spread)),
        shops=found.shops,
        median_error=Decimal(str(found.median_error)),
    )
    await calibrating.keep(database, fitted)
    return found.shops


def tracked(row: Row) -> sales.TrackedProduct:
    """Read a product whose sales are told."""
    return sales.TrackedProduct(
        id=row["product_id"],
        title=row["title"],
        first_seen_at=row["first_seen_at"],
        shows_stock=bool(row["shows_stock"]),
        price=None if row["price"] is None else float(row["price"]),
    )


def stock_move(row: Row) -> sales.StockMove:
    """Read how stock moved: numbers fell or rose, or what could be bought no longer can."""
    move = sales.StockMove(product_id=row["product_id"], at=row["at"])
    if row["kind"] == "available":
        return replace(move, sold_out=row["before"] == "true" and row["after"] == "false")
    if row["before"] is None or row["after"] is None:
        return move
    by = int(row["after"]) - int(row["before"])
    return replace(move, fell=max(0, -by), rose=max(0, by))


def _fact(figure: Figure) -> Fact:
    if figure.method is Provenance.UNAVAILABLE:
        return unavailable(figure.reason)
    value = {
        "value": _rounded(figure.value),
        "low": _rounded(figure.low),
        "high": _rounded(figure.high),
        "n": figure.n,
    }
    source = figure.reason or f"stock in {figure.n} intervals between snapshots"
    return Fact(value=value, provenance=figure.method, source=source)


def _judged(figure: Figure) -> Judged:
    if figure.method is Provenance.UNAVAILABLE:
        return Judged(verdict=ScanVerdict.EMPTY, reason=figure.reason)
    if figure.method is Provenance.ESTIMATED:
        return Judged(verdict=ScanVerdict.PARTIAL, reason=figure.reason)
    return Judged(verdict=ScanVerdict.OK)


def _kept(value: float | None) -> Decimal | None:
    return None if value is None else Decimal(value).quantize(CENT)


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)
