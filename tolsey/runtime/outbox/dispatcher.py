"""What follows a commit: messages to other actors and calls to the world.

A row is dispatched the moment its commit is through, and again by a poll if that was lost. A
message is consumed by the commit of the turn it causes, so it takes effect once; a call is made at
least once, in its lane, and its row goes when its result has. What keeps failing goes to the dead
letters. What this version cannot read stays where it is for one that can.

Rows of one actor keep no order among them once one has to wait: who tells two things whose order
matters tells them in one message, or says by `Message.about` that they are of one thing. While a
message of a thing keeps failing, and when it has failed for good, those behind it wait (`held_by`).
"""

import asyncio
from collections.abc import Awaitable, Callable, Container, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

import structlog

from tolsey.runtime.clock import Time
from tolsey.runtime.codec import WireForm, decode
from tolsey.runtime.decision import Refused, Tell
from tolsey.runtime.errors import Duplicate, Overloaded, ShardUnavailable
from tolsey.runtime.ids import new_id
from tolsey.runtime.messages import ActorId, Call, LookFirst, Message, Patience
from tolsey.runtime.outbox.interruptions import MOST_INTERRUPTIONS, SUSPECTED_AFTER, Interruptions
from tolsey.runtime.outbox.lanes import Lane, Lanes
from tolsey.runtime.outbox.reading import RowReader
from tolsey.runtime.outbox.rows import OutboxStore, row_of
from tolsey.runtime.telemetry import Telemetry, Traced
from tolsey.storage.errors import StorageError
from tolsey.storage.records.runtime.turns import CallState, OutboxRow, Unread

log = structlog.get_logger()

CallHandler = Callable[[Any], Awaitable[Message[Any] | Sequence[Tell] | None]]

BACKOFF_SECONDS = (1.0, 5.0, 30.0, 120.0)
"""Waits between the attempts of a message; after the last the message is dead."""

PAGE = 500


class Deliver(Protocol):
    """How the dispatcher posts a message into a mailbox."""

    def __call__(
        self,
        to: ActorId,
        message: Message[Any],
        row: OutboxRow,
        settled: Callable[[BaseException | None], None],
    ) -> None:
        """Post a message; `settled` hears what became of it. Raises Overloaded or ShardUnavailable."""


class OwnedSlots(Protocol):
    """Which slots this process owns, and how rows of the others get to their owners."""

    def owns(self, slot: int) -> bool:
        """Whether rows of this slot are ours to work on."""

    def owned(self) -> Sequence[int] | None:
        """List the slots that are ours; None for all of them."""

    def forward(self, rows: Sequence[OutboxRow]) -> None:
        """Let the owners of rows know of them; they are on disk, so nothing depends on it."""


