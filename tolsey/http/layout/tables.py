"""Tables that are sorted and filtered by their address, so that they need no script."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar
from urllib.parse import urlencode

from werkzeug.datastructures import MultiDict

Line = TypeVar("Line")


@dataclass(frozen=True)
class SortColumn(Generic[Line]):
    """A column: what it is called, the word that its address sorts by, and what a line is sorted by."""

    label: str
    name: str
    key: Callable[[Line], Any]


@dataclass(frozen=True, kw_only=True)
class SortedTable(Generic[Line]):
    """The lines of a page, as its address asks for them: `sort` names a column, with a minus from the top down."""

    path: str
    columns: Sequence[SortColumn[Line]]
    lines: Sequence[Line]
    asked: Mapping[str, str] = field(default_factory=dict)
    """The filters of the address, which sorting keeps."""
    total: int = 0
    """How many lines there are without the filters."""
    sort: str = ""

    def address(self, column: SortColumn[Line]) -> str:
        """Give the address that sorts by a column; of the one it is sorted by, the other way round."""
        turned = f"-{column.name}" if self.sort == column.name else column.name
        return f"{self.path}?{urlencode({**self.asked, 'sort': turned})}"

    def direction(self, column: SortColumn[Line]) -> str | None:
        """Say in the words of `aria-sort` whether the lines are sorted by a column."""
        if self.sort.removeprefix("-") != column.name:
            return None
        return "descending" if self.sort.startswith("-") else "ascending"

    @property
    def whole(self) -> str:
        """The address without any filter but whose lines they are."""
        kept = {name: one for name, one in self.asked.items() if name == "organizationId"}
        return f"{self.path}?{urlencode(kept)}"


def arranged(
    path: str,
    columns: Sequence[SortColumn[Line]],
    lines: Iterable[Line],
    args: MultiDict[str, str],
    *,
    filters: Mapping[str, Callable[[Line, str], bool]],
    asked: Mapping[str, str],
) -> SortedTable[Line]:
    """Sort and filter lines as an address asks; what it asks of no column or filter counts as not said."""
    every = list(lines)
    said = {name: args[name].strip() for name in filters if args.get(name, "").strip()}
    shown = [one for one in every if all(filters[name](one, said[name]) for name in said)]
    sort = args.get("sort", "")
    by = next((one for one in columns if one.name == sort.removeprefix("-")), None)
    if by is not None:
        shown.sort(key=by.key, reverse=sort.startswith("-"))
    return SortedTable(
        path=path,
        columns=columns,
        lines=shown,
        asked={**asked, **said},
        total=len(every),
        sort=sort if by else "",
    )
