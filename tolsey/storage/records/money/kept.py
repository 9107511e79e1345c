"""Tables beside the ledger that only SQL writes."""

from datetime import datetime
from typing import Annotated, Final

from tolsey.storage.tables import Jsonb, bare

LINKS: Final = bare(
    "payment_links",
    {"reference": str, "organization_id": str, "event_id": str, "created_at": datetime},
    key=("reference",),
)
CHECKOUTS: Final = bare(
    "plan_checkouts",
    {"organization_id": str, "session_id": str, "created_at": datetime},
    key=("organization_id",),
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
)
