"""The group commit: turns of many actors in one fenced statement, one round trip, one fsync.

The statement is put together from the tables a batch touches (`storage.tables`) and prepared once
for each combination. Its guards decide per actor and per turn what is written, so a stale owner, a
lost race or a repeated delivery never costs its neighbours anything:

- fence: every slot's epoch is checked `FOR SHARE`, so a new owner waits for us or we see its epoch;
- version: every actor's row is locked and must stand where the batch thinks it does;
- claims: a turn whose unique row exists already, or whose outbox row is gone, is a duplicate;
- order: a turn whose sender said something before of the same thing comes too early while that still waits in
  the outbox, or lies in quarantine among the dead letters.
"""

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeAlias

import asyncpg
import structlog

from tolsey.storage.database import UNREACHABLE, Connection, Database
from tolsey.storage.errors import OutcomeUnknown, StorageUnavailable
from tolsey.storage.records.runtime.turns import ActorPart, Batch, BatchOutcome
from tolsey.storage.runtime.arrays import argument, parameter
from tolsey.storage.runtime.outbox import FINISHED_COLUMNS
from tolsey.storage.tables import TABLES, Table

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

ACTOR = {"kind": "text", "key": "text", "slot": "int", "epoch": "bigint", "base": "bigint"}
WHAT = {
    "message_id": "text",
    "message": "text",
    "voids": "bool",
    "consumes": "text",
    "about": "text",
    "reply": "text",
    "way_back": "bytea",
}
TURN = {**ACTOR, "i": "bigint", **WHAT}
ONE = {**ACTOR, **WHAT}
FIXED = len(ACTOR) + len(TURN)
"""Parameters of the head; those of the tables follow."""

Rows: TypeAlias = dict[type[Any], list[tuple[Any, ...]]]
"""The rows of each table, each after the number of its turn; minus that of its actor for what changed in its state."""


class Form(NamedTuple):
    """What the statement of a batch depends on."""

    records: tuple[type[Any], ...]
    is_one: bool
    """One turn, and one row of each table."""
    consumes: bool
    finishes_calls: bool
    is_ordered: bool = False
    """A row is consumed that says what it is about."""


def _scalars(at: int, columns: Mapping[str, str]) -> str:
    """Name the parameters from a number on, one for each column."""
    return ", ".join(
        f"${n}::{kind} AS {name}" for n, (name, kind) in enumerate(columns.items(), at)
    )


MARK = "/* commit of turns */"
"""What every such statement begins with."""

FENCE = "AND s.epoch = w.epoch"
"""Of the slot `s` of an actor that is written, `w`: it is still ours."""

REPEATED = """
  SELECT j FROM t WHERE consumes IS NOT NULL
  AND (SELECT true FROM outbox o WHERE o.key = t.consumes LIMIT 1) IS NULL"""
"""What is to take a row away that is gone was taken before."""

HEAD = (
    MARK
    + """
WITH a AS MATERIALIZED (
  SELECT * FROM unnest({actors})
  WITH ORDINALITY AS a({actor_names}, i)),
t AS MATERIALIZED (
  SELECT * FROM unnest({turns})
  WITH ORDINALITY AS t({turn_names}, j)),
good AS MATERIALIZED (
  SELECT s.slot FROM slot_epochs s JOIN (SELECT DISTINCT slot, epoch FROM a) w
  ON s.slot = w.slot {{fence}} ORDER BY s.slot FOR SHARE OF s),
present AS MATERIALIZED (
  SELECT o.i, o.base, v.version FROM (SELECT * FROM a ORDER BY kind, key) o, LATERAL (
    SELECT x.version FROM actors x WHERE x.kind = o.kind AND x.key = o.key FOR UPDATE) v),
fenced AS MATERIALIZED (SELECT i FROM a WHERE slot NOT IN (SELECT slot FROM good)),
stale AS MATERIALIZED (
  SELECT i FROM a WHERE base > 0 AND i NOT IN (SELECT i FROM present WHERE version = base)
  UNION ALL SELECT i FROM present WHERE base = 0),
""".format(
        actors=", ".join(map(parameter, range(1, FIXED), ACTOR.values())),
        turns=", ".join(map(parameter, range(len(ACTOR) + 1, FIXED + 1), TURN.values())),
        actor_names=", ".join(ACTOR),
        turn_names=", ".join(TURN),
    )
)

