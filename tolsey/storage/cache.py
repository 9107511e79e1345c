"""Redis: losing it loses speed and nothing else, so every use of it says what it does without."""

import asyncio
import time
from collections.abc import Sequence
from typing import Any

from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import NoScriptError, RedisError

from tolsey.storage.errors import StorageError

TIMEOUT_SECONDS = 1.0
CONNECTIONS = 64
REST_SECONDS = 1.0
"""After a failure no one asks for this long, so that a lost cache does not slow each request."""


class CacheUnavailable(StorageError):  # noqa: N818 - named like StorageUnavailable
    """The cache is out of reach."""


class Script:
    """A Lua script, sent once and then named by its hash."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.sha: str | None = None


class Cache:
    """A pool of connections to Redis; every call raises CacheUnavailable when it is away."""

    def __init__(self, url: str) -> None:
        self._redis: Redis = Redis.from_url(
            url,
            decode_responses=True,
            socket_timeout=TIMEOUT_SECONDS,
            socket_connect_timeout=TIMEOUT_SECONDS,
            retry=Retry(NoBackoff(), 1),
            max_connections=CONNECTIONS,
        )
        # Callers beyond the connections wait: to the client they would be a cache that is away.
        self._places = asyncio.Semaphore(CONNECTIONS)
        self._rests_until = 0.0

    @property
    def is_resting(self) -> bool:
        """Whether every call is refused for now, because one has just failed."""
        return time.monotonic() < self._rests_until

    async def close(self) -> None:
        """Close every connection."""
        await self._redis.aclose()

    async def ping(self) -> bool:
        """Tell whether the cache answers; never raises."""
        try:
            async with self._places:
                return bool(await self._redis.ping())
        except (RedisError, OSError, TimeoutError):
            return False

    async def get(self, key: str) -> str | None:
        """Read a text; None when there is none."""
        value: str | None = await self._guarded(self._redis.get, key)
        return value

    async def set(self, key: str, value: str, *, seconds: int) -> None:
        """Keep a text for so many seconds."""
        await self._guarded(self._redis.set, key, value, ex=seconds)

    async def delete(self, *keys: str) -> None:
        """Forget texts."""
        await self._guarded(self._redis.delete, *keys)

    async def run(self, script: Script, keys: Sequence[str], args: Sequence[Any]) -> Any:
        """Run a script in one round trip."""
        return await self._guarded(self._evaluate, script, keys, args)

    async def flush(self) -> None:
        """Forget everything."""
        await self._guarded(self._redis.flushdb)

    async def _evaluate(self, script: Script, keys: Sequence[str], args: Sequence[Any]) -> Any:
        if script.sha is None:
            script.sha = await self._redis.script_load(script.source)
        try:
            return await self._redis.evalsha(script.sha, len(keys), *keys, *args)
        except NoScriptError:
            # The server was restarted and forgot it; EVAL brings the script along.
            return await self._redis.eval(script.source, len(keys), *keys, *args)

    async def _guarded(self, call: Any, *args: Any, **kwargs: Any) -> Any:
        async with self._places:
            if self.is_resting:
                raise CacheUnavailable("resting after a failure")
            try:
                return await call(*args, **kwargs)
            except (RedisError, OSError, TimeoutError) as error:
                self._rests_until = time.monotonic() + REST_SECONDS
                raise CacheUnavailable(type(error).__name__) from error
