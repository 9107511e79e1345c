"""What operators see of actors, and what they may do to them."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from heapq import nsmallest
from typing import Any, Literal

from tolsey.runtime.clock import Time
from tolsey.runtime.errors import RuntimeFault
from tolsey.runtime.masking import masked
from tolsey.runtime.messages import ActorId
from tolsey.runtime.outbox.dispatcher import Dispatcher
from tolsey.runtime.outbox.lanes import Lanes
from tolsey.runtime.slots import HeldSlots
from tolsey.runtime.telemetry import NO_TURNS, ActorTally, Telemetry
from tolsey.runtime.turns.commit import Committer
from tolsey.runtime.turns.mailbox import Cell
from tolsey.runtime.turns.scheduler import Scheduler
from tolsey.storage.records.runtime.turns import Unread

LOOKED_AT = 5_000
"""How many actors are looked at before turns go on."""

DRAIN_SECONDS = 4.0
"""How long an actor has to end what waits for it."""

Sort = Literal["mailbox", "age", "errors", "cpu", "id"]
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
        time: Time,
    ) -> None:
        self._scheduler = scheduler
        self._committer = committer
        self._dispatcher = dispatcher
        self._slots = slots
        self._telemetry = telemetry
        self._admit = admit
        self._time = time

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
        tallies = self._telemetry.tallies()
        cells = list(self._scheduler.cells.values())
        for at in range(0, len(cells), LOOKED_AT):
            ranked = (
                (self._rank(cell, sort, tallies), cell)
                for cell in cells[at : at + LOOKED_AT]
                if (kind is None or cell.id.kind == kind) and (slot is None or cell.slot == slot)
            )
            wanted = [one for one in ranked if after is None or one[0] > after]
            best = nsmallest(limit, [*best, *wanted], key=lambda one: one[0])
            await asyncio.sleep(0)  # noqa: TID251 - it lets others run, and waits for no time
        return [(rank, self._summary(cell, tallies)) for rank, cell in best]

    def _rank(self, cell: Cell, sort: Sort, tallies: Mapping[ActorId, ActorTally]) -> Rank:
        number = 0.0
        if sort == "mailbox":
            number = float(-cell.depth)
        elif sort == "age":
            number = -self._oldest_seconds(cell)
        elif sort == "errors":
            number = -float(tallies.get(cell.id, NO_TURNS).errors)
        elif sort == "cpu":
            number = -tallies.get(cell.id, NO_TURNS).seconds
        return (number, *cell.id)

    async def inspect(self, actor: ActorId) -> dict[str, Any]:
        """Say everything of one actor: state with secrets masked, what is in flight, mailbox, last 50 turns."""
        cell = await self.wake(actor)
        return {
            **self._summary(cell),
            "state": masked(cell.state),
            "inFlight": self._in_flight(cell),
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

    async def drain(self, actor: ActorId) -> dict[str, Any]:
        """Let an actor end what waits for it, then put it to sleep. Raises Busy when that takes too long."""
        cell = await self.wake(actor)
        until = self._time.monotonic() + DRAIN_SECONDS
        while not self._scheduler.passivate(cell):
            if self._time.monotonic() > until:
                raise Busy("messages or commits still wait for it")
            await self._time.sleep(0.01)
        return {**self._summary(cell), "status": "asleep"}

    def _summary(
        self, cell: Cell, tallies: Mapping[ActorId, ActorTally] | None = None
    ) -> dict[str, Any]:
        tally = (self._telemetry.tallies() if tallies is None else tallies).get(cell.id, NO_TURNS)
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
            "recentErrors": tally.errors,
            "recentSeconds": round(tally.seconds, 6),
        }

    async def wake(self, actor: ActorId) -> Cell:
        """Wake an actor without a message, to look at it."""
        cell = self._scheduler.cells.get(actor) or self._admit(actor)
        await self._scheduler.waking.awaken(cell)
        cell.used_at = self._scheduler.loop.time()  # or the next sweep lets go of it
        return cell

    def _in_flight(self, cell: Cell) -> dict[str, Any] | None:
        """Say which message has its turn now, or has had it and is not yet on disk."""
        at_work = self._scheduler.gathering.get(cell.id)
        envelope = at_work or self._committer.first_of(cell)
        if envelope is None:
            return None
        return {
            "stage": "turn" if at_work else "commit",
            "message": envelope.turn.name,
            "messageId": envelope.id,
            "requestId": envelope.request_id,
            "seconds": round(self._scheduler.loop.time() - envelope.posted_at, 3),
        }

    def _oldest_seconds(self, cell: Cell) -> float:
        if not cell.queue:
            return 0.0
        return round(max(0.0, self._scheduler.loop.time() - cell.queue[0].posted_at), 3)

    def _status(self, cell: Cell) -> str:
        if cell.id in self._scheduler.paused:
            return "paused"
        return "awake" if cell.hot else "cold"
