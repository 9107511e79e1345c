"""Lists in parts: `limit` and an opaque `cursor` in, a part and the next cursor out."""

from collections.abc import Callable, Sequence
from typing import Annotated, Any, Final, TypeVar

import orjson
from pydantic import Field

from tolsey.http.mcp.tools.answers import LARGEST
from tolsey.http.mcp.tools.building import Item, ToolArguments, ToolPage
from tolsey.http.web.api_model import NUL
from tolsey.http.web.paging import InvalidCursor, cursor_of, cut, key_in

Found = TypeVar("Found")

MOST: Final = 100
USUAL: Final = 25
LONGEST_KEY: Final = 128
LONGEST_CURSOR: Final = 512


def _unsaid(schema: dict[str, Any]) -> None:
    """Leave the usual limit to the instructions, which say it once for all lists."""
    schema.pop("default", None)


class PageArguments(ToolArguments):
    """Which part of a list is wanted."""

    limit: Annotated[int, Field(ge=1, le=MOST, json_schema_extra=_unsaid)] = USUAL
    cursor: str | None = None


class Pages:
    """The parts of one list; a key is what follows its last item, of values of these kinds."""

    def __init__(self, name: str, *kinds: type[int | str]) -> None:
        self._name = name
        self._kinds = kinds

    def after(self, wanted: PageArguments) -> tuple[Any, ...] | None:
        """Read the key of the last item of the part before; None for the first part."""
        if wanted.cursor is None:
            return None
        if len(wanted.cursor) > LONGEST_CURSOR:
            raise InvalidCursor
        try:
            key = orjson.loads(key_in(wanted.cursor))
        except ValueError as error:
            raise InvalidCursor from error
        if not isinstance(key, list) or len(key) != len(self._kinds) + 1 or key[0] != self._name:
            raise InvalidCursor
        if not all(map(_is_part, key[1:], self._kinds)):
            raise InvalidCursor
        return tuple(key[1:])

    def number_after(self, wanted: PageArguments) -> int | None:
        """Read the key of a list that is ordered by one number."""
        key = self.after(wanted)
        return None if key is None else int(key[0])

    def part(
        self,
        found: Sequence[Found],
        wanted: PageArguments,
        *,
        key: Callable[[Found], tuple[Any, ...]],
        show: Callable[[Found], Item],
    ) -> ToolPage[Item]:
        """Show a part of what was read, with one more than the limit, and the cursor of the next."""
        rows, following = cut(found, wanted.limit, key=lambda item: self._written(*key(item)))
        return ToolPage(items=[show(row) for row in rows], next_cursor=following)

    def cursor(self, *key: int | str) -> str:
        """Give the cursor of the part that follows the item of a key."""
        return cursor_of(self._written(*key))

    def _written(self, *key: int | str) -> str:
        return orjson.dumps([self._name, *key]).decode()


def _is_part(value: Any, kind: type[int | str]) -> bool:
    if kind is int:
        return type(value) is int and -LARGEST <= value <= LARGEST
    return type(value) is str and len(value) <= LONGEST_KEY and NUL not in value
