"""What the processes of a campaign stand on: a PostgreSQL and a Valkey of its own, to be killed."""

import asyncio
import json
import os
import shutil
import signal
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import asyncpg
import redis.asyncio
from redis.exceptions import RedisError

from tests.campaigns.cluster.accounts import SCHEMA
from tests.campaigns.cluster.linear import Line
from tests.conftest import memory
from tolsey.storage.embedded.servers import EmbeddedServers
from tolsey.storage.migrate import migrate

BACK_SECONDS = 60.0

LINES = """
SELECT p.key, a.slot, p.n, p.op, p.amount, coalesce(j.epoch, -1) AS epoch, p.at, p.owner
FROM campaign_postings p
JOIN actors a ON a.kind = 'account' AND a.key = p.key
LEFT JOIN actor_journal j ON j.kind = 'account' AND j.key = p.key AND j.version = p.n
"""

LEFT = """
SELECT key, slot, payload, attempts, due_at::text, last_error, false AS dead FROM outbox
UNION ALL SELECT key, slot, payload, attempts, died_at::text, error, true FROM dead_letters
"""

Rows = list["asyncpg.Record"]


class Ground:
    """The servers, and a look at their disk that no fault of a process's network disturbs."""

    def __init__(self, servers: EmbeddedServers, folder: Path) -> None:
        self._servers = servers
        self.folder = folder
        self.database_url = servers.database_url
        self.redis_socket = servers.home.valkey_socket
        self.postgres_socket = servers.home.sockets / ".s.PGSQL.5432"
        self.killed: list[int] = []

    async def prepare(self) -> None:
        """Make the tables of the service and of the campaign."""
        await migrate(self._servers.database_url)
        await self.execute(SCHEMA)

    async def fetch(self, sql: str, *args: object) -> Rows:
        """Read the disk; waits for PostgreSQL to be back."""
        async with asyncio.timeout(BACK_SECONDS):
            while True:
                try:
                    return await self.fetch_now(sql, *args)
                except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError, TimeoutError):
                    await asyncio.sleep(0.1)

    async def fetch_now(self, sql: str, *args: object) -> Rows:
        """Read the disk, or raise what the driver raises."""
        connection = await asyncpg.connect(self._servers.database_url, timeout=5)
        try:
            return await connection.fetch(sql, *args)
        finally:
            connection.terminate()

    async def execute(self, sql: str) -> None:
        """Change the disk."""
        connection = await asyncpg.connect(self._servers.database_url)
        try:
            await connection.execute(sql)
        finally:
            await connection.close()

    async def lines(self) -> list[Line]:
        """Read every change of every account."""
        return [Line(*row) for row in await self.fetch(LINES)]

    async def left(self) -> list[dict[str, Any]]:
        """Read the work that was never done."""
        rows = await self.fetch(LEFT)
        return [{**row, "payload": json.loads(row["payload"])} for row in rows]

    async def count(self, table: str) -> int:
        """Count the rows of a table."""
        rows = await self.fetch(f"SELECT count(*) FROM {table}")  # noqa: S608 - our own tables
        return int(rows[0][0])

    async def flush_redis(self) -> None:
        """Let Valkey forget everything."""
        client = redis.asyncio.from_url(self._servers.redis_url)
        try:
            await client.flushall()
        finally:
            await client.aclose()

    async def forget_limits(self) -> None:
        """Let Valkey forget the windows of rate limits: few clients stand for many."""
        client = redis.asyncio.from_url(self._servers.redis_url)
        try:
            async for key in client.scan_iter("window:*", count=1_000):
                await client.delete(key)
        finally:
            await client.aclose()

    async def restart_redis(self) -> None:
        """Kill Valkey; its keeper starts it again with what it had written down."""
        pid = int((self._servers.home.valkey / "valkey.pid").read_text())
        self._kill(pid, signal.SIGKILL)
        await self._redis_is_back(pid)

    async def restart_postgres(self) -> None:
        """End PostgreSQL at once, as a power cut would; its keeper starts it again."""
        pid = self._postmaster()
        self._kill(pid, signal.SIGQUIT)
        async with asyncio.timeout(BACK_SECONDS):
            while self._postmaster() == pid:
                await asyncio.sleep(0.02)
        await self.fetch("SELECT 1")

    def _kill(self, pid: int, which: signal.Signals) -> None:
        self.killed.append(pid)
        os.kill(pid, which)

    def _postmaster(self) -> int:
        with suppress(OSError, ValueError, IndexError):
            lines = self._servers.home.postgres / "data" / "postmaster.pid"
            return int(lines.read_text().splitlines()[0])
        return self.killed[-1]

    async def _redis_is_back(self, pid: int) -> None:
        async with asyncio.timeout(BACK_SECONDS):
            while True:
                client = redis.asyncio.from_url(self._servers.redis_url)
                try:
                    if int((await client.info("server"))["process_id"]) != pid:
                        return
                except (RedisError, OSError):
                    await asyncio.sleep(0.02)
                finally:
                    await client.aclose()


@asynccontextmanager
async def ground() -> AsyncIterator[Ground]:
    """Start servers in a folder of their own, in memory where there is room."""
    folder = Path(tempfile.mkdtemp(prefix="tolsey-campaign-", dir=memory()))
    folder.chmod(0o755)  # the servers may run as another user
    servers = EmbeddedServers(folder / "servers")
    try:
        await asyncio.to_thread(servers.__enter__)
        try:
            made = Ground(servers, folder)
            await made.prepare()
            yield made
        finally:
            await asyncio.to_thread(servers.__exit__, None, None, None)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
