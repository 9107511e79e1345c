"""Every actor is always there: it wakes on its first message and sleeps when idle."""

import asyncio
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Self, TypeVar

import anyio
import structlog
from anyio.abc import TaskGroup

from tolsey.runtime.actor import Actor
from tolsey.runtime.commit import CommitLog, Committer
from tolsey.runtime.decision import Tell
from tolsey.runtime.errors import Cycle, Overloaded, Stopping, Unavailable
from tolsey.runtime.mailbox import Cell, Envelope
from tolsey.runtime.messages import ActorId, Call, Message
from tolsey.runtime.outbox import (
    BACKOFF_SECONDS,
    CallHandler,
    Dispatcher,
    OutboxStore,
    row_of,
)
from tolsey.runtime.telemetry import Telemetry
from tolsey.runtime.turns import CHAIN, REQUEST_ID, Scheduler, Versions
from tolsey.storage.records.turns import OutboxRow

log = structlog.get_logger()

Reply = TypeVar("Reply")

PROCESS_LIMIT = 50_000
"""How many messages may wait in one process."""


class Runtime:
    """Finds the mailbox in front of any actor, and lets actors take their turns.

    An async context manager: inside it actors take turns; leaving it drains and stops.
    """

    def __init__(
        self,
        actors: Sequence[Actor[Any]],
        journal: CommitLog,
        outbox: OutboxStore,
        versions: Versions,
        *,
        epochs: Mapping[int, int],
        handlers: Mapping[type[Call], CallHandler] | None = None,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        limit: int = PROCESS_LIMIT,
        cold_seconds: float = 30.0,
        idle_seconds: float = 300.0,
        poll_seconds: float = 1.0,
        backoff_seconds: Sequence[float] = BACKOFF_SECONDS,
        settle_seconds: float = 15.0,
        grace_seconds: float = 10.0,
        incarnation: str | None = None,
    ) -> None:
        self.epochs = dict(epochs)
        self.telemetry = Telemetry()
        self.clock = clock
        self._kinds = {actor.kind: actor for actor in actors}
        self._outbox = outbox
        self._limit = limit
        self._grace_seconds = grace_seconds
        self._incarnation = incarnation or os.urandom(6).hex()
        self._count = 0
        self._parked: dict[ActorId, dict[str, list[Envelope]]] = {}
        self._committer = Committer(journal, self, self.telemetry, settle_seconds=settle_seconds)
        self._dispatcher = Dispatcher(
            outbox,
            self._deliver,
            handlers or {},
            self.telemetry,
            clock,
            poll_seconds=poll_seconds,
            backoff_seconds=backoff_seconds,
        )
        self._scheduler = Scheduler(
            self._committer,
            versions,
            self.telemetry,
            clock,
            cold_seconds=cold_seconds,
            idle_seconds=idle_seconds,
            keeps=self._parked.__contains__,
        )
        self._tasks: TaskGroup | None = None
        self.draining = False
        self.stopping = False

    async def __aenter__(self) -> Self:
        self._tasks = anyio.create_task_group()
        await self._tasks.__aenter__()
        self._scheduler.open()
        for work in (self._committer.run, self._dispatcher.run, self._scheduler.sweep):
            self._tasks.start_soon(work)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool | None:
        with anyio.CancelScope(shield=True):
            await self.drain()
        if self._tasks is None:
            return None
        self._tasks.cancel_scope.cancel()
        return await self._tasks.__aexit__(kind, error, trace)

    def retire(self) -> None:
        """Say that the end is near: readiness turns red, what is in flight is still served."""
        self.draining = True

    async def drain(self) -> None:
        """Refuse new messages, end the turns that wait, flush every commit."""
        self.draining = self.stopping = True
        loop = asyncio.get_running_loop()
        until = loop.time() + self._grace_seconds
        await self._dispatcher.stop(self._grace_seconds / 2)
        with anyio.move_on_after(max(0.0, until - loop.time())):
            await self._scheduler.drained()
            await self._committer.flushed()
        self._scheduler.close()
        for names in self._parked.values():
            for envelopes in names.values():
                for envelope in envelopes:
                    envelope.fail(Stopping())
        self._parked.clear()

    async def ask(
        self,
        to: ActorId,
        message: Message[Reply],
        *,
        id: str | None = None,
        timeout: float = 30.0,  # noqa: ASYNC109 - the deadline travels with the message
    ) -> Reply:
        """Post a message to an actor and wait for its reply.

        Raises what the decision refused with, Overloaded when a bound is reached, Unavailable when
        the actor cannot serve now, DeadlineExceeded after `timeout` seconds, Duplicate when the
        message had taken effect before, TurnFailed for a bug. A caller that goes away never tears a
        turn.
        """
        chain = CHAIN.get()
        if chain:
            self._check_rank(chain, to)
        elif self.stopping:
            raise Stopping
        cell = self._scheduler.cells.get(to) or self._admit(to)
        turn = cell.actor.turns[type(message)]
        scheduler = self._scheduler
        if (
            scheduler.budget > 0
            and cell.hot
            and not cell.busy
            and not turn.gathers
            and not (scheduler.paused and to in scheduler.paused)
        ):
            answered, reply = scheduler.take_now(cell, turn, message)
            if answered:
                return reply  # type: ignore[no-any-return]  # the message's type parameter says what it is
            self._check_limit()
            envelope = self._envelope(cell, message, id)
            future = self._expect(envelope, timeout)
            scheduler.decided(cell, envelope, reply)
        else:
            envelope = self._envelope(cell, message, id)
            envelope.chain = chain
            future = self._expect(envelope, timeout)
            self._post(cell, envelope)
        bucket = scheduler.wheel.add(future, envelope.deadline or 0.0)
        try:
            return await future  # type: ignore[no-any-return]  # as above
        finally:
            bucket.pop(future, None)

    async def accept(self, to: ActorId, message: Message[Any], *, id: str) -> bool:
        """Keep a message for good and answer at once; it takes effect later, once for each keeping.

        False when a message of that id is waiting already; one that was taken before is kept again,
        and the claims of its turn make it a duplicate. Raises StorageError when it cannot be
        kept.
        """
        tell = Tell(to, message, key=id)
        row = row_of(tell, to, id, self.clock(), request_id=REQUEST_ID.get())
        added = await self._outbox.add((row,))
        if added:
            self._dispatcher.dispatch((row,))
        return bool(added)

    async def post(self, tells: Sequence[Tell]) -> int:
        """Keep many messages for good, each under its own key; answer how many were new."""
        now = self.clock()
        rows = [row_of(tell, tell.to, tell.key, now) for tell in tells]
        added = await self._outbox.add(rows)
        self._dispatcher.wake()
        return added

    # What the committer says (`commit.Gate`).

    def requeue(self, cell: Cell, envelopes: Sequence[Envelope]) -> None:
        """Put messages back in front of an actor."""
        self._scheduler.requeue(cell, envelopes)

    def park(self, cell: Cell, name: str, envelope: Envelope) -> None:
        """Let an asker wait for a name to be resolved."""
        if not envelope.abandoned:
            self._parked.setdefault(cell.id, {}).setdefault(name, []).append(envelope)
            if envelope.future is not None:
                envelope.future.add_done_callback(
                    lambda _: self._unpark(cell.id, name, envelope)  # a deadline, a caller gone
                )

    def resolve(self, cell: Cell, answers: Mapping[str, Any]) -> None:
        """Answer everyone parked under these names."""
        parked = self._parked.get(cell.id)
        if parked is None:
            return
        for name, answer in answers.items():
            for envelope in parked.pop(name, ()):
                if isinstance(answer, BaseException):
                    envelope.fail(answer)
                else:
                    envelope.answer(answer)
        if not parked:
            del self._parked[cell.id]

    def _unpark(self, actor: ActorId, name: str, envelope: Envelope) -> None:
        names = self._parked.get(actor, {})
        if envelope in names.get(name, ()):
            names[name].remove(envelope)
            if not names[name]:
                del names[name]
            if not names:
                del self._parked[actor]

    def dispatch(self, rows: Sequence[OutboxRow]) -> None:
        """Start on effects that are on disk."""
        self._dispatcher.dispatch(rows)

    def wake_outbox(self) -> None:
        """Look at the outbox now."""
        self._dispatcher.wake()

    def lost(self, slot: int) -> None:
        """Stop serving a slot that another process owns."""
        if self.epochs.pop(slot, None) is not None:
            log.warning("slot.lost", slot=slot)
            cells = [cell for cell in self.cells() if cell.slot == slot]
            for cell in cells:
                self._committer.fail_cell(cell, _not_owner)
            self._scheduler.refuse(cells, _not_owner)

    # What operators see and do (`supervision`).

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
    def effects_in_flight(self) -> int:
        """How many effects are being worked on."""
        return self._dispatcher.in_flight

    @property
    def kinds(self) -> Mapping[str, Actor[Any]]:
        """The kinds of actor by name."""
        return self._kinds

    def cells(self) -> Iterator[Cell]:
        """Go through the actors that are awake."""
        return iter(list(self._scheduler.cells.values()))

    @property
    def scheduler(self) -> Scheduler:
        """Who gives the turns."""
        return self._scheduler

    async def wake(self, to: ActorId) -> Cell:
        """Wake an actor without a message, to look at it."""
        cell = self._scheduler.cells.get(to) or self._admit(to)
        await self._scheduler.awaken(cell)
        return cell

    # Inside.

    def _check_rank(self, chain: tuple[ActorId, ...], to: ActorId) -> None:
        if self._kinds[to.kind].rank <= self._kinds[chain[-1].kind].rank:
            raise Cycle((*chain, to))

    def _admit(self, to: ActorId) -> Cell:
        if self.stopping:
            raise Stopping
        cell = Cell(to, self._kinds[to.kind])
        if cell.slot not in self.epochs:
            raise _not_owner()
        self._scheduler.cells[to] = cell
        return cell

    def _envelope(self, cell: Cell, message: Message[Any], id: str | None) -> Envelope:
        self._count += 1
        name = id or f"{self._incarnation}:{self._count}"
        envelope = Envelope(
            message, cell.actor.turns[type(message)], name, self._scheduler.loop.time()
        )
        envelope.order = self._count
        envelope.request_id = REQUEST_ID.get()
        return envelope

    def _expect(self, envelope: Envelope, timeout: float) -> asyncio.Future[Any]:
        loop = self._scheduler.loop
        future: asyncio.Future[Any] = loop.create_future()
        envelope.future = future
        envelope.deadline = loop.time() + timeout
        return future

    def _post(self, cell: Cell, envelope: Envelope) -> None:
        if self.stopping and envelope.consumes is None and not envelope.chain:
            raise Stopping
        if cell.slot not in self.epochs:
            raise _not_owner()
        waiting = cell.depth + cell.pending
        if cell.depth >= cell.actor.mailbox or waiting >= 4 * cell.actor.mailbox:
            self.telemetry.counters["mailbox_full"] += 1
            raise Overloaded("the mailbox")
        self._check_limit()
        self._scheduler.post(cell, envelope)

    def _check_limit(self) -> None:
        if self._scheduler.depth + self._committer.backlog >= self._limit:
            self.telemetry.counters["process_full"] += 1
            raise Overloaded("the process")

    def _deliver(
        self,
        to: ActorId,
        message: Message[Any],
        row: OutboxRow,
        settled: Callable[[BaseException | None], None],
    ) -> None:
        cell = self._scheduler.cells.get(to) or self._admit(to)
        envelope = self._envelope(cell, message, row.key)
        envelope.consumes = row.key
        envelope.settled = settled
        envelope.request_id = row.request_id
        self._post(cell, envelope)


def _not_owner() -> Unavailable:
    return Unavailable("another process owns this actor")
