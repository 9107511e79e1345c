"""SQL for what sponsors paid: money that nothing is granted for."""

from dataclasses import dataclass
from datetime import datetime

from tolsey.storage.database import Database
from tolsey.storage.money import payment_events
from tolsey.storage.records.money.payment_event import EventState


@dataclass(frozen=True, slots=True)
class SponsorPayment:
    """What one event told of a sponsor's payment, in the processor's cents with tax."""

    payment_ref: str
    organization_id: str | None
    paid_cents: int
    refunded_cents: int
    currency: str
    created_at: datetime


async def observed(database: Database, event_id: str, seen: SponsorPayment) -> None:
    """Join what was told into what is known, and settle the event: in any order, any number of times."""
    async with database.transaction() as tx:
        await tx.execute(
            """
            INSERT INTO sponsorships AS known (
                payment_ref, organization_id, paid_cents, refunded_cents, currency, event_id, created_at
            ) VALUES ($1, $2, $3, $4, $5, $6, $7)
            ON CONFLICT (payment_ref) DO UPDATE SET
                organization_id = coalesce(known.organization_id, excluded.organization_id),
                paid_cents = greatest(known.paid_cents, excluded.paid_cents),
                refunded_cents = greatest(known.refunded_cents, excluded.refunded_cents),
                created_at = least(known.created_at, excluded.created_at)
            """,
            seen.payment_ref,
            seen.organization_id,
            seen.paid_cents,
            seen.refunded_cents,
            seen.currency,
            event_id,
            seen.created_at,
        )
        await payment_events.settle_in(tx, event_id, EventState.APPLIED)


async def is_known(database: Database, payment_ref: str) -> bool:
    """Tell whether a payment was a sponsor's."""
    row = await database.fetchrow("SELECT 1 FROM sponsorships WHERE payment_ref = $1", payment_ref)
    return row is not None
