"""SQL for workflows that run."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Final

from tolsey.storage.database import Database
from tolsey.storage.records.runtime.workflows import WorkflowClaim
from tolsey.storage.tables import table_of

CLAIMS: Final = table_of(WorkflowClaim)

READ: Final = f"""
    SELECT {CLAIMS.selected} FROM workflow_claims
    WHERE organization_id = ANY($1::text[]) AND ended_at IS NULL ORDER BY started_at, id
"""  # noqa: S608 - names of our own table


async def load(
    database: Database, organization_ids: Sequence[str]
) -> dict[str, dict[str, WorkflowClaim]]:
    """Read the claims of organizations that were not ended."""
    claims: dict[str, dict[str, WorkflowClaim]] = defaultdict(dict)
    for row in await database.fetch(READ, list(organization_ids)):
        claims[row["organization_id"]][row["id"]] = CLAIMS.read(row)
    return claims
