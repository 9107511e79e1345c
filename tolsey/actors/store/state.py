"""What a store remembers between turns."""

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from tolsey.storage.records.commerce.agent_operation import AgentOperation
from tolsey.storage.records.commerce.connection import Connection, ShopProfile

ENDED_KEPT: Final = 64


@dataclass(frozen=True, slots=True)
class StoreState:
    """A store's parts; each is saved only when it changed.

    `operations` are those of agents that have not ended yet, oldest first; `ended` those that ended
    last, which a turn may ask for before the end of the former turn is on disk.
    `renewing_since` is not saved: a process that dies takes with it those who waited for it.
    """

    store_id: str
    organization_id: str | None = None
    connection: Connection | None = None
    shop: ShopProfile | None = None
    renewing_since: datetime | None = None
    operations: tuple[AgentOperation, ...] = ()
    ended: tuple[AgentOperation, ...] = ()

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
