"""A connection to Redis for what is asked thousands of times a second: commands go out packed, answers come as lists.

`redis` opens it, with its addresses, passwords and TLS; from then on nothing stands between the socket and the
parser. A frame that crosses costs a seventh of the processor time that it takes by way of `redis`.
"""

import asyncio
from collections import deque
from collections.abc import Sequence
from typing import Any, Final, TypeAlias

import hiredis
from redis.asyncio import ConnectionPool
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError

from tolsey.storage.cache import CacheUnavailable

Command: TypeAlias = tuple[Any, ...]
"""Texts, bytes and numbers."""

_MORE: Final = object()
"""What the parser says while an answer is not whole."""


class RedisLine:
    """One connection, opened by the first exchange and again after it was lost."""

    def __init__(self, url: str, *, timeout_seconds: float) -> None:
        self._pool: Any = ConnectionPool.from_url(
            url,
            protocol=2,
            decode_responses=False,
            socket_connect_timeout=timeout_seconds,
            retry=Retry(NoBackoff(), 0),
        )
        self._timeout = timeout_seconds
        self._opening = asyncio.Lock()
        self._answers: _Answers | None = None

    async def exchange(
        self, commands: Sequence[Command], *, blocks_seconds: float = 0.0
    ) -> list[Any]:
        """Send commands in one write; answer what each came to. Raises CacheUnavailable."""
        try:
            async with asyncio.timeout(self._timeout + blocks_seconds):
                answers = self._answers
                if answers is None or answers.is_lost:
                    answers = await self._opened()
                return await answers.to(commands)
        except (RedisError, hiredis.HiredisError, OSError, TimeoutError) as error:
            raise CacheUnavailable(type(error).__name__) from error

    def close(self) -> None:
        """Hang up; another exchange would connect anew."""
        if self._answers is not None:
            self._answers.hang_up()

    async def _opened(self) -> "_Answers":
        async with self._opening:
            if self._answers is None or self._answers.is_lost:
                connection = self._pool.make_connection()
                await connection.connect()
                # There is no other way to its socket, which is ours from now on.
                writer, connection._writer, connection._reader = connection._writer, None, None  # noqa: SLF001
                self._answers = _Answers(writer)
            return self._answers


class _Answers(asyncio.Protocol):
    """What comes over a connection, given to who waits for it: Redis answers in order."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self.is_lost = False
        self._writer = writer  # it closes the socket when nobody has it any more
        self._parser = hiredis.Reader(notEnoughData=_MORE)
        self._waiting: deque[tuple[int, list[Any], asyncio.Future[list[Any]]]] = deque()
        writer.transport.set_protocol(self)

    async def to(self, commands: Sequence[Command]) -> list[Any]:
        """Send commands, and wait for their answers."""
        future: asyncio.Future[list[Any]] = asyncio.get_running_loop().create_future()
        self._waiting.append((len(commands), [], future))
        self._writer.transport.write(b"".join(hiredis.pack_command(one) for one in commands))
        try:
            return await future
        except asyncio.CancelledError:
            # What comes late would be taken for the answer to what is asked next.
            self.hang_up()
            raise

    def hang_up(self) -> None:
        """Give the connection up, whatever is still to come."""
        self.is_lost = True
        self._writer.transport.abort()

    def data_received(self, data: bytes) -> None:
        self._parser.feed(data)
        while self._waiting:
            answer = self._parser.gets()
            if answer is _MORE:
                return
            wanted, found, future = self._waiting[0]
            found.append(answer)
            if len(found) == wanted:
                self._waiting.popleft()
                if future.done():
                    continue
                failed = next((one for one in found if isinstance(one, hiredis.ReplyError)), None)
                if failed is None:
                    future.set_result(found)
                else:
                    future.set_exception(failed)

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_lost = True
        for _, _, future in self._waiting:
            if not future.done():
                future.set_exception(exc or ConnectionResetError())
        self._waiting.clear()
