"""The part of `market.py` that searches: a page of the public search beside the very SQL that it runs."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from statistics import median, quantiles
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any, Final

import asyncpg
import httpx

from bench import measure
from tolsey import settings
from tolsey.service import running
from tolsey.storage.database import Database, Reader
from tolsey.storage.migrate import migrate
from tolsey.storage.selling import market
from tolsey.storage.selling.market import MarketSearch

WORDS: Final = (
    "candles",
    "coffee",
    "shirts",
    "lamps",
    "rugs",
    "knives",
    "tea",
    "toys",
    "boots",
    "soap",
)
ENTRIES: Final = """
INSERT INTO listings (id, organization_id, slug, title, anonymous, category, country, asking_price, currency,
    included_assets, excluded_assets, self_reported, auto_approve_access, financing_offered, status, created_by,
    created_at, seller_active_at, published_at)
SELECT 'lst_' || lpad(n::text, 8, '0'), 'org_' || n % 5000, 'shop-' || n,
    'A shop for ' || ($2::text[])[1 + n % 10] || ' number ' || n, false, 'home', 'DE', 100000 + n::bigint * 7919 % 9000000,
    'USD', '[]', '[]', '{}', false, n % 3 = 0, 'ACTIVE', 'usr_1', now(), now(), now()
FROM generate_series(1, $1) n
"""
SEARCHES: Final = {
    "newest": "limit=50",
    "a word": "q=candles&limit=50",
    "two words, one rare": "q=candles%20{rare}&limit=50",
    "price from to": "currency=USD&minPrice=500000&maxPrice=600000&sort=price_asc&limit=50",
    "financing, dearest first": "currency=USD&financing=true&sort=price_desc&limit=50",
}
LOOKED_FOR: Final = {
    "newest": MarketSearch(),
    "a word": MarketSearch(words="candles"),
    "two words, one rare": MarketSearch(words="candles {rare}"),
    "price from to": MarketSearch(
        currency="USD", least_price=500_000, most_price=600_000, order="price_asc"
    ),
    "financing, dearest first": MarketSearch(currency="USD", financing=True, order="price_desc"),
}


class Overheard:
    """A reader that keeps what it was asked."""

    def __init__(self, database: Reader) -> None:
        self._database = database
        self.said: tuple[str, tuple[Any, ...]] = ("", ())

    async def fetch(self, sql: str, *args: Any) -> Any:
        """Read, and keep the statement."""
        self.said = (sql, args)
        return await self._database.fetch(sql, *args)


@asynccontextmanager
async def served(
    url: str, redis_url: str | None, listings: int
) -> AsyncIterator[tuple[Any, Database]]:
    """Run the service over a market of so many listings."""
    await migrate(url)
    connection = await asyncpg.connect(url)
    await connection.execute(ENTRIES, listings, list(WORDS), timeout=1_800)
    await connection.execute("VACUUM ANALYZE listings")
    await connection.execute("VACUUM ANALYZE market_entries")
    await connection.close()
    measure.say(f"{listings:,} listings are on the market")
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="tolsey-bench-")))
        given = settings.read(
            base_url="http://127.0.0.1:8000", data_dir=folder, database_url=url, redis_url=redis_url
        )
        started = await stack.enter_async_context(running(given, timers=False))
        yield started.app, started.service.database


async def search(url: str, redis_url: str | None, *, quick: bool) -> None:
    """Compare a page of the public search with its own SQL."""
    listings, times = (2_000, 20) if quick else (100_000, 300)
    rows: list[list[object]] = []
    async with AsyncExitStack() as stack:
        app, database = await stack.enter_async_context(served(url, redis_url, listings))
        transport = httpx.ASGITransport(app)
        client = await stack.enter_async_context(
            httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8000")
        )
        connection = await asyncpg.connect(url)
        stack.push_async_callback(connection.close)
        for name, query in SEARCHES.items():
            overheard = Overheard(database)
            wanted = LOOKED_FOR[name]
            rare = str(listings // 2)
            if wanted.words:
                wanted = MarketSearch(words=wanted.words.format(rare=rare))
            at = datetime.now(UTC)
            found = await market.search(overheard, wanted, after=None, at=at, limit=51)  # type: ignore[arg-type]
            sql, args = overheard.said
            address = f"/api/public/listings?{query.format(rare=rare)}"
            answered = await client.get(address)
            assert answered.status_code == 200, answered.text
            assert len(answered.json()["items"]) == min(50, len(found)) > 0, name
            taken: dict[str, list[float]] = {"ours": [], "sql": []}
            for _ in range(times):
                began = perf_counter()
                await client.get(address)
                taken["ours"].append(1_000 * (perf_counter() - began))
                began = perf_counter()
                await connection.fetch(sql, *args)
                taken["sql"].append(1_000 * (perf_counter() - began))
            line: list[object] = [name, f"{len(answered.json()['items'])}"]
            for values in taken.values():
                line += [f"{median(values):.1f}", f"{quantiles(values, n=100)[98]:.1f}"]
            rows.append(line)
    measure.table(
        f"A page of the public search over {listings:,} listings, in ms",
        ["search", "found", "ours p50", "p99", "same SQL p50", "p99"],
        rows,
    )
