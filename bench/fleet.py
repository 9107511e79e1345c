"""What 100 processes and ten million stores ask of Redis and PostgreSQL, and what they wait for: in virtual time.

Who owns what is decided by the service's own code (`runtime/shards`: leases, ownership, placement), one
object of it for each process, over stand-ins of Redis and PostgreSQL that only count and take a moment.
A run is its seed: nothing waits for a real clock, and no figure depends on this machine but the one that says so.
"""

import argparse
import asyncio
import random
import sys
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache
from statistics import median
from time import process_time
from types import SimpleNamespace
from typing import Any, Final
from zlib import crc32

import structlog

from bench import measure
from bench.fleet_servers import TIME, Mail, Postgres, Redis, VirtualLoop, Wire
from tolsey.runtime.shards import placement
from tolsey.runtime.shards.ownership import Ownership
from tolsey.runtime.slots import HeldSlots
from tolsey.runtime.turns.mailbox import SLOTS
from tolsey.runtime.turns.parking import Parking

LEASE_SECONDS: Final = 5.0
TURN_SECONDS: Final = 0.005
"""How long the turns of slots that leave take to end."""
LOOKS: Final = 0.05
"""So often every slot is asked whether anybody answers for it."""
QUIET_SECONDS: Final = 10.0
LOSS_SECONDS: Final = 10.0
STORES: Final = 10_000_000
RESTARTED: Final = 10
FLEETS: Final = (20, 50, 100, 200)
PLACED: Final = (*FLEETS, 400)
"""Of so many processes only the shares are told: the simulation grows with their square."""
SEEDS: Final = 5


def process_named(luck: random.Random, number: int) -> str:
    """Name a process as `leases.process_id` does."""
    return f"{luck.getrandbits(48):012x}-{number}-{number}-{luck.getrandbits(32):08x}"


class Process:
    """One process, as far as it owns slots."""

    def __init__(self, world: "World", id: str) -> None:
        self.id = id
        self.slots = HeldSlots({}, Parking(), TIME)
        scheduler: Any = SimpleNamespace(
            cells={}, paused={}, refuse=lambda *_: None, lease_until=float("-inf")
        )
        dispatcher: Any = SimpleNamespace(wake=lambda: None, at_work=self._is_at_work)
        self.slots.scheduler, self.slots.dispatcher = scheduler, dispatcher
        self._leaving_until: dict[int, float] = {}
        runtime: Any = SimpleNamespace(
            scheduler=scheduler,
            slots=self.slots,
            telemetry=SimpleNamespace(counters=Counter()),
            time=TIME,
        )
        self.ownership = Ownership(
            id,
            runtime,
            world.redis,
            world.postgres,
            Mail(world.redis),
            lease_seconds=LEASE_SECONDS,
            gone=lambda _: False,  # each on a machine of its own
            witnesses=False,
        )
        self.ownership._line = replace(  # noqa: SLF001 - the same on every machine
            self.ownership._line,  # noqa: SLF001 - as above
            host="app-100.example",
            pid=100_000,
            since="2026-11-23T00:00:00",
        )
        wire: Any = Wire(world)
        self.ownership.bus = wire
        self.task = asyncio.create_task(self.ownership.run(lambda: None))

    def _is_at_work(self, slots: Collection[int]) -> bool:
        """Whether turns of slots that leave have not ended."""
        for slot in slots:
            self._leaving_until.setdefault(slot, TIME.seconds + TURN_SECONDS)
        busy = any(self._leaving_until[slot] > TIME.seconds for slot in slots)
        if not busy:
            self._leaving_until.clear()
        return busy

    def answers_for(self, slot: int, epoch: int) -> bool:
        """Whether it would take a message to an actor of a slot."""
        return self.slots.epochs.get(slot) == epoch and self.ownership.leased

    async def leave(self) -> None:
        """Hand everything over and end, as `Shard.leave` and its end do."""
        self.ownership.retire()
        while self.slots.epochs and self.ownership.candidates():
            await self.ownership.round()
        await self.end()
        await self.ownership.release()

    async def end(self) -> None:
        """Stop without a word."""
        self.task.cancel()
        with suppress(asyncio.CancelledError):
            await self.task


