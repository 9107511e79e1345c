"""A connection to Redis for what is asked thousands of times a second: commands go out packed, answers come as lists.

`redis` opens it, with its addresses, passwords and TLS; from then on nothing stands between the socket and the
parser. A frame that crosses costs a seventh of the processor time that it takes by way of `redis`.
"""

import asyncio
from collections import deque
from collections.abc import Sequence
from typing import Any, Final, NamedTuple, TypeAlias

import hiredis
from redis.asyncio import ConnectionPool
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError

from tolsey.storage.cache import CacheUnavailable

Command: TypeAlias = tuple[Any, ...]
"""Texts, bytes and numbers."""

FAILED: Final = (RedisError, hiredis.HiredisError, OSError, TimeoutError, RuntimeError)
"""What a connection that is lost looks like; uvloop says RuntimeError of one that was reset as it was opened."""

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
        if not commands:  # nothing would be answered, and all that follows would wait for it
            return []
        try:
            answers = self._answers
            if answers is None or answers.is_lost:
                async with asyncio.timeout(self._timeout):
                    answers = await self._opened()
            return await answers.to(commands, self._timeout + blocks_seconds)
        except FAILED as error:
            if isinstance(error, RuntimeError):
                self.close()
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


class _Asked(NamedTuple):
    """Commands that were sent."""

    wanted: int
    found: list[Any]
    """The answers so far."""
    future: asyncio.Future[list[Any]]
    until: float


class _Answers(asyncio.Protocol):
    """What comes over a connection, given to who waits for it: Redis answers in order.

    One timer serves all who wait: one for each took a third of what an exchange costs beside its socket.
    """

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self.is_lost = False
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._writer = writer  # it closes the socket when nobody has it any more
        self._parser = hiredis.Reader(notEnoughData=_MORE)
        self._waiting: deque[_Asked] = deque()
        writer.transport.set_protocol(self)

    async def to(self, commands: Sequence[Command], seconds: float) -> list[Any]:
        """Send commands, and wait so long for their answers. Raises TimeoutError, and hangs up."""
        future: asyncio.Future[list[Any]] = self._loop.create_future()
        until = self._loop.time() + seconds
        self._waiting.append(_Asked(len(commands), [], future, until))
        if self._timer is None or until < self._timer.when():
            self._look_at(until)
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

    def _look_at(self, when: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_at(when, self._look, when)

    def _look(self, now: float) -> None:
        """Hang up if somebody has waited long enough, else look again when the next one has."""
        self._timer = None
        late = [one for one in self._waiting if one.until <= now and not one.future.done()]
        for one in late:
            one.future.set_exception(TimeoutError())
        if late:
            self.hang_up()
        elif self._waiting:
            self._look_at(min(one.until for one in self._waiting))

    def data_received(self, data: bytes) -> None:
        self._parser.feed(data)
        while self._waiting:
            answer = self._parser.gets()
            if answer is _MORE:
                return
            wanted, found, future, _ = self._waiting[0]
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
        if self._timer is not None:
            self._timer.cancel()
        for one in self._waiting:
            if not one.future.done():
                one.future.set_exception(exc or ConnectionResetError())
        self._waiting.clear()