GUARDS = """
repeated AS MATERIALIZED ({repeated}),
early AS MATERIALIZED (SELECT 0::bigint AS j WHERE false{early}),
duplicate AS MATERIALIZED (SELECT j FROM repeated UNION SELECT j FROM early),
voided AS MATERIALIZED (SELECT DISTINCT i FROM t WHERE voids AND j IN (SELECT j FROM duplicate)),
dead AS MATERIALIZED (
  SELECT i FROM fenced UNION ALL SELECT i FROM stale UNION ALL SELECT i FROM voided),
gone AS MATERIALIZED (
  SELECT j FROM duplicate UNION ALL SELECT j FROM t WHERE i IN (SELECT i FROM dead)
  UNION ALL SELECT -i FROM dead),
live AS MATERIALIZED (
  SELECT *, row_number() OVER (PARTITION BY i ORDER BY j) AS n FROM t
  WHERE j NOT IN (SELECT j FROM gone)),
moved AS (
  INSERT INTO actors (kind, key, slot, version)
  SELECT kind, key, slot, base + max(n) FROM live GROUP BY kind, key, slot, base
  ON CONFLICT (kind, key) DO UPDATE SET version = excluded.version),
journal AS (
  INSERT INTO actor_journal (kind, key, version, message_id, message, epoch, reply, way_back)
  SELECT kind, key, base + n, message_id, message, epoch, reply, way_back FROM live),
consumed AS (
  DELETE FROM outbox
  WHERE key = ANY (ARRAY(SELECT consumes FROM live WHERE consumes IS NOT NULL)){finished}){writes}
SELECT (SELECT array_agg(i - 1) FROM fenced), (SELECT array_agg(i - 1) FROM stale),
       (SELECT array_agg(i - 1) FROM voided), (SELECT array_agg(j - 1) FROM duplicate),
       (SELECT array_agg(j - 1) FROM early WHERE j NOT IN (SELECT j FROM repeated))
"""

FINISHED = f"""
  RETURNING {FINISHED_COLUMNS}),
finished AS (
  INSERT INTO finished_calls ({FINISHED_COLUMNS})
  SELECT {FINISHED_COLUMNS} FROM consumed WHERE lane IS NOT NULL"""
"""Of a batch that ends calls: each is shown for a day."""

HEAD_OF_ONE = (
    MARK
    + f"""
WITH t AS NOT MATERIALIZED (
  SELECT {_scalars(1, ONE)}, 1::bigint AS i, 1::bigint AS j),
good AS MATERIALIZED (
  SELECT s.slot FROM slot_epochs s, t w WHERE s.slot = w.slot {{fence}} FOR SHARE OF s),
present AS MATERIALIZED (
  SELECT x.version FROM actors x, t WHERE x.kind = t.kind AND x.key = t.key FOR UPDATE OF x),
"""
)
"""Of a batch of one turn, as most are where little goes on: its values are no arrays."""

GUARDS_OF_ONE = """
found AS MATERIALIZED (
  SELECT NOT EXISTS (SELECT FROM good) AS fenced,
    CASE WHEN base > 0 THEN NOT EXISTS (SELECT FROM present WHERE version = base)
      ELSE EXISTS (SELECT FROM present) END AS stale,
    EXISTS ({repeated}) AS repeated, EXISTS (SELECT 0::bigint AS j WHERE false{early}) AS early
  FROM t),
live AS MATERIALIZED (
  SELECT t.* FROM t, found WHERE NOT (fenced OR stale OR repeated OR early)),
moved AS (
  INSERT INTO actors (kind, key, slot, version) SELECT kind, key, slot, base + 1 FROM live
  ON CONFLICT (kind, key) DO UPDATE SET version = excluded.version),
journal AS (
  INSERT INTO actor_journal (kind, key, version, message_id, message, epoch, reply, way_back)
  SELECT kind, key, base + 1, message_id, message, epoch, reply, way_back FROM live){consumed}{writes}
SELECT CASE WHEN fenced THEN ARRAY[0] END, CASE WHEN stale THEN ARRAY[0] END,
       CASE WHEN voids AND (repeated OR early) THEN ARRAY[0] END,
       CASE WHEN repeated OR early THEN ARRAY[0] END,
       CASE WHEN early AND NOT repeated THEN ARRAY[0] END
FROM found, t
"""

