"""Twelve troubles, each made for real: the shop's name leads to the cause and to what to do, on the first screen."""

import asyncio
import os
import shutil
import subprocess
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import anyio
import httpx
import pytest

from tests.campaigns.cluster.link import Link
from tests.databases import Servers
from tests.http.people import PASSWORD, settings_of
from tests.journeys.conftest import (
    EVENTS,
    free_port,
    order_body,
    sign_up,
    signed,
)
from tests.journeys.strangers import quiet
from tests.pages.chromium import Page
from tests.pages.test_money import photograph
from tests.pages.troubles import (
    PATIENCE_SECONDS,
    TROUBLES,
    ShiftedClock,
    Stage,
    a_platform,
    on_port,
)
from tolsey.http.operators.diagnosis import RANKS
from tolsey.service import Running
from tolsey.storage.embedded.home import ServerHome
from tolsey.storage.embedded.processes import PostgresServer
from tolsey.storage.people import administrators

WIDTH, HEIGHT = 1440, 900
OPERATOR = "operator@example.com"
SMALL = "320m"
REFUSED = 3
SEEN = """
[...document.querySelectorAll('article.cause')].map(one => ({
    cause: one.querySelector('h3').innerText.trim(), text: one.innerText,
    bottom: one.getBoundingClientRect().bottom, act: one.querySelector('a')?.innerText ?? null,
    address: one.querySelector('a')?.getAttribute('href') ?? null,
    acts: one.querySelector('a')?.getBoundingClientRect().bottom ?? 0,
}))
"""


@pytest.fixture
async def stage(
    chromium_path: str, servers: Servers, database_url: str, redis_url: str
) -> AsyncIterator[Stage]:
    del chromium_path  # asked for first, so that no one waits for a service nobody visits
    if not servers.embedded:
        pytest.skip("the cables lead to the sockets of embedded servers")
    database = urlsplit(database_url)
    folder = parse_qs(database.query)["host"][0]
    port, clock, platform = free_port(), ShiftedClock(), a_platform()
    async with AsyncExitStack() as stack:
        platform_up = await stack.enter_async_context(AsyncExitStack())
        await platform_up.enter_async_context(platform.serve())
        redis = Link(Path(urlsplit(redis_url).path))
        postgres = Link(Path(folder) / ".s.PGSQL.5432")
        for cable in (redis, postgres):
            await stack.enter_async_context(cable.standing())
        settings = settings_of(
            base_url=f"http://127.0.0.1:{port}",
            database_url=f"postgresql://{database.username}@127.0.0.1:{postgres.port}{database.path}?sslmode=disable",
            redis_url=f"redis://127.0.0.1:{redis.port}/0",
            commerce_url_template=platform.url_template,
        )
        live = await stack.enter_async_context(on_port(settings, clock, port))
        made = Stage(
            settings.base_url, live, platform, platform_up, redis, postgres, clock, database_url
        )
        client = httpx.AsyncClient(base_url=made.url, headers={"Origin": made.url}, timeout=60)
        made.seller = await sign_up(await stack.enter_async_context(client))
        assert (await made.seller.connect()).status_code == 200
        with anyio.fail_after(30):
            await quiet(live)
        yield made
        for cable in (redis, postgres):
            await cable.heal(loses=True)


async def sign_in(page: Page, url: str, live: Running) -> None:
    await administrators.create_administrator(live.service.database, OPERATOR, PASSWORD)
    await page.open(f"{url}/login?next=/admin/find", width=WIDTH, height=HEIGHT)
    await page.write("#email", OPERATOR)
    await page.write("#password", PASSWORD)
    await page.click("main button")


async def found(page: Page, url: str) -> list[dict[str, Any]]:
    """Type the beginning of the shop's name, and read what is said."""
    await page.open(f"{url}/admin/find", width=WIDTH, height=HEIGHT)
    await page.write("#q", "demo")
    await page.click("main button")
    said: list[dict[str, Any]] = await page.read(SEEN)
    return said


