"""The group commit: turns of many actors in one fenced statement, one round trip, one fsync.

The statement is prepared once for each form of batch; what it decides is in `commit_statement`.
"""

import asyncio
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from operator import attrgetter
from typing import Any, TypeAlias

import asyncpg
import structlog

from tolsey.storage.database import UNREACHABLE, Connection, Database
from tolsey.storage.errors import OutcomeUnknown, StorageUnavailable
from tolsey.storage.records.runtime.turns import Batch, BatchOutcome
from tolsey.storage.runtime.arrays import argument
from tolsey.storage.runtime.commit_statement import ACTOR, TURN, WHAT, Form, kinds_of, statement
from tolsey.storage.tables import TABLES

log = structlog.get_logger()

STATEMENT_SECONDS = 30
"""What takes longer is ended by the server; an answer that is later still is a lost connection."""

LATE_SECONDS = 2.0
"""An answer that is later is asked after over another connection: is the server still at work on it?"""

LOOK_SECONDS = 5.0
"""So long that other connection has; without it the answer is held lost, too."""

SESSION = (
    "SET enable_seqscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off; "
    f"SET jit = off; SET plan_cache_mode = force_generic_plan;"
    f" SET statement_timeout = '{STATEMENT_SECONDS}s'"
)
"""Index lookups from the batch's few rows into tables of any size, whatever the statistics say.

A plan is made once and kept. The statement therefore looks rows up by subqueries that cannot be
turned into a join: planned while a table is empty, a join would read all of it for ever after.
"""

Rows: TypeAlias = dict[type[Any], list[tuple[Any, ...]]]
"""The rows of each table, each after the number of its turn; minus that of its actor for what changed in its state."""


