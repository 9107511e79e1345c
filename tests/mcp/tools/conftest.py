from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import datetime
from io import BytesIO
from typing import Any

import asyncpg
import pytest

from tests.http.people import Clock, settings_of
from tests.mcp.tools.two_stores import SHOPS, Owner, TwoStores, settle
from tolsey.http.web.context import Service
from tolsey.sandbox.commerce.platform import Platform
from tolsey.sandbox.commerce.shop.state import ShopSpec
from tolsey.service import running
from tolsey.storage.database import Connection

ANN, BOB = 1_000_000, 2_000_000


TABLES = (
    "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind = 'r'"
)


async def count_rows(connection: Connection) -> dict[str, int]:
    """Return how many rows each table has."""
    names = [row["relname"] for row in await connection.fetch(TABLES)]
    counts = (f"SELECT '{name}' AS name, count(*) FROM {name}" for name in names)  # noqa: S608 - our own names
    found = await connection.fetch(" UNION ALL ".join(counts))
    return {row["name"]: row["count"] for row in found}


@dataclass(frozen=True)
class Settled:
    """The two owners, and the rows of each table that were written for them."""

    owners: tuple[Owner, Owner]
    rows: dict[str, bytes]


SETTLED: dict[datetime, Settled] = {}
"""By the time at which they were settled: to copy the rows takes a tenth of writing them one by one."""


async def settle_both(service: Service, at: datetime) -> tuple[Owner, Owner]:
    """Create both owners with everything that can be read of their stores."""
    connection = await asyncpg.connect(service.database.dsn)
    try:
        if at in SETTLED:
            async with connection.transaction():
                # What triggers write is among the rows.
                await connection.execute("SET LOCAL session_replication_role = replica")
                for table, rows in SETTLED[at].rows.items():
                    await connection.copy_to_table(table, source=BytesIO(rows), format="binary")
        else:
            before = await count_rows(connection)
            ann = await settle(service, "ann", ANN, at)
            bob = await settle(service, "bob", BOB, at)
            written = {}
            for table, count in (await count_rows(connection)).items():
                if count > before[table]:
                    copied = BytesIO()
                    await connection.copy_from_table(table, output=copied, format="binary")
                    written[table] = copied.getvalue()
            SETTLED[at] = Settled((ann, bob), written)
    finally:
        await connection.close()
    return SETTLED[at].owners


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def platform(clock: Clock) -> AsyncIterator[Platform]:
    """Serve the two stores' shops on loopback."""
    made = Platform(now=clock.now, frozen_clock=True)
    for domain in SHOPS.values():
        made.add_shop(ShopSpec(domain=domain, client_id=f"app-{domain}"))
    async with made.serve():
        yield made


@pytest.fixture
def given() -> dict[str, Any]:
    """Give settings beside the usual ones."""
    return {}


@pytest.fixture
async def two_stores(
    database_url: str, redis_url: str, platform: Platform, clock: Clock, given: dict[str, Any]
) -> AsyncIterator[TwoStores]:
    """Run the whole service with two organizations in it."""
    settings = settings_of(
        database_url=database_url,
        redis_url=redis_url,
        commerce_url_template=platform.url_template,
        storefront_url="http://127.0.0.1:9",  # nobody is there
        **given,
    )
    async with running(settings, clock=clock, timers=False) as started:
        ann, bob = await settle_both(started.service, clock.now)
        yield TwoStores(started.service, ann, bob, started.app)
