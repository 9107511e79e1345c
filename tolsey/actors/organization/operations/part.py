"""What was asked for and is on its way: in memory until it has ended."""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar

from tolsey.actors.organization.operations import under_way
from tolsey.actors.organization.operations.messages import AwaitOperation
from tolsey.actors.organization.state import OrganizationState
from tolsey.runtime.actor import KindPart, gathers
from tolsey.storage.database import Database
from tolsey.storage.records.runtime.operations import Operation
from tolsey.storage.runtime import operations as operation_rows


def kept_in(
    database: Database,
) -> Callable[[OrganizationState, Any], Awaitable[Operation | None]]:
    """Read what is on disk of the operation that a message is about."""
    return lambda _, message: operation_rows.find(database, message.operation_id)


class Operations(KindPart[OrganizationState]):
    """Operations that have not ended."""

    owns: ClassVar[tuple[str, ...]] = ("operations", "ended")

    def __init__(self, database: Database) -> None:
        self._database = database
        self.decides = (gathers(AwaitOperation, kept_in(database), under_way.wait),)

    async def load(self, keys: Sequence[str]) -> Mapping[str, Mapping[str, Any]]:
        """Read what has not ended."""
        found = await operation_rows.load(self._database, keys)
        return {key: {"operations": some} for key, some in found.items()}

    def changes(self, old: OrganizationState, new: OrganizationState) -> Iterable[Any]:
        """List what began or came further; an end was written by its turn."""
        if new.operations is old.operations:
            return ()
        return [one for one in new.operations if one not in old.operations]
