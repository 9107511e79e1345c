"""The organization: its plan, limits and credits, one message at a time."""

from typing import ClassVar

from tolsey.actors.organization import KIND
from tolsey.actors.organization.agreements.part import Agreements
from tolsey.actors.organization.billing.part import Billing
from tolsey.actors.organization.files.part import Files
from tolsey.actors.organization.ledger.part import Ledger
from tolsey.actors.organization.operations.part import Operations
from tolsey.actors.organization.state import OrganizationState
from tolsey.actors.organization.stores.part import Stores
from tolsey.actors.organization.workflows.part import Workflows
from tolsey.runtime.actor import KindOfParts
from tolsey.storage.database import Database


class OrganizationActor(KindOfParts[OrganizationState]):
    """Organizations."""

    kind: ClassVar[str] = KIND
    rank: ClassVar[int] = 2  # stores ask their organization, never the other way
    state: ClassVar[type[OrganizationState]] = OrganizationState

    def __init__(self, database: Database) -> None:
        parts = (Stores, Ledger, Agreements, Billing, Operations, Files, Workflows)
        super().__init__(*(part(database) for part in parts))
