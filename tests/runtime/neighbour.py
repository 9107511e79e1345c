"""A process of its own with a shard of counters: `python -m tests.runtime.neighbour DATABASE REDIS LEASE`.

It says its id once it has joined, and stays until its input ends.
"""

import asyncio
import sys
from unittest.mock import patch

from tests.runtime.shard_cluster import joined
from tests.timing import BEAT_SECONDS
from tolsey.runtime.shards import ownership
from tolsey.storage.database import Database


async def main(database_url: str, redis_url: str, lease_seconds: str) -> None:
    database = Database(database_url)
    await database.open()
    ended = asyncio.Event()
    asyncio.get_running_loop().add_reader(sys.stdin.fileno(), ended.set)
    with patch.object(ownership, "BEATS", float(lease_seconds) / BEAT_SECONDS):
        async with joined(database, redis_url, float(lease_seconds)) as here, here.join() as home:
            print(home.shard.id, flush=True)  # noqa: T201 - whoever started us reads it
            await ended.wait()
    await database.close()


asyncio.run(main(*sys.argv[1:]))
