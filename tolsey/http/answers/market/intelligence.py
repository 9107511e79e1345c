"""What scans of storefronts came to, as operators and programs are told: each thing with how it is known."""

from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any, Final, Literal, Self

import orjson

from tolsey.actors.storefront.observed import Provenance, ScanVerdict
from tolsey.actors.storefront.registry import shown_state
from tolsey.actors.storefront.sales import TrackedProduct
from tolsey.actors.storefront.velocity import Figure
from tolsey.http.answers.base import ApiAnswer, Timestamp
from tolsey.http.answers.money.credits import MoneyAnswer
from tolsey.storage.database import Row
from tolsey.storage.records.intelligence import (
    CalibratingListing,
    Competitor,
    FittedCalibration,
    StorefrontRow,
    StorefrontScan,
)
from tolsey.storage.records.money.currencies import to_minor

UNITS: Final = {
    "monthly_visits": "visits",
    "monthly_revenue": "currency",
    "best_seller_velocity": "units a day",
    "product_count": "products",
    "median_price": "currency",
    "in_stock_share": "share",
}
"""The figures that can be compared between shops, and what they count."""


class VerdictAnswer(ApiAnswer):
    """What became of a category; `env` names the variable to set where that would change it."""

    verdict: ScanVerdict
    reason: str
    env: str | None


class HighlightAnswer(ApiAnswer):
    """A figure that can be compared: with its interval where it is estimated, and null where it is not known."""

    value: float | None
    low: float | None
    high: float | None
    n: int | None
    unit: str
    currency: str | None
    provenance: Provenance
    source: str
    as_of: Timestamp | None

    @classmethod
    def of(cls, name: str, facts: Mapping[str, Any], at: datetime | None) -> Self:
        """Show one figure of a shop."""
        fact = facts.get(name) or {
            "value": None,
            "provenance": "unavailable",
            "source": "It was not read.",
        }
        found = fact["value"]
        figure = found if isinstance(found, dict) else {"value": found}
        value = figure.get("value")
        unit = UNITS[name]
        currency = facts.get("currency", {}).get("value") if unit == "currency" else None
        return cls(
            value=None if value is None else float(value),
            low=figure.get("low"),
            high=figure.get("high"),
            n=figure.get("n"),
            unit=unit,
            currency=currency,
            provenance=fact["provenance"],
            source=fact["source"],
            as_of=at,
        )


class ScanReportAnswer(ApiAnswer):
    """What a scan saw: whether it was kept, a verdict for each category, and figures that can be compared.

    `config` says of each provider's variable whether it is set; a scan that was to be kept and could not be
    says why among the verdicts, under `registry`.
    """

    id: str
    domain: str
    reached: str | None
    persisted: bool
    restored_from_tombstone: bool
    diagnosis: dict[str, VerdictAnswer]
    config: dict[str, bool]
    highlights: dict[str, HighlightAnswer]

    @classmethod
    def of(cls, scan: StorefrontScan, config: Mapping[str, bool]) -> Self:
        """Show a scan that has ended."""
        report = orjson.loads(scan.report or "{}")
        facts = report.get("facts", {})
        diagnosis = verdicts(report.get("diagnosis", {}))
        return cls(
            id=scan.id,
            domain=scan.domain,
            reached=report.get("reached"),
            persisted=scan.is_kept and scan.state == "done" and "registry" not in diagnosis,
            restored_from_tombstone=scan.was_restored,
            diagnosis=diagnosis,
            config=dict(config),
            highlights=highlights(facts, scan.ended_at),
        )


class FieldAnswer(ApiAnswer):
    """A field: how it is known, where it was read or why it is not there, and as of when."""

    value: Any
    provenance: Provenance
    source: str
    as_of: Timestamp | None


class StorefrontAnswer(ApiAnswer):
    """A shop of the registry: each field with how it is known, and a verdict for each category."""

    domain: str
    state: str
    canonical: str | None
    discovered_at: Timestamp
    scanned_at: Timestamp | None
    snapshot_at: Timestamp | None
    fields: dict[str, FieldAnswer]
    diagnosis: dict[str, VerdictAnswer]

    @classmethod
    def of(cls, row: StorefrontRow, now: datetime) -> Self:
        """Show a domain of the registry."""
        return cls.read(
            row,
            state=shown_state(row, now),
            fields={
                name: FieldAnswer(**fact, as_of=row.scanned_at)
                for name, fact in orjson.loads(row.facts).items()
            },
            diagnosis=verdicts(orjson.loads(row.diagnosis)),
        )


class StorefrontProductAnswer(ApiAnswer):
    """What a shop sells, all of it as `provenance` says; prices are null where its currency is not known."""

    id: int
    title: str
    handle: str
    vendor: str
    product_type: str
    published_at: Timestamp | None
    first_seen_at: Timestamp
    changed_at: Timestamp
    lowest_price: MoneyAnswer | None
    highest_price: MoneyAnswer | None
    available: bool | None
    quantity: int | None
    provenance: Provenance
    source: str

    @classmethod
    def of(cls, row: Row, currency: str | None) -> Self:
        """Show a product of a shop."""
        return cls.read(
            row,
            id=row["product_id"],
            lowest_price=_money(row["lowest"], currency),
            highest_price=_money(row["highest"], currency),
            provenance=Provenance.OBSERVED,
            source="/products.json",
        )


