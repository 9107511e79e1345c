"""The drill of the runbook: a base backup and the log are put back as they were at a moment, and answer the same reads."""

import asyncio
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import asyncpg
import redis.asyncio

from tests import commands
from tests.http.people import KEYRING
from tests.journeys.conftest import Seller, sign_up
from tests.journeys.drills import Drill, drill
from tests.journeys.strangers import browsing, listing_of, quiet
from tests.timing import LEASE_SECONDS, TestTime, lapse, until
from tolsey.runtime.turns.mailbox import SLOTS
from tolsey.sandbox.commerce.platform import Platform
from tolsey.service import running
from tolsey.settings import Settings

__all__ = ["drill"]


async def kept(url: str) -> list[str]:
    """Read what is on disk of a merchant's listings and orders."""
    connection = await asyncpg.connect(url)
    try:
        listings = await connection.fetch("SELECT * FROM listings ORDER BY id")
        sold = await connection.fetch("SELECT * FROM commerce_orders ORDER BY order_id")
    finally:
        await connection.close()
    assert listings
    assert sold
    return [str(dict(row)) for row in (*listings, *sold)]


async def read(seller: Seller) -> Mapping[str, Any]:
    """Ask what a merchant asks."""
    of_company = {"organizationId": seller.organization_id}
    asked: Mapping[str, Mapping[str, str]] = {
        "/api/stores": of_company,
        f"/api/stores/{seller.store_id}": {},
        f"/api/stores/{seller.store_id}/integrations/commerce": {},
        "/api/credits": of_company,
        "/api/sell/listings": of_company,
        "/api/auth/session": {},
    }
    answers = {}
    for path, query in asked.items():
        answer = await seller.browser.get(path, params=query)
        assert answer.status_code == 200, f"{path}: {answer.text}"
        answers[path] = answer.json()
    return answers


async def _emptied(settings: Settings) -> None:
    """Begin with an empty Redis, as the runbook says."""
    assert settings.redis_url is not None
    client = redis.asyncio.from_url(settings.redis_url)
    await client.flushall()
    await client.aclose()


async def test_a_backup_and_the_log_bring_back_the_moment_before_the_mistake(
    drill: Drill, settings: Settings, platform: Platform, tmp_path: Path
) -> None:
    del platform
    settings = settings.model_copy(update={"database_url": drill.url})
    async with running(settings, timers=False, poll_seconds=0.1) as live, browsing(live) as browser:
        seller = await sign_up(browser)
        cookies = browser.cookies
        assert (await seller.connect()).status_code == 200
        await quiet(live)
        drill.run("Take a base backup")
        if drill.starts("pg_verifybackup"):
            drill.run("Verify the base backup")
        # What came after the backup is in the log alone.
        await listing_of(seller, title="After the backup")
        await quiet(live)
        before, answered = await kept(drill.url), await read(seller)
        moment = drill.run("Record the current time").strip()
        await asyncio.sleep(0.05)
        await live.service.database.execute("UPDATE listings SET title = 'A mistake'")
        await live.service.database.execute("UPDATE commerce_orders SET currency = 'XXX'")
        await live.service.database.execute("SELECT pg_switch_wal()")
    drill.server.ask_to_stop()
    drill.server.wait_stopped()

    drill.run("Restore to a point in time", AT=moment)
    try:
        restored = drill.restored_url
        again = settings.model_copy(
            update={"database_url": restored, "lease_seconds": LEASE_SECONDS}
        )
        tmp_path.chmod(0o755)
        environment = {
            "PATH": os.environ["PATH"],
            "DATA_DIR": str(settings.data_dir),
            "DATABASE_URL": restored,
            "REDIS_URL": str(settings.redis_url),
            "ENCRYPTION_KEYS": KEYRING,
        }
        for command in ("doctor", "restore-check"):
            done = await asyncio.to_thread(
                commands.tolsey, command, folder=tmp_path, settings=environment
            )
            assert "ENCRYPTION_KEYS" not in [
                line.split()[1] for line in done.stdout.splitlines() if line.startswith("FAILED")
            ], done.stdout
        assert done.stdout.endswith("left 0\n"), done.stdout + done.stderr
        assert await kept(restored) == before
        await _emptied(again)
        time = TestTime(runs=True)
        async with (
            running(again, timers=False, poll_seconds=0.1, time=time) as live,
            browsing(live) as browser,
        ):
            browser.cookies = cookies
            # The map is from the backup, and names the process of then until its lease has ended.
            await lapse(time, LEASE_SECONDS, live.service.shard)
            await until(lambda: len(live.service.runtime.slots.epochs) == SLOTS)
            assert await read(Seller(browser, seller.organization_id, seller.store_id)) == answered
    finally:
        drill.end()
