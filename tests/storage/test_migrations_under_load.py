"""Every migration since they say what they lock, on a database with rows in it and commits under way."""

import asyncio
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import asyncpg
import pytest

from tests.campaigns.sums import differing
from tolsey.storage.database import Database
from tolsey.storage.migrate import MIGRATIONS, migrate, migrations
from tolsey.storage.reports import sums

BEFORE = 20
"""The last migration that may stop commits: those of before run on no large database any more."""
LONGEST_WAIT = "10s"
"""Many times what a migration waits for a lock before it lets the traffic pass."""

ROWS = """
SET session_replication_role = replica;
INSERT INTO stores SELECT 's' || n, 'o' || n % 40, 'S', 'v1.k1.x', now(), NULL
FROM generate_series(1, 1000) n;
INSERT INTO outbox (key, slot, kind, actor_key, name, payload)
SELECT 'k' || n, n % 1024, 'store', 's' || n, 'store.Woken', '{}' FROM generate_series(1, 3000) n;
INSERT INTO cron_executions SELECT 'run' || n, 'job', now() - n * interval '1 hour', 'schedule', now(),
    NULL, CASE WHEN n <= 3 THEN 'running' ELSE 'done' END FROM generate_series(1, 3000) n;
INSERT INTO audit_log (event, subject, actor, metadata)
SELECT 'store.created', 's' || n, 'u', '{}' FROM generate_series(1, 3000) n;
INSERT INTO commerce_orders (store_id, order_id, updated_at, test, metadata)
SELECT 's' || n % 10, n, now(), false, '{}' FROM generate_series(1, 3000) n;
INSERT INTO integration_connections (store_id, provider, shop_domain, status, connected_at)
SELECT 's' || n, 'commerce', 'new.example', 'active', now() FROM generate_series(1, 1000) n;
INSERT INTO audit_log (event, subject, actor, metadata)
SELECT 'commerce.webhook.orders.create', 's' || n % 5, 'platform', jsonb_build_object('shopDomain',
    CASE WHEN n % 20 = 11 THEN 'old.example' ELSE 'new.example' END, 'payload', jsonb_build_object('id', n))
FROM generate_series(1, 2000) n;
INSERT INTO oauth_clients
SELECT 'c' || n, 'C', '{}', 'none', NULL, now(), now() FROM generate_series(1, 1000) n;
INSERT INTO credit_lots SELECT 'o' || n % 400, 'l' || n, 'purchase', 'p' || n, 10, 4, 0,
    now(), now() + interval '1 year', 1 FROM generate_series(1, 2000) n;
INSERT INTO payment_facts SELECT 'o' || n % 400, 'p' || n, 'purchase', 10, now(), now(), 10, 10, 3,
    '[]', 3, 0 FROM generate_series(1, 2000) n;
INSERT INTO credit_entries SELECT 'o' || n % 400, n, 'e' || n, 'reversal', 'p' || n, now(), 'h'
FROM generate_series(1, 2000) n;
INSERT INTO credit_postings SELECT 'o' || n % 400, n, 1, 'refunded', 'debt', 2 FROM generate_series(1, 2000) n;
INSERT INTO credit_postings SELECT 'o' || n % 400, n, 2, 'expired', 'lot:l' || n, 1
FROM generate_series(1, 2000) n;
"""

