"""Workflows that run, or did when they were last heard of."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from tolsey.actors.organization.state import OrganizationState
from tolsey.actors.organization.workflows import claims
from tolsey.actors.organization.workflows.messages import ClaimWorkflow, ReleaseWorkflow
from tolsey.runtime.actor import KindPart, on
from tolsey.storage.database import Database
from tolsey.storage.runtime import workflows as workflow_rows


class Workflows(KindPart[OrganizationState]):
    """Places of workflows; each row is written by its turn."""

    owns: ClassVar[tuple[str, ...]] = ("workflows",)
    decides = (on(ClaimWorkflow, claims.claim), on(ReleaseWorkflow, claims.release))

    def __init__(self, database: Database) -> None:
        self._database = database

    async def load(self, keys: Sequence[str]) -> Mapping[str, Mapping[str, Any]]:
        """Read the claims that were not ended."""
        found = await workflow_rows.load(self._database, keys)
        return {key: {"workflows": claimed} for key, claimed in found.items()}
