"""Bugs planted on purpose: each switches one mechanism of the runtime off, or does it wrong.

The simulator has to find every one of them, or what it says of the unchanged code means little.
"""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

from tests.campaigns.model import GUARDS
from tolsey.runtime.actor import Turn
from tolsey.runtime.errors import Duplicate, ShardUnavailable, TurnFailed
from tolsey.runtime.outbox.dispatcher import Dispatcher
from tolsey.runtime.registry import Runtime
from tolsey.runtime.turns import scheduler as turns
from tolsey.runtime.turns.commit import Committer
from tolsey.runtime.turns.mailbox import Cell, Envelope
from tolsey.runtime.turns.pending import PendingTurn
from tolsey.runtime.turns.scheduler import Scheduler
from tolsey.runtime.turns.waking import Waking
from tolsey.storage.errors import StorageError
from tolsey.storage.records.runtime.turns import Batch, BatchOutcome

Planted = Callable[[], AbstractContextManager[Any]]


@dataclass(frozen=True, slots=True)
class Mutant:
    """One planted bug; `guards` are the checks of the commit statement that it leaves on."""

    name: str
    plant: Planted = nullcontext
    guards: frozenset[str] = GUARDS


@contextmanager
def rows_read_late() -> Iterator[None]:
    """Let a poll hand out what work ended on since it began: else hardly anything is consumed twice."""

    def is_as_read(self: Dispatcher, row: Any) -> bool:
        return row.key not in self._flying

    with patch.object(Dispatcher, "_is_as_read", is_as_read):
        yield


MUTANTS: list[Mutant] = [
    Mutant(
        f"no_{guard}_check",
        plant=rows_read_late if guard == "consumed" else nullcontext,
        guards=GUARDS - {guard},
    )
    for guard in GUARDS
]
MUTANTS.sort(key=lambda mutant: mutant.name)


def mutant(plant: Callable[[], Iterator[None]]) -> None:
    """Add a planted bug to the list."""
    MUTANTS.append(Mutant(plant.__name__, contextmanager(plant)))


def replaced(owner: Any, name: str, new: Any) -> AbstractContextManager[Any]:
    return patch.object(owner, name, new)


@mutant
def answers_before_the_commit() -> Iterator[None]:
    submit = Committer.submit

    def eager(self: Committer, turn: PendingTurn) -> None:
        submit(self, turn)
        if turn.decision is not None and turn.envelope.future is not None:
            reply = turn.decision.reply
            if not turn.envelope.future.done() and isinstance(reply, tuple):
                turn.envelope.future.set_result(reply)

    with replaced(Committer, "submit", eager):
        yield


@mutant
def reads_do_not_wait_for_the_writes_before_them() -> Iterator[None]:
    decided = Scheduler.decided

    def dirty(self: Scheduler, cell: Cell, envelope: Envelope, result: Any) -> None:
        if not isinstance(result, BaseException) and turns._is_read(cell, result):
            envelope.answer(result.reply)
        else:
            decided(self, cell, envelope, result)

    with replaced(Scheduler, "decided", dirty):
        yield


@mutant
def refusals_do_not_wait_for_the_writes_before_them() -> Iterator[None]:
    decided = Scheduler.decided

    def dirty(self: Scheduler, cell: Cell, envelope: Envelope, result: Any) -> None:
        if isinstance(result, BaseException):
            envelope.fail(result)
        else:
            decided(self, cell, envelope, result)

    with replaced(Scheduler, "decided", dirty):
        yield


@mutant
def followers_of_a_lost_turn_are_kept() -> Iterator[None]:
    def keep(self: Committer, cell: Cell, *, wears: bool = True) -> None:
        del self, wears
        if not cell.pending:
            cell.forget()

    with replaced(Committer, "_invalidate", keep):
        yield


@mutant
def state_is_kept_when_a_commit_fails() -> Iterator[None]:
    def keep(self: Committer, cell: Cell, error: Callable[[], BaseException]) -> None:
        for turn in (*self._taken, *self._queue):
            if turn.open and turn.cell is cell:
                self._close(turn)
                turn.envelope.fail(error())
        self._queue = deque(turn for turn in self._queue if turn.open)
        self._gate.requeue(cell, ())

    with replaced(Committer, "fail_cell", keep):
        yield


