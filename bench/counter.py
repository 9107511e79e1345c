"""A kind of actor for the benches: a number that is read in memory and raised on disk."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bench.owner import owning
from tolsey.runtime.actor import Actor, handles
from tolsey.runtime.decision import Decision
from tolsey.runtime.messages import ActorId, Message
from tolsey.runtime.registry import Runtime
from tolsey.storage.database import Database
from tolsey.storage.runtime.journal import Journal
from tolsey.storage.tables import stored

KIND = "counter"

TABLE = "CREATE TABLE bench_counters (key text PRIMARY KEY, total bigint NOT NULL)"


@stored("bench_counters", nobodys="Rows of tests.", key=("key",))
@dataclass(frozen=True, slots=True)
class CounterRow:
    """A row of bench_counters, and the state of one actor."""

    key: str
    total: int = 0


@dataclass(frozen=True, slots=True)
class Raise(Message[int]):
    """Add one and keep it."""


@dataclass(frozen=True, slots=True)
class Read(Message[int]):
    """Tell the number."""


def counter(key: str) -> ActorId:
    return ActorId(KIND, key)


class Counter(Actor[CounterRow]):
    """Counts."""

    kind = KIND

    def __init__(self, database: Database) -> None:
        super().__init__()
        self._database = database

    async def load(self, keys: Sequence[str]) -> Mapping[str, CounterRow]:
        """Read many counters at once."""
        rows = await self._database.fetch(
            "SELECT key, total FROM bench_counters WHERE key = ANY($1)", list(keys)
        )
        found = {row["key"]: row["total"] for row in rows}
        return {key: CounterRow(key, found.get(key, 0)) for key in keys}

    def changes(self, old: CounterRow, new: CounterRow) -> Iterable[Any]:
        """Write the row of a counter that was raised."""
        if old.total != new.total:
            yield new

    @handles(Raise)
    def raised(self, state: CounterRow, message: Raise) -> Decision[CounterRow, int]:  # noqa: ARG002 - a turn's shape
        """Add one."""
        after = CounterRow(state.key, state.total + 1)
        return Decision(after, after.total)

    @handles(Read)
    def read(self, state: CounterRow, message: Read) -> Decision[CounterRow, int]:  # noqa: ARG002 - as above
        """Tell the number."""
        return Decision(state, state.total)


async def runtime_on(database: Database, journal: Journal, **settings: Any) -> Runtime:
    """Make a runtime of counters that owns every slot."""
    return await owning([Counter(database)], database, journal, **settings)
