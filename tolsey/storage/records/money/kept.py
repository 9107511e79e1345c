"""Tables beside the ledger that only SQL writes."""

from datetime import datetime
from typing import Annotated, Final

from tolsey.storage.owners import EVIDENCE_OF_ORGANIZATION, OF_ORGANIZATION
from tolsey.storage.tables import Jsonb, bare

LINKS: Final = bare(
    "payment_links",
    {"reference": str, "organization_id": str, "event_id": str, "created_at": datetime},
    key=("reference",),
    belongs=EVIDENCE_OF_ORGANIZATION,
    export="paymentLinks",
)
CHECKOUTS: Final = bare(
    "plan_checkouts",
    {"organization_id": str, "session_id": str, "created_at": datetime},
    key=("organization_id",),
    belongs=OF_ORGANIZATION,
    export="planCheckouts",
)
LEDGER_CHECKS: Final = bare(
    "ledger_checks",
    {
        "organization_id": str,
        "seq": int,
        "hash": str,
        "accounts": Annotated[str, Jsonb],
        "checked_at": datetime,
        "whole_at": datetime,
    },
    key=("organization_id",),
    belongs=OF_ORGANIZATION,
    unexported="Sums of the credit entries, which an export has.",
)
SPONSORSHIPS: Final = bare(
    "sponsorships",
    {
        "payment_ref": str,
        "organization_id": str | None,
        "paid_cents": int,
        "refunded_cents": int,
        "currency": str,
        "event_id": str,
        "created_at": datetime,
    },
    key=("payment_ref",),
    belongs=EVIDENCE_OF_ORGANIZATION,
    export="sponsorships",
)
