"""What stands in front of an actor: its cell, and the envelopes that wait there."""

import asyncio
import pickle
import zlib
from collections import deque
from collections.abc import Callable
from typing import Any

from tolsey.runtime.actor import Actor, Turn
from tolsey.runtime.messages import ActorId, Message

SLOTS = 1024
"""How many slots the key space has; fixed for the life of a deployment (rules/calls#slots)."""

COLD_FROM_BYTES = 512
"""Objects weigh several times their pickle; below this there is little to win."""
EVICTED = -(1 << 60)
"""The generation of a cell that must never take a turn again."""
SMALL = b""
"""Instead of cold bytes: the state was looked at and is left hot."""


def slot_of(key: str) -> int:
    """Say which slot owns a key: crc32 of the key modulo 1,024."""
    return zlib.crc32(key.encode()) % SLOTS


class Envelope:
    """A message on its way to a turn, and where its answer goes.

    An ask has a `future`; a message from the outbox has `consumes`, the key of its row, and
    `settled`, called with what became of it.
    """

    __slots__ = (
        "attempts",
        "chain",
        "consumes",
        "deadline",
        "finishes_call",
        "future",
        "id",
        "keeps_reply",
        "message",
        "order",
        "posted_at",
        "request_id",
        "settled",
        "turn",
    )

    def __init__(self, message: Message[Any], turn: Turn[Any], id: str, posted_at: float) -> None:
        self.message = message
        self.turn = turn
        self.id = id
        self.posted_at = posted_at
        self.deadline: float | None = None
        self.future: asyncio.Future[Any] | None = None
        self.attempts = 0
        self.order = 0
        self.consumes: str | None = None
        self.finishes_call = False
        """True for the result of a call: what it `consumes` is shown as done for a day."""
        self.request_id: str | None = None
        self.chain: tuple[ActorId, ...] = ()
        self.keeps_reply = False
        """True for an ask from another process: its reply is written down with its effect."""
        self.settled: Callable[[BaseException | None], None] | None = None

    @property
    def abandoned(self) -> bool:
        """Whether nobody waits for the answer any more."""
        return self.future is not None and self.future.done()

    def answer(self, reply: Any) -> None:
        """Give the asker the reply."""
        if self.future is not None and not self.future.done():
            self.future.set_result(reply)
        if self.settled is not None:
            self.settled(None)

    def fail(self, error: BaseException) -> None:
        """Give the asker an error."""
        if self.future is not None and not self.future.done():
            self.future.set_exception(error)
        if self.settled is not None:
            self.settled(error)


class Cell:
    """One actor that is awake: its state in memory and the messages in front of it.

    `state` is what the next turn sees; it may run ahead of `committed`, which is on disk. An idle
    cell keeps its state as bytes (`cold`) and has no queue.
    """

    __slots__ = (
        "actor",
        "busy",
        "cold",
        "committed",
        "generation",
        "hot",
        "id",
        "pending",
        "queue",
        "slot",
        "state",
        "used_at",
        "version",
    )

    def __init__(self, id: ActorId, actor: Actor[Any]) -> None:
        self.id = id
        self.actor = actor
        self.slot = slot_of(id.key)
        self.state: Any = None
        self.committed: Any = None
        self.cold: bytes | None = None
        self.hot = False
        self.busy = False
        self.version = 0
        self.pending = 0
        self.generation = 0
        self.queue: deque[Envelope] | None = None
        self.used_at = 0.0

    @property
    def depth(self) -> int:
        """How many messages wait."""
        return len(self.queue) if self.queue else 0

    def wake(self, state: Any, version: int) -> None:
        """Take the state that was read from disk."""
        self.state = self.committed = state
        self.version = version
        self.cold = None
        self.hot = True

    def forget(self) -> None:
        """Trust nothing in memory: the next turn reads the actor back from disk."""
        self.state = self.committed = self.cold = None
        self.hot = False
        self.generation += 1

    @property
    def evicted(self) -> bool:
        """Whether another cell, here or elsewhere, stands for the actor now."""
        return self.generation < 0

    def evict(self) -> None:
        """Forget for good: this process has the actor no longer, and may have another cell for it."""
        self.forget()
        self.generation = EVICTED

    def cool(self) -> None:
        """Keep the state as bytes: an idle actor then costs little beside what it knows.

        A small state is left as it is, its bytes would be no smaller; it is not looked at again
        until it changes.
        """
        pickled = pickle.dumps(self.committed, protocol=5)
        if len(pickled) < COLD_FROM_BYTES:
            self.cold = SMALL
            return
        self.cold = zlib.compress(pickled, 1)
        self.state = self.committed = None
        self.hot = False

    def warm(self) -> None:
        """Make the state an object again."""
        if self.cold:
            state = pickle.loads(zlib.decompress(self.cold))  # noqa: S301 - our own bytes, from memory
            self.wake(state, self.version)
