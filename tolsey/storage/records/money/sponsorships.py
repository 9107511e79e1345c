"""What is told of sponsors' payments."""

from dataclasses import dataclass
from datetime import datetime

from tolsey.storage.owners import MONEY, Belongs, RowOwner
from tolsey.storage.tables import stored


@dataclass(frozen=True, slots=True, kw_only=True)
class SponsorPayment:
    """What one event told of a sponsor's payment, in the processor's cents with tax."""

    payment_ref: str
    organization_id: str | None
    paid_cents: int
    refunded_cents: int
    currency: str
    created_at: datetime


@stored(
    "sponsor_disputes",
    key=("dispute_id",),
    belongs=Belongs(
        to=RowOwner.ORGANIZATION,
        by="payment_ref IN (SELECT payment_ref FROM sponsorships WHERE organization_id = $1)",
        stays=MONEY,
    ),
    export="sponsorDisputes",
)
@dataclass(frozen=True, slots=True, kw_only=True)
class SponsorDispute:
    """What one event told of a dispute of a sponsor's payment; `standing` is open, lost or won."""

    dispute_id: str
    payment_ref: str
    cents: int
    standing: str
