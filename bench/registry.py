"""What each route of the intelligence API takes over a registry of a million products.

The registry is filled in two steps, so that what grows shows: shops of 500 products beside one of 20,000, each with
sixty days of snapshots and of changes. A real `tolsey serve` is then asked for every route, each time of another shop.
"""

import argparse
import itertools
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from pathlib import Path
from time import perf_counter
from typing import Any

import asyncpg
import httpx
import orjson

from bench import measure
from bench.tenants import Growing
from tolsey.http.clients.storefront.providers import Providers
from tolsey.http.clients.storefront.scanner import WebScanner
from tolsey.http.clients.storefront.visit import Manners
from tolsey.sandbox.storefronts import Storefront, Storefronts, product
from tolsey.storage.migrate import migrate

A_SHOP, LARGEST = 500, 20_000
WATCHED = 500
"""So many competitors the largest plan lets a store name."""
AIM_MS = 100.0
SHOPS = """
INSERT INTO storefronts (domain, state, source, discovered_at, platform, country, currency, category, product_count,
    velocity, facts, diagnosis, scanned_at, snapshot_at, next_scan_at)
SELECT 'shop' || n || '.example', 'active', 'bench', now() - n * interval '1 minute', 'Shopify',
    (ARRAY['BE', 'NL', 'DE', 'US'])[1 + n % 4], 'USD', 'Thing ' || n % 50, $3, n % 100 / 3.0, $4, $5, now(), now(),
    now() + interval '1 day'
FROM generate_series($1::int, $2::int - 1) n
"""
SNAPSHOTS = """
INSERT INTO storefront_snapshots (domain, taken_at, scan_id, product_count, variant_count, changed, median_price, units,
    velocity, velocity_low, velocity_high)
SELECT 'shop' || n || '.example', date_trunc('hour', now()) - k * interval '6 hours', 'scan_' || n || '_' || k, $3::int, $3,
    $3 / 60, 20.00, $3 * 50, 10, 8, 13
FROM generate_series($1::int, $2::int - 1) n, generate_series(0, 239) k
"""
PRODUCTS = """
INSERT INTO storefront_products (domain, product_id, title, handle, vendor, product_type, first_seen_at, changed_at)
SELECT 'shop' || n || '.example', n * 100000::bigint + p, 'A kettle of enamel ' || p, 'kettle-' || p, 'Vendor', 'Thing',
    now() - interval '60 days', now() - interval '60 days'
FROM generate_series($1::int, $2::int - 1) n, generate_series(1, $3::int) p
"""
VARIANTS = """
INSERT INTO storefront_variants (domain, variant_id, product_id, title, sku, price, available, quantity, changed_at)
SELECT 'shop' || n || '.example', (n * 100000::bigint + p) * 10, n * 100000::bigint + p, 'Default Title', 'SKU-' || p,
    10 + p % 90, true, 50, now()
FROM generate_series($1::int, $2::int - 1) n, generate_series(1, $3::int) p
"""
CHANGES = """
INSERT INTO storefront_changes (domain, at, variant_id, kind, product_id, before, after)
SELECT 'shop' || n || '.example', date_trunc('hour', now()) - ((p * 7 + k * 61) % 240) * interval '6 hours',
    (n * 100000::bigint + p) * 10, 'quantity', n * 100000::bigint + p, (60 - 2 * k)::text, (58 - 2 * k)::text
FROM generate_series($1::int, $2::int - 1) n, generate_series(1, $3::int) p, generate_series(1, 4) k
"""
COMPETITORS = """
INSERT INTO competitors (store_id, domain, added_by, added_at)
SELECT $1, 'shop' || n || '.example', 'usr_bench', now() FROM generate_series(0, $2::int - 1) n ON CONFLICT DO NOTHING
"""
ASKED_FOR = """
INSERT INTO storefront_scans (id, domain, mode, is_kept, was_restored, source, organization_id, state, asked_at)
VALUES ('scan_bench', 'shop1.example', 'full', true, false, 'customer', $1, 'queued', now()) ON CONFLICT DO NOTHING
"""
LISTS = frozenset({"/stores", "/stores?platform", "/changes, 500 shops", "…/products, of 20,000"})
"""Those that are asked for the page behind the first, too."""
Seen = dict[str, list[float]]
"""Seconds by what was asked."""
FILLED = (SNAPSHOTS, PRODUCTS, VARIANTS, CHANGES)


async def seen() -> tuple[str, str]:
    """Give the fields and verdicts of a shop that was really scanned: their size is a row's."""
    shop = Storefront(domain="shop.example", products=[product(n + 1) for n in range(20)])
    at = datetime.now(UTC)
    async with Storefronts(shop).serve() as url:
        scanner = WebScanner(
            agent="tolsey-bench/1.0",
            providers=Providers({}, lambda: at),
            clock=lambda: at,
            manners=Manners(pace_seconds=0),
            via=url,
        )
        found = await scanner.scan(shop.domain, is_deep=True)
    facts = {name: asdict(one) for name, one in found.facts.items()}
    verdicts = {name: asdict(one) for name, one in found.diagnosis.items()}
    return orjson.dumps(facts).decode(), orjson.dumps(verdicts).decode()


