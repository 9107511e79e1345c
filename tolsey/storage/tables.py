"""How a record reaches its table: one type of record, one table, one INSERT.

A commit of many turns is one statement made of these parts (`storage.runtime.journal`), so each
table is touched by one part only. The rows of all turns of a batch travel as parallel arrays.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields
from operator import attrgetter
from typing import Any, TypeVar

Record = TypeVar("Record")


@dataclass(frozen=True, slots=True)
class Table:
    """Where records of one type go.

    `columns` maps each column to its SQL type, in the order of the record's fields (a jsonb
    column takes JSON text). `conflict` is the plain SQL after the INSERT. `key` names the columns
    that identify a row when it can be written again: of several records of a batch with the same
    key the greatest by `newest` (then the latest turn) is written, the others are dropped, so a
    record with a key must be the whole row. A `claim` is a row that may be written once ever:
    when it is there already the whole turn is a duplicate and none of it happens. `absent` has the
    SQL of what stands in a column whose field is None. `kept` has, for what may also wait in the
    outbox, the SQL of its sender and of its key there, with `{row}` for the record: while it waits
    itself the turn is a duplicate, while what the same sender sent before does, the turn comes too early.
    """

    record: type[Any]
    name: str
    columns: dict[str, str]
    conflict: str = ""
    key: tuple[str, ...] = ()
    newest: tuple[str, ...] = ()
    claim: bool = False
    absent: Mapping[str, str] = field(default_factory=dict)
    kept: tuple[str, str] | None = None
    key_of: Callable[[Any], Any] = field(init=False, compare=False, repr=False)
    """Tells the key of a record."""

    def __post_init__(self) -> None:
        names = self.key or tuple(self.columns)
        object.__setattr__(self, "key_of", attrgetter(*names))

    @property
    def values(self) -> str:
        """The columns as they are selected from the rows that are to be written."""
        return ", ".join(
            f"coalesce({column}, {self.absent[column]})" if column in self.absent else column
            for column in self.columns
        )


TABLES: dict[type[Any], Table] = {}


def replaced_whole(columns: Iterable[str], *key: str) -> str:
    """Say `ON CONFLICT` for a row whose only writer is its actor."""
    assigned = ", ".join(f"{name} = excluded.{name}" for name in columns if name not in key)
    return f"ON CONFLICT ({', '.join(key)}) DO UPDATE SET {assigned}"


def table(
    record: type[Any],
    name: str,
    columns: dict[str, str],
    *,
    conflict: str = "",
    key: tuple[str, ...] = (),
    newest: tuple[str, ...] = (),
    claim: bool = False,
    absent: Mapping[str, str] | None = None,
    kept: tuple[str, str] | None = None,
) -> Table:
    """Say where records of a type are kept. Its columns must be its fields, in order."""
    names = [one.name for one in fields(record)]
    if len(names) != len(columns):
        raise TypeError(f"{record.__name__} has {len(names)} fields, {name} {len(columns)} columns")
    made = Table(record, name, columns, conflict, key, newest, claim, absent or {}, kept)
    TABLES[record] = made
    return made
