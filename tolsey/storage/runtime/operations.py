"""SQL for what people asked for that takes calls to the outside."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Final

from tolsey.storage.database import Database
from tolsey.storage.records.runtime.operations import Operation
from tolsey.storage.tables import table_of

OPERATIONS: Final = table_of(Operation)


async def load(
    database: Database, organization_ids: Sequence[str]
) -> Mapping[str, tuple[Operation, ...]]:
    """Read what has not ended yet of organizations, oldest first; one without any is absent."""
    rows = await database.fetch(
        f"SELECT {OPERATIONS.selected} FROM operations"  # noqa: S608 - constants of this module
        " WHERE organization_id = ANY($1::text[]) AND finished_at IS NULL ORDER BY created_at, id",
        list(organization_ids),
    )
    found: dict[str, list[Operation]] = defaultdict(list)
    for row in rows:
        found[row["organization_id"]].append(OPERATIONS.read(row))
    return {id: tuple(some) for id, some in found.items()}


async def find(database: Database, id: str) -> Operation | None:
    """Read one operation."""
    row = await database.fetchrow(f"SELECT {OPERATIONS.selected} FROM operations WHERE id = $1", id)  # noqa: S608 - as above
    return None if row is None else OPERATIONS.read(row)
