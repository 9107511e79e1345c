"""SQL for contracts."""

from collections.abc import Sequence
from typing import Final

from tolsey.storage.database import Database
from tolsey.storage.records.money.contracts import Contract
from tolsey.storage.tables import replaced_whole, table

COLUMNS: Final = {
    "organization_id": "text",
    "monthly_allowance": "bigint",
    "daily_bonus": "bigint",
    "since": "timestamptz",
    "ended_at": "timestamptz",
    "kyc": "text",
    "signed_contract": "text",
}

table(
    Contract,
    "contracts",
    COLUMNS,
    conflict=replaced_whole(COLUMNS, "organization_id"),
    key=("organization_id",),
)

READ: Final = f"""
    SELECT {", ".join(COLUMNS)} FROM contracts
    WHERE organization_id = ANY($1::text[]) AND ended_at IS NULL
"""  # noqa: S608 - names of our own table


async def load(database: Database, organization_ids: Sequence[str]) -> dict[str, Contract]:
    """Read the contracts that organizations are under."""
    rows = await database.fetch(READ, list(organization_ids))
    return {row["organization_id"]: Contract(**row) for row in rows}
