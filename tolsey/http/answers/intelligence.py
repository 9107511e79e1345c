"""What scans of storefronts came to, as operators and programs are told: each thing with how it is known."""

from collections.abc import Mapping
from typing import Any, Final, Self

import orjson

from tolsey.actors.storefront.observed import Provenance, ScanVerdict
from tolsey.http.answers.base import ApiAnswer, Timestamp
from tolsey.storage.records.intelligence import StorefrontScan

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
    def of(cls, name: str, facts: Mapping[str, Any], scan: StorefrontScan) -> Self:
        """Show one figure of a scan."""
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
            as_of=scan.ended_at,
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
        diagnosis = {
            name: VerdictAnswer(verdict=one["verdict"], reason=one["reason"], env=one["env"])
            for name, one in report.get("diagnosis", {}).items()
        }
        return cls(
            id=scan.id,
            domain=scan.domain,
            reached=report.get("reached"),
            persisted=scan.is_kept and scan.state == "done" and "registry" not in diagnosis,
            restored_from_tombstone=scan.was_restored,
            diagnosis=diagnosis,
            config=dict(config),
            highlights={name: HighlightAnswer.of(name, facts, scan) for name in UNITS},
        )