class SnapshotAnswer(ApiAnswer):
    """How much a shop listed at a moment, how many rows had changed since the snapshot before, and what was told then.

    `unitsInStock` is null where no stock is shown; the velocity of the best seller is null where none was told yet,
    and has no `velocityHigh` where only a lower bound is known.
    """

    taken_at: Timestamp
    product_count: int
    variant_count: int
    changed: int
    median_price: MoneyAnswer | None
    units_in_stock: int | None
    velocity: float | None
    velocity_low: float | None
    velocity_high: float | None
    provenance: Provenance = Provenance.OBSERVED

    @classmethod
    def of(cls, row: Row, currency: str | None) -> Self:
        """Show a snapshot of a shop."""
        told = {
            name: None if row[name] is None else float(row[name])
            for name in ("velocity", "velocity_low", "velocity_high")
        }
        return cls.read(
            row,
            median_price=_money(row["median_price"], currency),
            units_in_stock=row["units"],
            provenance=Provenance.OBSERVED,
            **told,
        )


class ChangeAnswer(ApiAnswer):
    """What changed of a variant: `price`, `compare_at_price`, `available`, `quantity`, `new` or `gone`."""

    domain: str
    at: Timestamp
    product_id: int
    variant_id: int
    title: str
    kind: str
    before: str | None
    after: str | None
    provenance: Provenance = Provenance.OBSERVED


class VelocityAnswer(ApiAnswer):
    """How many units of a product are sold a day: with its interval, of how many intervals it is told, or why not."""

    product_id: int
    title: str
    value: float | None
    low: float | None
    high: float | None
    n: int
    unit: str
    provenance: Provenance
    source: str

    @classmethod
    def of(cls, product: TrackedProduct, figure: Figure) -> Self:
        """Show what is known of a product's sales."""
        return cls(
            product_id=product.id,
            title=product.title,
            value=figure.value,
            low=figure.low,
            high=figure.high,
            n=figure.n,
            unit="units a day",
            provenance=figure.method,
            source=figure.reason or f"stock in {figure.n} intervals between snapshots",
        )


class TechnologyAnswer(ApiAnswer):
    """Something a shop is made with, and the mark that gave it away."""

    name: str
    category: str
    mark: str
    provenance: Provenance = Provenance.DETECTED


class ComparedAnswer(ApiAnswer):
    """The figures of one shop that can be compared; `state` is null where the registry has no such shop."""

    domain: str
    state: str | None
    highlights: dict[str, HighlightAnswer]


class ScanAnswer(ApiAnswer):
    """A scan that was asked for; `report` is what it came to once it is done."""

    id: str
    domain: str
    mode: str
    state: str
    asked_at: Timestamp
    ended_at: Timestamp | None
    report: ScanReportAnswer | None

    @classmethod
    def of(cls, scan: StorefrontScan, config: Mapping[str, bool]) -> Self:
        """Show a scan to whoever asked for it."""
        done = scan.state == "done"
        return cls.read(scan, report=ScanReportAnswer.of(scan, config) if done else None)


class WindowAnswer(ApiAnswer):
    """How much of a limit is used; a plan without a bound has no window."""

    name: str
    limit: int
    used: int
    window_seconds: int


class UsageAnswer(ApiAnswer):
    """What an organization has used of what its plan includes."""

    organization_id: str
    plan: str
    windows: list[WindowAnswer]


class CompetitorAnswer(ApiAnswer):
    """A storefront that a store competes with, and what is known of it."""

    domain: str
    added_at: Timestamp
    storefront: StorefrontAnswer | None

    @classmethod
    def of(cls, competitor: Competitor, row: StorefrontRow | None, now: datetime) -> Self:
        """Show a competitor; the registry has none whose owner asked to be left alone since."""
        known = None if row is None else StorefrontAnswer.of(row, now)
        return cls.read(competitor, storefront=known)


class CalibrationConsentAnswer(ApiAnswer):
    """Whether a listing's verified revenue corrects what is estimated of others, seen from outside at `domain`."""

    agreed: bool
    agreed_at: Timestamp | None
    domain: str | None

    @classmethod
    def of(cls, agreed: CalibratingListing | None) -> Self:
        """Show whether a listing takes part."""
        return cls(
            agreed=agreed is not None,
            agreed_at=None if agreed is None else agreed.agreed_at,
            domain=None if agreed is None else agreed.domain,
        )


class CalibrationAnswer(ApiAnswer):
    """By what estimates of revenue are corrected, and how far off they are: null while too few shops take part.

    Half of the shops lie within `medianError` of what they took, each told by the others; nine in ten within
    `spread` times.
    """

    factor: float | None
    spread: float | None
    median_error: float | None
    shops: int
    fitted_at: Timestamp | None

    @classmethod
    def of(cls, fitted: FittedCalibration | None) -> Self:
        """Show what was fitted last."""
        if fitted is None:
            return cls(factor=None, spread=None, median_error=None, shops=0, fitted_at=None)
        return cls(
            factor=float(fitted.factor),
            spread=float(fitted.spread),
            median_error=float(fitted.median_error),
            shops=fitted.shops,
            fitted_at=fitted.fitted_at,
        )


class SuppressionAnswer(ApiAnswer):
    """How far an opt-out is: put `content` at `file` or into a TXT record at `record`, then ask again; `suppressed` is its end."""

    domain: str
    state: Literal["unproven", "suppressed"]
    file: str
    record: str
    content: str


def verdicts(diagnosis: Mapping[str, Any]) -> dict[str, VerdictAnswer]:
    """Show the verdicts of a scan."""
    return {name: VerdictAnswer(**one) for name, one in diagnosis.items()}


def highlights(facts: Mapping[str, Any], at: datetime | None) -> dict[str, HighlightAnswer]:
    """Show the figures of a shop that can be compared."""
    return {name: HighlightAnswer.of(name, facts, at) for name in UNITS}


def _money(price: Decimal | None, currency: str | None) -> MoneyAnswer | None:
    if price is None or currency is None:
        return None
    return MoneyAnswer(amount=to_minor(price, currency), currency=currency)
