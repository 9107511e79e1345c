"""Who uses the service: deliveries that repeat and come in any order, transfers, reads, at any process."""

import asyncio
import random
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.campaigns.cluster.linear import Call
from tests.campaigns.cluster.processes import Node

ACCOUNTS = tuple(f"account-{n}" for n in range(24))
CLIENTS = 16
THINK_SECONDS = 0.012
WINDOW = 8
"""How far out of their order deliveries come."""
REMEMBERED = 300
"""Of so many former deliveries one may come again."""
ATTEMPTS = 12
ANSWERS = ("reply", "duplicate", "accepted")


@dataclass(frozen=True, slots=True)
class Op:
    """What a client wants to be done, once."""

    name: str
    what: str
    key: str
    amount: int = 0
    to: str = ""


@dataclass
class Record:
    """What the clients were told, and what became of their attempts."""

    calls: list[Call] = field(default_factory=list)
    errors: Counter[str] = field(default_factory=Counter)
    disturbed: Counter[str] = field(default_factory=Counter)
    """Attempts that failed while nothing was wrong, by what was done on purpose then."""
    given_up: int = 0
    ops: int = 0
    answered: int = 0


class Workload:
    """All clients of a run."""

    def __init__(
        self,
        seed: int,
        nodes: Sequence[Node],
        record: Record,
        attempt_seconds: float,
        occasion: Callable[[], str],
    ) -> None:
        self.record = record
        self.ending = False
        self._seed = seed
        self._nodes = nodes
        self._attempt_seconds = attempt_seconds
        self._occasion = occasion
        """Asked of every attempt that failed: what was going on that no client should notice."""
        self._luck = random.Random(f"deliveries {seed}")  # noqa: S311 - as everywhere here
        self._weights = [1 / (1 + n) ** 0.7 for n in range(len(ACCOUNTS))]
        self._coming: deque[Op] = deque()
        self._past: deque[Op] = deque(maxlen=REMEMBERED)
        self._count = 0

    async def run(self) -> None:
        """Let the clients work until told to end."""
        async with asyncio.TaskGroup() as tasks:
            for n in range(CLIENTS):
                tasks.create_task(self._client(n))

    async def _client(self, n: int) -> None:
        luck = random.Random(f"client {n} {self._seed}")  # noqa: S311 - as everywhere here
        while not self.ending:
            await asyncio.sleep(luck.expovariate(1 / THINK_SECONDS))
            await self.carry_out(self._draw(luck), luck)

    def _draw(self, luck: random.Random) -> Op:
        chance = luck.random()
        if chance < 0.32:
            return self._op("read", luck)
        if chance < 0.50:
            return self._op("transfer", luck)
        if chance < 0.64:
            return self._op("once", luck)
        if chance < 0.74 and self._past:
            return luck.choice(self._past)  # it was delivered before, and comes again
        return self._delivery(luck)

    def _delivery(self, luck: random.Random) -> Op:
        while len(self._coming) < WINDOW:
            what = "accept" if self._luck.random() < 0.25 else "deposit"
            self._coming.append(self._op(what, self._luck))
        self._coming.rotate(luck.randrange(WINDOW))
        op = self._coming.popleft()
        self._past.append(op)
        return op

    def _op(self, what: str, luck: random.Random) -> Op:
        self._count += 1
        key, to = luck.choices(ACCOUNTS, self._weights, k=2)
        if what == "transfer" and to == key:
            to = ACCOUNTS[(ACCOUNTS.index(key) + 1) % len(ACCOUNTS)]
        amount = 0 if what == "read" else luck.randrange(1, 1000)
        return Op(f"{what}-{self._count}", what, key, amount, to if what == "transfer" else "")

    async def carry_out(self, op: Op, luck: random.Random) -> bool:
        """Try an operation until it is answered or given up, each time at another process."""
        self.record.ops += 1
        pause = 0.03
        last: Node | None = None
        for _ in range(ATTEMPTS):
            serving = [node for node in self._nodes if node.serving]
            others = [node for node in serving if node is not last] or serving
            if others:
                last = luck.choice(others)
                reported = await self.attempt(op, last)
                if reported in ANSWERS:
                    self.record.answered += 1
                    return True
                if op.what == "once" and reported != "none":
                    break  # it may have happened, and nothing would keep it from happening again
            if self.ending:
                break
            await asyncio.sleep(luck.uniform(pause, 2 * pause))
            pause = min(2 * pause, 0.5)
        self.record.given_up += 1
        return False

    async def attempt(self, op: Op, node: Node, seconds: float = 0.0) -> str:
        """Ask once, and write down what was said."""
        wait = seconds or self._attempt_seconds * self._luck.uniform(0.7, 2.5)
        request: dict[str, Any] = {
            "do": "accept" if op.what == "accept" else "ask",
            "what": op.what,
            "op": op.name,
            "key": op.key,
            "amount": op.amount,
            "to": op.to,
            "seconds": wait,
        }
        invoked = time.monotonic()
        try:
            said = await node.ask(request, wait + 0.5)
        except (OSError, TimeoutError) as error:
            said = {"told": "unknown", "error": f"no answer: {type(error).__name__}"}
        answered = time.monotonic()
        reported = said["told"]
        if reported == "waits already":
            reported = "accepted"
        known = reported in (*ANSWERS, "none")
        self.record.calls.append(
            Call(
                *(
                    op.name,
                    op.key,
                    op.what,
                    op.amount,
                    invoked,
                    answered if known else None,
                    reported,
                ),
                said.get("version"),
                said.get("total"),
                op.to,
                node.id,
                str(said.get("error", "")),
            )
        )
        if reported in ANSWERS:
            return str(reported)
        self.record.errors[f"{reported}: {said.get('error')}"] += 1
        if occasion := self._occasion():
            self.record.disturbed[occasion] += 1
        return str(reported)