WITNESS = """
CREATE SCHEMA test;
CREATE TABLE test.standing AS SELECT oid, relname FROM pg_class
WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace AND relname NOT LIKE 'schema_%';
CREATE TABLE test.witnessed (migration integer, locked text[], scans bigint);
CREATE FUNCTION witness() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO test.witnessed SELECT NEW.number, array_agg(DISTINCT s.relname), (
        SELECT sum(t.seq_scan + t.seq_tup_read + coalesce(t.idx_tup_fetch, 0) + t.n_tup_upd)
        FROM pg_stat_xact_user_tables t JOIN test.standing ON oid = t.relid)
    FROM pg_locks l JOIN test.standing s ON s.oid = l.relation
    WHERE l.pid = pg_backend_pid() AND l.mode IN
        ('ShareLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock');
    PERFORM pg_stat_force_next_flush();  -- so that the next transaction counts from zero
    IF TG_TABLE_NAME = 'schema_migrations' THEN
        INSERT INTO test.standing SELECT oid, relname FROM pg_class
        WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace AND relname NOT LIKE 'schema_%'
            AND oid NOT IN (SELECT oid FROM test.standing);
    END IF;
    RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER witness AFTER INSERT OR UPDATE ON schema_migration_progress
DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION witness();
CREATE CONSTRAINT TRIGGER witness AFTER INSERT ON schema_migrations
DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION witness();
"""
"""At the end of each transaction of a migration: what it locked against writers, and what it read."""

COMMIT = (
    """
    INSERT INTO outbox (key, slot, kind, actor_key, name, payload)
    VALUES ($1, 1, 'store', 's1', 'store.Woken', '{}')
    """,
    "UPDATE payment_facts SET refunded = refunded + 1 WHERE payment_ref = 'p' || length($1)",
    "UPDATE commerce_orders SET total_minor = 1 WHERE store_id = 's1' AND order_id = 1 + 10 * length($1)",
    "INSERT INTO oauth_clients VALUES ($1, 'C', '{}', 'none', NULL, now(), now())",
    "INSERT INTO audit_log (event, subject, actor, metadata) VALUES ('store.created', $1, 'u', '{}')",
    "DELETE FROM outbox WHERE key = $1",
)

SUMS_ARE_WHOLE = 49
"""The last migration before what buyers spent was kept beside the number of their orders."""

BUYERS = """
INSERT INTO commerce_orders (store_id, order_id, updated_at, test, metadata, currency, total_minor,
    financial_status, customer_hash, processed_at)
SELECT CASE WHEN n % 3 = 0 THEN 's2@unknown' ELSE 's1' END, n, now(), n % 50 = 0, '{}',
    CASE n % 5 WHEN 0 THEN 'USD' WHEN 1 THEN NULL ELSE 'EUR' END, n,
    CASE n % 7 WHEN 0 THEN 'refunded' END, 's1:' || n % 1500, now() - n * interval '1 hour'
FROM generate_series(1, 6000) n;
"""
BOUGHT = """
UPDATE commerce_orders SET total_minor = 1 + total_minor, processed_at = now(), test = NOT test
WHERE (store_id, order_id) = ('s1', $1)
"""

KEY_SWAPPED = """-- Why.
-- transaction: none
CREATE UNIQUE INDEX CONCURRENTLY IF NOT EXISTS outbox_by_slot ON outbox (slot, key);
ALTER TABLE outbox DROP CONSTRAINT outbox_pkey,
    ADD CONSTRAINT outbox_pkey PRIMARY KEY USING INDEX outbox_by_slot;
"""


async def _migrated(url: str, folder: Path, *, until: int) -> None:
    for step in migrations():
        if step.number <= until:
            shutil.copy(MIGRATIONS / f"{step.name}.sql", folder)
    await migrate(url, folder)


@pytest.fixture
async def filled(empty_database_url: str, tmp_path: Path) -> str:
    """A database with rows in it, as it was before migrations said what they lock."""
    await _migrated(empty_database_url, tmp_path, until=BEFORE)
    connection = await asyncpg.connect(empty_database_url)
    try:
        await connection.execute(ROWS)
        await connection.execute(WITNESS)
    finally:
        await connection.close()
    return empty_database_url


async def _written(connection: asyncpg.Connection, key: str) -> None:
    for sql in COMMIT:
        await connection.execute(sql, key)


async def _bought(connection: asyncpg.Connection, key: str) -> None:
    writer, number = key.split(".")
    await connection.execute(BOUGHT, 1 + 3 * (int(number) % 2000) + int(writer) % 2)


