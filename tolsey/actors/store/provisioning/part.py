"""The shop of the pool that a store was handed."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

from tolsey.actors.store.provisioning import transferring
from tolsey.actors.store.provisioning.messages import (
    ClaimDevStore,
    FollowTransfer,
    PlanSeen,
    RequestTransfer,
)
from tolsey.actors.store.state import StoreState
from tolsey.runtime.actor import KindPart, on
from tolsey.storage.commerce import devstores
from tolsey.storage.database import Database


class StoreProvisioning(KindPart[StoreState]):
    """What a store has of the pool; its claim is written by the turn that makes it."""

    owns: ClassVar[tuple[str, ...]] = ("dev_store",)
    decides = (
        on(ClaimDevStore, transferring.claim),
        on(RequestTransfer, transferring.request),
        on(FollowTransfer, transferring.follow),
        on(PlanSeen, transferring.seen),
    )

    def __init__(self, database: Database) -> None:
        self._database = database

    async def load(self, keys: Sequence[str]) -> Mapping[str, Mapping[str, Any]]:
        """Read what stores have of the pool."""
        found = await devstores.holdings(self._database, keys)
        return {key: {"dev_store": one} for key, one in found.items()}

    def changes(self, old: StoreState, new: StoreState) -> Iterable[Any]:
        """List the transfer when it moved."""
        if new.dev_store is None or new.dev_store.transfer is None:
            return
        if old.dev_store is None or new.dev_store.transfer != old.dev_store.transfer:
            yield new.dev_store.transfer
