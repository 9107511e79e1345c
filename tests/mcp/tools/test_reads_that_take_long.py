"""A store whose reports take long holds up nobody else, and nothing runs on that nobody waits for."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from typing import Final

import asyncpg
import pytest

from tests.mcp.tools.two_stores import TwoStores, result
from tests.timing import until
from tolsey.storage.reports import pool

pytestmark = [pytest.mark.anyio, pytest.mark.changes_schema]

SLOW: Final = """
CREATE FUNCTION gate() RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN PERFORM pg_advisory_lock_shared(14); PERFORM pg_advisory_unlock_shared(14); RETURN true; END $$;
ALTER TABLE commerce_orders RENAME TO every_order;
CREATE VIEW commerce_orders AS
    SELECT * FROM every_order WHERE CASE WHEN store_id = 'store_ann' THEN gate() ELSE true END;
"""
AT_THE_GATE: Final = """
SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objid = 14 AND NOT granted
"""
ASKED: Final = 20


@pytest.fixture
async def gate(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[asyncpg.Connection]:
    """Let whoever reads an order of Ann's wait for as long as this connection lives."""
    monkeypatch.setattr(pool, "REQUEST_SECONDS", 2.0)
    monkeypatch.setitem(pool.SESSION, "statement_timeout", "2000")
    connection = await asyncpg.connect(database_url)
    await connection.execute("SELECT pg_advisory_lock(14)")
    yield connection
    await connection.close()


async def at_the_gate(gate: asyncpg.Connection, wanted: int) -> None:
    async def is_done() -> bool:
        return bool((await gate.fetchval(AT_THE_GATE)) == wanted)

    await until(is_done)


async def test_reports_of_one_store_hold_up_no_other_and_end_with_who_asked(
    gate: asyncpg.Connection, two_stores: TwoStores
) -> None:
    await gate.execute(SLOW)
    ann, bob = await two_stores.agent(two_stores.ann), await two_stores.agent(two_stores.bob)
    asked = [asyncio.ensure_future(ann.call("list_customers")) for _ in range(ASKED)]
    await at_the_gate(gate, pool.PLACES)

    async with asyncio.timeout(60):
        assert result(await bob.call("list_customers"))["items"]
        assert result(await ann.call("get_plan_limits"))
        answers = await asyncio.gather(*asked)
    answered = Counter(answer.json()["error"]["data"]["code"] for answer in answers)
    assert set(answered) == {"too_many_reports", "storage_overdue"}
    assert sum(answered.values()) == ASKED
    await at_the_gate(gate, 0)

    await gate.execute("SELECT pg_advisory_unlock(14)")
    assert result(await ann.call("list_customers"))["items"]


async def test_a_report_ends_at_the_server_when_its_asker_goes(
    gate: asyncpg.Connection, two_stores: TwoStores
) -> None:
    await gate.execute(SLOW)
    ann = await two_stores.agent(two_stores.ann)
    asked = asyncio.ensure_future(ann.call("list_customers"))
    await at_the_gate(gate, 1)
    asked.cancel()
    await at_the_gate(gate, 0)
