"""One seeded run: clients, processes that die and are replaced, a disk with weather, the checks."""

import asyncio
import random
from collections import Counter
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from tests.campaigns.account import (
    AccountRow,
    Accounts,
    BadRow,
    Consult,
    Count,
    Decline,
    Deposit,
    Look,
    Looked,
    Mark,
    Move,
    Peek,
    Posting,
    Stumble,
)
from tests.campaigns.model import GUARDS, Connection, Disk, Line, Weather
from tests.campaigns.simloop import SimLoop
from tolsey.runtime.decision import Refused
from tolsey.runtime.errors import (
    Duplicate,
    RuntimeFault,
    TurnFailed,
)
from tolsey.runtime.messages import ActorId, Message
from tolsey.runtime.registry import Runtime
from tolsey.runtime.turns.mailbox import Cell, Envelope, slot_of
from tolsey.storage.errors import StorageError

KEYS = ("a", "b", "c", "d")
SLOTS = tuple(sorted({slot_of(key) for key in KEYS}))
CLIENTS = 3
OPS = 10
HEAL_SECONDS = 60.0
TROUBLES = ("crash", "crash", "takeover", "half", "intruder", "intruder", "intruder", "stop")


@dataclass(slots=True)
class Try:
    """One ask of one op, and what the asker was told."""

    op: str
    key: str
    message: Message[Any]
    process: str
    floor: int
    """How many changes of the account had been answered when this was asked."""
    told: str = "nothing"
    """`reply`, `accepted`, `duplicate`, `refused`, `failed`, `none`, `unknown` or `nothing`."""
    reply: Any = None


@dataclass
class Run:
    """What a run leaves behind."""

    seed: int
    found: list[str] = field(default_factory=list)
    tries: list[Try] = field(default_factory=list)
    seen: Counter[str] = field(default_factory=Counter)
    steps: int = 0
    seconds: float = 0.0
    trace: int = 0


class Witness(Runtime):
    """The runtime, unchanged, with a note of the order in which messages arrived."""

    arrivals: dict[str, int]

    def _envelope(self, cell: Cell, message: Message[Any], id: str | None) -> Envelope:
        envelope = super()._envelope(cell, message, id)
        self.arrivals.setdefault(envelope.id, len(self.arrivals))
        return envelope


class Process:
    """One process of the service: it may be killed, stopped, or robbed of its slots."""

    def __init__(self, name: str, world: "World", slots: tuple[int, ...]) -> None:
        self.name = name
        self.world = world
        self.gone: asyncio.Future[None] = world.loop.create_future()
        self.stopping = asyncio.Event()
        self.ready = asyncio.Event()
        connection = Connection(world.disk, world.weather, world.loop)
        self.runtime = Witness(
            [Accounts(connection, world.run.found.append)],
            connection,
            connection,
            connection.versions,
            epochs=world.disk.claim(slots),
            handlers={Look: self._look},
            limit=40,
            cold_seconds=0.5,
            idle_seconds=1.5,
            poll_seconds=0.2,
            backoff_seconds=(0.3,) * 500,
            settle_seconds=1.0,
            grace_seconds=2.0,
            incarnation=name,
        )
        self.runtime.arrivals = {}
        self.main = world.loop.spawn(name, self._main())

    async def _main(self) -> None:
        async with self.runtime:
            self.ready.set()
            await self.stopping.wait()

    async def _look(self, call: Look) -> Looked:
        if f"look {call.key}" not in self.world.disk.ever:
            self.world.run.found.append(f"effect before its commit: {call}")
        await asyncio.sleep(self.world.weather.delay())
        if self.world.weather.strikes("effect_failed"):
            raise ConnectionError
        self.world.looks += 1
        return Looked(f"look {self.world.looks}")

    def kill(self) -> None:
        self.world.loop.kill(self.name)
        if not self.gone.done():
            self.gone.set_result(None)


