"""Rows that are only ever appended."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class AuditRecord:
    """Something an auditor may ask about: a row of AuditLog.

    `actor` says who did it (a user id, `system`, `platform`), `metadata` is JSON text without
    secrets or personal data.
    """

    event: str
    subject: str
    organization_id: str | None = None
    actor: str = "system"
    metadata: str = "{}"
