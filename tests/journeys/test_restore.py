"""A backup of before an erasure is restored, and what was erased since is forgotten again."""

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path

import asyncpg
import httpx
import pytest

from tests import commands
from tests.databases import Servers
from tests.http.people import KEYRING
from tests.journeys.conftest import SECRET, SHOP, Seller, sign_up
from tests.journeys.strangers import quiet
from tests.journeys.test_compliance import (
    EMAIL,
    PLATFORM_SECRET,
    ROUTES,
    WORDS,
    asked,
    client,
    erased,
    places,
    tell,
)
from tolsey.sandbox.commerce.platform import Platform
from tolsey.sandbox.commerce.shop.state import ShopSpec
from tolsey.service import Running, running
from tolsey.settings import Settings
from tolsey.storage.database import Database
from tolsey.storage.embedded import binaries
from tolsey.storage.people import administrators

OPERATOR = "operator@example.com"
LEAVER, COMPANY = "leaver@example.com", "A company"
STEPS = ("commerce-history", "store-record")


@pytest.fixture
def settings(settings: Settings) -> Settings:
    return settings.model_copy(update={"commerce_client_secret": PLATFORM_SECRET})


@pytest.fixture
async def platform() -> AsyncIterator[Platform]:
    made = Platform()
    made.add_shop(ShopSpec(domain=SHOP, client_id="client-1", client_secret=SECRET))
    async with made.serve():
        yield made


async def program(name: str, *arguments: str) -> None:
    """Run a program of PostgreSQL, as operators do."""
    found = binaries.postgres(None).programs / name
    running = await asyncio.create_subprocess_exec(
        found, *arguments, stdout=asyncio.subprocess.DEVNULL
    )
    assert await running.wait() == 0, name


@pytest.fixture
async def restored(servers: Servers) -> AsyncIterator[str]:
    """An empty database that a dump is put into."""
    name = f"tolsey_restored_{os.getpid()}"
    administrator = await asyncpg.connect(servers.database_url)
    await administrator.execute(f"CREATE DATABASE {name} TEMPLATE template0")
    yield servers.database_named(name)
    await administrator.execute(f"DROP DATABASE {name} WITH (FORCE)")
    await administrator.close()


async def forget(live: Running, seller: Seller, leaver: Seller) -> None:
    """Forget a customer, then the whole shop with every step, and who left; the operator closes it."""
    for route in ("customer-redact", "redact"):
        taken = await asked(seller.browser, route, ROUTES[route])
        assert taken.status_code == 200
    await leaver.browser.delete(f"/api/stores/{leaver.store_id}")
    assert (await leaver.browser.delete("/api/account")).status_code == 202
    database = live.service.database
    for aged in (
        "UPDATE users SET deletion_requested_at = deletion_requested_at - interval '31 days'",
        "UPDATE stores SET deleted_at = deleted_at - interval '2 days'",
    ):
        await database.execute(aged)
    outcome = await erased(live)
    assert (outcome["requestsCompleted"], outcome["requestsFailed"]) == (2, 0)
    assert (outcome["storesErased"], outcome["usersErased"]) == (1, 1)
    async with client(live) as operator:
        await administrators.create_administrator(database, OPERATOR, "correct horse battery")
        login = {"email": OPERATOR, "password": "correct horse battery"}
        assert (await operator.post("/api/auth/login", json=login)).status_code == 200
        await _close(live, operator)


async def _close(live: Running, operator: httpx.AsyncClient) -> None:
    why = {"reason": "Asked for by the shop."}
    path = "/api/admin/compliance"
    requests = (await operator.get(path)).json()["items"]
    for request in requests:
        for step in request["pendingSteps"]:
            asking = await operator.post(f"{path}/{request['id']}/steps/{step}/done", json=why)
            assert asking.status_code == 202
    await erased(live)
    for request in requests:
        closing = await operator.post(f"{path}/{request['id']}/handled", json=why)
        assert closing.status_code == 200, closing.text
    await erased(live)


async def test_a_restored_backup_forgets_again_what_was_erased_after_it(
    servers: Servers, settings: Settings, restored: str, tmp_path: Path
) -> None:
    if not servers.embedded:
        pytest.skip("the programs of PostgreSQL are those of the embedded servers")
    assert settings.database_url is not None
    assert settings.redis_url is not None
    dump = str(tmp_path / "backup.sql")
    async with running(settings, timers=False, poll_seconds=0.1) as live, client(live) as browser:
        seller = await sign_up(browser)
        assert (await seller.connect()).status_code == 200
        await quiet(live)
        await tell(browser, SHOP, SECRET)
        async with client(live) as other:
            leaver = await sign_up(other, LEAVER)
            await program("pg_dump", "--file", dump, settings.database_url)
            await forget(live, seller, leaver)
        assert await places(live.service.database, EMAIL, WORDS, LEAVER) == set()

    await program("psql", "--quiet", "--set", "ON_ERROR_STOP=1", "--file", dump, restored)
    database = Database(restored)
    await database.open()
    try:
        assert len(await places(database, EMAIL, WORDS, LEAVER)) >= 2
        tmp_path.chmod(0o755)
        environment = {
            "PATH": os.environ["PATH"],
            "DATA_DIR": str(settings.data_dir),
            "DATABASE_URL": restored,
            "REDIS_URL": settings.redis_url,
            "ENCRYPTION_KEYS": KEYRING,
            "COMMERCE_CLIENT_SECRET": PLATFORM_SECRET,
            "LEASE_SECONDS": "4",  # each check waits for the lease of who held the slots
        }

        def check(*options: str) -> tuple[int, str]:
            done = commands.tolsey("restore-check", *options, folder=tmp_path, settings=environment)
            return done.returncode, done.stdout.splitlines()[-1] if done.stdout else done.stderr

        counted = check("--dry-run")
        assert counted == (1, "erasures listed 4, newer than the database 4, left 4")
        assert len(await places(database, EMAIL, WORDS, LEAVER)) >= 2
        assert check() == (0, "erasures listed 4, newer than the database 4, left 0")
        assert await places(database, EMAIL, WORDS, LEAVER) == set()
        rows = await database.fetch(
            "SELECT completed_at IS NOT NULL AND handled_at IS NOT NULL AS closed, pending_steps"
            " FROM compliance_requests"
        )
        assert [(row["closed"], row["pending_steps"]) for row in rows] == [(True, [])] * 2
        assert await database.fetch("SELECT FROM commerce_orders") == []
        assert await database.fetch("SELECT FROM stores WHERE sealed_salt <> ''") == []
        assert check() == (0, "erasures listed 4, newer than the database 0, left 0")
    finally:
        await database.close()