class Dispatcher:
    """Runs the outbox of one process."""

    def __init__(
        self,
        store: OutboxStore,
        deliver: Deliver,
        handlers: Mapping[type[Call[Any]], CallHandler | LookFirst],
        telemetry: Telemetry,
        *,
        slots: OwnedSlots,
        kinds: Mapping[str, Any],
        form: WireForm,
        time: Time,
        poll_seconds: float = 1.0,
        backoff_seconds: Sequence[float] = BACKOFF_SECONDS,
    ) -> None:
        for kind, handler in handlers.items():
            if kind.repeatable is isinstance(handler, LookFirst):
                raise TypeError(f"{kind.__name__} has to be looked up first, or does not")
        self._store = store
        self._deliver = deliver
        self._handlers = handlers
        self._telemetry = telemetry
        self._slots = slots
        self._reader = RowReader(store, kinds, handlers.keys())
        self._interruptions = Interruptions(store)
        self._form = form
        self._time = time
        self._poll_seconds = poll_seconds
        self._patience = Patience(tuple(backoff_seconds), len(backoff_seconds) + 1)
        self.lanes = Lanes()
        self._suspects = Lane(1)
        """Messages that may end the process, one at a time."""
        self._flying: dict[str, int] = {}
        """The rows that are worked on or wait for a place in their lane, each with its slot."""
        self._queued: set[str] = set()
        """Those of them that wait for a place."""
        self._landed: set[str] = set()
        """Those that work ended on since the poll began: it may have read them as they were before."""
        self._tasks: dict[asyncio.Task[None], None] = {}
        self._woken = asyncio.Event()
        self.stopping = False

    @property
    def in_flight(self) -> int:
        """How many rows are being worked on."""
        return len(self._flying)

    @property
    def unread(self) -> Sequence[Unread]:
        """List what has waited for long for a version that can read it, as of the last look."""
        return self._reader.unread

    def dispatch(self, rows: Sequence[OutboxRow]) -> None:
        """Start on rows that are on disk; those with a time of their own are left to the poll."""
        away: list[OutboxRow] = []
        for row in rows:
            if row.due_at is not None or row.key in self._flying:
                continue
            if not self._slots.owns(row.slot):
                away.append(row)
            elif not self.stopping:
                self._start(row, self._reader.read(row))
        if away:
            self._slots.forward(away)

    def at_work(self, slots: Container[int]) -> bool:
        """Whether rows of these slots are still being worked on."""
        return any(slot in slots for key, slot in self._flying.items() if key not in self._queued)

    def at_work_on(self, slot: int) -> list[str]:
        """List the rows of a slot that are being worked on and do not wait for a place."""
        return [key for key, of in self._flying.items() if of == slot and key not in self._queued]

    def wake(self) -> None:
        """Poll now."""
        self._woken.set()

    async def run(self) -> None:
        """Poll for rows that are due until cancelled."""
        while True:
            self._woken.clear()
            try:
                owned = self._slots.owned()
                none = owned is not None and not owned
                taken = 0 if none else await self._poll(owned)
                if not none:
                    await self._reader.look_for_unread(owned)
            except StorageError as error:
                log.warning("outbox.poll_failed", error=str(error))
                taken = 0
            if taken == PAGE:
                await self._time.sleep(0.05)
                continue
            await self._time.sleep(self._poll_seconds, unless=self._woken)

    async def _poll(self, owned: Sequence[int] | None) -> int:
        """Start on a page of what is due; answer how many rows that was."""
        # What nobody works on: no one knows whether it was noted, but nothing was done with it.
        await self._interruptions.give_back(but=self._flying)
        self._landed.clear()
        passed = [*self._flying, *self._reader.odd]
        rows = await self._store.due(PAGE, passed, self._reader.known, owned)
        self._telemetry.counters["outbox_polls"] += 1
        values = {
            row.key: (row, self._reader.read(row))
            for row in rows
            if self._is_as_read(row) and not self.stopping and self._slots.owns(row.slot)
        }
        at_once = [
            key
            for key, (row, value) in values.items()
            if isinstance(value, Message) and row.interruptions < SUSPECTED_AFTER
        ]
        if at_once:
            for key in set(at_once) - (await self._interruptions.begin(at_once)).keys():
                del values[key]
        for row, value in values.values():
            if self._is_as_read(row):
                self._start(row, value, polled=True)
        return len(rows)

    def _is_as_read(self, row: OutboxRow) -> bool:
        return row.key not in self._flying and row.key not in self._landed

    async def stop(self, grace_seconds: float) -> None:
        """Start nothing more and let what runs end; what does not end in time stays on disk."""
        self.stopping = True
        if self._tasks:
            with self._time.move_on_after(grace_seconds):
                await asyncio.wait(list(self._tasks))
        for task in list(self._tasks):
            task.cancel()
        if self._tasks:
            with self._time.move_on_after(1):
                await asyncio.wait(list(self._tasks))
        await self._interruptions.stop()

    def _start(self, row: OutboxRow, value: Any, *, polled: bool = False) -> None:
        if value is None:
            return
        if isinstance(value, Call):
            row = replace(row, lane=value.lane)  # another process may have sent it without
        self._flying[row.key] = row.slot
        if row.interruptions >= MOST_INTERRUPTIONS:
            self._spawn(self._bury(row, f"it ended {row.interruptions} processes"))
        elif isinstance(value, Call):
            self._spawn(self._call(row, value, polled=polled))
        elif row.interruptions >= SUSPECTED_AFTER:
            self._spawn(self._post_alone(row, value))
        else:
            self._post(row, value)

    def _spawn(self, work: Any) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks[task] = None
        task.add_done_callback(lambda task: self._tasks.pop(task, None))

    def _land(self, row: OutboxRow) -> None:
        """Work on a row no longer."""
        self._flying.pop(row.key, None)
        self._landed.add(row.key)
        self._interruptions.end(row.key)

    async def _begin(self, row: OutboxRow, *, noted: bool) -> CallState | None:
        """Say how far a row is on which work begins; None when it is ours no more.

        That it begins is `noted` on disk, which the first try of what may be repeated does not need.
        """
        self._queued.discard(row.key)
        state: CallState | None = None
        if not self.stopping and self._slots.owns(row.slot):
            state = row.state
            if noted:
                try:
                    state = await self._interruptions.begin_one(row.key)
                except StorageError as error:
                    log.warning("outbox.not_begun", key=row.key, error=str(error))
                    self._flying.pop(row.key, None)
                    return None
        if state is None:
            self._land(row)
        return state

    async def _post_alone(self, row: OutboxRow, message: Message[Any]) -> None:
        self._queued.add(row.key)
        async with self._suspects.place(""):
            if await self._begin(row, noted=True) is not None:
                over = asyncio.Event()
                self._post(row, message, over.set)
                await over.wait()

    def _post(
        self, row: OutboxRow, message: Message[Any], over: Callable[[], None] = lambda: None
    ) -> None:
        def settled(error: BaseException | None) -> None:
            over()
            if error is None:
                self._land(row)
            elif isinstance(error, (ShardUnavailable, Overloaded)):
                self._put_back(row)
            elif isinstance(error, Duplicate):
                self._spawn(self._finish(row, ()))
            elif isinstance(error, Refused):
                # A no is an answer: nothing has to wait behind it.
                self._spawn(self._bury(row, f"refused: {error}", holds=False))
            else:
                self._spawn(self._retry(row, error))

        try:
            self._deliver(ActorId(row.kind, row.actor_key), message, row, settled)
        except (Overloaded, ShardUnavailable):
            over()
            self._put_back(row)

    def _put_back(self, row: OutboxRow, why: str = "not taken") -> None:
        """Leave a row for later that found no one to take it: that was no attempt."""
        if self.stopping:
            self._flying.pop(row.key, None)  # what has begun is given back by the stop
        elif row.key not in self._interruptions:
            self._land(row)
        else:
            self._spawn(self._postpone(row, self._poll_seconds, why))

    async def _call(self, row: OutboxRow, call: Call[Any], *, polled: bool) -> None:
        structlog.contextvars.bind_contextvars(request_id=row.request_id, effect=row.name)
        tenant = call.tenant or f"{row.kind}:{row.actor_key}"
        suspect = row.interruptions >= SUSPECTED_AFTER
        limit, started = (
            self._time.timeout(call.deadline_seconds),
            asyncio.get_running_loop().time(),
        )
        self._queued.add(row.key)
        try:
            async with self.lanes.place(call.lane, tenant, suspect=suspect):
                # Of a call that is looked up first the disk says that it may be sent, before it is.
                state = await self._begin(row, noted=polled or not call.repeatable)
                if state is None:
                    return
                started = asyncio.get_running_loop().time()
                limit = self._time.timeout(call.deadline_seconds)
                async with limit:
                    result = await self._try(call, state)
        except Exception as error:  # noqa: BLE001 - the edge of an effect: it is tried again
            overdue = TimeoutError(f"no result in {call.deadline_seconds} seconds")
            if self.stopping or _was_not_taken(error):
                self._put_back(_unless_sent(row, call), repr(error))
                return
            self._telemetry.counters["effects_failed"] += 1
            self._tried(row, call, started, "overdue" if limit.expired() else "failed")
            why = overdue if limit.expired() else error
            await self._retry(_unless_sent(row, call), why, call.patience)
            return
        finally:
            self._queued.discard(row.key)
        row = _unless_sent(row, call)
        self._telemetry.counters["effects"] += 1
        log.debug("effect.done", seconds=self._tried(row, call, started, "done"))
        if isinstance(result, Message):
            self._post(row, result)
        else:
            owner = ActorId(row.kind, row.actor_key)
            follow = [
                row_of(
                    tell,
                    owner,
                    f"{row.key}:{n}",
                    form=self._form,
                    request_id=row.request_id,
                )
                for n, tell in enumerate(result or ())
            ]
            await self._finish(row, follow)

    def _tried(self, row: OutboxRow, call: Call[Any], started: float, outcome: str) -> float:
        """Count a try, and tell how long it took."""
        seconds, name = asyncio.get_running_loop().time() - started, type(call).__name__
        self._telemetry.calls[call.lane, name, outcome].add(seconds)
        if self._telemetry.trace is not None and row.request_id is not None:
            self._telemetry.trace(
                Traced("call", name, row.request_id, started, seconds, outcome, call.lane)
            )
        return seconds

    async def _try(self, call: Call[Any], state: CallState) -> Any:
        handler = self._handlers[type(call)]
        if not isinstance(handler, LookFirst):
            return await handler(call)
        if state != "waiting":
            found = await handler.look(call)
            if found is not None:
                return found
        return await handler.send(call)

    async def _finish(self, row: OutboxRow, follow: Sequence[OutboxRow]) -> None:
        try:
            await self._store.replace(row.key, follow)
        except StorageError as error:
            log.warning("outbox.not_finished", key=row.key, error=str(error))
        self._land(row)
        self.dispatch(follow)

    async def _retry(
        self, row: OutboxRow, error: BaseException, patience: Patience | None = None
    ) -> None:
        failed = replace(row, attempts=row.attempts + 1, interruptions=0)
        wait = (patience or self._patience).wait_after(failed.attempts, error)
        if wait is None:
            await self._bury(failed, f"{type(error).__name__}: {error}")
            return
        log.warning(
            "outbox.retry", key=row.key, name=row.name, attempts=failed.attempts, error=repr(error)
        )
        await self._postpone(failed, wait, repr(error))

    async def _postpone(self, row: OutboxRow, wait: float, why: str) -> None:
        try:
            await self._store.postpone(row, wait, why[:2000])
        except StorageError as lost:
            log.warning("outbox.not_postponed", key=row.key, error=str(lost))
        self._land(row)

    async def _bury(self, row: OutboxRow, error: str, *, holds: bool = True) -> None:
        log.error("outbox.dead", key=row.key, name=row.name, error=error)
        self._telemetry.counters["dead_letters"] += 1
        buried = replace(row, attempts=max(row.attempts, 1))
        owner, value = ActorId(row.kind, row.actor_key), decode(row.name, row.kind, row.payload)
        follow_up = value.given_up(error, self._time.now())
        key, form = f"{row.key}:given up", self._form
        follow = (
            () if follow_up is None else (row_of(Tell(owner, follow_up), owner, key, form=form),)
        )
        try:
            await self._store.bury(buried, new_id("dead"), error[:4000], follow, holds=holds)
        except StorageError as lost:
            log.warning("outbox.not_buried", key=row.key, error=str(lost))
            follow = ()
        self._land(row)
        self.dispatch(follow)


def _was_not_taken(error: Exception) -> bool:
    """Whether an actor that a call asked could not serve, as where the lease of its process has ended."""
    return isinstance(error, (ShardUnavailable, Overloaded)) and error.outcome == "none"


def _unless_sent(row: OutboxRow, call: Call[Any]) -> OutboxRow:
    """Say of a call that began whether its next try may send it without a look."""
    return replace(row, state="waiting" if call.repeatable else "unknown")
