"""Frames between processes over Redis Streams: two streams for each process, read by it alone.

A frame is sealed for the stream that it goes to: what passes through Redis tells nobody anything,
and nobody without the service's keys can put a message into an actor's mailbox. The sealing key is
one that every live process has (`membership.choose_key`), so that keys can change while frames travel.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

import structlog

from tolsey.storage import cache
from tolsey.storage.cache import CacheUnavailable
from tolsey.storage.runtime.redis_line import Command, RedisLine
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
CUT: Final = (b"MAXLEN", b"~", MOST_ENTRIES)
START = b"0-0"


@dataclass(frozen=True, slots=True)
class Frame:
    """A frame that was read: its channel, what it holds, when Redis took it (its clock, seconds)."""

    channel: Channel
    body: bytes
    at_seconds: float


class Streams:
    """The streams of one process, and the way to those of the others."""

    def __init__(self, url: str, deployment: str, vault: Vault) -> None:
        self.refused = 0
        """How many frames came that none of our keys had sealed."""
        self._vault = vault
        self._key_id = vault.key_ids[0]
        self._prefix = f"tolsey:{{{deployment}}}:"
        self._line = RedisLine(url, timeout_seconds=cache.TIMEOUT_SECONDS)
        self._reader = RedisLine(url, timeout_seconds=cache.TIMEOUT_SECONDS)
        self._last: dict[bytes, bytes] = {}
        self._mine: dict[bytes, Channel] = {}

    @property
    def key_ids(self) -> tuple[str, ...]:
        """List the keys with which this process opens frames, in the order of their preference."""
        return self._vault.key_ids

    def seal_with(self, key_id: str) -> None:
        """Seal frames with this key from now on."""
        self._key_id = key_id

    async def open(self, process: str) -> None:
        """Make the two streams of this process, or make them again; read them from their start."""
        self._mine = {self._name((process, "in")): "in", self._name((process, "re")): "re"}
        commands: list[Command] = []
        for name in self._mine:
            commands.append(("XADD", name, *CUT, b"*", b"opened", b""))
            commands.append(("EXPIRE", name, KEPT_SECONDS))
        await self._line.exchange(commands)
        self._last = dict.fromkeys(self._mine, START)

    async def send(self, frames: Mapping[Address, bytes]) -> list[Address]:
        """Send frames in one round trip; answer which found no stream: that process is gone.

        Raises CacheUnavailable when Redis is away; then nobody knows which of them arrived.
        """
        commands: list[Command] = []
        for address, body in frames.items():
            name = self._name(address)
            wrapped = self._vault.wrap(body, name.decode(), self._key_id)
            commands.append(("XADD", name, b"NOMKSTREAM", *CUT, b"*", FIELD, wrapped))
        taken = await self._line.exchange(commands)
        return [address for address, id in zip(frames, taken, strict=True) if id is None]

    async def read(self) -> list[Frame]:
        """Wait up to a second for frames to this process; none when none came."""
        if not self._last:
            raise CacheUnavailable("no stream was opened yet")
        wanted = ("COUNT", READ_FRAMES, "BLOCK", BLOCK_MILLISECONDS, "STREAMS")
        (found,) = await self._reader.exchange(
            [("XREAD", *wanted, *self._last, *self._last.values())],
            blocks_seconds=BLOCK_MILLISECONDS / 1000,
        )
        return [frame for name, entries in found or () for frame in self._frames(name, entries)]

    def _frames(self, name: bytes, entries: Any) -> list[Frame]:
        frames = []
        for id, (field, sealed, *_) in entries:
            self._last[name] = id
            if field == FIELD:
                try:
                    body = self._vault.unwrap(sealed, name.decode())
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
        commands: list[Command] = []
        for name, last in self._last.items():
            commands.append(("XTRIM", name, "MINID", "~", last))
            commands.append(("EXPIRE", name, KEPT_SECONDS))
        answers = await self._line.exchange(commands)
        return all(answers[1::2])

    async def drop(self, process: str) -> None:
        """Take the streams of a process away that is gone."""
        await self._line.exchange(
            [("DEL", self._name((process, "in")), self._name((process, "re")))]
        )

    async def close(self) -> None:
        """Close the connections."""
        self._line.close()
        self._reader.close()

    def _name(self, address: Address) -> bytes:
        process, channel = address
        return f"{self._prefix}{channel}:{process}".encode()
