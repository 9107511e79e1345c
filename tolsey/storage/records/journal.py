"""Rows that are only ever appended."""

import json
from dataclasses import dataclass
from typing import Any


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


def audit_record(
    event: str, subject: str, organization_id: str | None, actor: str, **metadata: Any
) -> AuditRecord:
    """Make an audit row; `metadata` holds no secret and no personal data."""
    return AuditRecord(event, subject, organization_id, actor, json.dumps(metadata))