class World:
    """Everything of one run."""

    def __init__(self, seed: int, loop: SimLoop, guards: frozenset[str] = GUARDS) -> None:
        self.run = Run(seed)
        self.loop = loop
        self.luck = random.Random(f"world {seed}")  # noqa: S311 - it is to be predictable
        self.weather = Weather(seed)
        self.disk = Disk(guards, refuses=lambda record: isinstance(record, BadRow))
        self.processes: list[Process] = []
        self.owner: dict[int, Process] = {}
        self.answered: Counter[str] = Counter()
        self.looks = 0
        self.intrusions = 0

    async def play(self) -> None:
        await self._replace(SLOTS)
        clients = [self.loop.spawn(f"client {n}", self._client(n)) for n in range(CLIENTS)]
        trouble = self.loop.spawn("trouble", self._trouble())
        await asyncio.wait(clients)
        trouble.cancel()
        self.weather.clear()
        await self._heal()
        for client in clients:
            client.result()

    # Trouble.

    async def _replace(self, slots: tuple[int, ...]) -> None:
        process = Process(f"process {len(self.processes)}", self, slots)
        self.processes.append(process)
        await process.ready.wait()
        self.owner.update(dict.fromkeys(slots, process))

    async def _trouble(self) -> None:
        storm = self.luck.choice((0, 1, 2, 4))
        for _ in range(storm):
            await asyncio.sleep(self.luck.random() * 0.15)
            kind = self.luck.choice(TROUBLES)
            self.run.seen[kind] += 1
            self.loop.note(kind)
            victim = self.owner[self.luck.choice(SLOTS)]
            if kind == "intruder":
                self._intrude(self.luck.choice(KEYS))
            elif kind == "half":
                await self._replace(tuple(self.luck.sample(SLOTS, 2)))
            else:
                if kind == "crash":
                    victim.kill()
                elif kind == "stop":
                    victim.stopping.set()
                await self._replace(tuple(s for s in SLOTS if self.owner[s] is victim))

    def _intrude(self, key: str) -> None:
        """Write to an account behind its actor's back, as an operator's statement would."""
        self.intrusions += 1
        disk, id = self.disk, ("account", key)
        row = disk.rows.get(("sim_accounts", key), AccountRow(key, 0, 0))
        disk.rows["sim_accounts", key] = AccountRow(key, row.total, row.count + 1)
        op = f"intruder {self.intrusions}"
        disk.appended["sim_postings"].append(Posting(key, row.count + 1, op, 0))
        disk.versions[id] = disk.versions.get(id, 0) + 1
        epoch = disk.epochs[slot_of(key)]
        disk.journal[id].append(Line(disk.versions[id], op, epoch))

    async def _heal(self) -> None:
        """Let a last process finish what was accepted."""
        for process in self.processes:
            process.kill()
        await self._replace(SLOTS)
        until = self.loop.time() + HEAL_SECONDS
        last = self.owner[SLOTS[0]].runtime
        while self.disk.outbox or last.admin.uncommitted or last.admin.waiting:
            if self.loop.time() > until:
                self.run.found.append(f"stuck: {list(self.disk.outbox)[:3]} still wait")
                return
            await asyncio.sleep(0.2)

    # Clients.

    async def _client(self, n: int) -> None:
        luck = random.Random(f"client {self.run.seed} {n}")  # noqa: S311 - it is to be predictable
        flying: list[asyncio.Task[None]] = []
        for k in range(OPS):
            op = f"{n}.{k}"
            key, message = choose(luck, op)
            repeats = luck.choice((1, 1, 3)) if isinstance(message, Mark | Deposit) else 1
            if isinstance(message, Deposit) and not message.once:
                repeats = 1
            once = isinstance(message, Mark) or (isinstance(message, Deposit) and message.once)
            accepts = once and luck.random() < 0.4
            for _ in range(repeats):
                timeout = luck.choice((0.005, 0.3, 5.0, 5.0, 5.0))
                work = self._try(op, key, message, None if accepts else timeout)
                flying.append(self.loop.spawn(f"client {n}", work))
                if luck.random() < 0.1:
                    self.loop.call_later(luck.random() * 0.02, flying[-1].cancel)
            if luck.random() < 0.6:
                await asyncio.wait(flying)
            if luck.random() < 0.2:
                await asyncio.sleep(luck.choice((0.01, 0.05, 1.0, 3.0)))
        await asyncio.wait(flying)

    async def _try(self, op: str, key: str, message: Message[Any], patience: float | None) -> None:
        """Ask and wait for so many seconds, or let it be accepted."""
        process = self.owner[slot_of(key)]
        attempt = Try(op, key, message, process.name, self.answered[key])
        self.run.tries.append(attempt)
        to, runtime = ActorId("account", key), process.runtime
        work: Coroutine[Any, Any, Any] = (
            runtime.accept(to, message, id=f"accepted {op}")
            if patience is None
            else runtime.ask(to, message, id=op, timeout=patience)
        )
        call = self.loop.spawn(process.name, work)
        started = self.loop.time()
        try:
            await asyncio.wait((call, process.gone), return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            attempt.told = "unknown"
            self.run.seen["cancelled"] += 1
            call.cancel()
            raise
        if not call.done():
            attempt.told = "unknown"  # the process died with the question
            return
        self._note(attempt, call)
        if self.loop.time() - started > (patience or 5.0) + 0.1:
            self.run.found.append(f"answered after its deadline: {op}")

    def _note(self, attempt: Try, call: asyncio.Task[Any]) -> None:
        error = None if call.cancelled() else call.exception()
        if call.cancelled():
            attempt.told = "unknown"
        elif isinstance(error, StorageError):
            attempt.told = "unknown"  # it may be accepted all the same
        elif error is None and isinstance(call.result(), bool):
            attempt.told = "accepted"
            self.run.seen["accepted"] += 1
        elif error is None:
            attempt.told, attempt.reply = "reply", call.result()
            self._check_reply(attempt)
        elif isinstance(error, Refused):
            attempt.told = "refused"
            attempt.reply = tuple(map(int, str(error).split()))
            self._check_reply(attempt)
        else:
            attempt.told = told_by(error)
            self.run.seen[type(error).__name__] += 1
            if isinstance(error, TurnFailed) and not guilty(attempt.message, error):
                self.run.found.append(
                    f"{attempt.op} failed for another's fault: {error} ({error.__cause__!r})"
                )
            if not isinstance(error, RuntimeFault):
                self.run.found.append(f"{attempt.op} ended in {error!r}")
        self.loop.note(f"{attempt.op} {attempt.told}")

    def _check_reply(self, attempt: Try) -> None:
        """An answer says what the disk says at this very moment, and nothing older than known."""
        count, total = attempt.reply
        postings = [p for p in self.disk.appended["sim_postings"] if p.key == attempt.key]
        if count > len(postings):
            self.run.found.append(f"{attempt.op} was told {count}, disk has {len(postings)}")
        elif total != sum(posting.amount for posting in postings[:count]):
            self.run.found.append(f"{attempt.op} was told {total} at {count}")
        elif count < attempt.floor and self._owned(attempt):
            self.run.found.append(f"{attempt.op} was told {count}, {attempt.floor} was known")
        if self._owned(attempt):
            self.answered[attempt.key] = max(self.answered[attempt.key], count)

    def _owned(self, attempt: Try) -> bool:
        # What an owner that has lost its slots may still read is the lease's business, not yet ours.
        return self.owner[slot_of(attempt.key)].name == attempt.process


def choose(luck: random.Random, op: str) -> tuple[str, Message[Any]]:
    """Draw an op."""
    key, amount = luck.choice(KEYS[: luck.choice((1, 1, 2, 4))]), luck.randint(1, 9)
    makers: list[tuple[int, Callable[[], Message[Any]]]] = [
        (4, lambda: Deposit(op, amount)),
        (3, lambda: Deposit(op, amount, once=True)),
        (4, lambda: Move(op, luck.choice(KEYS), amount)),
        (2, lambda: Mark(op)),
        (4, lambda: Peek(op)),
        (4, lambda: Count(op, luck.choice((0, amount)))),
        (1, lambda: Deposit(op, amount, bad=True)),
        (1, lambda: Decline(op)),
        (1, lambda: Stumble(op)),
        (1, lambda: Consult(op)),
    ]
    weights = [weight for weight, _ in makers]
    return key, luck.choices(makers, weights)[0][1]()


def told_by(error: BaseException | None) -> str:
    if isinstance(error, Duplicate):
        return "duplicate"
    if isinstance(error, RuntimeFault):
        return "unknown" if error.outcome == "unknown" else "none"
    return "failed"


def guilty(message: Message[Any], error: TurnFailed) -> bool:
    """Whether a turn had it coming; the runtime may give up on one that is spoiled again and again."""
    bad = isinstance(message, Deposit) and message.bad
    return bad or isinstance(message, Stumble) or "kept failing" in error.cause


def simulate(
    seed: int,
    guards: frozenset[str] = GUARDS,
    check: Callable[[World], None] | None = None,
) -> Run:
    """Play one seed to its end and check what it left behind."""
    loop = SimLoop(seed)
    world = World(seed, loop, guards)

    async def main() -> None:
        await world.play()

    work: Coroutine[Any, Any, None] = main()
    try:
        loop.play(work)
    except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001 - whatever it is, it is a finding
        world.run.found.append(f"the run broke: {error!r}")
        with suppress(RuntimeError):
            work.close()
    world.run.found += loop.failures
    world.run.steps, world.run.seconds, world.run.trace = loop.steps, loop.time(), loop.trace
    world.run.seen.update(world.weather.hits)
    for process in world.processes:
        world.run.seen.update(
            {f"runtime {name}": n for name, n in process.runtime.telemetry.counters.items()}
        )
    if check is not None:
        check(world)
    return world.run
