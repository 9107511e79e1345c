"""The store: connection, deliveries, memory, imports, launch and what agents want changed, one message at a time."""

from typing import ClassVar

from tolsey.actors.store import KIND
from tolsey.actors.store.compliance.part import Compliance
from tolsey.actors.store.connection.part import ShopConnection
from tolsey.actors.store.deliveries.part import ShopDeliveries
from tolsey.actors.store.editing.part import AgentEdits
from tolsey.actors.store.imports.part import OrderImports
from tolsey.actors.store.launch.part import StoreLaunching
from tolsey.actors.store.memory.part import StoreMemory
from tolsey.actors.store.provisioning.part import StoreProvisioning
from tolsey.actors.store.state import StoreState
from tolsey.runtime.actor import KindOfParts
from tolsey.storage.database import Database


class StoreActor(KindOfParts[StoreState]):
    """Every store."""

    kind: ClassVar[str] = KIND
    state: ClassVar[type[StoreState]] = StoreState

    def __init__(self, database: Database) -> None:
        super().__init__(
            ShopConnection(database),
            ShopDeliveries(),
            AgentEdits(database),
            StoreMemory(database),
            OrderImports(database),
            StoreLaunching(database),
            StoreProvisioning(database),
            Compliance(),
        )
