"""Rows that are only ever appended."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated, Any, Final, Literal, TypeAlias

from tolsey.storage.owners import Belongs, RowOwner
from tolsey.storage.tables import Age, Jsonb, Personal, stored

Retention: TypeAlias = Literal["180_days", "7_years", "until_erased"]

FINANCIAL: Final[Retention] = "7_years"
KEPT: Final[Mapping[str, Retention]] = {
    **dict.fromkeys(
        (
            "admin",
            "administrator",
            "encryption_keys",
            "identities",
            "user",
            "organization",
            "agent",
            "api_key",
            "store",
            "launch",
            "commerce",
            "compliance",
            "listing",
            "offer_draft",
            "verification",
        ),
        "180_days",
    ),
    **dict.fromkeys(
        (
            "purchase",
            "monthly",
            "affiliate",
            "subscription",
            "chargeback",
            "clawback",
            "plan",
            "marketplace",
            "payout",
            "payout_account",
            "bounty",
            "manual",
            "refund",
            "sponsor",
            "admin.payment_event",
        ),
        FINANCIAL,
    ),
    "commerce.webhook": "until_erased",
}
"""How long rows of an event stay, by the first words of its name (rules/service#retention: audit trails of
money 7 years, deliveries until they are erased, others 180 days)."""


def retention_of(event: str) -> Retention:
    """Say how long a row of an event stays; one that nobody thought of stays as long as money's."""
    words = event.split(".")
    return KEPT.get(".".join(words[:2])) or KEPT.get(words[0], FINANCIAL)


ACTS: Final = "event NOT LIKE 'commerce.webhook.%'"
"""What somebody did; what a shop told is its store's, and too much to be indexed by organization as well."""
TRAIL: Final = "The audit trail: its ids lead to nobody once their rows are empty."


@stored(
    "audit_log",
    besides={"id": int, "created_at": datetime},
    # Deliveries wait for their erasure.
    retention=tuple(
        Age(
            column="created_at",
            interval=stays.replace("_", " "),
            where=f"retention = '{stays}'",
        )
        for stays in ("180_days", "7_years")
    ),
    belongs=(
        Belongs(to=RowOwner.USER, by=f"actor = $1 AND {ACTS}", stays=TRAIL),
        Belongs(to=RowOwner.ORGANIZATION, by=f"organization_id = $1 AND {ACTS}", stays=TRAIL),
        Belongs(to=RowOwner.STORE, by="subject", stays=TRAIL),
    ),
    export="auditTrail",
    appended=("id",),
)
@dataclass(frozen=True, slots=True, kw_only=True)
class AuditRecord:
    """Something an auditor may ask about: a row of AuditLog.

    `actor` says who did it (a user id, `system`, `platform`), `metadata` is JSON text without
    secrets or personal data.
    """

    event: str
    subject: str
    organization_id: str | None = None
    actor: Annotated[str, Personal.USER] = "system"
    metadata: Annotated[str, Jsonb] = "{}"
    retention: Retention = field(init=False)
    """How long the row stays."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "retention", retention_of(self.event))


def audit_record(
    event: str, subject: str, organization_id: str | None, actor: str, **metadata: Any
) -> AuditRecord:
    """Make an audit row; `metadata` holds no secret and no personal data."""
    return AuditRecord(
        event=event,
        subject=subject,
        organization_id=organization_id,
        actor=actor,
        metadata=json.dumps(metadata),
    )
