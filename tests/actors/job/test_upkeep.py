"""The jobs that keep tables small and shops synced: paced, and resumed where they were stopped."""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from functools import partial

import pytest

from tests.timing import RestingTime, TestTime, until
from tolsey.actors.job.effects import Upkeep
from tolsey.runtime.decision import Tell
from tolsey.runtime.throttle import FIRST, Throttle
from tolsey.storage.database import Database
from tolsey.storage.lifecycle import retention
from tolsey.storage.records.selling.listing import VerificationState

AT = datetime(2026, 7, 1, 3, 0, tzinfo=UTC)


async def nothing_posted(_: Sequence[Tell]) -> int:
    raise AssertionError


async def no_files(_: int) -> int:
    return 0


async def left(database: Database) -> int:
    row = await database.fetchrow("SELECT count(*) AS n FROM commerce_webhook_events")
    return int(row["n"]) if row else 0


async def _left(database: Database, rows: int) -> bool:
    return await left(database) == rows


async def test_a_prune_that_is_stopped_keeps_what_it_did_and_goes_on_with_the_rest(
    database: Database,
) -> None:
    await database.execute(
        """
        INSERT INTO commerce_webhook_events
        SELECT 's', n::text, 't', NULL, 'd', NULL, now() - interval '8 days'
        FROM generate_series(1, $1::int) n
        """,
        3 * FIRST,
    )

    def upkeep(throttle: Throttle) -> Upkeep:
        return Upkeep(database, nothing_posted, throttle, no_files)

    probe = partial(retention.commit, database)
    prune = upkeep(Throttle(probe, TestTime())).work()["prune-webhook-deliveries"]

    async def run() -> None:
        await prune(AT, lambda _: None)

    stopped = asyncio.create_task(run())
    await until(lambda: _left(database, 2 * FIRST))
    stopped.cancel()
    with pytest.raises(asyncio.CancelledError):
        await stopped
    assert await left(database) == 2 * FIRST  # it was resting

    told: list[int] = []
    again = upkeep(Throttle(probe)).work()["prune-webhook-deliveries"]
    outcome = await again(AT, lambda counters: told.append(counters["deleted"]))
    assert outcome == {"deleted": 2 * FIRST}
    assert told[-1] == 2 * FIRST
    assert await left(database) == 0


async def test_kept_sums_are_checked_in_slices_with_rests_between_them(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    await database.execute(
        """
        INSERT INTO commerce_orders (store_id, order_id, updated_at, test, metadata, processed_at)
        SELECT 's', n, $1, false, '{}', $1::timestamptz - interval '1 hour' * n FROM generate_series(1, 90) n
        """,
        AT,
    )
    time = RestingTime()
    throttle = Throttle(partial(retention.commit, database), time)
    sweep = Upkeep(database, nothing_posted, throttle, no_files).work()["retention-sweep"]
    await sweep(AT, lambda _: None)
    of_few_slices = len(time.rests)
    time.rests.clear()
    monkeypatch.setattr("tolsey.storage.reports.sums.ROWS_AT_ONCE", 1)
    outcome = await sweep(AT, lambda _: None)
    assert (outcome["sumsChecked"], outcome["sumsDiffering"]) == (2, 0)
    assert len(time.rests) > of_few_slices


async def test_syncs_are_posted_in_portions_the_first_due_first_and_spread_over_the_hour(
    database: Database,
) -> None:
    count = 2 * FIRST
    async with database.transaction() as tx:
        await tx.execute("SET LOCAL session_replication_role = replica")
        await tx.execute(
            """
            INSERT INTO listing_verifications (listing_id, generation, keeps_badge, state)
            SELECT 'listing_' || n, 1, false, $2 FROM generate_series(1, $1::int) n
            """,
            count,
            VerificationState.VERIFIED,
        )
    posted: list[Sequence[Tell]] = []

    async def post(tells: Sequence[Tell]) -> int:
        posted.append(tells)
        return len(tells)

    work = Upkeep(database, post, Throttle(partial(retention.commit, database)), no_files).work()
    outcome = await work["sync-verified-revenue"](AT, lambda _: None)
    assert outcome == {"listings": count, "scheduled": count, "redefined": 0}
    assert len(posted) > 1
    due = [tell.due_at for tells in posted for tell in tells if tell.due_at]
    assert due == sorted(due)
    quarters = {(at - AT) // timedelta(minutes=12) for at in due}
    assert quarters == {0, 1, 2, 3, 4}
