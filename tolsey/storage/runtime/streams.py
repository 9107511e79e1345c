"""Frames between processes over Redis Streams: two streams for each process, read by it alone.

A frame is sealed for the stream that it goes to: what passes through Redis tells nobody anything,
and nobody without the service's keys can put a message into an actor's mailbox.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import structlog
from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError

from tolsey.storage.cache import CacheUnavailable
from tolsey.storage.sealing.sealed import SealBroken, Vault

log = structlog.get_logger()

Channel: TypeAlias = Literal["in", "re"]
Address: TypeAlias = tuple[str, Channel]
"""A process, and whether a frame holds requests to it or replies."""

MOST_ENTRIES = 10_000
"""An unread stream is cut to about this length; what is cut off is sent again by who waits for it."""

KEPT_SECONDS = 120
"""A stream whose process is gone goes after this time."""

BLOCK_MILLISECONDS = 1000
READ_FRAMES = 64
FIELD = b"f"
START = b"0-0"


@dataclass(frozen=True, slots=True)
class Frame:
    """A frame that was read: its channel, what it holds, when Redis took it (its clock, seconds)."""

    channel: Channel
    body: bytes
    at_seconds: float


class Streams:
    """The streams of one process, and the way to those of the others."""

    def __init__(
        self, url: str, deployment: str, vault: Vault, *, timeout_seconds: float = 1.0
    ) -> None:
        def connect(blocks_seconds: float = 0.0) -> Redis:
            return Redis.from_url(
                url,
                decode_responses=False,
                socket_timeout=timeout_seconds + blocks_seconds,
                socket_connect_timeout=timeout_seconds,
                retry=Retry(NoBackoff(), 0),
                max_connections=4,
            )

        self.refused = 0
        """How many frames came that none of our keys had sealed."""
        self._vault = vault
        self._prefix = f"tolsey:{{{deployment}}}:"
        self._redis = connect()
        self._reader = connect(BLOCK_MILLISECONDS / 1000)
        self._last: dict[Any, Any] = {}
        self._mine: dict[bytes, Channel] = {}

    async def open(self, process: str) -> None:
        """Make the two streams of this process, or make them again; read them from their start."""
        self._mine = {self._name((process, "in")): "in", self._name((process, "re")): "re"}
        async with self._redis.pipeline(transaction=False) as pipe:
            for name in self._mine:
                pipe.xadd(name, {b"opened": b""}, maxlen=MOST_ENTRIES, approximate=True)
                pipe.expire(name, KEPT_SECONDS)
            await self._guarded(pipe.execute())
        self._last = dict.fromkeys(self._mine, START)

    async def send(self, frames: Mapping[Address, bytes]) -> list[Address]:
        """Send frames in one round trip; answer which found no stream: that process is gone.

        Raises CacheUnavailable when Redis is away; then nobody knows which of them arrived.
        """
        async with self._redis.pipeline(transaction=False) as pipe:
            for address, body in frames.items():
                name = self._name(address)
                wrapped = self._vault.wrap(body, name.decode())
                pipe.xadd(
                    name, {FIELD: wrapped}, maxlen=MOST_ENTRIES, approximate=True, nomkstream=True
                )
            taken = await self._guarded(pipe.execute())
        return [address for address, id in zip(frames, taken, strict=True) if id is None]

    async def read(self) -> list[Frame]:
        """Wait up to a second for frames to this process; none when none came."""
        if not self._last:
            raise CacheUnavailable("no stream was opened yet")
        found: Any = await self._guarded(
            self._reader.xread(dict(self._last), count=READ_FRAMES, block=BLOCK_MILLISECONDS)
        )
        frames = []
        for name, entries in found.items() if isinstance(found, dict) else found or ():
            for entries_of in entries if isinstance(found, dict) else (entries,):
                frames += self._frames(bytes(name), entries_of)
        return frames

    def _frames(self, name: bytes, entries: Any) -> list[Frame]:
        frames = []
        for id, fields in entries:
            self._last[name] = id
            if FIELD in fields:
                try:
                    body = self._vault.unwrap(fields[FIELD], name.decode())
                except SealBroken:
                    self._refuse()
                    continue
                frames.append(Frame(self._mine[name], body, int(id.split(b"-")[0]) / 1000))
        return frames

    def _refuse(self) -> None:
        """Drop what none of our keys sealed, as if it had never come, and say so now and then."""
        self.refused += 1
        if self.refused & (self.refused - 1) == 0:
            log.error("streams.not_sealed_by_us", frames=self.refused, see="ENCRYPTION_KEYS")

    async def keep(self) -> bool:
        """Keep one's own streams alive, without what has been read of them; false when one is gone."""
        async with self._redis.pipeline(transaction=False) as pipe:
            for name, last in self._last.items():
                pipe.xtrim(name, minid=last, approximate=True)
                pipe.expire(name, KEPT_SECONDS)
            answers = await self._guarded(pipe.execute())
        return all(answers[1::2])

    async def drop(self, process: str) -> None:
        """Take the streams of a process away that is gone."""
        await self._guarded(
            self._redis.delete(self._name((process, "in")), self._name((process, "re")))
        )

    async def close(self) -> None:
        """Close the connections."""
        await asyncio.gather(self._redis.aclose(), self._reader.aclose())

    def _name(self, address: Address) -> bytes:
        process, channel = address
        return f"{self._prefix}{channel}:{process}".encode()

    async def _guarded(self, work: Any) -> Any:
        try:
            return await work
        except (RedisError, OSError, TimeoutError) as error:
            raise CacheUnavailable(type(error).__name__) from error
