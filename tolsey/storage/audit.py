"""SQL for audit rows that no turn writes."""

from typing import Any, Final

from tolsey.storage.database import Transaction
from tolsey.storage.records.journal import AuditRecord, audit_record
from tolsey.storage.tables import table_of

AUDIT: Final = table_of(AuditRecord)


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
    await tx.execute(AUDIT.insert, *AUDIT.values_of(record))
