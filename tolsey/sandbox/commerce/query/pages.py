"""Connections: sorted listings cut into pages by cursor."""

import base64
import binascii
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import orjson

from tolsey.sandbox.commerce.query.refused import FieldRefused

MAXIMUM_PAGE = 250
MAXIMUM_OFFSET = 25_000
_CACHED_LISTINGS = 8
# Bulk operations ignore page sizes; no argument of the schema can have this name.
WHOLE = "*"

Key = tuple[Any, int]


@dataclass(frozen=True, slots=True)
class Edge:
    """A node with its place in the listing."""

    node: Any
    cursor: str


@dataclass(frozen=True, slots=True)
class Page:
    """Some nodes of a listing, and whether there are more on either side."""

    nodes: Sequence[Any]
    keys: Sequence[Key]
    has_next: bool
    has_previous: bool

    def edges(self) -> list[Edge]:
        """Pair the nodes with their cursors."""
        return [Edge(node, _cursor(key)) for node, key in zip(self.nodes, self.keys, strict=True)]

    def start(self) -> str | None:
        """Give the first node's cursor."""
        return _cursor(self.keys[0]) if self.keys else None

    def end(self) -> str | None:
        """Give the last node's cursor."""
        return _cursor(self.keys[-1]) if self.keys else None


@dataclass(frozen=True, slots=True)
class Listing:
    """Items in ascending order of their keys."""

    items: Sequence[Any]
    keys: Sequence[Key]

    @classmethod
    def of(cls, items: Iterable[Any], key: Callable[[Any], Key]) -> Self:
        """Sort the items by key."""
        keyed = sorted(((key(item), item) for item in items), key=lambda pair: pair[0])
        return cls([item for _, item in keyed], [key for key, _ in keyed])

    def page(self, asked: Mapping[str, Any]) -> Page:
        """Cut the page that `first`/`after` or `last`/`before` ask for."""
        if asked.get(WHOLE):
            items, keys = self.items, self.keys
            if asked.get("reverse"):
                items, keys = items[::-1], keys[::-1]
            return Page(items, keys, has_next=False, has_previous=False)
        first, last = asked.get("first"), asked.get("last")
        size = first if first is not None else last
        if size is None:
            raise FieldRefused("you must provide one of first or last", "BAD_REQUEST")
        if not 0 <= size <= MAXIMUM_PAGE:
            raise FieldRefused(f"first/last must be between 0 and {MAXIMUM_PAGE}", "BAD_REQUEST")
        reverse = bool(asked.get("reverse"))
        low, high = self._window(asked.get("after"), asked.get("before"), reverse=reverse)
        skipped = len(self.items) - high if reverse else low
        if skipped > MAXIMUM_OFFSET:
            raise FieldRefused(
                f"Pagination stops at {MAXIMUM_OFFSET} objects; use a bulk operation", "BAD_REQUEST"
            )
        forward = (first is not None) != reverse
        start, stop = (low, min(high, low + size)) if forward else (max(low, high - size), high)
        nodes, keys = self.items[start:stop], self.keys[start:stop]
        below, above = start > 0, stop < len(self.items)
        if reverse:
            return Page(nodes[::-1], keys[::-1], has_next=below, has_previous=above)
        return Page(nodes, keys, has_next=above, has_previous=below)

    def _window(self, after: str | None, before: str | None, *, reverse: bool) -> tuple[int, int]:
        low, high = 0, len(self.keys)
        lower, upper = (before, after) if reverse else (after, before)
        if lower is not None:
            low = bisect_right(self.keys, _key(lower))
        if upper is not None:
            high = bisect_left(self.keys, _key(upper))
        return low, max(low, high)


def listed(items: Sequence[Any]) -> Listing:
    """Keep items in the order they have."""
    return Listing(items, [(index, index) for index in range(len(items))])


class Listings:
    """A small memory of sorted listings, dropped oldest first."""

    def __init__(self) -> None:
        self._kept: dict[tuple[Any, ...], Listing] = {}

    def get(self, key: tuple[Any, ...], make: Callable[[], Listing]) -> Listing:
        """Give the listing under this key, making it when it is new."""
        found = self._kept.get(key)
        if found is None:
            while len(self._kept) >= _CACHED_LISTINGS:
                self._kept.pop(next(iter(self._kept)))
            found = self._kept[key] = make()
        return found


def _cursor(key: Key) -> str:
    text = orjson.dumps({"last_id": key[1], "last_value": key[0]})
    return base64.urlsafe_b64encode(text).decode()


def _key(cursor: str) -> Key:
    try:
        read = orjson.loads(base64.urlsafe_b64decode(cursor))
        return (read["last_value"], read["last_id"])
    except (binascii.Error, orjson.JSONDecodeError, KeyError, TypeError, ValueError) as error:
        raise FieldRefused("Invalid cursor for current pagination sort.", "BAD_REQUEST") from error
