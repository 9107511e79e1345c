"""Whether a history could have happened one operation at a time.

A history is what clients called and were told (`Call`) beside what is on disk (`Line`). Every
answer carries the version of its account, and versions are a total order, so the check is exact and
costs a sort: the moments at which versions came about must fit between the calls and the answers
that speak of them. `Counter` histories of a few dozen operations can also be searched without a
look at versions, as Wing and Gong did and Lowe does: a second opinion on the first.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

CREDIT = ">"
"""Ends the name of a line that a transfer made on its other account."""


@dataclass(frozen=True, slots=True)
class Call:
    """One attempt of a client; attempts of the same operation have the same `op`."""

    op: str
    key: str
    what: str
    """`deposit`, `accept` (kept for good, takes effect later), `transfer` or `read`."""
    amount: int
    invoked: float
    answered: float | None = None
    told: str = "unknown"
    """`reply`, `duplicate`, `accepted`, `none` (had no effect, they said) or `unknown`."""
    version: int | None = None
    total: int | None = None
    to: str = ""
    node: str = ""
    error: str = ""


@dataclass(frozen=True, slots=True)
class Line:
    """One change of an account as it is on disk; `order` is that of the commits of its slot."""

    key: str
    slot: int
    version: int
    op: str
    amount: int
    epoch: int
    order: int
    owner: str = ""


class Finding(NamedTuple):
    """One broken promise."""

    rule: str
    text: str


class Moment(NamedTuple):
    """A time, and what happened then."""

    at: float
    what: str
    read: bool = False


NEVER = Moment(math.inf, "nothing")
ALWAYS = Moment(-math.inf, "the beginning")


def cause(op: str) -> str:
    """Name the operation that a line came of."""
    return op.removesuffix(CREDIT)


def check(
    calls: Sequence[Call], lines: Sequence[Line], waiting: Container[str] = ()
) -> list[Finding]:
    """Find everything that could not have happened to accounts served one operation at a time.

    What is `waiting` on disk has not taken effect, and is not lost.
    """
    told: dict[str, list[Call]] = defaultdict(list)
    for call in calls:
        if call.what != "read":
            told[call.op].append(call)
    first = {op: min(call.invoked for call in attempts) for op, attempts in told.items()}
    of_key: dict[str, tuple[list[Call], list[Line]]] = defaultdict(lambda: ([], []))
    for call in calls:
        of_key[call.key][0].append(call)
    for line in sorted(lines, key=lambda line: (line.version, line.order)):
        of_key[line.key][1].append(line)
    found = [
        *_effects(told, lines, waiting),
        *_transfers(told, lines, waiting),
        *_epochs(lines),
    ]
    for key in sorted(of_key):
        account = _Account(key, *of_key[key])
        found += account.shape()
        found += account.answers()
        found += account.order(first)
    return found


def _effects(
    told: Mapping[str, Sequence[Call]], lines: Sequence[Line], waiting: Container[str]
) -> Iterator[Finding]:
    """Every acknowledged effect is there once, no effect twice, and none that nobody caused."""
    times = Counter(line.op for line in lines)
    place = {line.op: line for line in lines}
    for op, attempts in told.items():
        said = {call.told for call in attempts}
        for word in sorted(said & {"reply", "duplicate", "accepted"}):
            if not times[op] and op not in waiting:
                yield Finding("lost_write", f"{op} was answered `{word}` and is not on disk")
        if times[op] and said <= {"none"}:
            yield Finding("phantom_effect", f"{op} had no effect, they said, and is on disk")
        if times[op] and attempts[0].what != "transfer" and times[op + CREDIT]:
            yield Finding("phantom_effect", f"{op} moved nothing, and arrived elsewhere")
        if times[op] and (place[op].key, abs(place[op].amount)) != (
            attempts[0].key,
            attempts[0].amount,
        ):
            yield Finding("phantom_effect", f"{op} is on disk as {place[op]}")
    for op, many in times.items():
        if many > 1:
            yield Finding("double_effect", f"{op} is {many} times on disk")
        if cause(op) not in told:
            yield Finding("phantom_effect", f"{op} is on disk and nobody called it")


def _transfers(
    told: Mapping[str, Sequence[Call]], lines: Sequence[Line], waiting: Container[str]
) -> Iterator[Finding]:
    """What left one account arrived at the other."""
    arrived = {line.op: line for line in lines if line.op.endswith(CREDIT)}
    left = {line.op: line for line in lines if line.amount < 0}
    for op, line in left.items():
        credit = arrived.get(op + CREDIT)
        if credit is None and op + CREDIT in waiting:
            continue
        if credit is None:
            yield Finding("lost_transfer", f"{op} left {line.key} and arrived nowhere")
        elif (credit.amount, credit.key) != (-line.amount, _aim(told.get(op, ()))):
            yield Finding("lost_transfer", f"{op} left as {line} and arrived as {credit}")
    for op, line in arrived.items():
        if cause(op) not in left:
            yield Finding("phantom_effect", f"{op} arrived at {line.key} and left nowhere")


def _aim(attempts: Sequence[Call]) -> str:
    return attempts[0].to if attempts else ""


def _epochs(lines: Sequence[Line]) -> Iterator[Finding]:
    """In the order of a slot's commits no epoch comes after a later one, and each has one owner."""
    slots: dict[int, list[Line]] = defaultdict(list)
    for line in lines:
        slots[line.slot].append(line)
    for slot, of_slot in sorted(slots.items()):
        of_slot.sort(key=lambda line: line.order)
        for before, after in pairwise(of_slot):
            if after.epoch < before.epoch:
                yield Finding("epoch_order", f"slot {slot}: {after} was committed after {before}")
        owners: dict[int, str] = {}
        for line in of_slot:
            if owners.setdefault(line.epoch, line.owner) != line.owner:
                yield Finding(
                    "two_owners", f"slot {slot}: {line} and {owners[line.epoch]} share an epoch"
                )