async def told(page: Page, url: str, cause: str) -> dict[str, Any]:
    """Search until the cause is told; answer it."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while True:
            for one in await found(page, url):
                if one["cause"] == cause:
                    return one
            await asyncio.sleep(0.2)


async def is_told(page: Page, url: str, cause: str, says: str, leads: str | None) -> None:
    one = await told(page, url, cause)
    await photograph(page, f"trouble-{cause}")
    assert says in one["text"]
    assert "What to do:" in one["text"]
    assert one["bottom"] <= HEIGHT, "the cause and what to do stand on the first screen"
    assert (one["address"] or "").partition("?")[0] == (leads or "")
    if leads is not None:
        assert one["acts"] <= HEIGHT


def test_each_trouble_is_one_that_the_page_ranks() -> None:
    assert {*TROUBLES, "database_full", "disk_full"} <= RANKS.keys()


@pytest.mark.parametrize("cause", TROUBLES)
async def test_the_shops_name_leads_to_the_cause_and_to_what_to_do(
    stage: Stage, page: Page, cause: str
) -> None:
    induced, says, leads = TROUBLES[cause]
    await sign_in(page, stage.url, stage.live)
    assert await found(page, stage.url) == [], "a store that is well has no cause"
    async with induced(stage):
        await is_told(page, stage.url, cause, says, leads)


# The twelfth, which has servers of its own


@pytest.fixture
def small_disk() -> Iterator[Path]:
    """A disk of its own on which there is little room."""
    folder = Path(tempfile.mkdtemp(prefix="tolsey-disk-"))
    mounting = ["mount", "-t", "tmpfs", "-o", f"size={SMALL},mode=0755", "tmpfs", str(folder)]
    if os.geteuid() != 0 or subprocess.run(mounting, capture_output=True, check=False).returncode:
        folder.rmdir()
        pytest.skip("only root may mount a small disk")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)  # noqa: S607 - as mount was found
    shutil.rmtree(folder)


@contextmanager
def filled(folder: Path) -> Iterator[None]:
    """Leave no room on a disk."""
    stuff = folder / "somebody-elses"
    with stuff.open("wb") as file:
        try:
            while True:
                file.write(bytes(1 << 16))
                file.flush()
        except OSError:
            pass
    try:
        yield
    finally:
        stuff.unlink()


@pytest.fixture
def small_database(small_disk: Path) -> Iterator[str]:
    """A PostgreSQL on that disk."""
    home = ServerHome.of(small_disk / "servers")
    home.build()
    server = PostgresServer(home)
    server.start()
    server.wait()
    yield home.database_url
    server.ask_to_stop()
    server.wait_stopped()


async def test_a_full_disk_is_told_and_what_was_refused_is_taken_once_there_is_room(
    page: Page, small_disk: Path, small_database: str, redis_url: str
) -> None:
    port, clock, platform = free_port(), ShiftedClock(), a_platform()
    url = f"http://127.0.0.1:{port}"
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(platform.serve())
        settings = settings_of(
            base_url=url,
            database_url=small_database,
            redis_url=redis_url,
            data_dir=small_disk,
            commerce_url_template=platform.url_template,
        )
        live = await stack.enter_async_context(on_port(settings, clock, port))
        client = httpx.AsyncClient(base_url=url, headers={"Origin": url}, timeout=60)
        seller = await sign_up(await stack.enter_async_context(client))
        assert (await seller.connect()).status_code == 200
        with anyio.fail_after(30):
            await quiet(live)
        await sign_in(page, url, live)
        assert await found(page, url) == []
        with filled(small_disk):
            refused = await until_refused(client)
            await is_told(page, url, "database_full", "is full", None)
            (disk,) = [one for one in await found(page, url) if one["cause"] == "disk_full"]
            assert "MB are left" in disk["text"]
        assert len(refused) == REFUSED
        await until_taken(client, refused)
        assert not await live.service.database.fetch("SELECT FROM dead_letters")


async def until_refused(client: httpx.AsyncClient) -> list[tuple[bytes, dict[str, str]]]:
    """Deliver orders until some are refused; answer those."""
    refused = []
    for number in range(1, 2_000):
        body = order_body(number, note="x" * 4_000)
        headers = signed(body, delivery_id=f"full-{number}")
        answer = await client.post(EVENTS, content=body, headers=headers)
        assert answer.status_code in {200, 503}, answer.text
        if answer.status_code == 503:
            refused.append((body, headers))
        if len(refused) == REFUSED:
            break
    return refused


async def until_taken(
    client: httpx.AsyncClient, refused: list[tuple[bytes, dict[str, str]]]
) -> None:
    """Send again, as a platform does, what was refused."""
    for body, headers in refused:
        async with asyncio.timeout(PATIENCE_SECONDS):
            while (await client.post(EVENTS, content=body, headers=headers)).status_code != 200:
                await asyncio.sleep(0.2)
