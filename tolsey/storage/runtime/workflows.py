"""SQL for workflows that run."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Final

from tolsey.storage.database import Database
from tolsey.storage.lookups import records
from tolsey.storage.records.runtime.workflows import WorkflowClaim
from tolsey.storage.tables import table_of

CLAIMS: Final = table_of(WorkflowClaim)


async def load(
    database: Database, organization_ids: Sequence[str]
) -> dict[str, dict[str, WorkflowClaim]]:
    """Read the claims of organizations that were not ended."""
    claims: dict[str, dict[str, WorkflowClaim]] = defaultdict(dict)
    where = "organization_id = ANY($1::text[]) AND ended_at IS NULL ORDER BY started_at, id"
    for claim in await records(database, CLAIMS, where, list(organization_ids)):
        claims[claim.organization_id][claim.id] = claim
    return claims
