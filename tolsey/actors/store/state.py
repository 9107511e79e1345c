"""What a store remembers between turns."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from tolsey.storage.records.commerce.agent_operation import AgentOperation
from tolsey.storage.records.commerce.connection import Connection, ShopProfile
from tolsey.storage.records.commerce.shops import ShopKey, ShopOfStore
from tolsey.storage.records.memory import StoreFact

ENDED_KEPT: Final = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreState:
    """A store's parts; each is saved only when it changed.

    `shops` are those that it is and was connected to. `operations` are those of agents that have not ended yet, oldest first; `ended` those that ended
    last, which a turn may ask for before the end of the former turn is on disk.
    `facts` by their keys are read when a turn first needs them.
    `renewing_since` is not saved: a process that dies takes with it those who waited for it.
    """

    store_id: str
    organization_id: str | None = None
    connection: Connection | None = None
    shop: ShopProfile | None = None
    renewing_since: datetime | None = None
    operations: tuple[AgentOperation, ...] = ()
    ended: tuple[AgentOperation, ...] = ()
    shops: tuple[ShopOfStore, ...] = ()
    facts: Mapping[str, StoreFact] | None = None

    @property
    def shop_key(self) -> ShopKey:
        """What the rows of the shop that the store is connected to are kept under."""
        domain = self.connection and self.connection.shop_domain
        known = (one.shop_key for one in self.shops if one.shop_domain == domain)
        return ShopKey(next(known, self.store_id))

    def with_operation(self, operation: AgentOperation) -> "StoreState":
        """Keep an operation in its place, or after all others when it is new."""
        known = [one.operation_id for one in self.operations]
        if operation.operation_id not in known:
            return replace(self, operations=(*self.operations, operation))
        return replace(
            self,
            operations=tuple(
                operation if one.operation_id == operation.operation_id else one
                for one in self.operations
            ),
        )

    def with_ended(self, operation: AgentOperation) -> "StoreState":
        """Keep an operation among those that ended last."""
        ended_id = operation.operation_id
        return replace(
            self,
            operations=tuple(one for one in self.operations if one.operation_id != ended_id),
            ended=(*self.ended, operation)[-ENDED_KEPT:],
        )
