"""Several processes' worth of runtimes over one database and one Redis, in one event loop."""

import asyncio
import secrets
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from itertools import islice
from typing import Any

from tests.runtime.counter import Counter
from tests.timing import LEASE_SECONDS, PATIENCE_SECONDS, STEPS, TestTime, lapse, until
from tolsey.runtime.registry import Runtime
from tolsey.runtime.shards.placement import place
from tolsey.runtime.shards.shard import Shard
from tolsey.runtime.turns.mailbox import slot_of
from tolsey.storage.cache import CacheUnavailable
from tolsey.storage.database import Database
from tolsey.storage.runtime import slots
from tolsey.storage.runtime.journal import Journal
from tolsey.storage.runtime.outbox import Outbox
from tolsey.storage.runtime.presence import Look, Presence
from tolsey.storage.runtime.streams import Address, Channel, Streams
from tolsey.storage.sealing.sealed import Vault

KEYS = {name: secrets.token_bytes(32) for name in ("k1", "k2")}


class ShardCluster:
    """Where shards join: the database, Redis, and what they have in common."""

    def __init__(
        self, database: Database, redis_url: str, lease_seconds: float = LEASE_SECONDS
    ) -> None:
        self.database = database
        self.redis_url = redis_url
        self.lease_seconds = lease_seconds
        self.time = TestTime(runs=True)
        self.homes: list[Home] = []

    @asynccontextmanager
    async def join(self, name: str = "", **options: Any) -> AsyncIterator["Home"]:
        """Add a process; it leaves in good order at the end."""
        home = await self.enter(name, **options)
        try:
            yield home
        finally:
            await home.leave()

    async def enter(self, name: str = "", **options: Any) -> "Home":
        home = Home(self, name, **options)
        await home.start()
        self.homes.append(home)
        return home

    async def lapse(self, steps: int = STEPS) -> None:
        """Let the leases of killed processes, and of those that are cut from Redis, end."""
        living = [one.shard for one in self.homes if not one.is_ended and not one.presence.is_cut]
        await lapse(self.time, self.lease_seconds, *living, steps=steps)


class Tap(Streams):
    """The real streams, with a hand on what this process sends."""

    cut: Channel | None = None
    """Frames of this channel are thrown away instead of being sent."""

    def __init__(self, url: str, deployment: str, vault: Vault) -> None:
        super().__init__(url, deployment, vault)
        self.sealed_with: set[str] = set()

    async def send(self, frames: Mapping[Address, bytes]) -> list[Address]:
        self.sealed_with.add(self._key_id)
        return await super().send({a: body for a, body in frames.items() if a[1] != self.cut})


class Line(Presence):
    """The real presence, which can be cut."""

    is_cut = False
    beats = 0

    async def beat(self, process: str, line: str) -> Look:
        if self.is_cut:
            raise CacheUnavailable("cut by the test")
        self.beats += 1
        return await super().beat(process, line)


class Home:
    """One process's worth: a runtime with counters, and its shard."""

    def __init__(self, joined: ShardCluster, name: str, **options: Any) -> None:
        self.joined = joined
        self.name = name
        self.vault = Vault({name: KEYS[name] for name in options.pop("keys", ("k1",))})
        self.options = {"poll_seconds": 0.05, **options}
        self.dead = False
        self.is_ended = False
        self._end = asyncio.Event()
        self.shard: Shard
        self.runtime: Runtime
        self.kind = Counter(joined.database)

    async def start(self) -> None:
        database = self.joined.database
        self.journal = Journal(database)
        self.runtime = Runtime(
            [self.kind],
            self.journal,
            Outbox(database),
            partial(slots.versions, database),
            time=self.joined.time,
            **self.options,
        )
        stored = slots.Slots(database)
        deployment = await stored.deployment()
        self.presence = Line(self.joined.redis_url, deployment)
        self.streams = Tap(self.joined.redis_url, deployment, self.vault)
        self.shard = Shard(
            self.runtime,
            self.presence,
            stored,
            self.streams,
            partial(slots.reply_of, database),
            lease_seconds=self.joined.lease_seconds,
            id=f"{self.name}-{secrets.token_hex(3)}" if self.name else None,
            witnesses=False,
        )
        self.ask = partial(self.runtime.ask, timeout=PATIENCE_SECONDS)
        ready = asyncio.Event()
        self._life = asyncio.create_task(self._live(ready))
        await asyncio.wait(
            {self._life, asyncio.create_task(ready.wait())}, return_when=asyncio.FIRST_COMPLETED
        )

    async def _live(self, ready: asyncio.Event) -> None:
        await self.runtime.__aenter__()
        await self.shard.__aenter__()
        ready.set()
        await self._end.wait()
        if not self.dead:
            await self.shard.__aexit__(None, None, None)
            await self.runtime.__aexit__(None, None, None)
        else:
            tasks = self.runtime._tasks
            assert tasks is not None
            tasks.cancel_scope.cancel()
            await tasks.__aexit__(None, None, None)
            while running := {task for task in self.shard._running if not task.done()}:
                for task in running:
                    task.cancel()
                await asyncio.wait(running, timeout=0.2)
        await self.journal.close()
        await self.presence.close()
        await self.streams.close()

    async def leave(self) -> None:
        self._end.set()
        await self._life
        self.is_ended = True

    async def kill(self) -> None:
        """End as a process does that is killed: nothing is handed over, released or said."""
        self.dead = True
        await self.leave()

    def key(self, number: int = 0) -> str:
        """Name a key that this process owns now."""
        names = (f"key-{n}" for n in range(100_000))
        return next(
            islice((k for k in names if slot_of(k) in self.runtime.slots.epochs), number, None)
        )


@asynccontextmanager
async def joined(
    database: Database, redis_url: str, lease_seconds: float = LEASE_SECONDS
) -> AsyncIterator[ShardCluster]:
    yield ShardCluster(database, redis_url, lease_seconds)


async def settled(*homes: Home) -> None:
    """Wait until each of these owns what it is to own, all agree on it, and each has seen the others beat."""
    ids = [home.shard.id for home in homes]

    def whole() -> bool:
        owned = [set(home.runtime.slots.epochs) for home in homes]
        maps = [{s: h.owner for s, h in home.shard.holdings.items()} for home in homes]
        wanted = dict(place(ids, homes[0].shard.holdings))
        seen = [home.shard._ownership.candidates() for home in homes]
        return (
            sum(map(len, owned)) == len(set().union(*owned)) == 1024
            and all(found == wanted for found in maps)
            and all(sorted(found) == sorted(ids) for found in seen)
        )

    await until(whole)