CONSUMED_BY_ONE = """,
consumed AS (DELETE FROM outbox WHERE key = (SELECT consumes FROM live){finished})"""

ASKED = "{row}.j_ NOT IN (SELECT j FROM t WHERE consumes IS NOT NULL)"
"""Of a record: whether its turn was asked for, and does not come from the outbox."""

SAME_THING = "(SELECT q.about FROM t q WHERE q.j = {row}.j_)"
"""What the turn of a record is about; empty where nobody said."""

IN_QUARANTINE = (
    "(SELECT true FROM dead_letters d WHERE d.status = 'dead' AND d.sender = {sender} AND d.about = "
    + SAME_THING
    + " AND d.about <> ''"
)
"""A message that keeps failing waits aside until an operator says what becomes of it."""

WAITS = (
    """
  UNION SELECT {row}.j_ FROM {row} WHERE """
    + ASKED
    + """
  AND ((SELECT true FROM outbox o WHERE o.key = {key} LIMIT 1) OR """
    + IN_QUARANTINE
    + """ AND d.key = {key} LIMIT 1))"""
)
EARLY = (
    """
  UNION SELECT {row}.j_ FROM {row} WHERE (
    SELECT true FROM outbox o WHERE o.sender = {sender} AND o.about IN ('', """
    + SAME_THING
    + """) AND o.key <> {key}
    AND ("""
    + ASKED
    + """ OR (o.created_at, o.key) < (
      SELECT w.created_at, w.key FROM outbox w WHERE w.key = {key}))
    AND o.key <> ALL (ARRAY(
      SELECT e.consumes FROM t e WHERE e.consumes IS NOT NULL AND e.j < {row}.j_)) LIMIT 1)"""
)
"""What goes in the same batch, before, is not waited for."""

HELD = (
    """
  UNION SELECT {row}.j_ FROM {row} WHERE """
    + ASKED
    + " AND "
    + IN_QUARANTINE
    + """ AND d.key <> {key} LIMIT 1)"""
)
HELD_ROWS = """
  UNION SELECT t.j FROM t WHERE t.consumes IS NOT NULL AND t.about <> '' AND (
    SELECT true FROM outbox w WHERE w.key = t.consumes AND ((
      SELECT true FROM outbox o WHERE o.sender = w.sender AND o.about = w.about
      AND o.kind = w.kind AND o.actor_key = w.actor_key AND (o.created_at, o.key) < (w.created_at, w.key)
      AND o.key <> ALL (ARRAY(
        SELECT e.consumes FROM t e WHERE e.consumes IS NOT NULL AND e.j < t.j)) LIMIT 1)
    OR (
      SELECT true FROM dead_letters d WHERE d.status = 'dead' AND d.sender = w.sender AND d.about = w.about
      AND d.kind = w.kind AND d.actor_key = w.actor_key AND (d.created_at, d.key) < (w.created_at, w.key)
      LIMIT 1)) LIMIT 1)"""
"""What another actor told waits behind what it told before of the same thing, as long as that was not done, and nothing else."""


