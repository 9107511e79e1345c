"""SQL for contracts."""

from collections.abc import Sequence
from typing import Final

from tolsey.storage.database import Database
from tolsey.storage.lookups import records
from tolsey.storage.records.money.contracts import Contract
from tolsey.storage.tables import table_of

CONTRACTS: Final = table_of(Contract)


async def load(database: Database, organization_ids: Sequence[str]) -> dict[str, Contract]:
    """Read the contracts that organizations are under."""
    where = "organization_id = ANY($1::text[]) AND ended_at IS NULL"
    found = await records(database, CONTRACTS, where, list(organization_ids))
    return {one.organization_id: one for one in found}
