"""Every actor is always there: it wakes on its first message and sleeps when idle."""

import asyncio
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from types import TracebackType
from typing import Any, Self, TypeVar

import anyio
import structlog
from anyio.abc import TaskGroup

from tolsey.runtime.actor import Actor
from tolsey.runtime.admin import Admin
from tolsey.runtime.clock import REAL_TIME, Time
from tolsey.runtime.codec import WireForm
from tolsey.runtime.decision import Tell
from tolsey.runtime.errors import Cycle, NotOwner, Overloaded, Stopping
from tolsey.runtime.messages import ActorId, Call, LookFirst, Message
from tolsey.runtime.outbox.dispatcher import BACKOFF_SECONDS, CallHandler, Dispatcher
from tolsey.runtime.outbox.rows import OutboxStore, row_of
from tolsey.runtime.slots import HeldSlots
from tolsey.runtime.telemetry import Telemetry
from tolsey.runtime.turns.commit import CommitLog, Committer
from tolsey.runtime.turns.mailbox import Cell, Envelope, slot_of
from tolsey.runtime.turns.parking import Parking
from tolsey.runtime.turns.scheduler import CHAIN, REQUEST_ID, Scheduler
from tolsey.runtime.turns.waking import Versions
from tolsey.storage.records.runtime.turns import OutboxRow

log = structlog.get_logger()

Reply = TypeVar("Reply")

PROCESS_LIMIT = 50_000
"""How many messages may wait in one process."""


