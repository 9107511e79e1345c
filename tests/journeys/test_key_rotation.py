"""Keys are rotated under a service that has sealed something everywhere. The run is killed, resumes, and the old key is removed.

Processes that serve meanwhile are reloaded as the runbook says.
"""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import httpx
import pytest

from tests import commands
from tests.http.account_books import RESTRICTED_KEY, Account
from tests.journeys.conftest import (
    EVENTS,
    SECRET,
    SHOP,
    Seller,
    free_port,
    order_body,
    sign_up,
    signed,
)
from tests.journeys.served import Fleet, load, recorded
from tests.journeys.strangers import LISTINGS, browsing, listing_of, quiet
from tests.storage.test_rotation import NEW, OLD
from tolsey.sandbox.commerce.platform import Platform
from tolsey.sandbox.payments.processor import Processor
from tolsey.service import running
from tolsey.settings import Settings
from tolsey.storage.database import Database
from tolsey.storage.sealing.sealed import Vault

NEXT_SECRET = "shpss_next000000000000000000000000000"
STORES = 6_000
"""So many that a run is met in the middle."""
MORE = """
INSERT INTO stores (id, organization_id, name, sealed_salt, created_at)
SELECT id, $1, 'S', sealed, now() FROM unnest($2::text[], $3::text[]) AS w(id, sealed)
"""
COLUMNS = """
SELECT c.table_name AS kept, string_agg(quote_ident(c.column_name), ', ') AS columns
FROM information_schema.columns c JOIN information_schema.tables t USING (table_schema, table_name)
WHERE c.table_schema = 'public' AND t.table_type = 'BASE TABLE'
GROUP BY 1 ORDER BY 1
"""
LEFT = "SELECT count(*) AS n FROM stores WHERE sealed_salt LIKE 'v1.old\\_1.%'"
PASSING = frozenset({"actor_journal", "idempotency_keys"})
"""What is answered to a repeat of the same request, for a day or two: nobody opens it afterwards."""


@pytest.fixture
def settings(settings: Settings) -> Settings:
    return settings.model_copy(
        update={"encryption_keys": OLD, "payments_api_base": f"http://127.0.0.1:{free_port()}"}
    )


async def holding(database: Database, key_id: str) -> dict[str, int]:
    """Count the rows of every table in which something stands that a key sealed."""
    found = {}
    for row in await database.fetch(COLUMNS):
        counted = await database.fetchrow(
            f"SELECT count(*) AS n FROM {row['kept']} AS w WHERE w::text LIKE $1",  # noqa: S608 - names of our own tables
            f"%v1.{key_id.replace('_', chr(92) + '_')}.%",
        )
        if counted and counted["n"]:
            found[row["kept"]] = counted["n"]
    return found


async def sealed_everywhere(
    settings: Settings, platform: Platform, processor: Processor
) -> tuple[Seller, httpx.Cookies]:
    """Have a merchant and an operator seal what they can."""
    async with running(settings, timers=False, poll_seconds=0.1) as live, browsing(live) as browser:
        seller = await sign_up(browser)
        assert (await seller.connect()).status_code == 200
        await quiet(live)
        # Another secret of the same app: the former still signs for two days.
        platform.rotate_secret(SHOP, NEXT_SECRET, keep_old=True)
        assert (await seller.connect(secret=NEXT_SECRET)).status_code == 200
        listing = await listing_of(seller, storeId=seller.store_id)
        port = int(str(settings.payments_api_base).rpartition(":")[2])
        async with processor.serve(port):
            path = f"{LISTINGS}/{listing['id']}/verify/payments"
            answer = await seller.post(path, restrictedKey=RESTRICTED_KEY)
            assert answer.status_code == 200, answer.text
            await quiet(live)
        await browser.post("/api/auth/password/forgot", json={"email": "seller@example.com"})
        await quiet(live)
        vault = Vault.from_keys(OLD)
        ids = [f"store_more_{number:06}" for number in range(STORES)]
        place = {"table": "stores", "column": "sealed_salt"}
        salts = [vault.seal("salt", row=one, tenant=one, **place) for one in ids]
        await live.service.database.execute(MORE, seller.organization_id, ids, salts)
        return seller, browser.cookies


@pytest.fixture
def processor() -> Processor:
    made = Processor()
    Account(made).pay("cus_a", 2_500, days_ago=40)
    return made


def environment(settings: Settings, keys: str) -> Mapping[str, str]:
    return {
        "PATH": os.environ["PATH"],
        "DATA_DIR": str(settings.data_dir),
        "DATABASE_URL": str(settings.database_url),
        "REDIS_URL": str(settings.redis_url),
        "ENCRYPTION_KEYS": keys,
    }


