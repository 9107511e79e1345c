"""Redis: losing it loses speed and nothing else, so every use of it says what it does without."""

import asyncio
import math
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

from hiredis import pack_command
from redis.asyncio import ConnectionPool, Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import ConnectionError as ConnectionLost
from redis.exceptions import NoScriptError, RedisError, ResponseError

from tolsey.storage.errors import StorageError

TIMEOUT_SECONDS = 1.0
"""How long every use of Redis waits for it: here, beats and frames. Tests set another one, here alone."""
CONNECTIONS = 64
REST_SECONDS = 1.0
"""After a failure no one asks for this long, so that a lost cache does not slow each request."""
MOST_AT_ONCE = 256
"""How many runs of scripts share one write."""


class CacheUnavailable(StorageError):  # noqa: N818 - named like StorageUnavailable
    """The cache is out of reach."""


class Script:
    """A Lua script, sent once and then named by its hash."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.sha: str | None = None


class _Run(NamedTuple):
    """A run of a script that waits for its turn."""

    script: Script
    keys: Sequence[str]
    args: Sequence[Any]
    answer: asyncio.Future[Any]


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
        # Scripts have lines of their own: one bound for a whole exchange, none for each part of it.
        self._lines = ConnectionPool.from_url(
            url, decode_responses=True, socket_connect_timeout=TIMEOUT_SECONDS
        )
        self._idle: list[Any] = []
        self._gathered: list[_Run] = []
        self._sending: set[asyncio.Task[None]] = set()

    @property
    def is_resting(self) -> bool:
        """Whether every call is refused for now, because one has just failed."""
        return time.monotonic() < self._rests_until

    async def close(self) -> None:
        """Close every connection."""
        await self._redis.aclose()
        await self._lines.aclose()

    async def ping(self) -> bool:
        """Tell whether the cache answers; never raises."""
        try:
            async with self._places:
                return bool(await self._redis.ping())
        except (RedisError, OSError, TimeoutError):
            return False

    async def seconds(self) -> float:
        """Tell the server's clock, in seconds since 1970."""
        whole, millionths = await self._guarded(self._redis.time)
        return float(whole) + float(millionths) / 1_000_000

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
        """Run a script in one round trip, which all share that ask in the same turn of the loop."""
        loop = asyncio.get_running_loop()
        if not self._gathered or len(self._gathered) >= MOST_AT_ONCE:
            self._gathered = []
            task = loop.create_task(self._send(self._gathered))
            self._sending.add(task)
            task.add_done_callback(self._sending.discard)
        one = _Run(script, keys, args, loop.create_future())
        self._gathered.append(one)
        return await one.answer

    async def flush(self) -> None:
        """Forget everything."""
        await self._guarded(self._redis.flushdb)

    async def _send(self, runs: list[_Run]) -> None:
        """Run what was gathered, and answer everyone who still waits."""
        if runs is self._gathered:
            self._gathered = []
        try:
            answers = await self._guarded(self._evaluate, runs)
        except Exception as error:  # noqa: BLE001 - whatever it is, everyone who waits is told
            for one in runs:
                if not one.answer.done():
                    one.answer.set_exception(error)
            return
        for one, answer in zip(runs, answers, strict=True):
            if not one.answer.done():
                one.answer.set_result(answer)

    async def _evaluate(self, runs: list[_Run]) -> list[Any]:
        for script in {one.script for one in runs if one.script.sha is None}:
            script.sha = await self._redis.script_load(script.source)
        answers = await self._patiently([("EVALSHA", one.script.sha, one) for one in runs])
        # A server that was restarted has forgotten it; EVAL brings the script along.
        forgotten = [n for n, answer in enumerate(answers) if isinstance(answer, NoScriptError)]
        if forgotten:
            lost = [runs[n] for n in forgotten]
            again = await self._patiently([("EVAL", one.script.source, one) for one in lost])
            for n, answer in zip(forgotten, again, strict=True):
                answers[n] = answer
        for answer in answers:
            if isinstance(answer, ResponseError):
                raise answer
        return answers

    async def _patiently(self, commands: Sequence[tuple[str, str | None, _Run]]) -> list[Any]:
        packed = b"".join(
            pack_command((name, what or "", len(one.keys), *one.keys, *one.args))
            for name, what, one in commands
        )
        try:
            return await self._exchange(packed, len(commands))
        except ConnectionLost:  # the server was restarted behind idle lines
            while self._idle:
                await self._lines.release(self._idle.pop())
            return await self._exchange(packed, len(commands))

    async def _exchange(self, packed: bytes, number: int) -> list[Any]:
        """Send commands in one write, and read as many answers; an error may be one of them."""
        line: Any = self._idle.pop() if self._idle else await self._new_line()
        answers: list[Any] = []
        try:
            async with asyncio.timeout(TIMEOUT_SECONDS):
                await line.send_packed_command(packed, check_health=False)
                for _ in range(number):
                    try:
                        answers.append(await line.read_response(timeout=math.inf))
                    except ResponseError as error:
                        answers.append(error)
        except BaseException:
            await line.disconnect(nowait=True)
            await self._lines.release(line)
            raise
        self._idle.append(line)
        return answers

    async def _new_line(self) -> Any:
        pool: Any = self._lines
        return await pool.get_connection()

    async def _guarded(self, call: Any, *args: Any, **kwargs: Any) -> Any:
        async with self._places:
            if self.is_resting:
                raise CacheUnavailable("resting after a failure")
            try:
                return await call(*args, **kwargs)
            except (RedisError, OSError, TimeoutError) as error:
                self._rests_until = time.monotonic() + REST_SECONDS
                raise CacheUnavailable(type(error).__name__) from error
