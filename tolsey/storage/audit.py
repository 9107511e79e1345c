"""SQL for audit rows that no turn writes."""

from typing import Any

from tolsey.storage.database import Transaction
from tolsey.storage.records.journal import audit_record


async def write(
    tx: Transaction,
    event: str,
    subject: str,
    *,
    actor: str,
    organization_id: str | None = None,
    **metadata: Any,
) -> None:
    """Append an audit row in the transaction of what it tells about; see `audit_record`."""
    record = audit_record(event, subject, organization_id, actor, **metadata)
    await tx.execute(
        """
        INSERT INTO audit_log (event, subject, organization_id, actor, metadata, retention)
        VALUES ($1, $2, $3, $4, $5::jsonb, $6)
        """,
        record.event,
        record.subject,
        record.organization_id,
        record.actor,
        record.metadata,
        record.retention,
    )
