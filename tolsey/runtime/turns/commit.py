"""Group commit and the output gate.

Turns that end within the same moment go to disk together, in order, in one statement of the
journal; while one batch is on the wire the next fills. A reply, an effect or an error leaves only
after the batch that holds its cause. What fails alone fails alone: a refused statement is split
until the guilty turn stands by itself, and turns that stood on a lost one take their turn again on
what is on disk.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Collection, Sequence
from contextvars import Context, copy_context
from itertools import chain
from typing import Any, Protocol

import structlog

from tolsey.runtime.clock import Time
from tolsey.runtime.decision import Parked
from tolsey.runtime.errors import Duplicate, NotOwner, ShardUnavailable, TurnFailed
from tolsey.runtime.telemetry import Telemetry, Traced
from tolsey.runtime.turns.mailbox import Cell, Envelope
from tolsey.runtime.turns.pending import PendingTurn
from tolsey.storage.errors import OutcomeUnknown, StorageError, StorageUnavailable
from tolsey.storage.records.runtime.turns import ActorPart, Batch, BatchOutcome, OutboxRow, TurnPart

log = structlog.get_logger()

MAX_BATCH = 512
SMALLEST_HALF = 8
"""Fewer turns than twice this go to disk together."""
MAX_ATTEMPTS = 4
"""How often a turn is taken before it fails, when others keep spoiling what it stood on."""


class CommitLog(Protocol):
    """Where batches are written; `storage.runtime.journal.Journal` is the real one."""

    async def write(self, batch: Batch) -> BatchOutcome:
        """Write a batch, or raise a StorageError that says what is known of its fate."""

    async def settle(self, batch: Batch) -> list[bool]:
        """Say of each turn of a batch of unknown fate whether it is on disk."""


class CommitGate(Protocol):
    """What the committer tells the runtime."""

    def requeue(self, cell: Cell, envelopes: Sequence[Envelope]) -> None:
        """Put messages back in front of an actor, in order; their turns are to be taken again."""

    def park(self, cell: Cell, name: str, envelope: Envelope) -> None:
        """Let an asker wait for a name to be resolved."""

    def resolve(self, cell: Cell, answers: Any) -> None:
        """Answer everyone parked under these names."""

    def dispatch(self, rows: Sequence[OutboxRow]) -> None:
        """Start on effects that are now on disk."""


class Epochs(Protocol):
    """Which slots are ours; `slots.HeldSlots` is the real one."""

    def epoch_of(self, slot: int) -> int:
        """Name the epoch under which this process owns a slot; -1 when it does not."""

    def wake_outbox(self, slots: Collection[int]) -> None:
        """Let whoever owns these slots look at the outbox on disk now."""

    def lost(self, slot: int, epoch: int) -> None:
        """Another process owns this slot now, which was ours under this epoch."""


class Committer:
    """Writes turns down in batches, one batch at a time."""

    def __init__(
        self,
        journal: CommitLog,
        gate: CommitGate,
        slots: Epochs,
        telemetry: Telemetry,
        time: Time,
        *,
        settle_seconds: float = 15.0,
        history: frozenset[str] = frozenset(),
    ) -> None:
        self._journal = journal
        self._gate = gate
        self._slots = slots
        self._telemetry = telemetry
        self._time = time
        self._settle_seconds = settle_seconds
        self._history = history
        """Kinds whose turns keep the way back to the state before them."""
        self._queue: deque[PendingTurn] = deque()
        self._taken: list[PendingTurn] = []
        self._began_at: float | None = None
        """Since when (by `Time.monotonic`) a batch is on its way to disk."""
        self._ended: asyncio.Future[None] | None = None
        """While batches may be written: fails with whatever nobody expected of one."""
        self._writing: asyncio.Task[None] | None = None
        self._context = Context()
        self._idle: list[asyncio.Future[None]] = []

    @property
    def backlog(self) -> int:
        """How many turns are not yet on disk."""
        return len(self._queue) + len(self._taken)

    def first_of(self, cell: Cell) -> Envelope | None:
        """Find the oldest message of an actor whose turn is not yet on disk."""
        waiting = chain(self._taken, self._queue)
        return next((turn.envelope for turn in waiting if turn.cell is cell), None)

    @property
    def waiting_seconds(self) -> float:
        """For how long the batch that is on its way has not been answered; 0 when none is."""
        return 0.0 if self._began_at is None else self._time.monotonic() - self._began_at

    def submit(self, turn: PendingTurn) -> None:
        """Take a turn to disk; its answer leaves when it is there."""
        turn.cell.pending += 1
        self._queue.append(turn)
        if self._writing is None and self._ended is not None:
            self._begin()

    async def flushed(self) -> None:
        """Wait until nothing is pending."""
        if self.backlog:
            future = asyncio.get_running_loop().create_future()
            self._idle.append(future)
            await future

    async def run(self) -> None:
        """Let batches be written until cancelled; one that is on its way then goes on."""
        # Not that of whoever submits the first turn of a batch: others' turns go with it.
        self._context = copy_context()
        self._ended = asyncio.get_running_loop().create_future()
        if self._queue:
            self._begin()
        try:
            await self._ended
        finally:
            self._ended = None

    def _begin(self) -> None:
        loop = asyncio.get_running_loop()
        # What is submitted until it takes its first step goes with the first batch.
        self._writing = loop.create_task(self._write(), context=self._context)

    async def _write(self) -> None:
        """Write batches while there are any; whoever submits the next turn begins anew."""
        try:
            most = MAX_BATCH
            while self._queue and self._ended is not None:
                self._taken = self._take(most)
                self._began_at = self._time.monotonic()
                await self._commit(self._taken)
                self._telemetry.commit_seconds += self.waiting_seconds
                self._began_at = None
                self._telemetry.counters["batches"] += 1
                self._taken, most = [], MAX_BATCH
                if not self._queue:
                    # Who asks again as soon as it is answered does so now. Were all that do to go together, they
                    # would wait for the disk and the disk for them; in two halves one decides while the other waits.
                    await asyncio.sleep(0)  # noqa: TID251 - it lets others run, and waits for no time
                    most = min(MAX_BATCH, max(SMALLEST_HALF, len(self._queue) // 2))
        except BaseException as error:
            if self._ended is None or self._ended.done():
                raise
            self._ended.set_exception(error)
        finally:
            self._writing = None
        while self._idle and not self._queue:
            waiting = self._idle.pop()
            if not waiting.done():
                waiting.set_result(None)

    def _take(self, most: int) -> list[PendingTurn]:
        """Take what fits one batch of so many: two turns that claim the same row go to disk one by one."""
        taken: list[PendingTurn] = []
        claimed: set[Any] = set()
        while self._queue and len(taken) < most:
            turn = self._queue[0]
            if turn.claims and not claimed.isdisjoint(turn.claims):
                break
            # A row that this batch takes away cannot come back in the same statement.
            if turn.outbox and any(("outbox", row.key) in claimed for row in turn.outbox):
                break
            claimed.update(turn.claims)
            taken.append(self._queue.popleft())
        return taken

    async def _commit(self, turns: Sequence[PendingTurn]) -> None:
        for turn in turns:
            if turn.open and turn.cell.evicted:
                self._close(turn)
                turn.envelope.fail(NotOwner())
        turns = [turn for turn in turns if turn.open]
        writers = [turn for turn in turns if turn.writes]
        if not writers:
            for turn in turns:
                self._deliver(turn)
            return
        try:
            batch, cells = self._assemble(writers)
        except Exception as error:  # noqa: BLE001 - the edge of a turn: what it changed cannot be told
            await self._split(turns, writers, error)
            return
        began_at = asyncio.get_running_loop().time()
        try:
            outcome = await self._journal.write(batch)
        except OutcomeUnknown:
            await self._settle(turns, writers, batch)
        except StorageUnavailable as error:
            log.warning("commit.unavailable", turns=len(turns), error=str(error))
            self._fail(turns, lambda: ShardUnavailable("storage is out of reach"))
        except Exception as error:  # noqa: BLE001 - the edge of a turn: one of them cannot be written
            await self._split(turns, writers, error)
        else:
            self._telemetry.batch_turns += len(writers)
            self._trace(writers, began_at)
            self._open(turns, writers, cells, batch, outcome)

    def _trace(self, writers: Sequence[PendingTurn], began_at: float) -> None:
        trace = self._telemetry.trace
        if trace is None:
            return
        seconds = asyncio.get_running_loop().time() - began_at
        for turn in writers:
            request_id, actor = turn.envelope.request_id, str(turn.cell.id)
            if request_id is not None:
                trace(Traced("commit", "commit", request_id, began_at, seconds, "ok", actor))

    def _assemble(self, writers: Sequence[PendingTurn]) -> tuple[Batch, list[Cell]]:
        batch = Batch()
        cells: list[Cell] = []
        index: dict[int, int] = {}
        last: dict[int, PendingTurn] = {}
        for turn in writers:
            cell = turn.cell
            at = index.get(id(cell))
            if at is None:
                at = index[id(cell)] = len(cells)
                cells.append(cell)
                epoch = self._slots.epoch_of(cell.slot)
                part = ActorPart(cell.id.kind, cell.id.key, cell.slot, epoch, cell.version)
                batch.actors.append(part)
            last[at] = turn
            records: Sequence[Any] = turn.decision.records if turn.decision else ()
            if turn.outbox:
                records = (*records, *turn.outbox)
            envelope = turn.envelope
            about = envelope.message.about
            batch.finishes_calls |= envelope.finishes_call
            batch.is_ordered |= bool(about) and envelope.consumes is not None
            batch.turns.append(
                TurnPart(
                    at,
                    envelope.id,
                    envelope.turn.name,
                    turn.voids,
                    envelope.consumes,
                    records,
                    turn.reply if envelope.keeps_reply else None,
                    about,
                    turn.way_back if cell.id.kind in self._history else None,
                )
            )
        for at, turn in last.items():
            cell = turn.cell
            if turn.after is not cell.committed:
                batch.actors[at].records = tuple(cell.actor.changes(cell.committed, turn.after))
        return batch, cells

    async def _split(
        self, turns: Sequence[PendingTurn], writers: Sequence[PendingTurn], error: Exception
    ) -> None:
        if len(writers) == 1:
            guilty = writers[0]
            name = guilty.envelope.turn.name
            log.error("turn.not_written", actor=str(guilty.cell.id), message=name, error=str(error))
            self._telemetry.counters["turns_not_written"] += 1
            self._close(guilty)
            failed = TurnFailed(name, "it could not be written down")
            failed.__cause__ = error
            guilty.envelope.fail(failed)
            self._invalidate(guilty.cell, wears=False)
            await self._commit(turns)
            return
        middle = turns.index(writers[len(writers) // 2])
        await self._commit(turns[:middle])
        await self._commit(turns[middle:])

    async def _settle(
        self, turns: Sequence[PendingTurn], writers: Sequence[PendingTurn], batch: Batch
    ) -> None:
        """Learn the fate of a batch whose connection was lost, then go on from the truth."""
        self._telemetry.counters["commits_unknown"] += 1
        log.warning("commit.unknown", turns=len(writers))
        until = self._time.monotonic() + self._settle_seconds
        while True:
            try:
                written = await self._journal.settle(batch)
                break
            except StorageError as error:
                if self._time.monotonic() > until:
                    log.error("commit.unsettled", turns=len(writers), error=str(error))  # noqa: TRY400 - the cause is known
                    self._fail(turns, lambda: ShardUnavailable("fate unknown", outcome="unknown"))
                    return
                await self._time.sleep(0.2)
        log.info("commit.settled", written=sum(written), turns=len(writers))
        cells = {id(turn.cell): turn.cell for turn in writers}
        fate = dict(zip(map(id, writers), written, strict=True))
        broken: set[int] = set()
        for turn in turns:
            if not fate.get(id(turn), id(turn.cell) not in broken):
                broken.add(id(turn.cell))
            else:  # on disk, or an answer that stands on nothing else
                self._deliver(turn)
        for cell in cells.values():
            self._invalidate(cell)
        await self._commit(turns)

    def _open(
        self,
        turns: Sequence[PendingTurn],
        writers: Sequence[PendingTurn],
        cells: Sequence[Cell],
        batch: Batch,
        outcome: BatchOutcome,
    ) -> None:
        """Let out what is on disk; send back what stood on something that is not."""
        index = {id(cell): at for at, cell in enumerate(cells)}
        spoiled = outcome.fenced | outcome.stale | outcome.voided
        for at, turn in enumerate(writers):
            cell = turn.cell
            if at in outcome.duplicates and index[id(cell)] not in outcome.fenced | outcome.stale:
                self._close(turn)
                turn.envelope.fail(
                    ShardUnavailable("what its sender sent before still waits")
                    if at in outcome.early
                    else Duplicate(turn.envelope.turn.name)
                )
            elif index[id(cell)] not in spoiled:
                cell.version += 1
                cell.committed = turn.after
                cell.cold = None
        for at in sorted(outcome.fenced):
            self._telemetry.counters["commits_fenced"] += 1
            self.fail_cell(cells[at], NotOwner)
            self._slots.lost(cells[at].slot, batch.actors[at].epoch)
        for at in sorted(outcome.stale | outcome.voided):
            self._telemetry.counters["commits_stale"] += at in outcome.stale
            self._invalidate(cells[at], wears=at in outcome.stale)
        for turn in turns:
            if turn.open:
                self._deliver(turn, outcome.older)

    def _deliver(self, turn: PendingTurn, older: Collection[str] | None = None) -> None:
        """Let out what a turn answers and sets off; under the keys in `older` others wait, None: nobody knows."""
        self._close(turn)
        decision, envelope = turn.decision, turn.envelope
        if decision is None:
            envelope.fail(turn.error or TurnFailed(envelope.turn.name, "no decision"))
            return
        if decision.resolve:
            self._gate.resolve(turn.cell, decision.resolve)
        if isinstance(decision.reply, Parked):
            self._gate.park(turn.cell, decision.reply.name, envelope)
        else:
            envelope.answer(decision.reply)
        if turn.outbox:
            ours, others = [], set()
            for row, effect in zip(turn.outbox, decision.effects, strict=True):
                is_ours = older is not None and row.key not in older and row.due_at is None
                if is_ours or not effect.key:
                    ours.append(row)
                else:
                    others.add(row.slot)
            self._gate.dispatch(ours)
            if others:
                self._slots.wake_outbox(others)

    def _close(self, turn: PendingTurn) -> None:
        turn.open = False
        turn.cell.pending -= 1

    def _invalidate(self, cell: Cell, *, wears: bool = True) -> None:
        """Read the actor back before its next turn; turns that stood on it are taken again.

        That `wears` them out, unless the cause is gone with the turn that was one.
        """
        again: list[Envelope] = []
        for turn in (*self._taken, *self._queue):
            if turn.open and turn.cell is cell:
                self._close(turn)
                turn.envelope.attempts += wears
                if turn.envelope.attempts >= MAX_ATTEMPTS:
                    name = turn.envelope.turn.name
                    turn.envelope.fail(TurnFailed(name, "what it stood on kept failing"))
                else:
                    again.append(turn.envelope)
        self._queue = deque(turn for turn in self._queue if turn.open)
        cell.forget()
        self._gate.requeue(cell, again)

    def fail_cell(self, cell: Cell, error: Callable[[], BaseException]) -> None:
        """Fail every turn of an actor that is not yet on disk, and forget its state."""
        for turn in (*self._taken, *self._queue):
            if turn.open and turn.cell is cell:
                self._close(turn)
                turn.envelope.fail(error())
        self._queue = deque(turn for turn in self._queue if turn.open)
        cell.forget()
        self._gate.requeue(cell, ())

    def _fail(self, turns: Sequence[PendingTurn], error: Callable[[], BaseException]) -> None:
        for cell in {id(turn.cell): turn.cell for turn in turns}.values():
            self.fail_cell(cell, error)
