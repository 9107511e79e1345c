"""Every actor is always there: it wakes on its first message and sleeps when idle."""

import asyncio
import os
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Protocol, Self, TypeVar

import anyio
import structlog
from anyio.abc import TaskGroup

from tolsey.runtime.actor import Actor
from tolsey.runtime.codec import WireForm
from tolsey.runtime.commit import CommitLog, Committer
from tolsey.runtime.decision import Tell
from tolsey.runtime.errors import Cycle, NotOwner, Overloaded, Stopping
from tolsey.runtime.mailbox import SLOTS, Cell, Envelope, slot_of
from tolsey.runtime.messages import ActorId, Call, LookFirst, Message
from tolsey.runtime.outbox import BACKOFF_SECONDS, CallHandler, Dispatcher
from tolsey.runtime.parking import Parking
from tolsey.runtime.rows import OutboxStore, row_of
from tolsey.runtime.telemetry import Telemetry
from tolsey.runtime.turns import CHAIN, REQUEST_ID, Scheduler, Versions
from tolsey.storage.records.runtime.turns import OutboxRow, Unread

log = structlog.get_logger()

Reply = TypeVar("Reply")

PROCESS_LIMIT = 50_000
"""How many messages may wait in one process."""


class Router(Protocol):
    """The way to actors that other processes own; `shard.Shard` is the real one."""

    async def ask(
        self,
        to: ActorId,
        message: Message[Any],
        *,
        id: str,
        timeout: float,  # noqa: ASYNC109 - the deadline travels with the message
    ) -> Any:
        """Ask an actor at whoever owns it, which may be this process again by then."""

    def forward(self, rows: Sequence[OutboxRow]) -> None:
        """Let the owners of rows know that they are on disk."""

    def wake(self, slots: Collection[int]) -> None:
        """Let the owners of these slots look at the outbox now."""


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
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self.epochs = dict(epochs or {})
        """The slots this process owns, each with the epoch it holds it under."""
        self.router: Router | None = None
        self.telemetry = Telemetry()
        self._kinds = {actor.kind: actor for actor in actors}
        self.form: WireForm = form
        """How what it writes for other processes is named."""
        self._outbox = outbox
        self._limit = limit
        self._grace_seconds = grace_seconds
        self._incarnation = incarnation or os.urandom(6).hex()
        self._count = 0
        self._parking = Parking()
        self._leaving: dict[int, int] = {}
        self._leaving_cells: dict[ActorId, Cell] = {}
        self._committer = Committer(journal, self, self.telemetry, settle_seconds=settle_seconds)
        self._dispatcher = Dispatcher(
            outbox,
            self._deliver,
            handlers or {},
            self.telemetry,
            slots=self,
            kinds=self._kinds,
            form=form,
            clock=clock,
            poll_seconds=poll_seconds,
            backoff_seconds=backoff_seconds,
        )
        self._scheduler = Scheduler(
            self._committer,
            versions,
            self.telemetry,
            cold_seconds=cold_seconds,
            idle_seconds=idle_seconds,
            keeps=self._parking.__contains__,
            form=form,
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
        scheduler = self._scheduler
        try:
            cell = scheduler.cells.get(to)
            if cell is None:
                if self.router is not None and not chain and slot_of(to.key) not in self.epochs:
                    return await self.router.ask(  # type: ignore[no-any-return]  # as below
                        to, message, id=id or self.next_id(), timeout=timeout
                    )
                cell = self._admit(to, chain)
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
            if self.router is None:
                raise
        return await self.router.ask(  # type: ignore[no-any-return]  # as above
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
        cell = self._scheduler.cells.get(to) or self._admit(to, chain)
        envelope = self._envelope(cell, message, id)
        envelope.chain = chain
        envelope.request_id = request_id
        envelope.keeps_reply = True
        future = self._expect(envelope, timeout)
        self._post(cell, envelope)
        bucket = self._scheduler.wheel.add(future, envelope.deadline or 0.0)
        future.add_done_callback(lambda done: bucket.pop(done, None))
        return future

    async def accept(
        self, to: ActorId, message: Message[Any], *, id: str, sender: str | None = None
    ) -> bool:
        """Keep a message for good and answer at once; it takes effect later, once for each keeping.

        What a sender sent takes effect in the order in which it was kept, where its records say so.

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
        self.wake_outbox({row.slot for row in rows})
        return added

    # What the committer says (`commit.Gate`).

    def requeue(self, cell: Cell, envelopes: Sequence[Envelope]) -> None:
        """Put messages back in front of an actor."""
        self._scheduler.requeue(cell, envelopes)

    def park(self, cell: Cell, name: str, envelope: Envelope) -> None:
        """Let an asker wait for a name to be resolved."""
        self._parking.park(cell.id, name, envelope)

    def resolve(self, cell: Cell, answers: Mapping[str, Any]) -> None:
        """Answer everyone parked under these names."""
        self._parking.resolve(cell.id, answers)

    def dispatch(self, rows: Sequence[OutboxRow]) -> None:
        """Start on effects that are on disk."""
        self._dispatcher.dispatch(rows)

    def wake_outbox(self, slots: Collection[int] | None = None) -> None:
        """Look at the outbox now, at whoever owns these slots; None: here."""
        away = [slot for slot in slots or () if slot not in self.epochs]
        if slots is None or len(away) < len(slots):
            self._dispatcher.wake()
        if away and self.router is not None:
            self.router.wake(away)

    # Which slots are ours (`shard`, `commit.Gate`, `outbox.Slots`).

    def owns(self, slot: int) -> bool:
        """Whether this process owns a slot."""
        return slot in self.epochs

    def owned(self) -> Sequence[int] | None:
        """List the slots this process owns; None for all of them."""
        return None if len(self.epochs) == SLOTS else list(self.epochs)

    def epoch_of(self, slot: int) -> int:
        """Name the epoch under which commits for a slot go to disk; -1 when it is not ours."""
        epoch = self.epochs.get(slot)
        return self._leaving.get(slot, -1) if epoch is None else epoch

    def forward(self, rows: Sequence[OutboxRow]) -> None:
        """Let the owners of rows know of them."""
        if self.router is not None:
            self.router.forward(rows)

    def own(self, epochs: Mapping[int, int]) -> None:
        """Serve slots from now on, under these epochs."""
        self.epochs.update(epochs)
        self.wake_outbox()

    def lost(self, slot: int, epoch: int) -> None:
        """Stop serving a slot that was ours under this epoch; another process owns it."""
        if self.epochs.get(slot) == epoch:
            log.warning("slot.lost", slot=slot, epoch=epoch)
            del self.epochs[slot]
            self._evict([cell for cell in self.cells() if cell.slot == slot])

    async def hand_over(
        self,
        slots: Collection[int],
        give: Callable[[Mapping[int, int]], Awaitable[None]],
        *,
        seconds: float = 5.0,
    ) -> None:
        """Let go of slots: end their turns, flush their commits, then call `give` with the epochs.

        New asks for them wait at the router meanwhile. What has not ended after `seconds` is left
        to the fence: its asker is sent to the new owner.
        """
        held = {slot: self.epochs.pop(slot) for slot in slots if slot in self.epochs}
        self._leaving.update(held)
        cells = {cell.id: cell for cell in self.cells() if cell.slot in held}
        for id, cell in cells.items():
            del self._scheduler.cells[id]
            if id in self._scheduler.paused:
                self._scheduler.refuse([cell], NotOwner)
        self._leaving_cells.update(cells)
        try:
            with anyio.move_on_after(seconds):
                while self._at_work(held):  # noqa: ASYNC110 - three places to watch, once
                    await asyncio.sleep(0.002)
            await give(held)
        finally:
            gone = [cell for cell in self._leaving_cells.values() if cell.slot in held]
            for slot in held:
                del self._leaving[slot]
            for cell in gone:
                del self._leaving_cells[cell.id]
            self._evict(gone)

    def _at_work(self, held: Mapping[int, int]) -> bool:
        return self._dispatcher.at_work(held) or any(
            cell.slot in held and (cell.busy or cell.queue or cell.pending)
            for cell in self._leaving_cells.values()
        )

    def _evict(self, cells: Sequence[Cell]) -> None:
        """Let go of cells; whoever still waits for one is told that the actor is elsewhere.

        Turns on their way to disk stay with the committer, which alone knows what becomes of them.
        """
        self._scheduler.refuse(cells, NotOwner)
        for cell in cells:
            if self._scheduler.cells.get(cell.id) is cell:
                del self._scheduler.cells[cell.id]
            cell.evict()
            self._parking.fail(cell.id, NotOwner)

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
    def commit_seconds(self) -> float:
        """For how long the commit that is under way has not been answered; 0 when none is."""
        return self._committer.waiting_seconds

    @property
    def effects_in_flight(self) -> int:
        """How many effects are being worked on."""
        return self._dispatcher.in_flight

    def at_work_on(self, slot: int) -> list[str]:
        """List the outbox rows of a slot that are being worked on here."""
        return self._dispatcher.at_work_on(slot)

    @property
    def unread(self) -> Sequence[Unread]:
        """What has waited in the outbox for ten minutes for a version that can read it."""
        return self._dispatcher.unread

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
        cell = self._scheduler.cells.get(to) or self._admit(to, ())
        await self._scheduler.awaken(cell)
        return cell

    # Inside.

    def _check_rank(self, chain: tuple[ActorId, ...], to: ActorId) -> None:
        if self._kinds[to.kind].rank <= self._kinds[chain[-1].kind].rank:
            raise Cycle((*chain, to))

    def _admit(self, to: ActorId, chain: tuple[ActorId, ...]) -> Cell:
        if self.stopping:
            raise Stopping
        slot = slot_of(to.key)
        if slot in self.epochs:
            cell = self._scheduler.cells[to] = Cell(to, self._kinds[to.kind])
            return cell
        if chain and slot in self._leaving:  # a turn that has to end waits for this answer
            waiting = self._leaving_cells.get(to)
            if waiting is None:
                waiting = self._leaving_cells[to] = Cell(to, self._kinds[to.kind])
            return waiting
        raise NotOwner

    def pause(self, kind: str, key: str) -> None:
        """Let an actor take no more turns, as at the process that had it before."""
        self._scheduler.paused[ActorId(kind, key)] = None

    def paused_of(self, slots: Collection[int]) -> list[ActorId]:
        """List the paused actors of slots that leave, and keep them paused here no longer."""
        paused = [actor for actor in self._scheduler.paused if slot_of(actor.key) in slots]
        for actor in paused:
            del self._scheduler.paused[actor]
        return paused

    def is_leaving(self, slot: int) -> bool:
        """Whether a slot is on its way to another process."""
        return slot in self._leaving

    def next_id(self) -> str:
        """Make an id for a message, that no other process makes."""
        self._count += 1
        return f"{self._incarnation}:{self._count}"

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
        if cell.slot not in self.epochs and cell.slot not in self._leaving:
            raise NotOwner
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
        cell = self._scheduler.cells.get(to) or self._leaving_cells.get(to) or self._admit(to, ())
        envelope = self._envelope(cell, message, row.key)
        envelope.consumes = row.key
        envelope.finishes_call = row.lane is not None
        envelope.settled = settled
        envelope.request_id = row.request_id
        self._post(cell, envelope)