@mutant
def an_unknown_commit_is_taken_for_a_failed_one() -> Iterator[None]:
    async def give_up(
        self: Committer, turns: Sequence[PendingTurn], writers: Any, batch: Batch
    ) -> None:
        del writers, batch
        self._fail(turns, lambda: ShardUnavailable("storage is out of reach"))

    with replaced(Committer, "_settle", give_up):
        yield


@mutant
def an_unknown_commit_is_taken_for_a_good_one() -> Iterator[None]:
    async def hope(
        self: Committer, turns: Sequence[PendingTurn], writers: Sequence[PendingTurn], batch: Batch
    ) -> None:
        cells = list({id(turn.cell): turn.cell for turn in writers}.values())
        self._open(turns, writers, cells, batch, BatchOutcome())

    with replaced(Committer, "_settle", hope):
        yield


@mutant
def an_unknown_commit_is_repeated_blindly() -> Iterator[None]:
    async def again(
        self: Committer, turns: Sequence[PendingTurn], writers: Sequence[PendingTurn], batch: Batch
    ) -> None:
        del batch
        for cell in {id(turn.cell): turn.cell for turn in writers}.values():
            self._invalidate(cell)
        await self._commit(turns)

    with replaced(Committer, "_settle", again):
        yield


@mutant
def what_goes_back_goes_back_in_reverse() -> Iterator[None]:
    requeue = Scheduler.requeue

    def reverse(self: Scheduler, cell: Cell, envelopes: Sequence[Envelope]) -> None:
        requeue(self, cell, envelopes[::-1])

    with replaced(Scheduler, "requeue", reverse):
        yield


@mutant
def what_goes_back_goes_behind_the_others() -> Iterator[None]:
    def behind(self: Scheduler, cell: Cell, envelopes: Sequence[Envelope]) -> None:
        for envelope in envelopes:
            self.post(cell, envelope)
        if cell.queue and not cell.busy:
            self._schedule(cell)

    with replaced(Scheduler, "requeue", behind):
        yield


@mutant
def effects_leave_before_the_commit() -> Iterator[None]:
    submit = Committer.submit

    def eager(self: Committer, turn: PendingTurn) -> None:
        submit(self, turn)
        self._gate.dispatch(turn.outbox)

    with replaced(Committer, "submit", eager):
        yield


def blind_to(part: str) -> Callable[[], Iterator[None]]:
    def plant() -> Iterator[None]:
        opened = Committer._open

        def blind(self: Committer, *parts: Any) -> None:
            turns, writers, cells, batch, outcome = parts
            seen = {
                name: frozenset() if name == part else getattr(outcome, name)
                for name in ("fenced", "stale", "voided", "duplicates", "older")
            }
            opened(self, turns, writers, cells, batch, BatchOutcome(**seen))

        with replaced(Committer, "_open", blind):
            yield

    plant.__name__ = f"ignores_what_was_{part}"
    return plant


for part in ("fenced", "stale", "voided", "duplicates"):
    mutant(blind_to(part))


@mutant
def a_message_is_not_consumed_by_its_turn() -> Iterator[None]:
    deliver = Runtime._deliver

    def careless(self: Runtime, to: Any, message: Any, row: Any, settled: Any) -> None:
        deliver(self, to, message, row, settled)
        for cell in (self.scheduler.cells.get(to),):
            for envelope in (cell.queue if cell else None) or ():
                envelope.consumes = None

    with replaced(Runtime, "_deliver", careless):
        yield


@mutant
def a_gathering_turn_trusts_what_it_gathered_on() -> Iterator[None]:
    gather = Scheduler._gather

    async def trusting(
        self: Scheduler, cell: Cell, envelope: Envelope, state: Any, generation: int
    ) -> None:
        begun = envelope.turn.method

        async def method(state: Any, message: Any) -> Any:
            decision = await begun(state, message)
            cell.generation = generation
            if cell.state is None:
                cell.state = cell.committed = state
                cell.hot = True
            return decision

        envelope.turn = Turn(envelope.turn.message, method, gathers=True)
        await gather(self, cell, envelope, state, generation)

    with replaced(Scheduler, "_gather", trusting):
        yield