def statement(form: Form) -> str:
    """Put together the commit statement of batches of a form."""
    tables = [TABLES[record] for record in form.records]
    finished = FINISHED if form.finishes_calls else ""
    claimed, early = _claims(tables)
    early += HELD_ROWS if form.is_ordered else ""
    rows, writes = [], ""
    at = (len(ONE) if form.is_one else FIXED) + 1
    for n, part in enumerate(tables):
        names = ", ".join(part.columns)
        if form.is_one:
            rows.append(
                f"r{n} AS NOT MATERIALIZED (SELECT {_scalars(at, part.columns)}, 1::bigint AS j_),"
            )
            at += len(part.columns)
            living = f"SELECT {part.values} FROM r{n} WHERE EXISTS (SELECT FROM live)"
        else:
            arrays = list(map(parameter, range(at, at + 1 + len(part.columns)), _kinds(part)))
            rows.append(
                f"r{n} AS MATERIALIZED (SELECT * FROM unnest({', '.join(arrays)})"
                f" WITH ORDINALITY AS r(j_, {names}, ord_)),"
            )
            at += len(arrays)
            living = source(part, n)
        writes += f",\nw{n} AS (INSERT INTO {part.name} ({names}) {living} {part.conflict})"
    head, guards = (HEAD_OF_ONE, GUARDS_OF_ONE) if form.is_one else (HEAD, GUARDS)
    consumed = CONSUMED_BY_ONE.format(finished=finished) if form.consumes else ""
    decided = guards.format(
        repeated=REPEATED + claimed,
        early=early,
        finished=finished,
        consumed=consumed,
        writes=writes,
    )
    return head.format(fence=FENCE) + "\n".join(rows) + decided


def _claims(tables: Sequence[Table[Any]]) -> tuple[str, str]:
    """Select the turns that are repeated by what these tables hold, and those that come too early."""
    claimed = early = ""
    for n, part in enumerate(tables):
        if part.claim:
            same = " AND ".join(f"x.{column} = r{n}.{column}" for column in part.key)
            claimed += (
                f"\n  UNION SELECT j_ FROM r{n}"
                f" WHERE (SELECT true FROM {part.name} x WHERE {same} LIMIT 1)"
            )
        if part.kept:
            sender, key = (text.format(row=f"r{n}") for text in part.kept)
            claimed += WAITS.format(row=f"r{n}", sender=sender, key=key)
            early += (EARLY + HELD).format(row=f"r{n}", sender=sender, key=key)
    return claimed, early


def source(part: Table[Any], n: int) -> str:
    """Select the rows of one table that are written: of live turns, and one for each key."""
    names = part.values
    living = f"FROM r{n} WHERE j_ NOT IN (SELECT j FROM gone)"
    if part.claim or not part.key:
        return f"SELECT {names} {living}"
    key = ", ".join(part.key)
    newest = "".join(f"{column} DESC NULLS LAST, " for column in part.newest)
    return f"SELECT DISTINCT ON ({key}) {names} {living} ORDER BY {key}, {newest}ord_ DESC"


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
        consumes = is_one and batch.turns[0].consumes is not None
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


def _kinds(part: Table[Any]) -> tuple[str, ...]:
    """List the SQL types of a table's rows, the number of their turn first."""
    return "bigint", *part.columns.values()


def _arguments(batch: Batch, rows: Rows, shapes: Iterable[type[Any]]) -> list[Any]:
    """Turn a batch into parallel arrays."""
    turns = [
        (*_where(batch.actors[turn.actor]), turn.actor + 1, *_what(turn)) for turn in batch.turns
    ]
    arguments = [
        *map(argument, ACTOR.values(), zip(*map(_where, batch.actors), strict=True)),
        *map(argument, TURN.values(), zip(*turns, strict=True)),
    ]
    for record in shapes:
        columns = zip(*rows[record], strict=True)
        arguments += map(argument, _kinds(TABLES[record]), columns)
    return arguments


def _of_one(batch: Batch, rows: Rows, shapes: Iterable[type[Any]]) -> list[Any]:
    """List the values of a batch of one turn and one row of each table."""
    values = [*_where(batch.actors[0]), *_what(batch.turns[0])]
    for record in shapes:
        values += rows[record][0][1:]
    return values


def _where(actor: ActorPart) -> tuple[Any, ...]:
    return actor.kind, actor.key, actor.slot, actor.epoch, actor.base


def _what(turn: Any) -> tuple[Any, ...]:
    return (
        turn.message_id,
        turn.message,
        turn.voids,
        turn.consumes,
        turn.about,
        turn.reply,
        turn.way_back,
    )
