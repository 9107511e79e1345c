"""SQL for audit rows that no turn writes."""

import json
from typing import Any

from tolsey.storage.database import Transaction
from tolsey.storage.records.journal import AuditRecord


def audit_record(
    event: str,
    subject: str,
    *,
    organization_id: str | None = None,
    actor: str = "system",
    **metadata: Any,
) -> AuditRecord:
    """Make an audit row; `metadata` holds no secret and no personal data."""
    return AuditRecord(event, subject, organization_id, actor, json.dumps(metadata))


async def write(tx: Transaction, record: AuditRecord) -> None:
    """Append an audit row in the transaction of what it tells about."""
    await tx.execute(
        """
        INSERT INTO audit_log (event, subject, organization_id, actor, metadata)
        VALUES ($1, $2, $3, $4, $5::jsonb)
        """,
        record.event,
        record.subject,
        record.organization_id,
        record.actor,
        record.metadata,
    )
