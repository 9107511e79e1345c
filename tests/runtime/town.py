"""Several processes' worth of runtimes over one database and one Redis, in one event loop."""

import asyncio
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

from tests.runtime.counter import SCHEMA, Counter
from tolsey.runtime.registry import Runtime
from tolsey.runtime.shard import Shard
from tolsey.storage import slots
from tolsey.storage.database import Database
from tolsey.storage.journal import Journal
from tolsey.storage.outbox import Outbox
from tolsey.storage.presence import Presence
from tolsey.storage.sealed import Vault
from tolsey.storage.streams import Streams

VAULT = Vault({"k1": secrets.token_bytes(32)})


class Town:
    """Where shards join: the database, Redis, and what they have in common."""

    def __init__(self, database: Database, redis_url: str, lease_seconds: float) -> None:
        self.database = database
        self.redis_url = redis_url
        self.lease_seconds = lease_seconds

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
        return home


class Home:
    """One process's worth: a runtime with counters, and its shard."""

    def __init__(self, town: Town, name: str, **options: Any) -> None:
        self.town = town
        self.name = name
        self.options = {"poll_seconds": 0.05, **options}
        self.shard: Shard
        self.runtime: Runtime
        self.kind = Counter(town.database)

    async def start(self) -> None:
        database = self.town.database
        self.journal = Journal(database)
        self.runtime = Runtime(
            [self.kind],
            self.journal,
            Outbox(database),
            partial(slots.versions, database),
            **self.options,
        )
        stored = slots.Slots(database)
        deployment = await stored.deployment()
        self.presence = Presence(self.town.redis_url, deployment)
        self.streams = Streams(self.town.redis_url, deployment, VAULT)
        self.shard = Shard(
            self.runtime,
            self.presence,
            stored,
            self.streams,
            partial(slots.reply_of, database),
            lease_seconds=self.town.lease_seconds,
            id=f"{self.name}-{secrets.token_hex(3)}" if self.name else None,
            witnesses=False,
        )
        await self.runtime.__aenter__()
        await self.shard.__aenter__()
        self.ask = self.runtime.ask

    async def leave(self) -> None:
        await self.shard.__aexit__(None, None, None)
        await self.runtime.__aexit__(None, None, None)
        await self.close()

    async def close(self) -> None:
        await self.journal.close()
        await self.presence.close()
        await self.streams.close()


@asynccontextmanager
async def town(
    database: Database, redis_url: str, lease_seconds: float = 1.0
) -> AsyncIterator[Town]:
    await database.execute(SCHEMA)
    yield Town(database, redis_url, lease_seconds)


async def settled(*homes: Home) -> None:
    """Wait until every slot has an owner among these and all agree on it."""
    async with asyncio.timeout(20):
        while True:
            owned = [set(home.runtime.epochs) for home in homes]
            maps = [{s: h.owner for s, h in home.shard.holdings.items()} for home in homes]
            whole = sum(map(len, owned)) == len(set().union(*owned)) == 1024
            share = all(owned) and all(m == maps[0] for m in maps)
            if whole and share:
                return
            await asyncio.sleep(0.02)
