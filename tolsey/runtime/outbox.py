"""What follows a commit: messages to other actors and calls to the world.

A row is dispatched the moment its commit is through, and again by a poll if that was lost. A
message is consumed by the commit of the turn it causes, so it takes effect once; a call is made at
least once and its row goes when its result has. What keeps failing goes to the dead letters.
"""

import asyncio
from collections.abc import Awaitable, Callable, Container, Mapping, Sequence
from typing import Any, Protocol

import anyio
import structlog

from tolsey.runtime.codec import decode, encode
from tolsey.runtime.decision import Effect, Perform, Refused, Tell
from tolsey.runtime.errors import Duplicate, Overloaded, Unavailable
from tolsey.runtime.ids import new_id
from tolsey.runtime.mailbox import Cell, Envelope, slot_of
from tolsey.runtime.messages import ActorId, Call, Message
from tolsey.runtime.telemetry import Telemetry
from tolsey.storage.errors import StorageError
from tolsey.storage.records.runtime.turns import OutboxRow

log = structlog.get_logger()

CallHandler = Callable[[Any], Awaitable[Message[Any] | Sequence[Tell] | None]]

BACKOFF_SECONDS = (1.0, 5.0, 30.0, 120.0)
"""Waits between the attempts of a message; after the last the message is dead."""

PAGE = 500


class OutboxStore(Protocol):
    """Where rows wait; `storage.runtime.outbox.Outbox` is the real one."""

    async def due(
        self, limit: int, but: Any, slots: Sequence[int] | None = None
    ) -> list[OutboxRow]:
        """Take rows that are due, of actors in these slots, counting the attempt."""

    async def add(self, rows: Sequence[OutboxRow]) -> int:
        """Keep rows; answer how many were new."""

    async def replace(self, key: str, rows: Sequence[OutboxRow]) -> None:
        """Take a finished row away and put others in its place."""

    async def postpone(self, key: str, seconds: float, attempts: int, error: str) -> None:
        """Try a row again later."""

    async def bury(self, key: str, id: str, attempts: int, error: str) -> None:
        """Move a row to the dead letters."""


class Deliver(Protocol):
    """How the dispatcher posts a message into a mailbox."""

    def __call__(
        self,
        to: ActorId,
        message: Message[Any],
        row: OutboxRow,
        settled: Callable[[BaseException | None], None],
    ) -> None:
        """Post a message; `settled` hears what became of it. Raises Overloaded or Unavailable."""


class Slots(Protocol):
    """Which slots this process owns, and how rows of the others get to their owners."""

    def owns(self, slot: int) -> bool:
        """Whether rows of this slot are ours to work on."""

    def owned(self) -> Sequence[int] | None:
        """List the slots that are ours; None for all of them."""

    def forward(self, rows: Sequence[OutboxRow]) -> None:
        """Let the owners of rows know of them; they are on disk, so nothing depends on it."""


def rows_of(effects: Sequence[Effect], cell: Cell, envelope: Envelope) -> tuple[OutboxRow, ...]:
    """Write a turn's effects as outbox rows; each has its own key or one made from the turn's."""
    return tuple(
        row_of(
            effect,
            cell.id,
            f"{cell.id}:{envelope.id}:{n}",
            request_id=envelope.request_id,
            consumed=envelope.consumes,
        )
        for n, effect in enumerate(effects)
    )


def row_of(
    effect: Effect,
    owner: ActorId,
    fallback: str,
    *,
    request_id: str | None = None,
    consumed: str | None = None,
) -> OutboxRow:
    """Write one effect as an outbox row; `consumed` is the row that goes in the same commit."""
    to, value = (owner, effect.call) if isinstance(effect, Perform) else (effect.to, effect.message)
    key = effect.key or fallback
    return OutboxRow(
        f"{key}+" if key == consumed else key,
        slot_of(to.key),
        to.kind,
        to.key,
        type(value).__name__,
        encode(value),
        effect.due_at,
        request_id=request_id,
    )


