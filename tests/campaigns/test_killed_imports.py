"""A process dies at turns of its loop, one after the other, while a shop's earlier orders are imported.

The next process goes on. Every order is there once and as it is at the platform, and the sums are a recount.
"""

import signal
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import pytest

from tests.campaigns.mortals import IN_A_ROW, STEP, mortals
from tests.campaigns.sums import wrong_sums
from tests.http.people import settings_of
from tests.mcp.tools.shop import ANNS
from tests.mcp.tools.two_stores import Owner, connect, settle
from tolsey.actors.store.imports.messages import BeginImport
from tolsey.sandbox.commerce.platform import Platform
from tolsey.sandbox.commerce.shop.history import make_history
from tolsey.sandbox.commerce.shop.state import ALL_SCOPES, ShopSpec
from tolsey.service import running
from tolsey.storage.commerce import order_imports
from tolsey.storage.database import Database
from tolsey.storage.records.commerce.imports import ImportState

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(1_800)]

SOLD: Final = 24
MOST: Final = 1_500
"""More turns than a loop takes from the beginning of an import to its end."""
STAGES: Final = {"asked for", "exported", "read in part", "done"}
"""Each has to be died in."""


@asynccontextmanager
async def opened(
    database: Database, database_url: str, redis_url: str
) -> AsyncIterator[tuple[Platform, Owner]]:
    """Connect a store whose app may not read orders yet, so that nothing is imported by itself."""
    history = make_history(seed=5, days=90, orders=SOLD)
    spec = ShopSpec(
        domain=ANNS,
        client_id=f"app-{ANNS}",
        orders=history,
        maximum_points=1e9,
        restore_rate=1e9,
    )
    platform = Platform(bulk_polls=0)
    platform.add_shop(spec)
    async with platform.serve():
        given = {"database_url": database_url, "redis_url": redis_url}
        settings = settings_of(**given, commerce_url_template=platform.url_template)
        async with running(settings, timers=False) as started:
            owner = await settle(started.service, "ann", 1_000_000, datetime.now(UTC))
            token = platform.shop(ANNS).issue_token(platform.now())
            await connect(started.service, owner, token.text, ["read_products"])
        await database.execute(
            "UPDATE integration_connections SET metadata = metadata || jsonb_build_object('scopes', $1::text[])",
            list(ALL_SCOPES),
        )
        yield platform, owner


async def stage(database: Database, store_id: str) -> str:
    """Tell how far an import is."""
    known = await order_imports.known(database, store_id)
    last = None if known is None else known.order_import
    if last is None:
        return "not asked"
    if last.state is ImportState.DONE:
        return "done"
    if last.bulk_export is None:
        return "asked for"
    return "read in part" if last.orders else "exported"


async def test_each_order_is_imported_once_whatever_turn_a_process_dies_at(
    database: Database, database_url: str, redis_url: str, tmp_path: Path, capsys: Any
) -> None:
    died: Counter[str] = Counter()
    turn = outlived = 0
    async with (
        opened(database, database_url, redis_url) as (platform, owner),
        mortals("store", database_url, platform.url_template, tmp_path) as forks,
    ):
        sold = {one.id: one.updated_at for one in platform.shop(ANNS).orders.values()}
        while outlived < IN_A_ROW:
            turn += 4 * STEP
            assert turn < MOST
            for table in (
                "commerce_orders",
                "commerce_refunds",
                "attribution_touches",
                "order_imports",
            ):
                await database.execute(f"DELETE FROM {table}")  # noqa: S608 - names of our own tables
            asked = BeginImport(user_id=owner.user_id, at=datetime.now(UTC))
            code = await forks.ask(owner.store_id, asked, dies_at=turn)
            assert code in {0, -signal.SIGKILL}, forks.said.read_text()[-4_000:]
            outlived = outlived + 1 if code == 0 else 0
            died[await stage(database, owner.store_id)] += code != 0
            await forks.follow(owner.store_id, asked)
            known = await order_imports.known(database, owner.store_id)
            assert known is not None
            last = known.order_import
            assert last is not None
            assert (last.state, last.orders) == (ImportState.DONE, SOLD)
            rows = await database.fetch("SELECT order_id FROM commerce_orders")
            assert sorted(row["order_id"] for row in rows) == sorted(sold)
            assert await wrong_sums(database) == []
        assert await database.fetch("SELECT FROM outbox UNION ALL SELECT FROM dead_letters") == []
    with capsys.disabled():
        print(f"\n{turn} turns, died when it was {dict(died)}")  # noqa: T201 - what a campaign is for
    if STEP == 1:
        assert {stage for stage, times in died.items() if times} >= STAGES - {"done"}
