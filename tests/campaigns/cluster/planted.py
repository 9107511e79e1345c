"""Bugs planted on purpose: each must be found by a campaign on real processes, or it finds little."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from math import inf
from typing import Any
from unittest.mock import PropertyMock, patch

from tests.campaigns.cluster.faults import NODES, Fault
from tolsey.runtime.registry import Runtime
from tolsey.runtime.shards.routing import Routing
from tolsey.runtime.shards.shard import Shard
from tolsey.runtime.turns.commit import Committer
from tolsey.runtime.turns.mailbox import Cell, Envelope
from tolsey.runtime.turns.pending import PendingTurn
from tolsey.runtime.turns.scheduler import Scheduler
from tolsey.storage.database import Database
from tolsey.storage.records.runtime.turns import Batch
from tolsey.storage.runtime import commit_statement, journal, slots

PLANTED_SECONDS = 12.0

Plant = Callable[[], Iterator[None]]


def each(
    kind: str, *flows: str, seconds: float = 2.6, gap: float = 3.5, loses: bool = False
) -> tuple[Fault, ...]:
    """Let the same befall one process after the other; longer than a lease, unless said."""
    at = 1.0
    faults: list[Fault] = []
    while at < PLANTED_SECONDS - seconds:
        faults.append(Fault(at, kind, len(faults) % NODES, seconds, flows, loses))
        at += gap
    return tuple(faults)


@dataclass(frozen=True, slots=True)
class Bug:
    """A planted bug, the faults under which it shows, and the rules that it breaks."""

    name: str
    plant: Plant
    faults: tuple[Fault, ...]
    broken: tuple[str, ...]


BUGS: dict[str, Bug] = {}


def bug(faults: tuple[Fault, ...], *broken: str) -> Callable[[Plant], Plant]:
    """Add a bug to the list."""

    def add(plant: Plant) -> Plant:
        BUGS[plant.__name__] = Bug(plant.__name__, plant, faults, broken)
        return plant

    return add


@contextmanager
def planted(name: str) -> Iterator[None]:
    """Have a bug in this process."""
    with ExitStack() as stack:
        if name:
            stack.enter_context(contextmanager(BUGS[name].plant)())
        yield


def replaced(owner: Any, name: str, new: Any) -> AbstractContextManager[Any]:
    return patch.object(owner, name, new)


PARTED = each("partition", "up", "down")
JUST_PARTED = each("partition", "up", "down", seconds=1.75, gap=2.6)
"""What a process sent last arrives when others have just taken its slots."""
LONELY = each("hold_redis", "up", "down")
DEAF = each("hold_redis", "down", seconds=3.2)
UNHEARD = each("hold_postgres", "down", seconds=0.4, gap=0.8, loses=True)
KILLED = each("kill")


@bug(JUST_PARTED, "epoch_order", "two_owners", "fork")
def commits_are_not_fenced() -> Iterator[None]:
    """Whoever owned a slot once may commit for ever."""
    with replaced(commit_statement, "FENCE", ""):
        yield


@bug(LONELY, "stale_read")
def leases_never_end() -> Iterator[None]:
    """A process that slept through its lease answers from what it remembers."""
    with (
        patch.object(Scheduler, "lease_until", PropertyMock(return_value=inf), create=True),
        patch.object(Shard, "leased", PropertyMock(return_value=True)),
    ):
        yield


@bug(KILLED, "lost_write", "wrong_answer", "phantom_read")
def answers_before_the_commit() -> Iterator[None]:
    """An answer leaves while its turn is still on its way to disk."""
    submit = Committer.submit

    def eager(self: Committer, turn: PendingTurn) -> None:
        submit(self, turn)
        if turn.decision is not None and isinstance(turn.decision.reply, tuple):
            future = turn.envelope.future
            if future is not None and not future.done():
                future.set_result(turn.decision.reply)

    with replaced(Committer, "submit", eager):
        yield


@bug(KILLED, "double_effect")
def deliveries_are_not_claimed() -> Iterator[None]:
    """Accounts are built without claims: `node.build`."""
    yield


@bug(KILLED, "double_effect")
def tells_are_taken_without_their_row() -> Iterator[None]:
    """A tell is delivered, and what it waits in stays on disk."""
    post = Runtime._post

    def rowless(self: Runtime, cell: Cell, envelope: Envelope) -> None:
        envelope.consumes = None
        post(self, cell, envelope)

    with replaced(Runtime, "_post", rowless):
        yield


@bug(DEAF, "double_effect")
def asks_are_taken_again() -> Iterator[None]:
    """An ask that is sent again is taken again: nobody looks at what it was answered."""

    async def blind(*_: Any) -> None:
        return None

    with replaced(Routing, "_on_disk", blind):
        yield


@bug(PARTED, "epoch_order", "two_owners")
def epochs_are_not_minted() -> Iterator[None]:
    """A new owner goes on under the epoch of the old one."""

    async def same(
        self: slots.Slots, owner: str, seen: Mapping[int, int], *, from_owner: str | None = None
    ) -> dict[int, int]:
        database: Database = self._database
        del from_owner
        rows = await database.fetch(
            "UPDATE slot_epochs SET owner = $1, epoch = greatest(epoch, 1) WHERE slot = ANY($2)"
            " RETURNING slot, epoch",
            owner,
            list(seen),
        )
        return {row["slot"]: row["epoch"] for row in rows}

    with replaced(slots.Slots, "take", same):
        yield


@bug(UNHEARD, "double_effect")
def what_is_unknown_is_taken_for_lost() -> Iterator[None]:
    """A commit whose answer was lost is done again."""

    async def lost(self: journal.Journal, batch: Batch) -> Sequence[bool]:
        await self.close()
        return [False] * len(batch.turns)

    with replaced(journal.Journal, "settle", lost):
        yield
