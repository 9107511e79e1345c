"""Who takes a turn next: inline when the actor is free, else from its queue, one at a time.

No actor has a task of its own. A plain turn runs in the asker's call while the event loop's budget
lasts, or from one callback that serves all actors with waiting messages; a turn that gathers runs
in a task of the runtime, so that a caller who goes away never tears it.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from itertools import islice
from math import inf
from typing import Any

import structlog

from tolsey.runtime.actor import Turn
from tolsey.runtime.clock import Time
from tolsey.runtime.codec import WireForm
from tolsey.runtime.decision import Decision, Parked, Refused
from tolsey.runtime.errors import (
    DeadlineExceeded,
    NotOwner,
    Overloaded,
    ShardUnavailable,
    Stopping,
    TurnFailed,
)
from tolsey.runtime.messages import ActorId, Message
from tolsey.runtime.outbox.rows import rows_of
from tolsey.runtime.telemetry import FOLDED, Span, Telemetry
from tolsey.runtime.turns.commit import MAX_ATTEMPTS, Committer
from tolsey.runtime.turns.mailbox import Cell, Envelope
from tolsey.runtime.turns.pending import PendingTurn
from tolsey.runtime.turns.waking import Versions, Waking
from tolsey.runtime.turns.wheel import Wheel
from tolsey.storage.errors import StorageError

log = structlog.get_logger()

CHAIN: ContextVar[tuple[ActorId, ...]] = ContextVar("chain", default=())
"""The actors whose turns are waiting for what is asked now."""

REQUEST_ID: ContextVar[str | None] = ContextVar("request_id", default=None)
"""The id of the request that is being served; messages, spans and effects carry it on."""

LAPSED = "this process's lease has ended"

AWAY = (StorageError, TimeoutError, DeadlineExceeded, Overloaded, ShardUnavailable)
"""What a turn that gathers may meet without a fault of its own."""

SLICE = 256
"""Turns between two visits of the event loop."""

SWEEP_SECONDS = 1.0
SWEEP_CELLS = 10_000


class Scheduler:
    """Gives the actors of one process their turns."""

    def __init__(
        self,
        committer: Committer,
        versions: Versions,
        telemetry: Telemetry,
        time: Time,
        *,
        cold_seconds: float,
        idle_seconds: float,
        keeps: Callable[[ActorId], bool],
        form: WireForm,
    ) -> None:
        self.cells: dict[ActorId, Cell] = {}
        self.paused: dict[ActorId, None] = {}
        self.gathering: dict[ActorId, Envelope] = {}
        """What actors are at work on whose turns read first."""
        self.depth = 0
        self.budget = SLICE
        self.lease_until = inf
        """Until when (by `Time.monotonic`) this process may answer for its actors."""
        self.loop: asyncio.AbstractEventLoop
        self.wheel: Wheel
        self._committer = committer
        self._telemetry = telemetry
        self._time = time
        self._cold_seconds = cold_seconds
        self._idle_seconds = idle_seconds
        self._keeps = keeps
        self._form = form
        self._ready: deque[Cell] = deque()
        self._pumping = False
        self._arming = False
        self._width = SLICE
        self._spent = False
        self._tasks: dict[asyncio.Task[None], None] = {}
        self._coarse_time = 0.0
        self.waking = Waking(
            versions, telemetry, spawn=self._spawn, release=self._release, refuse=self.refuse
        )

    def open(self) -> None:
        """Start on the running loop."""
        self.loop = asyncio.get_running_loop()
        self.wheel = Wheel(self.loop)
        self._coarse_time = self.loop.time()

    # Turns that need no queue.

    def take_now(self, cell: Cell, turn: Turn[Any], message: Message[Any]) -> tuple[bool, Any]:
        """Take a turn in the caller's own call.

        True and the reply for a read; false and what was decided (or a refusal that stands on turns
        not yet on disk) when it has to pass the gate.
        """
        if cell.pending and cell.pending >= 4 * cell.actor.mailbox:
            raise Overloaded("the mailbox")
        self.budget -= 1
        if not self._arming:
            self._arm()
        cell.used_at = self._coarse_time
        decided: Any = self._decide(cell, turn, message, REQUEST_ID.get())
        if not cell.pending:
            if type(decided) is not Decision:
                raise decided
            if (  # `_is_read`, written out: this is every ask's way
                decided.state is cell.state
                and not decided.records
                and not decided.effects
                and not decided.resolve
                and type(decided.reply) is not Parked
            ):
                return True, decided.reply
        return False, decided

    def decided(
        self, cell: Cell, envelope: Envelope, decided: Decision[Any, Any] | BaseException
    ) -> None:
        """Pass what a turn decided on to the disk and the gate."""
        if isinstance(decided, BaseException):
            if cell.pending == 0:
                envelope.fail(decided)
            else:
                self._committer.submit(PendingTurn(cell, envelope, None, error=decided))
            return
        if cell.pending == 0 and envelope.consumes is None and _is_read(cell, decided):
            envelope.answer(decided.reply)
            return
        try:
            effects = decided.effects
            rows = rows_of(effects, cell, envelope, self._form) if effects else ()
            pending = PendingTurn(cell, envelope, decided, rows)
        except Exception as error:  # noqa: BLE001 - the edge of a turn
            envelope.fail(self._failure(cell, envelope.turn, error))
            return
        cell.state = decided.state
        self._committer.submit(pending)

    # Turns from the queue.

    def post(self, cell: Cell, envelope: Envelope) -> None:
        """Put a message in front of an actor."""
        if cell.queue is None:
            cell.queue = deque()
        cell.queue.append(envelope)
        self.depth += 1
        if not cell.busy:
            self._schedule(cell)

    def requeue(self, cell: Cell, envelopes: Sequence[Envelope]) -> None:
        """Put messages back in front of all others, in order."""
        if envelopes:
            if cell.queue is None:
                cell.queue = deque()
            cell.queue.extendleft(reversed(envelopes))
            self.depth += len(envelopes)
        if cell.queue and not cell.busy:
            self._schedule(cell)

    def pause(self, actor: ActorId) -> None:
        """Let an actor take no more turns; its messages wait."""
        self.paused[actor] = None

    def resume(self, actor: ActorId) -> None:
        """Let a paused actor take its turns again."""
        self.paused.pop(actor, None)
        cell = self.cells.get(actor)
        if cell is not None and cell.queue and not cell.busy:
            self._schedule(cell)

    def _schedule(self, cell: Cell) -> None:
        if cell.id in self.paused:
            return
        cell.busy = True
        self._ready.append(cell)
        if not self._pumping:
            self._pumping = True
            self.loop.call_soon(self._pump)

    def _pump(self) -> None:
        # Who asks in a loop spends the whole budget whenever it is woken: then few are woken at a
        # time, and the others keep their place in line instead of waking for nothing.
        self._width = max(1, self._width // 2) if self._spent else min(SLICE, self._width * 2)
        self._spent = False
        left = self._width
        while self._ready and left > 0:
            left -= self._serve(self._ready.popleft(), min(left, 16))
        if self._ready:
            self.loop.call_soon(self._pump)
        else:
            self._pumping = False

    def _serve(self, cell: Cell, turns: int) -> int:
        """Give an actor some turns; answer how many it took. A busy cell stays out of `_ready`."""
        taken = 0
        if cell.evicted:
            self.refuse([cell], NotOwner)
            cell.busy = False
            return 1
        cell.used_at = self._coarse_time
        while cell.queue and taken < turns and cell.id not in self.paused:
            if not cell.hot:
                if cell.cold is None:
                    self.waking.wake(cell)
                    return taken + 1
                cell.warm()
            envelope = cell.queue.popleft()
            self.depth -= 1
            if envelope.abandoned:
                self._telemetry.counters["abandoned"] += 1
                continue
            if envelope.deadline is not None and self.loop.time() > envelope.deadline:
                self._telemetry.counters["expired"] += 1
                envelope.fail(DeadlineExceeded("no turn in time"))
                continue
            taken += 1
            if envelope.turn.gathers:
                self._spawn(self._gather(cell, envelope, cell.state, cell.generation))
                return taken
            decided = self._decide(cell, envelope.turn, envelope.message, envelope.request_id)
            self.decided(cell, envelope, decided)
        self._release(cell)
        return taken

    def _release(self, cell: Cell) -> None:
        cell.busy = False
        if cell.queue:
            self._schedule(cell)
        else:
            cell.queue = None

    def _decide(
        self, cell: Cell, turn: Turn[Any], message: Message[Any], request_id: str | None
    ) -> Decision[Any, Any] | BaseException:
        outcome = "ok"
        started = self._time.monotonic()
        try:
            decided = turn.method(cell.state, message)
        except Refused as refusal:
            outcome, decided = "refused", refusal
        except Exception as error:  # noqa: BLE001 - the edge of a turn: a bug is the asker's error
            outcome, decided = "failed", self._failure(cell, turn, error)
        ended = self._time.monotonic()
        if ended > self.lease_until:
            outcome, decided = "unavailable", NotOwner(LAPSED)
        seconds = ended - started
        recent = self._telemetry.recent
        recent.append((self._coarse_time, cell.id, turn.name, seconds, outcome, request_id))
        if len(recent) >= FOLDED:
            self._telemetry.fold()
        return decided  # type: ignore[no-any-return]  # a turn's method is not typed by its kind

    def _failure(self, cell: Cell, turn: Turn[Any], error: BaseException) -> TurnFailed:
        log.error("turn.failed", actor=str(cell.id), message=turn.name, exc_info=error)
        return TurnFailed(turn.name, type(error).__name__)

    async def _gather(self, cell: Cell, envelope: Envelope, state: Any, generation: int) -> None:
        turn = envelope.turn
        CHAIN.set((*(envelope.chain or ()), cell.id))
        started = self._time.monotonic()
        self.gathering[cell.id] = envelope
        outcome = "ok"
        decided: Decision[Any, Any] | BaseException
        try:
            async with self._time.timeout(cell.actor.turn_seconds):
                decided = await turn.method(state, envelope.message)
        except Refused as refusal:
            outcome, decided = "refused", refusal
        except AWAY as error:
            outcome, decided = "unavailable", _unanswered(error)
        except asyncio.CancelledError:
            envelope.fail(Stopping())
            raise
        except Exception as error:  # noqa: BLE001 - the edge of a turn
            outcome, decided = "failed", self._failure(cell, turn, error)
        finally:
            self.gathering.pop(cell.id, None)
        ended = self._time.monotonic()
        if ended > self.lease_until:
            outcome, decided = "unavailable", NotOwner(LAPSED)
        seconds = ended - started
        self._telemetry.span(
            Span(self._coarse_time, cell.id, turn.name, seconds, outcome, envelope.request_id)
        )
        if cell.evicted:
            envelope.fail(NotOwner())
        elif cell.generation != generation and not isinstance(decided, TurnFailed):
            self._again(cell, envelope)
        else:
            self.decided(cell, envelope, decided)
        self._release(cell)

    def _again(self, cell: Cell, envelope: Envelope) -> None:
        """Take a turn again, in its place: it gathered for a state that was lost since."""
        envelope.attempts += 1
        if envelope.attempts >= MAX_ATTEMPTS:
            envelope.fail(TurnFailed(envelope.turn.name, "what it stood on kept failing"))
            return
        if cell.queue is None:
            cell.queue = deque()
        behind = (n for n, waiting in enumerate(cell.queue) if waiting.order > envelope.order)
        cell.queue.insert(next(behind, len(cell.queue)), envelope)
        self.depth += 1

    # Sleeping.

    def refuse(self, cells: Sequence[Cell], error: Callable[[], BaseException]) -> None:
        """Fail what waits in front of actors, and let go of them."""
        for cell in cells:
            queue, cell.queue = cell.queue or (), None
            self.depth -= len(queue)
            for envelope in queue:
                envelope.fail(error())
            if not cell.pending and self.cells.get(cell.id) is cell:
                del self.cells[cell.id]

    def passivate(self, cell: Cell) -> bool:
        """Put an actor to sleep; false while something waits for it."""
        if cell.busy or cell.queue or cell.pending or self._keeps(cell.id):
            return False
        self.cells.pop(cell.id, None)
        return True

    async def sweep(self) -> None:
        """Cool actors that have been idle for a while, and let go of those idle for long."""
        order: list[ActorId] = []
        async for _ in self._time.every(SWEEP_SECONDS):
            now = self._coarse_time = self.loop.time()
            if not order:
                order = list(self.cells)
            chunk, order = order[:SWEEP_CELLS], order[SWEEP_CELLS:]
            for id in islice(chunk, None):
                cell = self.cells.get(id)
                if cell is None or cell.busy or cell.queue or cell.pending:
                    continue
                idle = now - cell.used_at
                if idle > self._idle_seconds and id not in self.paused:
                    self.passivate(cell)
                elif idle > self._cold_seconds and cell.hot and cell.cold is None:
                    cell.cool()

    # Stopping.

    async def drained(self) -> None:
        """Wait until no message waits for a turn."""
        while self._ready or self._tasks or self.waking:
            await self._time.sleep(0.005)

    def close(self) -> None:
        """End turns that still gather and refuse what still waits."""
        for task in list(self._tasks):
            task.cancel()
        for cell in self.cells.values():
            for envelope in cell.queue or ():
                envelope.fail(Stopping())

    def _spawn(self, work: Any) -> None:
        task = self.loop.create_task(work)
        self._tasks[task] = None
        task.add_done_callback(lambda task: self._tasks.pop(task, None))

    def _arm(self) -> None:
        self._arming = True
        self.loop.call_soon(self._refill)

    def _refill(self) -> None:
        self._arming = False
        self._spent = self.budget <= 0
        self.budget = SLICE


def _unanswered(error: Exception) -> BaseException:
    """Say that a turn did not get what it gathers: it changed nothing, and it is no bug."""
    match error:
        case StorageError():
            return ShardUnavailable(f"storage: {error}")
        case TimeoutError():
            return DeadlineExceeded("the turn did not end in time")
        case ShardUnavailable():  # never NotOwner: that would be said of the actor whose turn it was
            return ShardUnavailable(error.reason, error.retry_after)
        case _:
            return error


def _is_read(cell: Cell, decided: Decision[Any, Any]) -> bool:
    return (
        decided.state is cell.state
        and not decided.records
        and not decided.effects
        and not decided.resolve
        and type(decided.reply) is not Parked
    )
