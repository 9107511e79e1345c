"""The statement that commits a batch: put together from the tables it touches (`storage.tables`), once for each form.

Its guards decide per actor and per turn what is written, so a stale owner, a lost race or a repeated delivery never
costs its neighbours anything:

- fence: every slot's epoch is checked `FOR SHARE`, so a new owner waits for us or we see its epoch;
- version: every actor's row is locked and must stand where the batch thinks it does;
- claims: a turn whose unique row exists already, or whose outbox row is gone, is a duplicate;
- order: a turn whose sender said something before of the same thing comes too early while that still waits in
  the outbox, or lies in quarantine among the dead letters.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from tolsey.storage.records.runtime.turns import OutboxRow
from tolsey.storage.runtime.arrays import parameter
from tolsey.storage.runtime.outbox import FINISHED_COLUMNS
from tolsey.storage.tables import TABLES, Table

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

NEVER = "SELECT 0::bigint AS j WHERE false"

REPEATED = """
  SELECT j FROM t WHERE consumes IS NOT NULL
  AND (SELECT true FROM outbox o WHERE o.key = t.consumes LIMIT 1) IS NULL"""
"""What is to take a row away that is gone was taken before."""

HEAD = (
    MARK
    + """
WITH t AS MATERIALIZED (
  SELECT * FROM unnest({turns})
  WITH ORDINALITY AS t({turn_names}, j)),
a AS MATERIALIZED (SELECT DISTINCT ON (i) {actor_names}, i FROM t),
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
        turns=", ".join(map(parameter, range(1, len(TURN) + 1), TURN.values())),
        actor_names=", ".join(ACTOR),
        turn_names=", ".join(TURN),
    )
)

GUARDS = """
repeated AS MATERIALIZED ({repeated}),
early AS MATERIALIZED ({never}{early}),
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
  SELECT kind, key, base + n, message_id, message, epoch, reply, way_back FROM live){consumed}{writes}
SELECT (SELECT array_agg(i - 1) FROM fenced), (SELECT array_agg(i - 1) FROM stale),
       (SELECT array_agg(i - 1) FROM voided), (SELECT array_agg(j - 1) FROM duplicate),
       (SELECT array_agg(j - 1) FROM early WHERE j NOT IN (SELECT j FROM repeated)), {older}
"""

CONSUMED = """,
consumed AS (
  DELETE FROM outbox
  WHERE key = ANY (ARRAY(SELECT consumes FROM live WHERE consumes IS NOT NULL)){finished})"""

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
    EXISTS ({repeated}) AS repeated, EXISTS ({never}{early}) AS early
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
       CASE WHEN early AND NOT repeated THEN ARRAY[0] END, {older}
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

ALIVE = "j_ NOT IN (SELECT j FROM gone)"
"""Of a row: its turn, or its actor's, is written."""

OLDER = """(
  SELECT array_agg(key) FROM (SELECT key FROM {rows} EXCEPT ALL SELECT key FROM {written}) AS older)"""
"""Keys of rows that were to follow and were not written: others wait under them."""


def statement(form: Form) -> str:
    """Put together the commit statement of batches of a form."""
    tables = [TABLES[record] for record in form.records]
    finished = FINISHED if form.finishes_calls else ""
    claimed, early = _claims(tables)
    early += HELD_ROWS if form.is_ordered else ""
    rows, writes, older = [], "", "NULL"
    at = len(ONE if form.is_one else TURN) + 1
    for n, part in enumerate(tables):
        names = ", ".join(part.columns)
        if form.is_one:
            rows.append(
                f"r{n} AS NOT MATERIALIZED (SELECT {_scalars(at, part.columns)}, 1::bigint AS j_),"
            )
            at += len(part.columns)
            alive = f"r{n} WHERE EXISTS (SELECT FROM live)"
            living = f"SELECT {part.values} FROM {alive}"
        else:
            arrays = list(map(parameter, range(at, at + 1 + len(part.columns)), kinds_of(part)))
            rows.append(
                f"r{n} AS MATERIALIZED (SELECT * FROM unnest({', '.join(arrays)})"
                f" WITH ORDINALITY AS r(j_, {names}, ord_)),"
            )
            at += len(arrays)
            alive = f"r{n} WHERE {ALIVE}"
            living = source(part, n)
        then = part.conflict
        if part.record is OutboxRow:
            then += " RETURNING key"
            older = OLDER.format(rows=alive, written=f"w{n}")
        writes += f",\nw{n} AS (INSERT INTO {part.name} ({names}) {living} {then})"
    head, guards, consumed = (
        (HEAD_OF_ONE, GUARDS_OF_ONE, CONSUMED_BY_ONE) if form.is_one else (HEAD, GUARDS, CONSUMED)
    )
    decided = guards.format(
        repeated=(REPEATED if form.consumes else NEVER) + claimed,
        never=NEVER,
        early=early,
        consumed=consumed.format(finished=finished) if form.consumes else "",
        writes=writes,
        older=older,
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
    living = f"FROM r{n} WHERE {ALIVE}"
    if part.claim or not part.key:
        return f"SELECT {names} {living}"
    key = ", ".join(part.key)
    newest = "".join(f"{column} DESC NULLS LAST, " for column in part.newest)
    return f"SELECT DISTINCT ON ({key}) {names} {living} ORDER BY {key}, {newest}ord_ DESC"


def kinds_of(part: Table[Any]) -> tuple[str, ...]:
    """List the SQL types of a table's rows, the number of their turn first."""
    return "bigint", *part.columns.values()
