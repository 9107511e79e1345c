"""How a record says where it is kept: one declaration, and the SQL that follows from it.

A commit of many turns is one statement made of such tables (`storage.runtime.journal`), so each
table is touched by one part only. The rows of all turns of a batch travel as parallel arrays.
"""

import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import date, datetime
from decimal import Decimal
from enum import Enum, StrEnum
from operator import attrgetter
from typing import (
    Annotated,
    Any,
    Final,
    Generic,
    Literal,
    TypeAlias,
    TypedDict,
    TypeVar,
    Union,
    Unpack,
    get_args,
    get_origin,
    get_type_hints,
)
from uuid import UUID

from tolsey.storage.owners import Belongs

Record = TypeVar("Record")
Restore: TypeAlias = Callable[[Any], Any]


class Jsonb:
    """Marks JSON text that is kept as jsonb."""


class Elsewhere:
    """Marks a field that another table keeps: whoever reads the record puts it in."""


class Integer:
    """Marks a number that is kept in four bytes."""


class Vector:
    """Marks an embedding."""


class SearchedWords:
    """Marks what a text search looks through."""


class Sealed:
    """Marks what gives power to whoever reads it: a secret, sealed, or a hash of one."""


class Personal(StrEnum):
    """What a column may say of a person; a column without this mark says nothing of anyone."""

    USER = "user"
    """Which of our users somebody is."""
    EMAIL = "email"
    PSEUDONYM = "pseudonym"
    """Which buyer of one store somebody is; nobody can tell who once the store's salt is gone."""
    FREE_TEXT = "free_text"
    """Text that other people wrote, and in which they may have named anyone (rules/accounts#people-who-leave)."""


