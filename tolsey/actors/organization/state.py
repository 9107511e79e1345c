"""What an organization remembers between turns."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tolsey.actors.organization.credits import NONE, Credits
from tolsey.storage.records.accounts import StoreRecord

if TYPE_CHECKING:
    from collections.abc import Sequence

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

    @property
    def open_stores(self) -> "Sequence[StoreRecord]":
        """The stores that are not deleted: those a plan counts."""
        return [store for store in self.stores if store.deleted_at is None]

    def store(self, store_id: str) -> StoreRecord | None:
        """Find one of the organization's stores, deleted or not."""
        return next((store for store in self.stores if store.id == store_id), None)
