"""SQL for workflows that run."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Final

from tolsey.storage.database import Database
from tolsey.storage.records.runtime.workflows import WorkflowClaim
from tolsey.storage.tables import replaced_whole, table

COLUMNS: Final = {
    "organization_id": "text",
    "id": "text",
    "kind": "text",
    "started_at": "timestamptz",
    "lease_until": "timestamptz",
    "ended_at": "timestamptz",
}

table(
    WorkflowClaim,
    "workflow_claims",
    COLUMNS,
    conflict=replaced_whole(COLUMNS, "organization_id", "id"),
    key=("organization_id", "id"),
)

READ: Final = f"""
    SELECT {", ".join(COLUMNS)} FROM workflow_claims
    WHERE organization_id = ANY($1::text[]) AND ended_at IS NULL ORDER BY started_at, id
"""  # noqa: S608 - names of our own table


async def load(
    database: Database, organization_ids: Sequence[str]
) -> dict[str, dict[str, WorkflowClaim]]:
    """Read the claims of organizations that were not ended."""
    claims: dict[str, dict[str, WorkflowClaim]] = defaultdict(dict)
    for row in await database.fetch(READ, list(organization_ids)):
        claims[row["organization_id"]][row["id"]] = WorkflowClaim(**row)
    return claims
