"""SQL for contracts."""

from collections.abc import Sequence
from typing import Final

from tolsey.storage.database import Database
from tolsey.storage.records.money.contracts import Contract
from tolsey.storage.tables import table_of

CONTRACTS: Final = table_of(Contract)

READ: Final = f"""
    SELECT {CONTRACTS.selected} FROM contracts
    WHERE organization_id = ANY($1::text[]) AND ended_at IS NULL
"""  # noqa: S608 - names of our own table


async def load(database: Database, organization_ids: Sequence[str]) -> dict[str, Contract]:
    """Read the contracts that organizations are under."""
    rows = await database.fetch(READ, list(organization_ids))
    return {row["organization_id"]: CONTRACTS.read(row) for row in rows}