@dataclass(slots=True)
class _Account:
    """One account: what clients were told of it, and its lines in the order of versions."""

    key: str
    calls: list[Call]
    lines: list[Line]
    totals: list[int] = field(init=False)
    at: dict[str, int] = field(init=False)

    def __post_init__(self) -> None:
        self.totals = [0]
        for line in self.lines:
            self.totals.append(self.totals[-1] + line.amount)
        self.at = {line.op: line.version for line in reversed(self.lines)}

    def shape(self) -> Iterator[Finding]:
        """Versions count from one without a gap, and epochs never fall."""
        versions = [line.version for line in self.lines]
        if versions != list(range(1, len(versions) + 1)):
            wrong = next(n for n, version in enumerate(versions, 1) if n != version)
            yield Finding("fork", f"{self.key} has version {versions[wrong - 1]} as its {wrong}th")
        for before, after in pairwise(self.lines):
            if after.epoch < before.epoch:
                yield Finding("epoch_order", f"{self.key}: {after} stands on {before}")

    def answers(self) -> Iterator[Finding]:
        """Every answer says what the disk says of its version."""
        for call in self.calls:
            if call.told != "reply" or call.version is None:
                continue
            if not 0 <= call.version < len(self.totals):
                rule = "phantom_read" if call.what == "read" else "wrong_answer"
                yield Finding(rule, f"{call} of {len(self.lines)} versions")
            elif self.totals[call.version] != call.total:
                yield Finding("wrong_answer", f"{call}: it was {self.totals[call.version]}")
            elif call.what != "read" and self.at.get(call.op, call.version) != call.version:
                yield Finding("wrong_answer", f"{call}: it is version {self.at[call.op]} on disk")

    def order(self, first: Mapping[str, float]) -> Iterator[Finding]:
        """The moments of the versions fit between the calls and the answers that speak of them."""
        not_before: dict[int, Moment] = defaultdict(lambda: ALWAYS)
        not_after: dict[int, Moment] = defaultdict(lambda: NEVER)
        for n, line in enumerate(self.lines, 1):
            called = first.get(cause(line.op), -math.inf)
            not_before[n] = Moment(called, f"the first call of {line.op}, version {n}")
        for call in self.calls:
            version = self._version(call)
            if version is None or call.answered is None:
                continue
            read = call.what == "read"
            answer = Moment(call.answered, f"the answer of {call}", read)
            not_after[version] = min(not_after[version], answer)
            if read:
                later = Moment(call.invoked, f"the call of {call}", read)
                not_before[version + 1] = max(not_before[version + 1], later)
        now = ALWAYS
        for version in range(len(self.lines) + 1):
            now = max(now, not_before[version])
            latest = not_after[version]
            if latest.at < now.at:
                unread = "future_read" if latest.read else "order"
                rule = "stale_read" if now.read else unread
                yield Finding(rule, f"{self.key}: {latest.what} came before {now.what}")
                now = latest

    def _version(self, call: Call) -> int | None:
        """Tell which version an answer speaks of; none when it says nothing of time."""
        if call.what == "read":
            known = call.told == "reply" and call.version in range(len(self.totals))
            return call.version if known else None
        if call.told in ("reply", "duplicate"):
            return self.at.get(call.op)
        return None