@asynccontextmanager
async def committing(
    url: str, write: Callable[[asyncpg.Connection, str], Awaitable[object]] = _written
) -> AsyncIterator[Callable[[], int]]:
    """Commit without end while the block runs; answers how often. A commit that waits too long fails."""
    done = 0

    async def commits(writer: int) -> None:
        nonlocal done
        connection = await asyncpg.connect(url, server_settings={"lock_timeout": LONGEST_WAIT})
        try:
            while True:
                async with connection.transaction():
                    await write(connection, f"{writer}.{done}")
                done += 1
        finally:
            await connection.close()

    async with asyncio.TaskGroup() as writers:
        tasks = [writers.create_task(commits(n)) for n in range(3)]
        yield lambda: done
        for task in tasks:
            task.cancel()


async def test_commits_go_on_while_all_migrations_are_applied_to_a_filled_database(
    filled: str,
) -> None:
    watching, old = [await asyncpg.connect(filled) for _ in range(2)]
    builds = "SELECT count(*) FROM pg_stat_progress_create_index WHERE phase LIKE 'waiting%'"
    try:
        async with committing(filled) as done:
            async with old.transaction(isolation="repeatable_read"):
                await old.fetchval("SELECT 1")  # whoever builds an index waits for its end
                migrating = asyncio.create_task(migrate(filled))
                with anyio.fail_after(60):
                    while not await watching.fetchval(builds):
                        assert not migrating.done()
                    before = done()
                    while done() < before + 10:
                        await watching.fetchval("SELECT 1")
            applied = await migrating
        assert applied == [step.name for step in migrations() if step.number > BEFORE]
        held_up = await watching.fetch(
            "SELECT migration, locked, scans FROM test.witnessed WHERE locked IS NOT NULL AND scans > 0"
        )
        assert not held_up, (
            "each read rows while it kept others from writing to a table: say -- transaction: none,"
            " build indexes concurrently, add checks NOT VALID and validate them in the next statement"
        )
        assert await watching.fetchval(
            "SELECT count(DISTINCT migration) FROM test.witnessed"
        ) == len(applied)
        parts = await watching.fetchval("SELECT parts FROM payment_facts WHERE payment_ref = 'p9'")
        assert '"l9", 10, ' in parts
        assert parts.endswith(", 0, 3, 2, 1]]")
        filed = await watching.fetch("SELECT store_id, count(*) FROM commerce_orders GROUP BY 1")
        assert {"s1", "s1@old.example", "s1@unknown", "s7"} <= {row["store_id"] for row in filed}
    finally:
        await watching.close()
        await old.close()


async def test_what_buyers_spent_is_right_after_it_was_added_up_beside_deliveries(
    empty_database_url: str, tmp_path: Path
) -> None:
    await _migrated(empty_database_url, tmp_path, until=SUMS_ARE_WHOLE)
    database = Database(empty_database_url)
    await database.open()
    try:
        await database.execute(BUYERS)
        async with committing(empty_database_url, _bought) as done:
            with anyio.fail_after(60):
                while not done():
                    await database.fetch("SELECT 1")
            await migrate(empty_database_url)
        for key in ("s1", "s2@unknown"):
            assert await differing(database, sums.ORDERS, key) == 0
        kept = await database.fetch("SELECT currency, count(*) FROM commerce_spending GROUP BY 1")
        assert {row["currency"] for row in kept} == {"EUR", "USD"}
    finally:
        await database.close()


async def test_a_key_is_swapped_in_steps_and_locks_its_table_for_no_row(
    filled: str, tmp_path: Path
) -> None:
    (tmp_path / "9000_key.sql").write_text(KEY_SWAPPED)
    async with committing(filled):
        assert await migrate(filled, tmp_path) == ["9000_key"]
    connection = await asyncpg.connect(filled)
    try:
        swapped = await connection.fetch(
            "SELECT locked, scans FROM test.witnessed WHERE locked <> '{}'"
        )
        assert [tuple(row) for row in swapped] == [(["outbox"], 0)]
        key = "SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conname = 'outbox_pkey'"
        assert await connection.fetchval(key) == "PRIMARY KEY (slot, key)"
    finally:
        await connection.close()