@mutant
def a_turn_that_gathers_leaves_the_actor_free() -> Iterator[None]:
    spawn = Scheduler._spawn

    def free(self: Scheduler, work: Any) -> None:
        spawn(self, work)
        if work.__name__ == "_gather":
            cell = work.cr_frame.f_locals["cell"]
            cell.busy = False

    with replaced(Scheduler, "_spawn", free):
        yield


@mutant
def nothing_is_polled() -> Iterator[None]:
    async def idle(self: Dispatcher) -> None:
        await self._woken.wait()

    with replaced(Dispatcher, "run", idle):
        yield


@mutant
def a_repeated_message_stays_in_the_outbox() -> Iterator[None]:
    post = Dispatcher._post

    def forgetful(self: Dispatcher, row: Any, message: Any) -> None:
        finish = self._finish

        async def leave(row: Any, follow: Any) -> None:
            if follow:
                await finish(row, follow)

        self.__dict__["_finish"] = leave
        post(self, row, message)

    with replaced(Dispatcher, "_post", forgetful):
        yield


@mutant
def a_bad_turn_takes_its_neighbours_with_it() -> Iterator[None]:
    async def together(self: Committer, turns: Any, writers: Any, error: Exception) -> None:
        del writers
        name = str(error)
        self._fail(turns, lambda: TurnFailed(name, "it could not be written down"))

    with replaced(Committer, "_split", together):
        yield


@mutant
def a_lost_message_is_buried_at_once() -> Iterator[None]:
    retry, post = Dispatcher._bury, Dispatcher._post

    def strict(self: Dispatcher, row: Any, message: Any) -> None:
        deliver = self._deliver

        def hearing(to: Any, message: Any, row: Any, settled: Any) -> None:
            def hard(error: BaseException | None) -> None:
                settled(error)
                if error is not None and not isinstance(error, Duplicate):
                    self._spawn(retry(self, row, "planted"))

            deliver(to, message, row, hard)

        self.__dict__["_deliver"] = (
            hearing if getattr(deliver, "__name__", "") != "hearing" else deliver
        )
        post(self, row, message)

    with replaced(Dispatcher, "_post", strict):
        yield


@mutant
def an_actor_sleeps_with_turns_that_are_not_on_disk() -> Iterator[None]:
    serve = Scheduler._release

    def drop(self: Scheduler, cell: Cell) -> None:
        serve(self, cell)
        if not cell.busy and cell.pending:
            self.cells.pop(cell.id, None)

    with replaced(Scheduler, "_release", drop):
        yield


@mutant
def the_version_is_read_after_the_state() -> Iterator[None]:
    async def late(self: Waking, cells: Sequence[Cell]) -> None:
        keys = [cell.id.key for cell in cells]
        try:
            states = await cells[0].actor.load(keys)
            versions = await self._versions(cells[0].id.kind, keys)
        except StorageError:
            self._refuse(cells, lambda: ShardUnavailable("storage"))
        else:
            for cell in cells:
                cell.wake(states[cell.id.key], versions.get(cell.id.key, 0))
        for cell in cells:
            self._release(cell)

    with replaced(Waking, "_read", late):
        yield


@mutant
def a_row_is_taken_and_put_back_in_one_batch() -> Iterator[None]:
    def take(self: Committer) -> list[PendingTurn]:
        taken: list[PendingTurn] = []
        claimed: set[Any] = set()
        while self._queue and claimed.isdisjoint(self._queue[0].claims):
            claimed.update(self._queue[0].claims)
            taken.append(self._queue.popleft())
        return taken

    with replaced(Committer, "_take", take):
        yield


@mutant
def deadlines_are_forgotten() -> Iterator[None]:
    with replaced(Runtime, "_expect", _expect_for_ever):
        yield


def _expect_for_ever(self: Runtime, envelope: Envelope, timeout: float) -> Any:
    del timeout
    envelope.future = self.scheduler.loop.create_future()
    envelope.deadline = self.scheduler.loop.time() + 1e6
    return envelope.future
