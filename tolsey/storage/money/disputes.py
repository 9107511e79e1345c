"""SQL for what is in dispute: deals that wait for an operator, and payments of credits."""

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from tolsey.storage.conditions import Conditions
from tolsey.storage.database import Reader

DEAL: Final = "deal"
PAYMENT: Final = "payment"

DEALS: Final = """
SELECT id, stage AS state, reason, price AS amount, currency, entered_at AS since,
    ARRAY[seller_id, buyer_id] AS organizations
FROM deal_threads
WHERE (stage = 'DISPUTED' OR stage = 'REFUND_REQUESTED' AND escalated) AND {}
ORDER BY entered_at, id LIMIT $1
"""
PAYMENTS: Final = """
SELECT payment_ref AS id, 'open' AS state, NULL AS reason, total AS amount, 'USD' AS currency, (
        SELECT min(created_at) FROM audit_log
        WHERE subject = payment_ref AND event = 'chargeback.received'
            AND audit_log.organization_id = payment_facts.organization_id
            AND disputes @> jsonb_build_array(jsonb_build_array(metadata->'dispute', 'open'))
    ) AS since, ARRAY[organization_id] AS organizations
FROM payment_facts
WHERE disputes @? '$[*][2] ? (@ == "open")' AND {}
ORDER BY payment_ref, organization_id LIMIT $1
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class DisputeRow:
    """What an operator has to decide: a deal, or a payment whose payer asks the bank for it."""

    kind: str
    id: str
    state: str
    reason: str | None
    amount: int | None
    currency: str | None
    since: datetime | None
    """For a payment the moment at which the processor first told of it, as the audit trail has it."""
    organizations: tuple[str, ...]


async def deals(
    database: Reader, after: tuple[datetime, str] | None, limit: int
) -> list[DisputeRow]:
    """List deals that wait for an operator, those that wait longest first."""
    wanted = Conditions(limit)
    if after is not None:
        wanted.add("(entered_at, id) > ({}::timestamptz, {}::text)", *after)
    return await _read(database, DEAL, DEALS, wanted)


async def payments(database: Reader, after: tuple[str, str] | None, limit: int) -> list[DisputeRow]:
    """List payments that are in dispute, by their names at the processor."""
    wanted = Conditions(limit)
    if after is not None:
        wanted.add("(payment_ref, organization_id) > ({}::text, {}::text)", *after)
    return await _read(database, PAYMENT, PAYMENTS, wanted)


async def _read(database: Reader, kind: str, sql: str, wanted: Conditions) -> list[DisputeRow]:
    rows = await database.fetch(sql.format(wanted), *wanted.args)
    return [
        DisputeRow(
            kind=kind,
            id=row["id"],
            state=row["state"],
            reason=row["reason"],
            amount=row["amount"],
            currency=row["currency"],
            since=row["since"],
            organizations=tuple(row["organizations"]),
        )
        for row in rows
    ]
