"""What a scan saw at a storefront, and how each thing is known (rules/intelligence#categories)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from typing import Any, Final, Protocol


class ScanVerdict(StrEnum):
    """What became of one category of a scan."""

    OK = "ok"
    PARTIAL = "partial"
    EMPTY = "empty"
    MISSING_CREDENTIAL = "missing_credential"
    ROBOTS_DENIED = "robots_denied"
    BLOCKED = "blocked"
    FAILED = "failed"


CATEGORIES: Final = (
    "identity",
    "platform",
    "catalogue",
    "pricing",
    "velocity",
    "technology",
    "content",
    "shipping",
    "reviews",
    "social",
    "traffic",
    "revenue",
    "ads",
)
"""What a scan judges, in the order in which it is shown."""


class Provenance(StrEnum):
    """How a field is known."""

    OBSERVED = "observed"
    """The storefront says so itself."""
    DETECTED = "detected"
    """A mark of it was found."""
    INFERRED = "inferred"
    """It follows from what was observed."""
    ESTIMATED = "estimated"
    UNAVAILABLE = "unavailable"


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """The verdict on a category: why, and the variable that would change it where there is one."""

    verdict: ScanVerdict
    reason: str = ""
    env: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """One field: its value, how it is known, and where it was read or why it is not there."""

    value: Any
    provenance: Provenance
    source: str


def unavailable(why: str) -> Fact:
    """Say that a field is not there, and why."""
    return Fact(value=None, provenance=Provenance.UNAVAILABLE, source=why)


class Reached(StrEnum):
    """What a scan found at a domain; a state of the registry by the same name."""

    ACTIVE = "active"
    UNREACHABLE = "unreachable"
    BLOCKED = "blocked"
    ROBOTS_DENIED = "robots_denied"
    NOT_COMMERCE = "not_commerce"
    PASSWORD_PROTECTED = "password_protected"  # noqa: S105 - a state
    REDIRECTED = "redirected"


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedVariant:
    """A variant as the public catalogue has it; no quantity where the shop shows none."""

    id: int
    title: str
    sku: str
    price: Decimal | None
    compare_at_price: Decimal | None
    available: bool | None
    quantity: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedProduct:
    """A product as the public catalogue has it."""

    id: int
    title: str
    handle: str
    vendor: str
    product_type: str
    published_at: datetime | None
    updated_at: datetime | None
    variants: tuple[ObservedVariant, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Validators:
    """What a conditional request of a catalogue on one page is made with (RFC 9110, section 13)."""

    etag: str | None = None
    last_modified: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanCost:
    """What a scan took."""

    requests: int
    bytes: int
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """All that one scan saw. `products` is None where the catalogue could not be read."""

    domain: str
    observed_at: datetime
    reached: Reached
    canonical: str | None
    """Where the domain leads, when that is another site."""
    facts: Mapping[str, Fact]
    diagnosis: Mapping[str, Judged]
    cost: ScanCost
    products: Sequence[ObservedProduct] | None = field(default=None, repr=False)
    is_whole: bool = False
    """Whether all of the catalogue was read, so that what is missing in it is gone."""
    is_unchanged: bool = False
    """Whether the storefront said that its catalogue is as it was (304)."""
    currency: str | None = None
    retry_after_seconds: float | None = None
    validators: Validators | None = None


class StorefrontScanner(Protocol):
    """Looks at storefronts over the public web; it never raises for what a storefront does."""

    async def scan(
        self, domain: str, *, is_deep: bool, known: Validators | None = None
    ) -> Observation:
        """Look at a domain: all of its catalogue when `is_deep`, else its first page."""
        ...

    async def proofs(self, domain: str, *, path: str, record: str) -> Sequence[str]:
        """Read the texts that a domain's owner put there for us: in a file, and in TXT records below the domain."""
        ...