class Dispatcher:
    """Runs the outbox of one process."""

    def __init__(
        self,
        store: OutboxStore,
        deliver: Deliver,
        handlers: Mapping[type[Call], CallHandler],
        telemetry: Telemetry,
        *,
        slots: Slots,
        poll_seconds: float = 1.0,
        backoff_seconds: Sequence[float] = BACKOFF_SECONDS,
        calls_at_once: int = 32,
    ) -> None:
        self._store = store
        self._deliver = deliver
        self._handlers = handlers
        self._telemetry = telemetry
        self._slots = slots
        self._poll_seconds = poll_seconds
        self._backoff = tuple(backoff_seconds)
        self._calls = asyncio.Semaphore(calls_at_once)
        self._flying: dict[str, int] = {}
        """The rows that are being worked on, each with its slot."""
        self._tasks: dict[asyncio.Task[None], None] = {}
        self._woken = asyncio.Event()
        self.stopping = False

    @property
    def in_flight(self) -> int:
        """How many rows are being worked on."""
        return len(self._flying)

    def dispatch(self, rows: Sequence[OutboxRow]) -> None:
        """Start on rows that are on disk; those with a time of their own are left to the poll."""
        away: list[OutboxRow] = []
        for row in rows:
            if row.due_at is not None or row.key in self._flying:
                continue
            if not self._slots.owns(row.slot):
                away.append(row)
            elif not self.stopping:
                self._start(row)
        if away:
            self._slots.forward(away)

    def at_work(self, slots: Container[int]) -> bool:
        """Whether rows of these slots are still being worked on."""
        return any(slot in slots for slot in self._flying.values())

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
                rows = [] if none else await self._store.due(PAGE, list(self._flying), owned)
            except StorageError as error:
                log.warning("outbox.poll_failed", error=str(error))
                rows = []
            for row in rows:
                if row.key not in self._flying and not self.stopping and self._slots.owns(row.slot):
                    self._start(row)
            if len(rows) == PAGE:
                await asyncio.sleep(0.05)
                continue
            with anyio.move_on_after(self._poll_seconds):
                await self._woken.wait()

    async def stop(self, grace_seconds: float) -> None:
        """Start nothing more and let what runs end; what does not end in time stays on disk."""
        self.stopping = True
        if self._tasks:
            await asyncio.wait(list(self._tasks), timeout=grace_seconds)
        for task in list(self._tasks):
            task.cancel()
        if self._tasks:
            await asyncio.wait(list(self._tasks), timeout=1)

    def _start(self, row: OutboxRow) -> None:
        self._flying[row.key] = row.slot
        if row.attempts > len(self._backoff) + 1:
            # It was loaded often enough and never ended: it ends the process that takes it.
            self._spawn(self._bury(row, "it never ended"))
            return
        try:
            value = decode(row.name, row.payload)
        except (LookupError, ValueError) as error:
            self._spawn(self._bury(row, f"unreadable: {type(error).__name__}"))
            return
        if isinstance(value, Call):
            self._spawn(self._call(row, value))
        else:
            self._post(row, value)

    def _spawn(self, work: Any) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks[task] = None
        task.add_done_callback(lambda task: self._tasks.pop(task, None))

    def _post(self, row: OutboxRow, message: Message[Any]) -> None:
        def settled(error: BaseException | None) -> None:
            if error is None:
                self._flying.pop(row.key, None)
            elif isinstance(error, (Unavailable, Overloaded)):
                self._put_back(row)
            elif isinstance(error, Duplicate):
                self._spawn(self._finish(row, ()))
            elif isinstance(error, Refused):
                self._spawn(self._bury(row, f"refused: {error}"))
            else:
                self._spawn(self._retry(row, error))

        try:
            self._deliver(ActorId(row.kind, row.actor_key), message, row, settled)
        except (Overloaded, Unavailable):
            self._put_back(row)
        except LookupError as error:
            self._spawn(self._bury(row, f"no one takes it: {error}"))

    def _put_back(self, row: OutboxRow) -> None:
        """Leave a row for later that found no one to take it: that was no attempt."""
        if self.stopping or not row.attempts:
            self._flying.pop(row.key, None)
        else:
            self._spawn(self._postpone(row, row.attempts - 1, self._poll_seconds, "not taken"))

    async def _call(self, row: OutboxRow, call: Call) -> None:
        handler = self._handlers.get(type(call))
        if handler is None:
            await self._bury(row, f"no handler for {row.name}")
            return
        structlog.contextvars.bind_contextvars(request_id=row.request_id, effect=row.name)
        started = asyncio.get_running_loop().time()
        try:
            async with self._calls:
                result = await handler(call)
        except Exception as error:  # noqa: BLE001 - the edge of an effect: it is tried again
            self._telemetry.counters["effects_failed"] += 1
            await self._retry(row, error)
            return
        self._telemetry.counters["effects"] += 1
        log.debug("effect.done", seconds=asyncio.get_running_loop().time() - started)
        if isinstance(result, Message):
            self._post(row, result)
        else:
            owner = ActorId(row.kind, row.actor_key)
            follow = [
                row_of(tell, owner, f"{row.key}:{n}", request_id=row.request_id)
                for n, tell in enumerate(result or ())
            ]
            await self._finish(row, follow)

    async def _finish(self, row: OutboxRow, follow: Sequence[OutboxRow]) -> None:
        try:
            await self._store.replace(row.key, follow)
        except StorageError as error:
            log.warning("outbox.not_finished", key=row.key, error=str(error))
        self._flying.pop(row.key, None)
        self.dispatch(follow)

    async def _retry(self, row: OutboxRow, error: BaseException) -> None:
        attempts = max(row.attempts, 1)
        if attempts > len(self._backoff):
            await self._bury(row, f"{type(error).__name__}: {error}")
            return
        log.warning(
            "outbox.retry", key=row.key, name=row.name, attempts=attempts, error=repr(error)
        )
        await self._postpone(row, attempts, self._backoff[attempts - 1], repr(error))

    async def _postpone(self, row: OutboxRow, attempts: int, wait: float, why: str) -> None:
        try:
            await self._store.postpone(row.key, wait, attempts, why[:2000])
        except StorageError as lost:
            log.warning("outbox.not_postponed", key=row.key, error=str(lost))
        self._flying.pop(row.key, None)

    async def _bury(self, row: OutboxRow, error: str) -> None:
        log.error("outbox.dead", key=row.key, name=row.name, error=error)
        self._telemetry.counters["dead_letters"] += 1
        try:
            await self._store.bury(row.key, new_id("dead"), max(row.attempts, 1), error[:4000])
        except StorageError as lost:
            log.warning("outbox.not_buried", key=row.key, error=str(lost))
        self._flying.pop(row.key, None)