class Journal:
    """Writes batches over a connection of its own, and reads back what became of one."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._connection: Connection | None = None
        self._backend = 0
        """The server's process at the other end; a connection that was given up no longer tells."""
        self._lost: list[int] = []
        """Backends whose connection was lost and that may still be at work."""
        self._prepared: dict[Form, Any] = {}
        self._order = {record: n for n, record in enumerate(TABLES)}

    async def open(self) -> Connection:
        """Connect, unless connected."""
        if self._connection is None or self._connection.is_closed():
            connection = await self._database.connect()
            try:
                await connection.execute(SESSION)
            except UNREACHABLE as error:
                raise StorageUnavailable(type(error).__name__) from error
            self._connection, self._prepared = connection, {}
            self._backend = connection.get_server_pid()
        return self._connection

    async def close(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            self._connection.terminate()
            self._connection = None

    async def write(self, batch: Batch) -> BatchOutcome:
        """Write a batch; what its guards let through is on disk when this returns.

        Raises StorageUnavailable when nothing was sent, OutcomeUnknown when the connection was
        lost after that, StorageError when the database refused the statement: nothing is written.
        """
        connection = await self.open()
        rows = self._rows(batch)
        shapes = tuple(sorted(rows, key=self._order.__getitem__))
        # A repeat that leaves its actor's state as it is keeps what that has to write: the other form tells them apart.
        is_one = (
            len(batch.turns) == 1
            and all(len(found) == 1 for found in rows.values())
            and (batch.turns[0].voids or not batch.actors[0].records)
        )
        consumes = any(turn.consumes is not None for turn in batch.turns)
        form = Form(shapes, is_one, consumes, batch.finishes_calls, batch.is_ordered)
        arguments = _of_one(batch, rows, shapes) if is_one else _arguments(batch, rows, shapes)
        try:
            prepared = self._prepared.get(form)
            if prepared is None:
                prepared = self._prepared[form] = await connection.prepare(statement(form))
        except UNREACHABLE as error:
            await self.close()
            raise StorageUnavailable(type(error).__name__) from error
        try:
            with self._watched(connection):
                (row,) = await prepared.fetch(*arguments, timeout=STATEMENT_SECONDS + 5)
        except UNREACHABLE as error:
            raise OutcomeUnknown(type(error).__name__) from error
        except (asyncpg.PostgresError, asyncpg.DataError, ValueError, TypeError) as error:
            raise self._database.translated(error) from error
        return BatchOutcome(*(frozenset(found or ()) for found in row))

    @contextmanager
    def _watched(self, connection: Connection) -> Iterator[None]:
        """Give a connection up that owes an answer to this block and will never have it.

        One that passes nothing on looks like a slow statement. The server knows better: it is at work
        on that, or it has answered, or was never asked.
        """
        tasks: list[asyncio.Task[None]] = []
        loop = asyncio.get_running_loop()

        def watch() -> None:
            tasks.append(loop.create_task(self._watch(connection)))

        late = loop.call_later(LATE_SECONDS, watch)
        try:
            yield
        finally:
            late.cancel()
            for task in tasks:
                task.cancel()

    async def _watch(self, connection: Connection) -> None:
        while await self._is_at_work():  # noqa: ASYNC110 - the server tells nobody
            await asyncio.sleep(LATE_SECONDS)
        log.warning("journal.connection_hangs")
        connection.terminate()

    async def _is_at_work(self) -> bool:
        """Ask the server, over another connection, whether it is at work on what ours was given."""
        try:
            async with asyncio.timeout(LOOK_SECONDS):
                other = await self._database.connect()
                try:
                    return bool(
                        await other.fetchval(
                            "SELECT state = 'active' FROM pg_stat_activity WHERE pid = $1",
                            self._backend,
                        )
                    )
                finally:
                    other.terminate()
        except (StorageUnavailable, *UNREACHABLE):
            return False

    def _rows(self, batch: Batch) -> Rows:
        """List the rows of each table, each after the number of its turn."""
        rows: Rows = {}

        def add(records: Iterable[Any], at: int) -> None:
            for record in records:
                kind = type(record)
                rows.setdefault(kind, []).append((at, *TABLES[kind].values_of(record)))

        for i, actor in enumerate(batch.actors, 1):
            add(actor.records, -i)
        for j, turn in enumerate(batch.turns, 1):
            add(turn.records, j)
        return rows

    async def settle(self, batch: Batch) -> list[bool]:
        """Say of each turn of a batch of unknown fate whether it is on disk.

        The old backend is ended first: a statement that was still running can no longer commit.
        """
        if self._connection is not None:
            self._lost.append(self._backend)
            await self.close()
        connection = await self.open()
        try:
            while self._lost:
                await self._end_backend(connection, self._lost[0])
                del self._lost[0]
            rows = await connection.fetch(
                "SELECT j.kind, j.key, j.message_id FROM unnest($1::text[], $2::text[], $3::text[],"
                " $4::bigint[], $5::bigint[]) w(kind, key, message_id, base, epoch)"
                " JOIN actor_journal j ON j.kind = w.kind AND j.key = w.key AND j.epoch = w.epoch"
                " AND j.version > w.base AND j.message_id = w.message_id",
                [batch.actors[turn.actor].kind for turn in batch.turns],
                [batch.actors[turn.actor].key for turn in batch.turns],
                [turn.message_id for turn in batch.turns],
                [batch.actors[turn.actor].base for turn in batch.turns],
                [batch.actors[turn.actor].epoch for turn in batch.turns],
            )
        except UNREACHABLE as error:
            raise StorageUnavailable(type(error).__name__) from error
        found = {tuple(row) for row in rows}
        return [
            (batch.actors[turn.actor].kind, batch.actors[turn.actor].key, turn.message_id) in found
            for turn in batch.turns
        ]

    async def _end_backend(self, connection: Connection, pid: int) -> None:
        for _ in range(200):
            running = await connection.fetchval(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid = $1", pid
            )
            if running is None:
                return
            await asyncio.sleep(0.02)
        raise StorageUnavailable("the former connection does not end")


def _arguments(batch: Batch, rows: Rows, shapes: Iterable[type[Any]]) -> list[Any]:
    """Turn a batch into parallel arrays."""
    turns = [
        (*_where(batch.actors[turn.actor]), turn.actor + 1, *_what(turn)) for turn in batch.turns
    ]
    arguments = list(map(argument, TURN.values(), zip(*turns, strict=True)))
    for record in shapes:
        columns = zip(*rows[record], strict=True)
        arguments += map(argument, kinds_of(TABLES[record]), columns)
    return arguments


def _of_one(batch: Batch, rows: Rows, shapes: Iterable[type[Any]]) -> list[Any]:
    """List the values of a batch of one turn and one row of each table."""
    values = [*_where(batch.actors[0]), *_what(batch.turns[0])]
    for record in shapes:
        values += rows[record][0][1:]
    return values


_where = attrgetter(*ACTOR)
_what = attrgetter(*WHAT)
