"""What a storefront can be asked."""

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import ClassVar

from tolsey.actors.storefront import KIND
from tolsey.runtime.messages import ActorId, Call, LaneName, Message, Patience
from tolsey.storage.records.intelligence import ScanMode, StorefrontScan


def storefront(domain: str) -> ActorId:
    """Address the storefront at a domain."""
    return ActorId(KIND, domain)


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestScan(Message[StorefrontScan]):
    """Somebody, or a job, wants a look at it; the reply is the scan as it stands.

    `is_kept`: the registry keeps what is seen. `restores`: a tombstone is removed first. A scan under way
    that does as much is the one that is answered.
    """

    id: str
    mode: ScanMode
    is_kept: bool
    source: str
    at: datetime
    restores: bool = False
    organization_id: str | None = None
    user_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AwaitScan(Message[StorefrontScan]):
    """Somebody waits for the end of a scan."""

    scan_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscoverStorefront(Message[bool]):
    """A domain was heard of; False when it is known, or to be left alone."""

    source: str
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class SuppressStorefront(Message[bool]):
    """A domain is to be left alone, and what is kept of it forgotten; False when it is so already."""

    reason: str
    source: str
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanStorefront(Call["ScanEnded"]):
    """Look at a storefront, and keep its catalogue where that is wanted."""

    lane: ClassVar[LaneName] = "scan"
    deadline_seconds: ClassVar[float] = 240.0
    patience: ClassVar[Patience | None] = Patience(waits=(30.0, 300.0), tries=3)

    domain: str
    scan_id: str
    is_deep: bool
    is_kept: bool
    takes_snapshot: bool
    etag: str | None = None
    last_modified: str | None = None

    @property
    def tenant(self) -> str:
        """Take turns in its lane by the shop's host."""
        return self.domain

    def given_up(self, why: str, at: datetime) -> "ScanEnded":
        """End the scan as failed, so that the storefront can be asked again."""
        del why
        return ScanEnded(scan_id=self.scan_id, reached=None, report="{}", is_persisted=False, at=at)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanEnded(Message[None]):
    """A scan is over. `report` is JSON text; `reached` is None where the scan itself failed."""

    scan_id: str
    reached: str | None
    report: str
    is_persisted: bool
    at: datetime
    canonical: str | None = None
    snapshot_at: datetime | None = None
    velocity: Decimal | None = None
    product_count: int | None = None
    retry_after_seconds: float | None = None
    etag: str | None = None
    last_modified: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgetStorefront(Call["StorefrontForgotten"]):
    """Delete what is kept of a domain that is to be left alone."""

    lane: ClassVar[LaneName] = "short"

    domain: str

    @property
    def tenant(self) -> str:
        """Take turns in its lane by the domain."""
        return self.domain


@dataclass(frozen=True, slots=True, kw_only=True)
class StorefrontForgotten(Message[None]):
    """Nothing of the domain is left but its tombstone."""

    rows: int
