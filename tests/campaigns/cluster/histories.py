"""Histories made up for tests of the checker: accounts served one operation at a time."""

import heapq
import random
from collections.abc import Callable
from dataclasses import dataclass, replace

from tests.campaigns.cluster.linear import CREDIT, Call, Line
from tolsey.runtime.turns.mailbox import slot_of

KEYS = ("a", "b", "c")


@dataclass(frozen=True, slots=True)
class History:
    """What clients were told beside what is on disk."""

    calls: tuple[Call, ...]
    lines: tuple[Line, ...]

    def of(self, key: str) -> list[Line]:
        """List the lines of an account in the order of their versions."""
        return [line for line in self.lines if line.key == key]


def luck_of(seed: int) -> random.Random:
    """Draw from a seed."""
    return random.Random(seed)  # noqa: S311 - a test's luck, not a secret


class Bank:
    """Accounts served one operation at a time: whatever happens here could have happened."""

    def __init__(self, luck: random.Random) -> None:
        self.luck = luck
        self.lines: list[Line] = []
        self.calls: list[Call] = []
        self.epochs: dict[int, int] = {}
        self.standing = dict.fromkeys(KEYS, (0, 0))
        self.count = 0
        self._work: list[tuple[float, int, Callable[[float], object]]] = []
        """What is to happen, soonest first; of two at the same moment the one planned first."""

    def run(self, clients: int, ops: int) -> History:
        """Let clients call for a while; each waits for its answer before it calls again."""
        ready = [(self.luck.random(), n) for n in range(clients)]
        for _ in range(ops):
            ready.sort()
            at, client = ready.pop(0)
            ready.append((self._call(at) + self.luck.random(), client))
        while self._work:
            now, _, happen = heapq.heappop(self._work)
            happen(now)
        calls = tuple(sorted(self.calls, key=lambda call: call.invoked))
        return History(calls, tuple(self.lines))

    def _call(self, at: float) -> float:
        """Make one call, with what becomes of it; answer when its client goes on."""
        self.count += 1
        luck = self.luck
        what = luck.choice(("deposit", "deposit", "accept", "transfer", "read", "read"))
        key = luck.choice(KEYS)
        to = luck.choice([other for other in KEYS if other != key]) if what == "transfer" else ""
        amount = 0 if what == "read" else luck.randrange(1, 100)
        call = Call(f"op{self.count}", key, what, amount, at, to=to)
        effect = at + luck.random()
        answer = effect + luck.random()
        lost = luck.random() < 0.15
        if what == "read":
            self._plan(effect, lambda _: self._look(call, None if lost else answer))
        elif lost:
            self._lost(call, effect, answer)
        else:
            self._write(call, effect, answer)
        return answer

    def _look(self, call: Call, answer: float | None) -> None:
        if answer is None:
            self.calls.append(call)
            return
        version, total = self.standing[call.key]
        self.calls.append(
            replace(call, answered=answer, told="reply", version=version, total=total)
        )

    def _write(self, call: Call, effect: float, answer: float) -> None:
        if call.what == "accept":
            self.calls.append(replace(call, answered=answer, told="accepted"))
            self._plan(effect + 3 * self.luck.random(), lambda _: self._post(call))
            return

        def happen(now: float) -> None:
            version, total = self._post(call)
            self.calls.append(
                replace(call, answered=answer, told="reply", version=version, total=total)
            )
            if self.luck.random() < 0.2:
                self._again(call, answer + self.luck.random())

        self._plan(effect, happen)

    def _lost(self, call: Call, effect: float, gave_up: float) -> None:
        """Lose an answer: the effect comes late, or never, or another attempt brings it about."""
        fate = self.luck.choice(("late", "never", "again", "refused"))
        if fate == "refused":
            self.calls.append(replace(call, answered=gave_up, told="none"))
            return
        self.calls.append(call)
        if fate == "late":
            self._plan(effect + 5 * self.luck.random(), lambda _: self._post(call))
        elif fate == "again":
            self._plan(gave_up, lambda _: self._post(call))
            self._plan(gave_up + 1e-9, lambda now: self._again(call, now))

    def _again(self, call: Call, at: float) -> None:
        again = replace(call, invoked=at, answered=at + self.luck.random(), told="duplicate")
        self.calls.append(again)

    def _post(self, call: Call) -> tuple[int, int]:
        if self.luck.random() < 0.1:
            slot = slot_of(call.key)
            self.epochs[slot] = self.epochs.get(slot, 0) + 1
        amount = -call.amount if call.what == "transfer" else call.amount
        self._line(call.key, call.op, amount)
        if call.what == "transfer":
            at = call.invoked + 10 * self.luck.random()
            name = call.op + CREDIT
            self._plan(at, lambda _: self._line(call.to, name, call.amount))
        return self.standing[call.key]

    def _line(self, key: str, op: str, amount: int) -> None:
        slot = slot_of(key)
        epoch = self.epochs.get(slot, 0)
        version, total = self.standing[key]
        self.standing[key] = version + 1, total + amount
        order = len(self.lines)
        self.lines.append(Line(key, slot, version + 1, op, amount, epoch, order, f"owner{epoch}"))

    def _plan(self, at: float, happen: Callable[[float], object]) -> None:
        self.count += 1
        heapq.heappush(self._work, (at, self.count, happen))