class Seen(NamedTuple):
    """One operation on a counter, seen from outside: nothing was added by a read."""

    invoked: float
    answered: float | None
    amount: int
    total: int | None
    read: bool = False


class SearchTooLong(Exception):  # noqa: N818 - no finding, and no proof
    """So many orders are possible that the search gave up."""


def linearizable(history: Iterable[Seen], *, steps: int = 200_000) -> bool:
    """Search for an order of the operations that explains every answer, as Wing and Gong did.

    An operation without an answer may have happened at any time since, or never. Raises
    SearchTooLong when neither an order was found nor all were tried.
    """
    ops = sorted(
        (op for op in history if op.answered is not None or not op.read), key=lambda op: op.invoked
    )
    must = sum(1 << n for n, op in enumerate(ops) if op.answered is not None)
    seen: set[int] = set()
    stack: list[tuple[int, int]] = [(0, 0)]
    while stack:
        done, total = stack.pop()
        if done & must == must:
            return True
        if done in seen:
            continue
        seen.add(done)
        steps -= 1
        if steps < 0:
            raise SearchTooLong
        stack += _next(ops, done, total)
    return False


def _next(ops: Sequence[Seen], done: int, total: int) -> list[tuple[int, int]]:
    """List what may come next: nothing may that was called after another had its answer."""
    soonest = min(
        (op.answered for n, op in enumerate(ops) if op.answered is not None and not done >> n & 1),
        default=math.inf,
    )
    after: list[tuple[int, int]] = []
    for n, op in enumerate(ops):
        if op.invoked > soonest:
            break
        if done >> n & 1:
            continue
        changed = total + op.amount
        if op.total is not None and op.total != changed:
            continue
        if op.read:  # it changes nothing, so whatever explains it later explains it now
            return [(done | 1 << n, changed)]
        after.append((done | 1 << n, changed))
    return after


def seen_of(key: str, calls: Sequence[Call], lines: Sequence[Line]) -> list[Seen]:
    """Show an account's history as an outsider saw it: what was added when, and totals answered."""
    attempts: dict[str, list[Call]] = defaultdict(list)
    seen = []
    for call in calls:
        if call.key == key and call.what == "read" and call.told == "reply":
            seen.append(Seen(call.invoked, call.answered, 0, call.total, read=True))
        elif call.what != "read":
            attempts[call.op].append(call)
    arriving = [line.op for line in lines if line.key == key and line.op.endswith(CREDIT)]
    for op in arriving:
        invoked = min((call.invoked for call in attempts[cause(op)]), default=-math.inf)
        amount = next((call.amount for call in attempts[cause(op)]), 0)
        seen.append(Seen(invoked, None, amount, None))
    for tries in attempts.values():
        if tries[0].key == key and not {call.told for call in tries} <= {"none"}:
            sign = -1 if tries[0].what == "transfer" else 1
            known = [call for call in tries if call.told in ("reply", "duplicate")]
            ended = min((call.answered for call in known if call.answered), default=None)
            total = next((call.total for call in known if call.told == "reply"), None)
            invoked = min(call.invoked for call in tries)
            seen.append(Seen(invoked, ended, sign * tries[0].amount, total))
    return seen


def until(history: Iterable[Seen], end: float) -> list[Seen]:
    """Cut a history off at a moment: what had no answer by then has none."""
    return [
        op if op.answered is not None and op.answered <= end else op._replace(answered=None)
        for op in history
        if op.invoked <= end
    ]
