"""What a listing remembers between turns."""

from dataclasses import dataclass

from tolsey.storage.records.listing import ListingRecord, RevenueSource, VerificationRecord


@dataclass(frozen=True, slots=True)
class ListingState:
    """A listing's parts; each is saved only when it changed."""

    verification: VerificationRecord
    listing: ListingRecord | None = None
    source: RevenueSource | None = None
