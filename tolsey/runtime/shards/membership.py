"""What a deployment keeps of its processes: their lines, their mail, the map of slots."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import orjson

from tolsey.runtime.shards.bus import FrameCarrier
from tolsey.storage.records.runtime.slots import Holding
from tolsey.storage.runtime.presence import Look


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """What a process says of itself at every beat."""

    beat: int
    host: str = ""
    pid: int = 0
    since: str = ""
    draining: bool = False
    """True when it is about to stop: it gets no more slots."""
    keys: tuple[str, ...] = ()
    """The ids of the keys with which it opens frames; a process of the release before announces none."""

    def encode(self) -> str:
        """Write it as JSON text."""
        return orjson.dumps(self).decode()


def read_line(text: str) -> Heartbeat:
    """Read a line; what cannot be read is a line of a process that takes no slots."""
    try:
        fields: dict[str, Any] = orjson.loads(text)
        return Heartbeat(
            int(fields["beat"]),
            str(fields.get("host", "")),
            int(fields.get("pid", 0)),
            str(fields.get("since", "")),
            bool(fields.get("draining", False)),
            tuple(map(str, fields.get("keys", ()))),
        )
    except (ValueError, KeyError, TypeError):
        return Heartbeat(0, draining=True)


def choose_key(own: Sequence[str], announced: Iterable[Sequence[str]]) -> str:
    """Choose the key that seals frames: the first of our own that every live member has announced.

    A member that announced no keys is assumed to have ours. Without a common key the first one seals.
    """
    rings = [ring for ring in announced if ring]
    return next((key for key in own if all(key in ring for ring in rings)), own[0])


@dataclass(frozen=True, slots=True)
class Member:
    """A process of the deployment, as another one sees it."""

    id: str
    host: str
    pid: int
    since: str
    draining: bool
    alive: bool
    silent_seconds: float
    """For how long its beats have not been seen."""
    slots: int


class Presences(Protocol):
    """Where processes say they are there; `storage.runtime.presence.Presence` is the real one."""

    async def beat(self, process: str, line: str) -> Look:
        """Write one's own line and read all."""

    async def changed(self) -> None:
        """Say that the map of slots was changed."""

    async def forget(self, *processes: str) -> None:
        """Take lines away."""


class SlotMap(Protocol):
    """Who holds which slot, on disk; `storage.runtime.slots.Slots` is the real one."""

    async def read(self) -> dict[int, Holding]:
        """Read the map."""

    async def beat(self, process: str, number: int) -> None:
        """Write down how often a process has beaten."""

    async def forget(self, process: str) -> None:
        """Take the beats of a process away."""

    async def take(
        self, owner: str | None, seen: Mapping[int, int], *, from_owner: str | None = None
    ) -> dict[int, int]:
        """Give slots to an owner where the epoch is still the one that was seen."""

    async def release(self, owner: str) -> None:
        """Give every slot of an owner to nobody."""

    async def pin(self, slot: int, process: str | None) -> None:
        """Keep a slot with a process."""


class FrameStreams(FrameCarrier, Protocol):
    """What carries frames, opened and kept; `storage.runtime.streams.Streams` is the real one."""

    @property
    def key_ids(self) -> tuple[str, ...]:
        """List the keys with which it opens frames, in the order of their preference."""

    def seal_with(self, key_id: str) -> None:
        """Seal frames with this key from now on."""

    async def open(self, process: str) -> None:
        """Make this process's streams."""

    async def keep(self) -> bool:
        """Keep them alive, without what has been read; false when one is gone."""

    async def drop(self, process: str) -> None:
        """Take the streams of another process away."""
