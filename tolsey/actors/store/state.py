"""What a store remembers between turns."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

from tolsey.storage.records.commerce.agent_operation import AgentOperation
from tolsey.storage.records.commerce.connection import Connection, ShopProfile
from tolsey.storage.records.commerce.devstores import DevStoreHolding
from tolsey.storage.records.commerce.imports import OrderImport
from tolsey.storage.records.commerce.launches import Launch
from tolsey.storage.records.commerce.shops import ShopKey, ShopOfStore
from tolsey.storage.records.memory import StoreFact

ENDED_KEPT: Final = 64
FORGOTTEN_KEPT: Final = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreState:
    """A store's parts; each is saved only when it changed.

    `shops` are those that it is and was connected to. `operations` are those of agents that have not ended yet, oldest first; `ended` those that ended
    last, which a turn may ask for before the end of the former turn is on disk.
    `facts` by their keys are read when a turn first needs them.
    `imports` are the last of each shop's orders. `forgotten_customers` are the shop's that were deleted last, which
    is not on disk either before its turn's end is.
    `embedding_since` and `renewing_since` are not saved: a process that dies takes with it those who waited for it.
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
    embedding_since: datetime | None = None
    imports: tuple[OrderImport, ...] = ()
    forgotten_customers: tuple[int, ...] = ()
    launch: Launch | None = None
    dev_store: DevStoreHolding | None = None

    @property
    def order_import(self) -> OrderImport | None:
        """The last import of the orders of the shop that the store is connected to."""
        domain = self.connection and self.connection.shop_domain
        return next((one for one in self.imports if one.shop_domain == domain), None)

    def with_import(self, going: OrderImport) -> "StoreState":
        """Keep an import in place of the one of its shop before."""
        others = (one for one in self.imports if one.shop_domain != going.shop_domain)
        return replace(self, imports=(*others, going))

    def without_customer(self, customer_id: int) -> "StoreState":
        """Remember that a customer was deleted."""
        forgotten = (*self.forgotten_customers, customer_id)[-FORGOTTEN_KEPT:]
        return replace(self, forgotten_customers=forgotten)

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


def filed(state: StoreState, *rows: Any) -> tuple[Any, ...]:
    """Name in rows of a store the shop that it is connected to (rules/shops#shops-of-a-store).

    Who reads a body knows the store alone, and may be of the release before.
    """
    if state.shop_key == state.store_id:
        return rows
    return tuple(replace(row, store_id=state.shop_key) for row in rows)
