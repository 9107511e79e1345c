"""What turns changed in an actor's state, kept with their lines of the journal, so that a state of before can be shown.

Kept is how to get back: the places that a turn changed, with what stood there before. Neither secrets nor what says
something of a person is among it (`masking.unkept_fields`), so there is nothing in it to seal or to erase. A state of
before is what is on disk now, with these taken back from the newest turn on: no turn is taken again, and nothing is
told or called.
"""

import dataclasses
import zlib
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Any, Final, TypeAlias

import orjson

from tolsey.runtime.masking import MASK, MOST_SHOWN, NO_END, masked, unkept_fields

Place: TypeAlias = tuple[str | int, ...]
"""Where in a state: names of fields, keys and numbers."""
Step: TypeAlias = list[Any]
"""One change taken back: `["=", place, value]`, `["-", place]` for what was not there, or, of a list of so many,
`["~", place, start, count, values, length]`."""

MOST_BYTES: Final = 256_000
"""What would take more is not kept."""
PACKED_FROM: Final = 512
SINGLE: Final = 8
"""So many neighbours in a list are looked into; more are kept whole."""


def kept_state(state: Any) -> Any:
    """Show a whole state as it is kept: without secrets, and without what says something of a person."""
    return masked(state, hidden=unkept_fields, most=NO_END)


def way_back(before: Any, after: Any) -> bytes | None:
    """Write how to get from a state back to the one before; None where that would be too much to keep."""
    steps: list[Step] = []
    _compare(before, after, (), steps)
    written = orjson.dumps(steps)
    if len(written) >= PACKED_FROM:
        written = zlib.compress(written, 1)
    return written if len(written) <= MOST_BYTES else None


def read_way(written: bytes) -> list[Step]:
    """Read what `way_back` wrote."""
    plain = written if written.startswith(b"[") else zlib.decompress(written)
    return list(orjson.loads(plain))


def _compare(before: Any, after: Any, place: Place, steps: list[Step]) -> None:
    if before is after:
        return
    if type(before) is type(after):
        if dataclasses.is_dataclass(before):
            _compare_fields(before, after, place, steps)
            return
        if isinstance(before, Mapping):
            _compare_entries(before, after, place, steps)
            return
        if isinstance(before, tuple | list):
            _compare_lists(before, after, place, steps)
            return
        if before == after:
            return
    steps.append(["=", place, kept_state(before)])


def _compare_fields(before: Any, after: Any, place: Place, steps: list[Step]) -> None:
    unkept = unkept_fields(type(before))  # type: ignore[arg-type]  # a class can be hashed
    for one in dataclasses.fields(before):
        old, new = getattr(before, one.name), getattr(after, one.name)
        if old is new:
            continue
        if one.name not in unkept:
            _compare(old, new, (*place, one.name), steps)
        elif old != new:
            steps.append(["=", (*place, one.name), masked(old, secret=True)])


def _compare_entries(
    before: Mapping[Any, Any], after: Mapping[Any, Any], place: Place, steps: list[Step]
) -> None:
    for key, old in before.items():
        if key in after:
            _compare(old, after[key], (*place, str(key)), steps)
        else:
            steps.append(["=", (*place, str(key)), kept_state(old)])
    steps += (["-", (*place, str(key))] for key in after if key not in before)


def _compare_lists(
    before: Sequence[Any], after: Sequence[Any], place: Place, steps: list[Step]
) -> None:
    least = min(len(before), len(after))
    start = _alike(before, after, least)
    end = _alike(reversed(before), reversed(after), least - start)
    old, new = before[start : len(before) - end], after[start : len(after) - end]
    if len(old) == len(new) <= SINGLE:
        for number, (was, is_) in enumerate(zip(old, new, strict=True), start):
            _compare(was, is_, (*place, number), steps)
    elif old or new:
        shown = [kept_state(one) for one in old]
        steps.append(["~", place, start, len(new), shown, len(after)])


def _alike(before: Iterable[Any], after: Iterable[Any], most: int) -> int:
    """Count how many are the same from the beginning on."""
    for number, (old, new) in enumerate(islice(zip(before, after, strict=False), most)):
        if old is not new and old != new:
            return number
    return most


class Rebuilding:
    """A state on its way back, from what is on disk now."""

    def __init__(self, now: Any) -> None:
        self.state = now
        self.unknown: set[Place] = set()
        """Places of which is not known how they were: what was taken back there is not on disk."""
        self.masked: set[Place] = set()
        """Places that changed and whose values nobody is shown."""

    def take_back(self, written: bytes) -> None:
        """Take back what one turn changed."""
        for sign, listed, *rest in read_way(written):
            place: Place = tuple(listed)
            if sign == "=" and rest[0] == MASK:
                self.masked.add(place)
            if self._is_unknown(place, is_set=sign == "="):
                continue
            try:
                self._step(sign, place, rest)
            except (KeyError, IndexError, TypeError):
                self.unknown.add(place[:-1] if sign != "~" else place)

    def _is_unknown(self, place: Place, *, is_set: bool) -> bool:
        """Whether a place lies in an unknown one; what is set whole is known from here on."""
        if is_set:
            self.unknown = {one for one in self.unknown if one[: len(place)] != place}
        return any(place[: len(one)] == one for one in self.unknown)

    def _step(self, sign: str, place: Place, rest: Sequence[Any]) -> None:
        if not place:
            self.state = rest[0]
            return
        *way, last = place
        holder: Any = self.state
        for name in way:
            holder = holder[name]
        match sign:
            case "=":
                holder[last] = rest[0]
            case "-":
                del holder[last]
            case _:
                start, count, values, length = rest
                if len(holder[last]) != length:
                    raise IndexError(length)
                holder[last][start : start + count] = values


MISSING: Final = object()
"""What stands where one of two has nothing."""


def differences(before: Any, now: Any) -> list[tuple[Place, Any, Any]]:
    """List the places in which two shown states differ, the smallest that tell it; `MISSING` where one has none."""
    found: list[tuple[Place, Any, Any]] = []
    _differ(before, now, (), found)
    return found


def _differ(before: Any, now: Any, place: Place, found: list[tuple[Place, Any, Any]]) -> None:
    if before == now:
        return
    if isinstance(before, dict) and isinstance(now, dict):
        for name in {**before, **now}:
            _differ(before.get(name, MISSING), now.get(name, MISSING), (*place, name), found)
    elif isinstance(before, list) and isinstance(now, list):
        for number in range(max(len(before), len(now))):
            old = before[number] if number < len(before) else MISSING
            new = now[number] if number < len(now) else MISSING
            _differ(old, new, (*place, number), found)
    else:
        found.append((place, before, now))


def shortened(shown: Any) -> Any:
    """Leave of a shown state what operators are shown of long collections."""
    return masked(shown, most=MOST_SHOWN)
