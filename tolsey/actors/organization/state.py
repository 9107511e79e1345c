"""What an organization remembers between turns."""

from dataclasses import dataclass, field, fields
from operator import attrgetter
from typing import TYPE_CHECKING, Final

from tolsey.actors.organization.ledger.credits import NONE, Credits
from tolsey.storage.records.commerce.stores import StoreRecord
from tolsey.storage.records.money.contracts import Contract
from tolsey.storage.records.money.subscription import SubscriptionRecord
from tolsey.storage.records.runtime.operations import Operation
from tolsey.storage.records.runtime.workflows import WorkflowClaim

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

FREE = "free"


@dataclass(frozen=True, slots=True)
class OrganizationState:
    """What an organization has; `exists` is False for a key that no row stands behind."""

    organization_id: str
    plan: str = FREE
    stores_contracted: int | None = None
    stores: tuple[StoreRecord, ...] = ()
    exists: bool = True
    credits: Credits = NONE
    contract: Contract | None = None
    workflows: "Mapping[str, WorkflowClaim]" = field(default_factory=dict)
    """Those that run, or did when they were last heard of."""
    created_at: "datetime | None" = None
    subscription: SubscriptionRecord | None = None
    operations: tuple[Operation, ...] = ()
    """What was asked for and takes calls to the outside, until it has ended."""
    ended: tuple[Operation, ...] = ()
    """Those that ended last: their end may not be on disk yet."""
    over: tuple[str, ...] = ()
    """The subscriptions that ended last: the event that said so may not be on disk yet."""

    @property
    def open_stores(self) -> "Sequence[StoreRecord]":
        """The stores that are not deleted: those a plan counts."""
        return [store for store in self.stores if store.deleted_at is None]

    def store(self, store_id: str) -> StoreRecord | None:
        """Find one of the organization's stores, deleted or not."""
        return next((store for store in self.stores if store.id == store_id), None)

    def with_credits(self, credits: Credits) -> "OrganizationState":
        """Go on with other credits: what `replace` does, in half the time of the commonest turn."""
        values = list(EVERYTHING(self))
        values[CREDITS] = credits
        return OrganizationState(*values)


NAMES: Final = tuple(one.name for one in fields(OrganizationState))
EVERYTHING: Final = attrgetter(*NAMES)
CREDITS: Final = NAMES.index("credits")
