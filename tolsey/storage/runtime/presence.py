"""Who is there: one line for each process of a deployment in Redis, rewritten at every beat.

No line has a time to live. Whoever reads the lines judges by a clock of its own how long one did not
change, so that neither Redis's clock nor anybody's wall clock decides who is dead.
"""

from dataclasses import dataclass
from typing import Any

from redis.asyncio import BlockingConnectionPool, Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError

from tolsey.storage import cache
from tolsey.storage.cache import CacheUnavailable


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """What a beat found."""

    server: str
    """The id of this run of the server: another one may have forgotten what was written."""
    before: str | None
    """What stood in one's own line; none when it was lost, or at the first beat."""
    processes: dict[str, str]
    """The lines of all processes."""
    changes: int
    """How often the map of slots was changed."""
    server_seconds: float
    """The server's clock, which stamps the entries of streams."""


class Presence:
    """The lines of the processes of one deployment."""

    def __init__(self, url: str, deployment: str) -> None:
        self._pool = BlockingConnectionPool.from_url(
            url,
            decode_responses=True,
            socket_timeout=cache.TIMEOUT_SECONDS,
            socket_connect_timeout=cache.TIMEOUT_SECONDS,
            retry=Retry(NoBackoff(), 0),
            max_connections=4,
            timeout=cache.TIMEOUT_SECONDS,
        )
        self._redis: Redis = Redis(connection_pool=self._pool)
        self._lines = f"tolsey:{{{deployment}}}:processes"
        self._changes = f"tolsey:{{{deployment}}}:changes"

    async def beat(self, process: str, line: str) -> Look:
        """Write one's own line and read all. Raises CacheUnavailable when Redis is away."""
        async with self._redis.pipeline(transaction=True) as pipe:
            pipe.hget(self._lines, process)
            pipe.hset(self._lines, process, line)
            pipe.hgetall(self._lines)
            pipe.get(self._changes)
            pipe.time()
            pipe.info("server")
            before, _, lines, changes, time, server = await self._guarded(pipe.execute())
        return Look(
            server=server["run_id"],
            before=before,
            processes=lines,
            changes=int(changes or 0),
            server_seconds=time[0] + time[1] / 1_000_000,
        )

    async def lines(self) -> dict[str, str]:
        """Read the lines of all processes, as one who is none of them."""
        found: dict[str, str] = await self._guarded(self._redis.hgetall(self._lines))
        return found

    async def changed(self) -> None:
        """Say that the map of slots was changed; everyone sees it at their next beat."""
        await self._guarded(self._redis.incr(self._changes))

    async def forget(self, *processes: str) -> None:
        """Take lines away."""
        await self._guarded(self._redis.hdel(self._lines, *processes))

    async def close(self) -> None:
        """Close the connections."""
        await self._redis.aclose()
        await self._pool.aclose()

    async def _guarded(self, work: Any) -> Any:
        try:
            return await work
        except (RedisError, OSError, TimeoutError) as error:
            raise CacheUnavailable(type(error).__name__) from error
