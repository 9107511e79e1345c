"""SQL for what people asked for that takes calls to the outside."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Final

from tolsey.storage.database import Database
from tolsey.storage.lookups import record, records
from tolsey.storage.records.runtime.operations import Operation
from tolsey.storage.tables import table_of

OPERATIONS: Final = table_of(Operation)


async def load(
    database: Database, organization_ids: Sequence[str]
) -> Mapping[str, tuple[Operation, ...]]:
    """Read what has not ended yet of organizations, oldest first; one without any is absent."""
    where = "organization_id = ANY($1::text[]) AND finished_at IS NULL ORDER BY created_at, id"
    found: dict[str, list[Operation]] = defaultdict(list)
    for operation in await records(database, OPERATIONS, where, list(organization_ids)):
        found[operation.organization_id].append(operation)
    return {id: tuple(some) for id, some in found.items()}


async def find(database: Database, id: str) -> Operation | None:
    """Read one operation."""
    return await record(database, OPERATIONS, "id = $1", id)
