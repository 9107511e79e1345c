"""How fast catalogues are parsed and kept, and what a thousand storefronts cost, pauses and all.

Products a second beside plain orjson over the same bytes; storefronts of the sandbox scanned at once with their
pauses kept; and a snapshot of a catalogue of which little changed: rows written, and bytes on disk.
"""

import argparse
import asyncio
import resource
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from statistics import median
from time import perf_counter

import orjson

from bench import measure
from tolsey.actors.storefront.observed import ObservedProduct
from tolsey.http.clients.storefront.catalogue import PER_PAGE, read_page
from tolsey.http.clients.storefront.providers import Providers
from tolsey.http.clients.storefront.scanner import WebScanner
from tolsey.http.clients.storefront.visit import Manners
from tolsey.sandbox.storefronts import Storefront, Storefronts, product
from tolsey.storage.database import Database
from tolsey.storage.intelligence import catalogue
from tolsey.storage.intelligence.catalogue import Snapshot
from tolsey.storage.migrate import migrate

ROUNDS = 5
PRODUCTS, CHANGED = 10_000, 50
AT_ONCE = 200
"""Storefronts that one process scans at once: more than the lane of a service lets it."""
NOW = datetime(2026, 6, 15, 12, tzinfo=UTC)
SCAN = """
INSERT INTO storefront_scans (id, domain, mode, is_kept, was_restored, source, state, asked_at)
VALUES ($1, 'shop.example', 'full', true, false, 'bench', 'running', $2)
"""
WRITTEN = """
SELECT sum(n_tup_ins + n_tup_upd) AS rows FROM pg_stat_user_tables WHERE relname LIKE 'storefront_%'
"""


def listed(count: int) -> list[dict[str, object]]:
    return [product(n + 1, quantity=100, body_html="", tags=["one", "two"]) for n in range(count)]


def parsing() -> None:
    """Read one full page over and over, by us and by the parser alone."""
    body = orjson.dumps({"products": listed(PER_PAGE)})
    rows = []
    for name, read in (("ours", read_page), ("orjson alone", orjson.loads)):
        took = []
        for _ in range(ROUNDS):
            began = perf_counter()
            for _ in range(20):
                read(body)
            took.append((perf_counter() - began) / 20)
        rows.append([name, PER_PAGE / median(took), median(took) * 1_000])
    title = f"a page of {PER_PAGE} products, {len(body):,} bytes (medians of {ROUNDS})"
    measure.table(title, ["parser", "products/s", "ms a page"], rows)


async def scanning(shops: int, pace: float) -> None:
    """Scan storefronts at once, each with its pauses."""
    rows = []
    for count in sorted({max(shops // 4, 1), shops}):
        made = [Storefront(domain=f"shop{n}.example", products=listed(20)) for n in range(count)]
        async with Storefronts(*made).serve() as url:
            scanner = WebScanner(
                agent="tolsey-bench/1.0",
                providers=Providers({}, lambda: NOW),
                clock=lambda: NOW,
                manners=Manners(pace_seconds=pace),
                via=url,
            )
            places = asyncio.Semaphore(AT_ONCE)

            async def look(shop: Storefront) -> int:
                async with places:  # noqa: B023 - all of them end within the round
                    seen = await scanner.scan(shop.domain, is_deep=True)  # noqa: B023 - as above
                return len(seen.products or ())

            began = perf_counter()
            found = sum(await asyncio.gather(*map(look, made)))
            took = perf_counter() - began
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        rows.append([f"{count:,}", took, count / took, peak])
        assert found == 20 * count
    title = f"storefronts, {AT_ONCE} at once, {pace:g} s between two requests to each"
    measure.table(title, ["storefronts", "seconds", "a second", "peak MiB"], rows)


async def snapshots(url: str) -> None:
    """Keep a catalogue, then the same with a few changes."""
    await migrate(url)
    database = Database(url)
    await database.open()
    try:
        seen = read_all(listed(PRODUCTS))
        rows = [await kept(database, "the first", seen, 0)]
        rows.append(await kept(database, "nothing changed", seen, 1))
        moved = [
            replace(one, variants=(replace(one.variants[0], quantity=99),)) if n < CHANGED else one
            for n, one in enumerate(seen)
        ]
        rows.append(await kept(database, f"{CHANGED} changed", moved, 2))
    finally:
        await database.close()
    title = f"a snapshot of {PRODUCTS:,} products"
    measure.table(title, ["snapshot", "ms", "rows written", "bytes on disk"], rows)


def read_all(products: list[dict[str, object]]) -> list[ObservedProduct]:
    pages = (products[n : n + PER_PAGE] for n in range(0, len(products), PER_PAGE))
    return [one for page in pages for one in read_page(orjson.dumps({"products": page})).products]


async def kept(database: Database, name: str, seen: list[ObservedProduct], n: int) -> list[object]:
    at = NOW + timedelta(hours=6 * n)
    await database.execute(SCAN, f"scan_{n}", at)
    rows, size = await standing(database)
    snapshot = Snapshot(
        domain="shop.example", scan_id=f"scan_{n}", taken_at=at, products=seen, is_whole=True
    )
    began = perf_counter()
    written = await catalogue.keep(database, snapshot)
    took = perf_counter() - began
    assert written is not None
    after_rows, after_size = await standing(database)
    return [name, took * 1_000, after_rows - rows, after_size - size]


async def standing(database: Database) -> tuple[int, int]:
    """Tell how many rows were ever written, and how large the tables are."""
    await database.execute("SELECT pg_stat_force_next_flush()")
    (written,) = await database.fetch(WRITTEN)
    (size,) = await database.fetch(
        "SELECT sum(pg_total_relation_size(relid))::bigint AS bytes FROM pg_stat_user_tables"
        " WHERE relname LIKE 'storefront_%'"
    )
    return int(written["rows"]), int(size["bytes"])


def main() -> None:
    asked = measure.arguments(__doc__ or "")
    asked.add_argument("--shops", type=int, default=1_000)
    asked.add_argument("--pace", type=float, default=2.0, help="seconds between two requests")
    given: argparse.Namespace = asked.parse_args()
    measure.machine(given.loop)
    parsing()
    shops, pace = (20, 0.05) if given.quick else (given.shops, given.pace)
    measure.run(lambda: scanning(shops, pace), given.loop)
    with ExitStack() as stack:
        server_url, _ = stack.enter_context(measure.servers())
        url = stack.enter_context(measure.database(server_url))
        measure.run(lambda: snapshots(url), given.loop)


if __name__ == "__main__":
    main()