@dataclass
class Gaps:
    """For how long slots had nobody who answers for them."""

    since: dict[int, float] = field(default_factory=dict)
    ended: list[float] = field(default_factory=list)

    def look(self, world: "World") -> None:
        """See which slots nobody answers for now."""
        for slot, (epoch, owner, *_) in world.postgres.slots.items():
            process = world.living.get(owner or "")
            if process is not None and process.answers_for(slot, epoch):
                if slot in self.since:
                    self.ended.append(TIME.seconds - self.since.pop(slot))
            else:
                self.since.setdefault(slot, TIME.seconds)

    def told(self) -> tuple[int, float, float]:
        """Say how many slots waited, the median, and the longest."""
        if self.since:
            raise RuntimeError(f"{len(self.since)} slots have no owner in the end")
        waits = sorted(self.ended) or [0.0]
        return len(self.ended), waits[len(waits) // 2], waits[-1]


class World:
    """Processes that come and go around one Redis and one PostgreSQL."""

    def __init__(self, seed: int) -> None:
        self.redis = Redis()
        self.postgres = Postgres()
        self.living: dict[str, Process] = {}
        self.luck = random.Random(f"fleet {seed}")  # noqa: S311 - a run is its seed
        self._numbers = 0

    def tell(self, process: str) -> None:
        """Let a process look at the map, if it lives."""
        if process in self.living:
            self.living[process].ownership.look()

    async def join(self) -> Process:
        """Start one more process."""
        self._numbers += 1
        id = process_named(self.luck, self._numbers)
        process = self.living[id] = Process(self, id)
        return process

    async def settle(self) -> None:
        """Wait until every process owns what falls to it, and everybody knows it."""
        until = TIME.seconds + 20 * LEASE_SECONDS
        while TIME.seconds < until:
            await asyncio.sleep(1)
            wanted = placement.place(list(self.living), self.postgres.slots)
            if all(wanted[slot] == one.owner for slot, one in self.postgres.slots.items()):
                await asyncio.sleep(LEASE_SECONDS)
                return
        raise RuntimeError("the slots do not come to rest")

    async def watched(self, seconds: float | None, work: Awaitable[None] | None = None) -> "Seen":
        """Let time pass, or a piece of work end, and say what was asked of the servers meanwhile."""
        redis, postgres = Counter(self.redis.asked), Counter(self.postgres.asked)
        gaps, began, ours = Gaps(), TIME.seconds, process_time()
        task = asyncio.ensure_future(work) if work is not None else None
        while (seconds is None or TIME.seconds < began + seconds) and not (
            seconds is None and task is not None and task.done()
        ):
            gaps.look(self)
            await asyncio.sleep(LOOKS)
        if task is not None:
            await task
        while True:
            gaps.look(self)
            if not gaps.since:
                break
            await asyncio.sleep(LOOKS)
        took = TIME.seconds - began
        return Seen(
            took,
            {name: n / took for name, n in (Counter(self.redis.asked) - redis).items()},
            {name: n / took for name, n in (Counter(self.postgres.asked) - postgres).items()},
            gaps.told(),
            (process_time() - ours) / took / len(self.living),
            (self.postgres.asked - postgres)["slots moved"],
        )


@dataclass(frozen=True)
class Seen:
    """What was asked of the servers in a second, and for how long slots had no owner."""

    seconds: float
    redis: Mapping[str, float]
    postgres: Mapping[str, float]
    gaps: tuple[int, float, float]
    processor: float
    """Seconds of this machine's processor for each process and second, the watching in it."""
    moved: int


@contextmanager
def virtual() -> Iterator[Callable[[Awaitable[Any]], Any]]:
    """Run things in an event loop in virtual time."""
    TIME.seconds = 0.0
    loop = VirtualLoop()
    try:
        yield loop.run_until_complete
    finally:
        for task in asyncio.all_tasks(loop):
            task.cancel()
        loop.run_until_complete(asyncio.sleep(0))
        loop.close()


async def life(number: int, seed: int, restarted: int) -> tuple[dict[str, Seen], list[str]]:
    """Start so many processes, then leave them alone, lose one, lose Redis's data, replace some."""
    world = World(seed)
    seen: dict[str, Seen] = {}

    async def start() -> None:
        for _ in range(number):
            await world.join()
            await asyncio.sleep(world.luck.random() * 2 / number)
        await world.settle()

    await start()
    seen["nothing happens"] = await world.watched(QUIET_SECONDS)

    async def lose() -> None:
        await asyncio.sleep(world.luck.random())
        process = world.living.pop(world.luck.choice(list(world.living)))
        await process.end()

    seen["a machine is lost"] = await world.watched(LOSS_SECONDS, lose())
    await world.settle()

    async def empty() -> None:
        await asyncio.sleep(world.luck.random())
        world.redis.empty()

    seen["Redis is emptied"] = await world.watched(LOSS_SECONDS, empty())
    await world.settle()

    async def roll() -> None:
        for id in list(world.living)[:restarted]:
            successor = await world.join()
            while not any(  # noqa: ASYNC110 - the simulation looks, nobody tells
                one.owner == successor.id for one in world.postgres.slots.values()
            ):
                await asyncio.sleep(LOOKS)
            await world.living[id].leave()
            del world.living[id]

    seen[f"{restarted} replaced, one by one"] = await world.watched(None, roll())
    await world.settle()
    return seen, list(world.living)


def stores_by_slot(number: int) -> Sequence[int]:
    """Count the stores of each slot, by their ids."""
    counted = [0] * SLOTS
    for n in range(number):
        counted[crc32(b"store_%032x" % n) % SLOTS] += 1
    return counted


def report(number: int, seed: int, restarted: int, stores: Sequence[int]) -> tuple[Any, ...]:
    """Simulate one fleet; print what it does, and answer its line among the fleets."""
    with virtual() as run:
        seen, members = run(life(number, seed, restarted))
    measure.table(
        f"{number} processes, seed {seed}: a second, of all of them; seconds without an owner",
        [
            "what happens",
            "beats",
            "Redis commands",
            "Redis MB",
            "statements",
            "rows",
            "slots moved",
            "slots waited",
            "median s",
            "longest s",
        ],
        [
            (
                name,
                f"{one.redis['beats']:.0f}",
                f"{one.redis['commands']:,.0f}",
                f"{one.redis['bytes'] / 1e6:.2f}",
                f"{one.postgres['statements']:,.0f}",
                f"{one.postgres['rows']:,.0f}",
                one.moved,
                one.gaps[0],
                f"{one.gaps[1]:.2f}",
                f"{one.gaps[2]:.2f}",
            )
            for name, one in seen.items()
        ],
    )
    quiet = seen["nothing happens"]
    shares = Counter[str]()
    for slot, owner in placement.place(members, {}).items():
        shares[owner] += stores[slot]
    mean = sum(stores) / len(members)
    lost = seen["a machine is lost"].gaps
    return (
        number,
        f"{mean:,.0f}",
        f"{max(shares.values()):,}",
        f"{max(shares.values()) / mean:.2f}",
        f"{quiet.redis['commands']:,.0f}",
        f"{quiet.redis['bytes'] / 1e6:.1f}",
        f"{quiet.postgres['statements']:,.0f}",
        f"{quiet.postgres['rows']:,.0f}",
        f"{lost[2]:.2f}",
        f"{100 * quiet.processor:.2f}",
    )


def shares(number: int, seed: int, stores: Sequence[int]) -> tuple[Any, ...]:
    """Deal the slots among so many processes; answer the fullest beside the mean, and how many have none."""
    fullest, idle = [], []
    for one in range(seed, seed + SEEDS):
        luck = random.Random(f"fleet {one}")  # noqa: S311 - a run is its seed
        members = [process_named(luck, n) for n in range(1, number + 1)]
        dealt = Counter[str]()
        for slot, owner in placement.place(members, {}).items():
            dealt[owner] += stores[slot]
        fullest.append(max(dealt.values()) * number / sum(stores))
        idle.append(number - len(dealt))
    return number, f"{median(fullest):.2f}", f"{max(fullest):.2f}", f"{median(idle):.0f}"


def main() -> None:
    """Simulate fleets of several sizes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--quick", action="store_true", help="one small fleet, only to see that it works"
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--fleets", type=int, nargs="*", default=list(FLEETS))
    parser.add_argument("--stores", type=int, default=STORES)
    asked = parser.parse_args()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(50))
    # One memory for all processes of the simulation; in a process four sets of members are kept.
    placement._heaviest = lru_cache(4096)(placement._heaviest.__wrapped__)  # noqa: SLF001 - the same function
    placement.weights = lru_cache(maxsize=4096)(placement.weights.__wrapped__)
    fleets = [8] if asked.quick else asked.fleets
    stores = stores_by_slot(asked.stores // 100 if asked.quick else asked.stores)
    rows = []
    measure.table(
        f"Shares of {sum(stores):,} stores in one map of {SLOTS:,} slots, seeds {asked.seed} to {asked.seed + SEEDS - 1}",
        ["processes", "the fullest over the mean", "at worst", "own no slot"],
        [shares(number, asked.seed, stores) for number in (fleets if asked.quick else PLACED)],
    )
    for number in fleets:
        print(f"{number} processes", file=sys.stderr)
        rows.append(report(number, asked.seed, min(number, RESTARTED), stores))
    if not rows:
        return
    measure.table(
        f"{sum(stores):,} stores in one map of {SLOTS:,} slots, seed {asked.seed}: while nothing happens, a second, of all",
        [
            "processes",
            "stores each",
            "of the fullest",
            "over the mean",
            "Redis commands",
            "Redis MB",
            "statements",
            "rows",
            "lost machine, s",
            "% of a core each",
        ],
        rows,
    )


if __name__ == "__main__":
    main()
