"""What operators see of actors, and what they may do to them."""

import asyncio
import dataclasses
import json
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from enum import Enum
from heapq import nsmallest
from itertools import islice
from typing import Any, Literal

from tolsey.runtime.errors import RuntimeFault
from tolsey.runtime.messages import ActorId
from tolsey.runtime.outbox.dispatcher import Dispatcher
from tolsey.runtime.outbox.lanes import Lanes
from tolsey.runtime.slots import HeldSlots
from tolsey.runtime.telemetry import Telemetry
from tolsey.runtime.turns.commit import Committer
from tolsey.runtime.turns.mailbox import Cell
from tolsey.runtime.turns.scheduler import Scheduler
from tolsey.storage.records.runtime.turns import Unread

MASK = "•••"
SEALED_PREFIX = "v1."
MOST_SHOWN = 100
"""How many parts of a collection are shown; an organization may have ten thousand lots of credits."""
LOOKED_AT = 5_000
"""How many actors are looked at before turns go on."""

Sort = Literal["mailbox", "age", "id"]
Rank = tuple[float, str, str]
"""Where an actor stands in a list: by a number, then by its kind and key."""


class Busy(RuntimeFault):
    """Something waits for the actor, so that it cannot be put to sleep now."""


class Admin:
    """What operators see of the actors of a process, and what they may do to them."""

    def __init__(
        self,
        scheduler: Scheduler,
        committer: Committer,
        dispatcher: Dispatcher,
        slots: HeldSlots,
        telemetry: Telemetry,
        *,
        admit: Callable[[ActorId], Cell],
    ) -> None:
        self._scheduler = scheduler
        self._committer = committer
        self._dispatcher = dispatcher
        self._slots = slots
        self._telemetry = telemetry
        self._admit = admit

    @property
    def awake(self) -> int:
        """How many actors are awake."""
        return len(self._scheduler.cells)

    @property
    def waiting(self) -> int:
        """How many messages wait for a turn."""
        return self._scheduler.depth

    @property
    def uncommitted(self) -> int:
        """How many turns are not yet on disk."""
        return self._committer.backlog

    @property
    def commit_seconds(self) -> float:
        """For how long the commit that is under way has not been answered; 0 when none is."""
        return self._committer.waiting_seconds

    @property
    def effects_in_flight(self) -> int:
        """How many effects are being worked on."""
        return self._dispatcher.in_flight

    @property
    def lanes(self) -> Lanes:
        """The lanes in which calls to the outside are made."""
        return self._dispatcher.lanes

    @property
    def unread(self) -> Sequence[Unread]:
        """What has waited in the outbox for ten minutes for a version that can read it."""
        return self._dispatcher.unread

    async def first(
        self,
        limit: int,
        *,
        kind: str | None = None,
        slot: int | None = None,
        sort: Sort = "mailbox",
        after: Rank | None = None,
    ) -> list[tuple[Rank, dict[str, Any]]]:
        """Say how actors are that are awake: the first so many of an order, after a place in it."""
        best: list[tuple[Rank, Cell]] = []
        cells = list(self._scheduler.cells.values())
        for at in range(0, len(cells), LOOKED_AT):
            ranked = (
                (self._rank(cell, sort), cell)
                for cell in cells[at : at + LOOKED_AT]
                if (kind is None or cell.id.kind == kind) and (slot is None or cell.slot == slot)
            )
            wanted = [one for one in ranked if after is None or one[0] > after]
            best = nsmallest(limit, [*best, *wanted], key=lambda one: one[0])
            await asyncio.sleep(0)
        return [(rank, self._summary(cell)) for rank, cell in best]

    def _rank(self, cell: Cell, sort: Sort) -> Rank:
        number = 0.0
        if sort == "mailbox":
            number = float(-cell.depth)
        elif sort == "age":
            number = -self._oldest_seconds(cell)
        return (number, *cell.id)

    async def inspect(self, actor: ActorId) -> dict[str, Any]:
        """Say everything of one actor: state with secrets masked, mailbox, last 50 turns."""
        cell = await self.wake(actor)
        return {
            **self._summary(cell),
            "state": masked(cell.state),
            "waiting": [envelope.turn.name for envelope in list(cell.queue or ())[:50]],
            "turns": [
                {
                    "message": span.message,
                    "milliseconds": round(span.seconds * 1000, 3),
                    "outcome": span.outcome,
                    "requestId": span.request_id,
                }
                for span in self._telemetry.last_of(actor)
            ],
            "atWorkOn": self._dispatcher.at_work_on(cell.slot),
        }

    async def pause(self, actor: ActorId) -> dict[str, Any]:
        """Let an actor take no more turns; its messages wait."""
        cell = await self.wake(actor)
        self._scheduler.pause(actor)
        return self._summary(cell)

    async def resume(self, actor: ActorId) -> dict[str, Any]:
        """Let a paused actor go on."""
        cell = await self.wake(actor)
        self._scheduler.resume(actor)
        return self._summary(cell)

    async def passivate(self, actor: ActorId) -> dict[str, Any]:
        """Put an actor to sleep. Raises Busy while something waits for it."""
        cell = await self.wake(actor)
        if not self._scheduler.passivate(cell):
            raise Busy("messages or commits wait for it")
        return {**self._summary(cell), "status": "asleep"}

    def _summary(self, cell: Cell) -> dict[str, Any]:
        return {
            "kind": cell.id.kind,
            "id": cell.id.key,
            "slot": cell.slot,
            "epoch": self._slots.epochs.get(cell.slot),
            "version": cell.version,
            "status": self._status(cell),
            "mailboxDepth": cell.depth,
            "uncommitted": cell.pending,
            "oldestMessageSeconds": self._oldest_seconds(cell),
            "turnInProgress": cell.busy,
        }

    async def wake(self, actor: ActorId) -> Cell:
        """Wake an actor without a message, to look at it."""
        cell = self._scheduler.cells.get(actor) or self._admit(actor)
        await self._scheduler.awaken(cell)
        cell.used_at = self._scheduler.loop.time()  # or the next sweep lets go of it
        return cell

    def _oldest_seconds(self, cell: Cell) -> float:
        if not cell.queue:
            return 0.0
        return round(max(0.0, self._scheduler.loop.time() - cell.queue[0].posted_at), 3)

    def _status(self, cell: Cell) -> str:
        if cell.id in self._scheduler.paused:
            return "paused"
        return "awake" if cell.hot else "cold"


def masked(value: Any, *, secret: bool = False) -> Any:
    """Show a value as JSON would hold it, with whatever is or may be a secret masked."""
    if value is None or isinstance(value, bool | int | float):
        return MASK if secret and value is not None else value
    if secret or isinstance(value, bytes):
        return MASK
    if isinstance(value, str):
        return MASK if value.startswith(SEALED_PREFIX) else str(value)
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat()
    if isinstance(value, Enum):
        return value.value
    return _masked_parts(value)


def _masked_parts(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {
            field.name: masked(
                getattr(value, field.name), secret=bool(field.metadata.get("secret"))
            )
            for field in dataclasses.fields(value)
        }
    if isinstance(value, Mapping):
        shown = {str(key): masked(item) for key, item in islice(value.items(), MOST_SHOWN)}
        return shown | ({"more": len(value) - MOST_SHOWN} if len(value) > MOST_SHOWN else {})
    if isinstance(value, tuple | list | set | frozenset):
        listed = [masked(item) for item in islice(value, MOST_SHOWN)]
        return listed + ([{"more": len(value) - MOST_SHOWN}] if len(value) > MOST_SHOWN else [])
    return json.loads(json.dumps(value, default=str))
