"""What feeds the registry takes what is due in its order, and reads little of what is not."""

from datetime import UTC, datetime, timedelta

import asyncpg
import pytest

from tests.storage.test_reading import Counted
from tolsey.storage.intelligence import feeding

AT = datetime(2026, 6, 15, 12, tzinfo=UTC)
SHOPS = """
INSERT INTO storefronts (domain, state, source, discovered_at, scanned_at, snapshot_at, next_scan_at)
SELECT 'd' || lpad(n::text, 6, '0') || '.example', 'active', 'dataset', $1::timestamptz - interval '90 days',
    $1::timestamptz - n * interval '1 minute', $1::timestamptz - n * interval '1 minute',
    $1::timestamptz + interval '1 hour' - n * interval '1 minute'
FROM generate_series(1, 20000) n
"""
NEW = """
INSERT INTO storefronts (domain, state, source, discovered_at)
SELECT 'new' || lpad(n::text, 6, '0') || '.example', 'discovered', 'dataset', $1::timestamptz - n * interval '1 minute'
FROM generate_series(1, 5000) n
"""
WATCHED = """
INSERT INTO competitors (store_id, domain, added_by, added_at)
SELECT 'sto_' || n % 7, domain, 'usr_1', $1 FROM (
    SELECT domain, row_number() OVER (ORDER BY domain) AS n FROM storefronts) s WHERE n % $2 = 0
"""


@pytest.mark.changes_schema
@pytest.mark.parametrize("each", [500, 1], ids=["few are competed with", "all are"])
async def test_what_is_due_is_read_and_little_else(database_url: str, each: int) -> None:
    connection = await asyncpg.connect(database_url)
    for sql in (SHOPS, NEW):
        await connection.execute(sql, AT)
    await connection.execute(WATCHED, AT, each)
    await connection.execute(
        "ANALYZE storefronts, competitors, calibrating_listings, storefront_scans"
    )
    await connection.close()
    database = Counted(database_url, {})
    await database.open()
    try:
        due = await feeding.due(database, AT, 200)
        deep = await feeding.hot(database, "snapshot_at", AT - timedelta(days=1), 100)
        light = await feeding.hot(database, "scanned_at", AT - timedelta(hours=6), 100)
    finally:
        await database.close()
    oldest = [f"d{n:06}.example" for n in range(20_000, 1_440, -each)]
    unseen = [f"new{n:06}.example" for n in range(5_000, 0, -each)]
    assert deep == [*reversed(unseen), *oldest][:100]
    assert light[: len(deep)] == deep
    assert len(due) == 200
    assert due[: len(oldest)] == oldest[:200]
    # Of 25,000 shops: what was asked for, with what it takes to find each.
    assert database.read < 10_000, database.read


async def test_competitors_come_first_then_those_seen_longest_ago_then_the_new(
    database_url: str,
) -> None:
    connection = await asyncpg.connect(database_url)
    for sql in (SHOPS, NEW):
        await connection.execute(sql, AT)
    named = ["new000001.example", "d000100.example", "d000010.example"]
    await connection.executemany(
        "INSERT INTO competitors VALUES ('sto_1', $1, 'usr_1', $2)", [(one, AT) for one in named]
    )
    held = "UPDATE storefronts SET hold_until = $1 WHERE domain = 'd020000.example'"
    await connection.execute(held, AT + timedelta(hours=1))
    await connection.execute("DELETE FROM storefronts WHERE domain BETWEEN 'd000200' AND 'd019999'")
    await connection.close()
    database = Counted(database_url, {})
    await database.open()
    try:
        due = await feeding.due(database, AT, 200)
    finally:
        await database.close()
    assert due[:4] == [
        "d000100.example",  # d000010 is due in 50 minutes
        "new000001.example",
        "d019999.example",  # d020000 wants to be left alone
        "d000199.example",
    ]
    assert due[-1].startswith("new0")