async def fill(growing: Growing, shops: int, before: int) -> None:
    """Fill the registry up to so many shops; the first of them is the largest."""
    facts, diagnosis = await seen()
    database = await asyncpg.connect(growing.url)
    large = growing.tenants[0]
    try:
        sizes = [(before, shops, A_SHOP)] if before else [(0, 1, LARGEST), (1, shops, A_SHOP)]
        for first, end, size in sizes:
            await database.execute(SHOPS, first, end, size, facts, diagnosis)
            for statement in FILLED:
                for start in range(first, end, 100):
                    await database.execute(statement, start, min(start + 100, end), size)
        await database.execute(COMPETITORS, large.store_id, min(shops, WATCHED))
        await database.execute(ASKED_FOR, large.organization_id)
        for table in ("products", "variants", "changes", "snapshots"):
            await database.execute(f"VACUUM ANALYZE storefront_{table}")
        await database.execute("VACUUM ANALYZE storefronts, competitors")
        rows = await database.fetchval(
            "SELECT sum(pg_total_relation_size(relid)) FROM pg_stat_user_tables WHERE relname LIKE 'storefront%'"
        )
    finally:
        await database.close()
    measure.say(f"{shops:,} shops take {int(rows) / 2**20:,.0f} MiB on disk")


def asks(shops: int) -> Mapping[str, Iterator[tuple[str, dict[str, Any]]]]:
    """Say what is asked, each time of another shop."""
    since = (datetime.now(UTC) - timedelta(days=7)).isoformat()
    numbers = itertools.cycle(range(1, shops, 7))
    other = (f"/api/intelligence/stores/shop{n}.example" for n in numbers)
    largest = "/api/intelligence/stores/shop0.example"

    def of(end: str, **params: Any) -> Iterator[tuple[str, dict[str, Any]]]:
        return ((one + end, params) for one in other)

    def always(path: str, **params: Any) -> Iterator[tuple[str, dict[str, Any]]]:
        return itertools.repeat((path, params))

    listed = "/api/intelligence/stores"
    five = ",".join(f"shop{n}.example" for n in range(5))
    return {
        "/stores": always(listed),
        "/stores?platform": always(listed, platform="Shopify"),
        "/stores?category": always(listed, category="Thing 7"),
        "/stores?country&minVelocity": always(listed, country="NL", minVelocity=30),
        "/stores/{domain}": of(""),
        "…/products": of("/products"),
        "…/products, of 20,000": always(f"{largest}/products"),
        "…/snapshots": of("/snapshots"),
        "…/velocity": of("/velocity"),
        "…/velocity, of 20,000": always(f"{largest}/velocity"),
        "…/technologies": of("/technologies"),
        "/compare, five": always("/api/intelligence/compare", domains=five),
        "/changes, 500 shops": always("/api/intelligence/changes", since=since),
        "/changes, shop of 20,000": always(
            "/api/intelligence/changes", since=since, domains="shop0.example"
        ),
        "/scans/{id}": always("/api/intelligence/scans/scan_bench"),
        "/usage": always("/api/intelligence/usage"),
    }


async def ask(client: httpx.AsyncClient, growing: Growing, shops: int, rounds: int) -> Seen:
    """Ask for everything in turn, so many times; of each list every other time for the page behind the first."""
    headers = {"X-Api-Key": growing.tenants[0].api_key}
    took: Seen = {}
    cursors: dict[str, str] = {}
    wanted = asks(shops)
    for number in range(rounds + 1):
        for name, each in wanted.items():
            path, params = next(each)
            if name in cursors:
                params = {**params, "cursor": cursors.pop(name)}
            began = perf_counter()
            answer = await client.get(path, params=params, headers=headers)
            spent = perf_counter() - began
            told = answer.raise_for_status().json()
            # The first asks of a process make its plans and its connections.
            if number:
                took.setdefault(name, []).append(spent)
            if "cursor" not in params and told.get("nextCursor") and name in LISTS:
                cursors[name] = told["nextCursor"]
    return took


def show(stages: Mapping[int, Seen], sizes: Sequence[int]) -> None:
    """Print what each route took at each size."""
    rows = []
    for name in stages[sizes[-1]]:
        line: list[Any] = [name]
        for size in sizes:
            line += [1_000 * measured(stages[size][name], share) for share in (0.5, 0.99)]
        rows.append([*line, "" if line[-1] <= AIM_MS else "over 100 ms"])
    columns = ["asked"]
    for size in sizes:
        products = LARGEST + (size - 1) * A_SHOP
        columns += [f"p50, {products:,}", "p99"]
    measure.table("Milliseconds by products in the registry", [*columns, "aim"], rows)


def measured(times: Sequence[float], share: float) -> float:
    ordered = sorted(times)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


async def main(growing: Growing, sizes: Sequence[int], rounds: int) -> None:
    """Fill, ask, and print."""
    stages: dict[int, Seen] = {}
    # A process that waits for others' migrations on a busy machine counts as one that does not come up.
    await migrate(growing.url)
    async with growing.serving() as client:
        await growing.sign_up(client)
        for before, size in itertools.pairwise((0, *sizes)):
            await fill(growing, size, before)
            stages[size] = await ask(client, growing, size, rounds)
    show(stages, sizes)


def run() -> None:
    asked = measure.arguments(__doc__ or "")
    asked.add_argument("--rounds", type=int, default=200)
    given: argparse.Namespace = asked.parse_args()
    measure.machine(given.loop)
    sizes, rounds = ((3, 6), 3) if given.quick else ((161, 1_961), given.rounds)
    with ExitStack() as stack:
        server_url, redis_url = stack.enter_context(measure.servers())
        url = stack.enter_context(measure.database(server_url))
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        measure.run(lambda: main(Growing(url, redis_url, folder), sizes, rounds), given.loop)


if __name__ == "__main__":
    run()