SQL_TYPES: Final[Mapping[Any, str]] = {
    str: "text",
    int: "bigint",
    bool: "boolean",
    bytes: "bytea",
    date: "date",
    datetime: "timestamptz",
    Decimal: "numeric",
    UUID: "uuid",
    Vector: "vector",
    SearchedWords: "tsvector",
    Jsonb: "jsonb",
    Integer: "int",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One column as its annotation says it: `str | None` is nullable text, `Annotated` adds marks."""

    name: str
    sql: str
    nullable: bool
    personal: Personal | None
    sealed: bool
    restore: Restore | None
    """Makes the field's value of the driver's, where they differ."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Age:
    """Rows go when a column's moment is this long ago; `where` says which of them, if not all."""

    column: str
    interval: str = "0"
    where: str = ""
    ordered: bool = True
    """Whether its index knows the order of the moments, so that the oldest can go first."""

    @property
    def due(self) -> str:
        """SQL of the rows that are as old as that."""
        which = f"{self.where} AND " if self.where else ""
        return f"{which}{self.column} < now() - interval '{self.interval}'"


@dataclass(frozen=True, slots=True, kw_only=True)
class Table(Generic[Record]):
    """Where records of one type go; `stored` has what the arguments mean."""

    record: type[Record]
    name: str
    shape: tuple[Column, ...]
    besides: tuple[Column, ...] = ()
    key: tuple[str, ...] = ()
    newest: tuple[str, ...] = ()
    claim: bool = False
    conflict: str = ""
    absent: Mapping[str, str] = field(default_factory=dict)
    kept: tuple[str, str] | None = None
    retention: tuple[Age, ...] = ()
    swept: str = ""
    belongs: tuple[Belongs, ...] = ()
    nobodys: str = ""
    export: str = ""
    unexported: str = ""
    appended: tuple[str, ...] = ()
    columns: Mapping[str, str] = field(init=False, compare=False, repr=False)
    """The SQL type of each column, in the order of the record's fields."""
    key_of: Callable[[Record], Any] = field(init=False, compare=False, repr=False)
    """Tells the key of a record."""
    read: Callable[[Any], Record] = field(init=False, compare=False, repr=False)
    """Makes a record of a row that has its columns, by their names."""
    values_of: Callable[[Record], tuple[Any, ...]] = field(init=False, compare=False, repr=False)
    """Tells a record's fields in the order of the columns."""

    def __post_init__(self) -> None:
        columns = {one.name: one.sql for one in self.shape}
        object.__setattr__(self, "columns", columns)
        object.__setattr__(self, "key_of", attrgetter(*(self.key or columns)))
        if self.record is not dict:
            object.__setattr__(self, "read", _reader(self.record, self.shape))
        object.__setattr__(self, "values_of", _values(tuple(columns)))
        if bool(self.belongs) == bool(self.nobodys):
            raise TypeError(f"{self.name}: say whose its rows are, or why they are nobody's")
        if bool(self.belongs) != bool(self.export or self.unexported):
            raise TypeError(f"{self.name}: say what an export calls its rows, or why none has them")

    @property
    def selected(self) -> str:
        """The columns, as a SELECT names them."""
        return ", ".join(self.columns)

    def selected_of(self, alias: str) -> str:
        """Name the columns of one table among several."""
        return ", ".join(f"{alias}.{column}" for column in self.columns)

    @property
    def told(self) -> tuple[str, ...]:
        """The columns that an export has: all but the secret ones."""
        return tuple(one.name for one in (*self.shape, *self.besides) if not one.sealed)

    @property
    def insert(self) -> str:
        """The INSERT of one record, whose parameters are its `values_of`."""
        places = ", ".join(f"${n}" for n in range(1, len(self.columns) + 1))
        return f"INSERT INTO {self.name} ({self.selected}) VALUES ({places})"  # noqa: S608 - names of our own tables

    @property
    def values(self) -> str:
        """The columns as they are selected from the rows that are to be written."""
        return ", ".join(
            f"coalesce({column}, {self.absent[column]})" if column in self.absent else column
            for column in self.columns
        )


TABLES: Final[dict[type[Any], Table[Any]]] = {}
"""Where records go, by their type."""
BARE: Final[list[Table[Any]]] = []
"""Tables that only SQL writes."""


def table_of(record: type[Record]) -> Table[Record]:
    """Tell where records of a type are kept."""
    return TABLES[record]


class Owned(TypedDict, total=False):
    """What every table says of its rows: when they go, whose they are, what an export calls them."""

    retention: Age | tuple[Age, ...]
    swept: str
    belongs: Belongs | tuple[Belongs, ...]
    nobodys: str
    export: str
    unexported: str


def _listed(owned: Owned) -> dict[str, Any]:
    """Take one age, or one owner, as a list of it."""
    return {
        name: (value,) if isinstance(value, Age | Belongs) else value
        for name, value in owned.items()
    }


def stored(
    name: str,
    *,
    key: tuple[str, ...] = (),
    newest: tuple[str, ...] = (),
    claim: bool = False,
    replaces: Sequence[str] | None = None,
    merged: Mapping[str, str] | None = None,
    when: str = "",
    conflict: str | None = None,
    absent: Mapping[str, str] | None = None,
    kept: tuple[str, str] | None = None,
    besides: Mapping[str, Any] | None = None,
    appended: tuple[str, ...] = (),
    **owned: Unpack[Owned],
) -> Callable[[type[Record]], type[Record]]:
    """Say of a record in which table it is kept; its columns are its fields.

    `key` names the columns that identify a row when it can be written again: of several records of a
    batch with the same key the greatest by `newest` (then the latest turn) is written, the others are
    dropped, so a record with a key must be the whole row. It takes the place of the row that is there,
    or only of its columns in `replaces`, each as `merged` says if it does, and not unless `when` holds;
    `conflict` is plain SQL in place of all that. A `claim` is a row that may be written once ever: when
    it is there already the whole turn is a duplicate and none of it happens. `absent` has the SQL of
    what stands in a column whose field is None. `kept` has, for what may also wait in the outbox, the
    SQL of its sender and of its key there, with `{row}` for the record: while it waits itself the turn is
    a duplicate, while what the same sender sent before does, the turn comes too early. `besides` are
    columns of the table that no record writes. Rows go by their `retention`, counted as `swept`.
    `belongs` says whose rows they are and what becomes of them when their owner goes, `nobodys` why they are
    of nobody; an owner's export has them under the name in `export`, or not, for the reason in `unexported`.
    Rows that are only `appended`, and have no key, are told apart by those columns.
    """

    def declare(record: type[Record]) -> type[Record]:
        shape = _shape_of(record)
        if conflict is not None or claim or not key:
            then = conflict or ""
        else:
            again = replaces or [one.name for one in shape if one.name not in key]
            sets = (f"{one} = {(merged or {}).get(one, f'excluded.{one}')}" for one in again)
            then = f"ON CONFLICT ({', '.join(key)}) DO UPDATE SET {', '.join(sets)}"
            then += f" WHERE {when}" if when else ""
        TABLES[record] = Table(
            record=record,
            name=name,
            shape=shape,
            besides=tuple(_column(one, hint) for one, hint in (besides or {}).items()),
            key=key,
            newest=newest,
            claim=claim,
            conflict=then,
            absent=absent or {},
            kept=kept,
            appended=appended,
            **_listed(owned),
        )
        return record

    return declare


def bare(
    name: str,
    columns: Mapping[str, Any],
    *,
    key: tuple[str, ...] = (),
    **owned: Unpack[Owned],
) -> Table[Any]:
    """Say what is in a table that no record is kept in, as `stored` says it of one."""
    made: Table[Any] = Table(
        record=dict,
        name=name,
        shape=tuple(_column(one, hint) for one, hint in columns.items()),
        key=key,
        **_listed(owned),
    )
    BARE.append(made)
    return made


def _shape_of(record: type[Any]) -> tuple[Column, ...]:
    """Read the columns from the fields of a record."""
    hints = get_type_hints(record, include_extras=True)
    return tuple(
        _column(one.name, hints[one.name], sealed="secret" in one.metadata)
        for one in fields(record)
        if Elsewhere not in getattr(hints[one.name], "__metadata__", ())
    )


def _column(name: str, hint: Any, *, sealed: bool = False) -> Column:
    marks: list[Any] = []
    nullable = False
    while get_origin(hint) in {Annotated, Union, types.UnionType}:
        if get_origin(hint) is Annotated:
            hint, *more = get_args(hint)
            marks += more
        else:
            (hint,) = (one for one in get_args(hint) if one is not types.NoneType)
            nullable = True
    sql, restore = _kept_as(hint)
    kinds = [SQL_TYPES[mark] for mark in marks if mark in SQL_TYPES]
    personal = next((mark for mark in marks if isinstance(mark, Personal)), None)
    return Column(
        name=name,
        sql=kinds[0] if kinds else sql,
        nullable=nullable,
        personal=personal,
        sealed=sealed or Sealed in marks,
        restore=restore and (_unless_none(restore) if nullable else restore),
    )


def _kept_as(hint: Any) -> tuple[str, Restore | None]:
    if get_origin(hint) is Literal:
        return SQL_TYPES[type(get_args(hint)[0])], None
    if get_origin(hint) is tuple:
        return f"{SQL_TYPES[get_args(hint)[0]]}[]", tuple
    if isinstance(hint, type) and issubclass(hint, Enum):
        return "text", hint
    return SQL_TYPES[hint], None


def _unless_none(restore: Restore) -> Restore:
    return lambda value: None if value is None else restore(value)


def _reader(record: type[Record], shape: Sequence[Column]) -> Callable[[Any], Record]:
    """Make what reads a row: it fills the slots by name, at a third of what a call by name takes."""
    fill = tuple((one.name, getattr(record, one.name).__set__) for one in shape)
    restored = tuple((one.name, one.restore) for one in shape if one.restore)
    kept = {one.name for one in shape}
    elsewhere = tuple(
        (getattr(record, one.name).__set__, one.default)
        for one in fields(record)  # type: ignore[arg-type]  # it is a dataclass
        if one.name not in kept
    )
    new, check = object.__new__, getattr(record, "__post_init__", None)

    def read(row: Any) -> Record:
        made = new(record)
        for put, default in elsewhere:
            put(made, default)
        for name, put in fill:
            put(made, row[name])
        for name, restore in restored:
            object.__setattr__(made, name, restore(row[name]))
        if check is not None:
            check(made)
        return made

    return read


def _values(names: tuple[str, ...]) -> Callable[[Any], tuple[Any, ...]]:
    if len(names) > 1:
        return attrgetter(*names)
    one = attrgetter(*names)
    return lambda record: (one(record),)
