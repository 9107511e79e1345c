"""Columns of a batch on their way to PostgreSQL: as the text of an array where that is cheaper.

The driver asks of every element of a list whether it is a list itself, which for the short values
of a journal takes longer than to join them here and have the server read them.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final


def parameter(number: int, kind: str) -> str:
    """Write the parameter that takes a column of an SQL type."""
    return f"${number}::text::{kind}[]" if kind in WRITERS else f"${number}::{kind}[]"


def argument(kind: str, column: Sequence[Any]) -> object:
    """Give a column as its parameter takes it."""
    write = WRITERS.get(kind)
    return list(column) if write is None else write(column)


def _texts(column: Sequence[str | None]) -> str:
    if None in column:
        return "{" + ",".join("NULL" if one is None else _quoted(one) for one in column) + "}"
    joined = '","'.join(column)  # type: ignore[arg-type]  # none of them is None
    if "\\" in joined or joined.count('"') != 2 * (len(column) - 1):
        return "{" + ",".join(map(_quoted, column)) + "}"  # type: ignore[arg-type]  # as above
    return '{"' + joined + '"}' if column else "{}"


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _plain(column: Sequence[int | None]) -> str:
    if None in column:
        return "{" + ",".join("NULL" if one is None else str(one) for one in column) + "}"
    return "{" + ",".join(map(str, column)) + "}"


WRITERS: Final[dict[str, Callable[[Sequence[Any]], str]]] = {
    "text": _texts,
    "jsonb": _texts,
    "int": _plain,
    "bigint": _plain,
    "bool": _plain,
    "boolean": _plain,
}
