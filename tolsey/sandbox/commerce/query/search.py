"""The search syntax of `query:` arguments, turned into a test of one item."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from operator import eq, ge, gt, le, lt
from typing import Any

Matches = Callable[[Any], bool]
Reader = Callable[[Any], Any]

_TERM = re.compile(
    r"""(?P<not>-|NOT\s+)?
        (?P<field>[a-z_]+):
        (?P<op>>=|<=|>|<)?
        (?P<value>'[^']*'|"[^"]*"|[^\s()]+)
      | (?P<and>AND\b) | (?P<or>OR\b) | (?P<word>\S+)""",
    re.VERBOSE,
)
_COMPARE: Mapping[str | None, Callable[[Any, Any], bool]] = {
    ">=": ge, "<=": le, ">": gt, "<": lt, None: eq,
}  # fmt: skip


@dataclass(slots=True)
class Search:
    """A compiled query: every alternative is a list of terms that must all match."""

    alternatives: list[list[Matches]] = field(default_factory=lambda: [[]])
    warnings: list[dict[str, Any]] = field(default_factory=list)

    def matches(self, item: Any) -> bool:
        """Tell whether an item satisfies the query."""
        return any(all(term(item) for term in terms) for terms in self.alternatives)


def compile_search(query: str | None, readers: Mapping[str, Reader]) -> Search:
    """Read a query; as on the platform, a field that cannot be searched only earns a warning."""
    search = Search()
    for term in _TERM.finditer(query or ""):
        if term["and"]:
            continue
        if term["or"]:
            search.alternatives.append([])
            continue
        reader = readers.get(term["field"] or "")
        if reader is None:
            search.warnings.append(
                {
                    "field": term["field"] or "default",
                    "message": f"Invalid search field for this query: {term.group()}",
                    "code": "invalid_field",
                }
            )
            continue
        value = term["value"].strip("'\"")
        search.alternatives[-1].append(_term(reader, term["op"], value, negated=bool(term["not"])))
    return search


def _term(reader: Reader, operator: str | None, text: str, *, negated: bool) -> Matches:
    test = partial(_holds, reader, operator, text, _moment(text))
    return (lambda item: not test(item)) if negated else test


def _holds(
    reader: Reader,
    operator: str | None,
    text: str,
    moment: tuple[datetime, timedelta] | None,
    item: Any,
) -> bool:
    value = reader(item)
    if value is None:
        return False
    if isinstance(value, datetime):
        return moment is not None and _during(value, operator, *moment)
    if isinstance(value, bool):
        return value is (text.lower() == "true")
    if isinstance(value, int):
        number = text.rsplit("/", 1)[-1]
        return number.isdigit() and _COMPARE[operator](value, int(number))
    wanted = {part.strip().lower() for part in text.split(",")}
    values = value if isinstance(value, (tuple, list)) else (value,)
    return any(str(one).lower() in wanted for one in values)


def _during(value: datetime, operator: str | None, start: datetime, length: timedelta) -> bool:
    """Compare with a span of time: after a day means after its end."""
    if operator is None:
        return start <= value < start + length
    if length > timedelta(seconds=1):
        if operator == ">":
            return value >= start + length
        if operator == "<=":
            return value < start + length
    return _COMPARE[operator](value, start)


def _moment(text: str) -> tuple[datetime, timedelta] | None:
    """Read a time and how long it lasts: a day when only the date was given."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    only_date = "T" not in text and " " not in text
    return moment, timedelta(days=1) if only_date else timedelta(seconds=1)
