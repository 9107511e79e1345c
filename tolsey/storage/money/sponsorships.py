"""SQL for what sponsors paid, and of it disputed: money that nothing is granted for."""

from collections.abc import Sequence
from typing import Final

from tolsey.storage import audit
from tolsey.storage.conditions import Conditions
from tolsey.storage.database import Reader, Transaction
from tolsey.storage.money import payment_events
from tolsey.storage.records.money.payment_event import EventState, WaitingEvent
from tolsey.storage.records.money.sponsorships import SponsorDispute, SponsorPayment

ADOPT: Final = """
UPDATE payment_events e SET state = 'new', due_at = now()
FROM sponsorships s
WHERE e.state = 'parked' AND e.claimed_by IS NULL AND e.type LIKE 'charge.dispute.%'
    AND s.payment_ref = ANY(e.links) AND {}
RETURNING e.event_id, e.type, e.account, e.livemode, e.created_at, e.facts, e.organization_id
"""
"""A dispute names nobody but its payment; that may be a sponsor's whom no organization sent."""

DISPUTED: Final = """
INSERT INTO sponsor_disputes AS known (dispute_id, payment_ref, cents, standing)
VALUES ($1, $2, $3, $4)
ON CONFLICT (dispute_id) DO UPDATE SET cents = greatest(known.cents, excluded.cents),
    standing = CASE WHEN excluded.standing = 'open' OR known.standing = 'won'
        THEN known.standing ELSE excluded.standing END
RETURNING xmax = 0 AS is_first
"""
"""A lost dispute may still be won, and nothing follows that (rules/payments#shapes)."""


async def observed(tx: Transaction, event_id: str, seen: SponsorPayment) -> None:
    """Join what was told into what is known, and settle the event: in any order, any number of times."""
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
    await payment_events.settle(tx, event_id, EventState.APPLIED)


async def disputed(tx: Transaction, event_id: str, reported: SponsorDispute) -> None:
    """Join what was told of a dispute, write down for auditors that there is one, settle the event."""
    row = await tx.fetchrow(
        DISPUTED, reported.dispute_id, reported.payment_ref, reported.cents, reported.standing
    )
    if row is not None and row["is_first"]:
        organization_id = await tx.fetchval(
            "SELECT organization_id FROM sponsorships WHERE payment_ref = $1", reported.payment_ref
        )
        await audit.write(
            tx,
            "chargeback.received",
            reported.payment_ref,
            actor="platform",
            organization_id=organization_id,
            dispute=reported.dispute_id,
            cents=reported.cents,
        )
    await payment_events.settle(tx, event_id, EventState.APPLIED)


async def adopt(tx: Transaction, references: Sequence[str] | None = None) -> list[WaitingEvent]:
    """List disputes that were parked before their payment was known to be a sponsor's: new now."""
    wanted = Conditions()
    wanted.add("e.links && {}::text[]", references)
    rows = await tx.fetch(ADOPT.format(wanted), *wanted.args)
    return [WaitingEvent(**dict(row)) for row in rows]


async def is_known(database: Reader, payment_ref: str) -> bool:
    """Tell whether a payment was a sponsor's."""
    row = await database.fetchrow("SELECT 1 FROM sponsorships WHERE payment_ref = $1", payment_ref)
    return row is not None
