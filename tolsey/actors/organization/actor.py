"""The organization: its plan and limits, one message at a time."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

from tolsey.actors.organization import stores
from tolsey.actors.organization.messages import (
    KIND,
    CloseStore,
    OpenStore,
    StoreOpened,
)
from tolsey.actors.organization.state import OrganizationState
from tolsey.runtime.actor import Actor, handles
from tolsey.runtime.decision import Decision
from tolsey.storage import stores as store_rows
from tolsey.storage.database import Database


class OrganizationActor(Actor[OrganizationState]):
    """Organizations."""

    kind: ClassVar[str] = KIND
    rank: ClassVar[int] = 2  # stores ask their organization, never the other way

    def __init__(self, database: Database) -> None:
        super().__init__()
        self._database = database

    @handles(OpenStore)
    def open_store(
        self, state: OrganizationState, message: OpenStore
    ) -> Decision[OrganizationState, StoreOpened]:
        """Open a store within the plan."""
        return stores.open_store(state, message)

    @handles(CloseStore)
    def close_store(
        self, state: OrganizationState, message: CloseStore
    ) -> Decision[OrganizationState, bool]:
        """Close a store whose memory is purged."""
        return stores.close_store(state, message)

    async def load(self, keys: Sequence[str]) -> Mapping[str, OrganizationState]:
        """Read plans and stores."""
        found = await store_rows.load(self._database, keys)
        return {
            key: OrganizationState(
                key, found[key].plan, found[key].stores_contracted, found[key].stores
            )
            if key in found
            else OrganizationState(key, exists=False)
            for key in keys
        }

    def changes(self, old: OrganizationState, new: OrganizationState) -> Iterable[Any]:
        """List the stores that were opened or closed."""
        before = {store.id: store for store in old.stores}
        return [store for store in new.stores if before.get(store.id) != store]
