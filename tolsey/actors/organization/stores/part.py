"""Whether an organization is there, its plan, and its stores."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

from tolsey.actors.organization.state import OrganizationState
from tolsey.actors.organization.stores import opening
from tolsey.actors.organization.stores.messages import CloseStore, OpenStore
from tolsey.runtime.actor import KindPart, on
from tolsey.storage.commerce import stores as store_rows
from tolsey.storage.database import Database
from tolsey.storage.records.money.subscription import OrganizationTerms


class Stores(KindPart[OrganizationState]):
    """The plan and the stores that it counts."""

    owns: ClassVar[tuple[str, ...]] = ("plan", "stores_contracted", "stores", "exists")
    decides = (on(OpenStore, opening.open_store), on(CloseStore, opening.close_store))

    def __init__(self, database: Database) -> None:
        self._database = database

    async def load(self, keys: Sequence[str]) -> Mapping[str, Mapping[str, Any]]:
        """Read plans and stores."""
        found = await store_rows.load(self._database, keys)
        return {
            key: {
                "plan": found[key].plan,
                "stores_contracted": found[key].stores_contracted,
                "stores": found[key].stores,
            }
            if key in found
            else {"exists": False}
            for key in keys
        }

    def changes(self, old: OrganizationState, new: OrganizationState) -> Iterable[Any]:
        """List the stores that were closed, and the plan when it is another; one that is opened is a record."""
        terms = new.plan, new.stores_contracted
        if new.stores is old.stores and terms == (old.plan, old.stores_contracted):
            return ()
        before = {store.id: store for store in old.stores}
        moved: list[Any] = [store for store in new.stores if before.get(store.id, store) != store]
        if terms != (old.plan, old.stores_contracted):
            plan, contracted = terms
            whose = new.organization_id
            moved.append(OrganizationTerms(id=whose, plan=plan, stores_contracted=contracted))
        return moved