class Runtime:
    """Finds the mailbox in front of any actor, and lets actors take their turns.

    An async context manager: inside it actors take turns; leaving it drains and stops.
    """

    form: WireForm
    """How what it writes for other processes is named."""
    draining = False
    stopping = False
    _count = 0
    _tasks: TaskGroup | None = None

    def __init__(
        self,
        actors: Sequence[Actor[Any]],
        journal: CommitLog,
        outbox: OutboxStore,
        versions: Versions,
        *,
        epochs: Mapping[int, int] | None = None,
        handlers: Mapping[type[Call[Any]], CallHandler | LookFirst] | None = None,
        limit: int = PROCESS_LIMIT,
        cold_seconds: float = 30.0,
        idle_seconds: float = 300.0,
        poll_seconds: float = 1.0,
        backoff_seconds: Sequence[float] = BACKOFF_SECONDS,
        settle_seconds: float = 15.0,
        grace_seconds: float = 10.0,
        incarnation: str | None = None,
        form: WireForm = "1",
        history: Collection[str] = (),
        time: Time = REAL_TIME,
    ) -> None:
        self.time = time
        self.telemetry = Telemetry()
        self.kinds = {actor.kind: actor for actor in actors}
        self.form = form
        self._outbox, self._limit, self._grace_seconds = outbox, limit, grace_seconds
        self._incarnation = incarnation or os.urandom(6).hex()
        self._parking = Parking()
        self.slots = HeldSlots(epochs or {}, self._parking, time)
        self._committer = Committer(
            journal,
            self,
            self.slots,
            self.telemetry,
            time,
            settle_seconds=settle_seconds,
            history=frozenset(history),
        )
        self._dispatcher = Dispatcher(
            outbox,
            self._deliver,
            handlers or {},
            self.telemetry,
            slots=self.slots,
            kinds=self.kinds,
            form=form,
            time=time,
            poll_seconds=poll_seconds,
            backoff_seconds=backoff_seconds,
        )
        self.scheduler = Scheduler(
            self._committer,
            versions,
            self.telemetry,
            time,
            cold_seconds=cold_seconds,
            idle_seconds=idle_seconds,
            keeps=self._parking.__contains__,
            form=form,
        )
        self.slots.scheduler, self.slots.dispatcher = self.scheduler, self._dispatcher
        self.admin = Admin(
            self.scheduler,
            self._committer,
            self._dispatcher,
            self.slots,
            self.telemetry,
            admit=self._admit,
            time=time,
        )

    async def __aenter__(self) -> Self:
        self._tasks = anyio.create_task_group()
        await self._tasks.__aenter__()
        self.scheduler.open()
        for work in (self._committer.run, self._dispatcher.run, self.scheduler.sweep):
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
        until = self.time.monotonic() + self._grace_seconds
        await self._dispatcher.stop(self._grace_seconds / 2)
        with self.time.move_on_after(max(0.0, until - self.time.monotonic())):
            await self.scheduler.drained()
            await self._committer.flushed()
        self.scheduler.close()
        self._parking.fail_all(Stopping)

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
        scheduler = self.scheduler
        try:
            cell = scheduler.cells.get(to) or self._admit(to, chain)
            turn = cell.actor.turns[type(message)]
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
        except NotOwner:
            if self.slots.router is None:
                raise
        return await self.slots.router.ask(  # type: ignore[no-any-return]  # as above
            to, message, id=id or self.next_id(), timeout=timeout
        )

    def receive(
        self,
        to: ActorId,
        message: Message[Any],
        *,
        id: str,
        timeout: float,
        chain: tuple[ActorId, ...] = (),
        request_id: str | None = None,
    ) -> asyncio.Future[Any]:
        """Post what another process asks; the future has the reply, which is kept on disk too.

        Raises NotOwner when the actor is not ours, and what `ask` raises at once.
        """
        cell = self.scheduler.cells.get(to) or self._admit(to, chain)
        envelope = self._envelope(cell, message, id)
        envelope.chain = chain
        envelope.request_id = request_id
        envelope.keeps_reply = True
        future = self._expect(envelope, timeout)
        self._post(cell, envelope)
        bucket = self.scheduler.wheel.add(future, envelope.deadline or 0.0)
        future.add_done_callback(lambda done: bucket.pop(done, None))
        return future

    async def accept(
        self, to: ActorId, message: Message[Any], *, id: str, sender: str | None = None
    ) -> bool:
        """Keep a message for good and answer at once; it takes effect later, once for each keeping.

        What a sender sent of one thing (`Message.about`) takes effect in the order in which it was kept, where its
        records say so.

        False when a message of that id is waiting already; one that was taken before is kept again,
        and the claims of its turn make it a duplicate. Raises StorageError when it cannot be
        kept.
        """
        tell = Tell(to, message, key=id)
        row = row_of(tell, to, id, form=self.form, request_id=REQUEST_ID.get())
        row = replace(row, sender=sender)
        added = await self._outbox.add((row,))
        if added:
            self._dispatcher.dispatch((row,))
        return bool(added)

    async def post(self, tells: Sequence[Tell]) -> int:
        """Keep many messages for good, each under its own key; answer how many were new."""
        rows = [row_of(tell, tell.to, tell.key, form=self.form) for tell in tells]
        added = await self._outbox.add(rows)
        self.slots.wake_outbox({row.slot for row in rows})
        return added

    # What the committer says (`commit.Gate`).

    def requeue(self, cell: Cell, envelopes: Sequence[Envelope]) -> None:
        """Put messages back in front of an actor."""
        self.scheduler.requeue(cell, envelopes)

    def park(self, cell: Cell, name: str, envelope: Envelope) -> None:
        """Let an asker wait for a name to be resolved."""
        self._parking.park(cell.id, name, envelope)

    def resolve(self, cell: Cell, answers: Mapping[str, Any]) -> None:
        """Answer everyone parked under these names."""
        self._parking.resolve(cell.id, answers)

    def dispatch(self, rows: Sequence[OutboxRow]) -> None:
        """Start on effects that are on disk."""
        self._dispatcher.dispatch(rows)

    # Inside.

    def _check_rank(self, chain: tuple[ActorId, ...], to: ActorId) -> None:
        if self.kinds[to.kind].rank <= self.kinds[chain[-1].kind].rank:
            raise Cycle((*chain, to))

    def _admit(self, to: ActorId, chain: tuple[ActorId, ...] = ()) -> Cell:
        if self.stopping:
            raise Stopping
        slot = slot_of(to.key)
        if slot in self.slots.epochs:
            cell = self.scheduler.cells[to] = Cell(to, self.kinds[to.kind])
            return cell
        if chain and self.slots.is_leaving(slot):  # a turn that has to end waits for this answer
            waiting = self.slots.leaving_cells.get(to)
            if waiting is None:
                waiting = self.slots.leaving_cells[to] = Cell(to, self.kinds[to.kind])
            return waiting
        raise NotOwner

    def next_id(self) -> str:
        """Make an id for a message, that no other process makes."""
        self._count += 1
        return f"{self._incarnation}:{self._count}"

    def _envelope(self, cell: Cell, message: Message[Any], id: str | None) -> Envelope:
        self._count += 1
        name = id or f"{self._incarnation}:{self._count}"
        envelope = Envelope(
            message, cell.actor.turns[type(message)], name, self.scheduler.loop.time()
        )
        envelope.order = self._count
        envelope.request_id = REQUEST_ID.get()
        return envelope

    def _expect(self, envelope: Envelope, timeout: float) -> asyncio.Future[Any]:
        loop = self.scheduler.loop
        future: asyncio.Future[Any] = loop.create_future()
        envelope.future = future
        envelope.deadline = loop.time() + timeout
        return future

    def _post(self, cell: Cell, envelope: Envelope) -> None:
        if self.stopping and envelope.consumes is None and not envelope.chain:
            raise Stopping
        if cell.slot not in self.slots.epochs and not self.slots.is_leaving(cell.slot):
            raise NotOwner
        waiting = cell.depth + cell.pending
        if cell.depth >= cell.actor.mailbox or waiting >= 4 * cell.actor.mailbox:
            self.telemetry.counters["mailbox_full"] += 1
            raise Overloaded("the mailbox")
        self._check_limit()
        self.scheduler.post(cell, envelope)

    def _check_limit(self) -> None:
        if self.scheduler.depth + self._committer.backlog >= self._limit:
            self.telemetry.counters["process_full"] += 1
            raise Overloaded("the process")

    def _deliver(
        self,
        to: ActorId,
        message: Message[Any],
        row: OutboxRow,
        settled: Callable[[BaseException | None], None],
    ) -> None:
        cell = self.scheduler.cells.get(to) or self.slots.leaving_cells.get(to) or self._admit(to)
        envelope = self._envelope(cell, message, row.key)
        envelope.consumes = row.key
        envelope.finishes_call = row.lane is not None
        envelope.settled = settled
        envelope.request_id = row.request_id
        self._post(cell, envelope)