async def killed_in_the_middle(settings: Settings, database: Database, keys: str) -> int:
    """Begin to rotate and die; answer how many stores are left."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tolsey", "rotate-keys"],
        env=dict(environment(settings, keys)),
        stdout=subprocess.DEVNULL,
    )
    try:
        async with asyncio.timeout(90):
            while True:
                row = await database.fetchrow(LEFT)
                assert row is not None
                if row["n"] < STORES:
                    break
                assert process.poll() is None
                await asyncio.sleep(0.01)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    row = await database.fetchrow(LEFT)
    assert row is not None
    return int(row["n"])


@pytest.mark.timeout(300)
async def test_a_rotation_that_was_killed_goes_on_and_the_new_key_alone_is_enough(
    settings: Settings,
    platform: Platform,
    processor: Processor,
    database: Database,
    tmp_path: Path,
) -> None:
    seller, cookies = await sealed_everywhere(settings, platform, processor)
    sealed = await holding(database, "old_1")
    assert {"stores", "integration_connections", "revenue_sources"} <= sealed.keys()
    ring = f"{NEW},{OLD}"
    left = await killed_in_the_middle(settings, database, ring)
    assert 0 < left < STORES, "it was met in the middle"

    tmp_path.chmod(0o755)

    def rotate(keys: str) -> tuple[int, list[str]]:
        given = dict(environment(settings, keys))
        done = commands.tolsey("rotate-keys", folder=tmp_path, settings=given)
        return done.returncode, done.stdout.splitlines()

    status, said = await asyncio.to_thread(rotate, ring)
    assert status == 0, said
    assert int(said[-1].split()[1]) >= left
    assert (await asyncio.to_thread(rotate, ring))[1][-1].startswith("resealed 0 rows,")
    assert set(await holding(database, "old_1")) <= PASSING
    status, said = await asyncio.to_thread(rotate, NEW)
    assert (status, said[0]) == (0, "forgot old_1: it seals nothing")

    alone = settings.model_copy(update={"encryption_keys": NEW})
    async with running(alone, timers=False, poll_seconds=0.1) as live, browsing(live) as browser:
        browser.cookies = cookies
        for secret in (NEXT_SECRET, SECRET):
            body = order_body(7)
            taken = await browser.post(EVENTS, content=body, headers=signed(body, secret=secret))
            assert taken.status_code == 200, taken.text
        platform.revoke_tokens(SHOP)  # so that the app's secret is opened, and used
        edited = json.dumps({"order_edit": {"id": 1, "order_id": min(platform.shop(SHOP).orders)}})
        headers = signed(edited.encode(), "orders/edited", secret=NEXT_SECRET)
        told = await browser.post(EVENTS, content=edited.encode(), headers=headers)
        assert told.status_code == 200, told.text
        await quiet(live)
        assert not await live.service.database.fetch("SELECT FROM dead_letters")
        path = f"/api/stores/{seller.store_id}/integrations/commerce"
        assert (await browser.get(path)).json()["status"] == "active"


async def test_keys_are_rotated_by_the_runbook_under_load_and_no_request_fails(
    settings: Settings, database: Database, tmp_path: Path
) -> None:
    of_servers = {
        "DATABASE_URL": str(settings.database_url),
        "REDIS_URL": str(settings.redis_url),
        "COMMERCE_URL_TEMPLATE": settings.commerce_url_template,
    }
    written = tmp_path / ".env"  # a reload reads the file again
    written.write_text(f"ENCRYPTION_KEYS={OLD}\n")
    fleet = Fleet(tmp_path, free_port(), {**of_servers, "ENCRYPTION_KEYS": ""})
    fleet.start()
    try:
        address = await fleet.ready()
        async with load(address, works=True) as seen:
            for turn, ring in enumerate((f"{OLD},{NEW}", f"{NEW},{OLD}")):
                written.write_text(f"ENCRYPTION_KEYS={ring}\n")
                fleet.process.send_signal(signal.SIGHUP)
                for stopped in (1, 2):
                    await fleet.until_said("process.stopped", 2 * turn + stopped)
                await seen.more(60)
        fleet.process.send_signal(signal.SIGTERM)
        assert await fleet.wait() == 0
    finally:
        fleet.end()

    assert seen.failures == []
    assert set(seen.answers) == {200}
    assert seen.kept == await recorded(database)
    assert fleet.said("streams.not_sealed_by_us") == []
