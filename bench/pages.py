"""What a page costs whoever reads it: its largest paint and its bytes in a browser, and how both grow.

Headless Chromium opens every page of a tenant over loopback with an empty cache, at 500 and at 10,000 orders of one
world (`world.py`); the pages are those that the service lists itself (`surface.py`). At the second size the lists of
the tenant (listings, deals, people, sessions, mails, what agents did, what one watches, dead letters) have 10,000
rows each behind them. What misses its aim is listed last.
"""

import re
import statistics
import tempfile
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, Final

import anyio
import asyncpg
import httpx

from bench import measure, surface
from bench.surface import Ask
from bench.tenants import Growing, values_of
from bench.world import Tenant
from tests.pages.chromium import Browser, find_chromium, launched

PAINT_MS: Final = 1_000.0
KILOBYTES: Final = 100.0
PATIENCE: Final = 20.0
"""Seconds that a page has to be there."""
STEPS: Final = (500, 10_000)
PAINTED: Final = """new Promise(resolve => {
  const told = () => {
    const all = [...performance.getEntriesByType('navigation'), ...performance.getEntriesByType('resource')];
    resolve([largest, all.reduce((sum, one) => sum + one.transferSize, 0), all.length]);
  };
  let largest = 0;
  new PerformanceObserver(list => { largest = list.getEntries().at(-1).startTime })
    .observe({type: 'largest-contentful-paint', buffered: true});
  setTimeout(told, 150);
})"""
"""The largest paint and what came over the line, a moment after the page was loaded."""
ROWS: Final = 10_000
LISTED: Final = (
    """
    INSERT INTO listings (id, organization_id, title, slug, status, anonymous, included_assets, excluded_assets,
        self_reported, auto_approve_access, financing_offered, created_by, created_at, seller_active_at, published_at)
    SELECT 'lst_p' || lpad(n::text, 6, '0'), {organization}, 'A shop of vases ' || n, 'vases-' || n, 'ACTIVE', false, '[]', '[]',
        '{{}}', false, false, {person}, now(), now(), now()
    """,
    """
    INSERT INTO deal_threads (id, listing_id, seller_id, buyer_id, requested_by, stage, entered_at, created_at, moved_at,
        seq, hash, leads, fast_track, diligence, transfer, returns, escalated)
    SELECT 'deal_p' || lpad(n::text, 6, '0'), 'lst_p' || lpad(n::text, 6, '0'), {organization}, {buyer}, {person}, 'INQUIRY', now(), now(),
        now(), 0, '', '[]', '[]', '[]', '[]', '[]', false
    """,
    "INSERT INTO users (id, email, password_hash) SELECT 'usr_p' || n, 'p' || n || '@example.com', ''",
    "INSERT INTO members (organization_id, user_id, role) SELECT {organization}, 'usr_p' || n, 'member'",
    """
    INSERT INTO sessions (token_hash, user_id, expires_at, used_at)
    SELECT sha256(('p' || n)::bytea), {person}, now() + interval '1 day', now()
    """,
    """
    INSERT INTO outbound_mail (id, event, about, organization_id, recipient, subject, state, created_at, ended_at)
    SELECT 'mail_p' || n, 'invited', 'p' || n, {organization}, 'p@example.com', 'A subject', 'kept', now(), now()
    """,
    """
    INSERT INTO agent_operations (store_id, operation_id, user_id, client_id, tool, subject, digest, state, created_at,
        finished_at)
    SELECT {store}, 'op_p' || n, {person}, 'bench', 'tag_order', n::text, '', 'applied', now(), now()
    """,
    """
    INSERT INTO listing_watchers (listing_id, user_id, since)
    SELECT 'lst_p' || lpad(n::text, 6, '0'), {person}, now()
    """,
    """
    INSERT INTO dead_letters (id, key, slot, kind, actor_key, name, payload, attempts, error, status, created_at, died_at)
    SELECT 'dl_p' || n, 'p' || n, n % 1024, 'store', 'store_p' || n % 100, 'store.Gone', '{{}}', 8, 'it failed', 'dead',
        now(), now()
    """,
)
"""Rows behind the lists of a tenant."""
Seen = dict[str, tuple[float, float, int]]
"""Milliseconds to the largest paint, kilobytes and requests, by the name of the page."""


async def opened(browser: Browser, ask: Ask, url: str, headers: dict[str, str]) -> list[float]:
    """Open a page in a tab that knows nothing; answer its largest paint, its bytes and its requests."""
    async with browser.page() as page:
        await page.call("Network.enable")
        for cookie in headers["Cookie"].split("; "):
            name, _equals, value = cookie.partition("=")
            await page.call("Network.setCookie", name=name, value=value, url=url)
        await page.open(
            f"{url}{httpx.URL(ask.path, params=dict(ask.query))}", width=1440, height=900
        )
        found: list[float] = await page.read(PAINTED)
        return found


def headers_of(ask: Ask, tenant: Tenant, growing: Growing) -> dict[str, str]:
    """Tell as whom a page is opened."""
    return dict(growing.administrator if ask.path.startswith("/admin/") else tenant.headers)


async def is_page(client: httpx.AsyncClient, ask: Ask, headers: dict[str, str]) -> bool:
    """Tell whether a browser shows it, rather than keep it as a file or go elsewhere."""
    async with client.stream("GET", ask.path, params=dict(ask.query), headers=headers) as answer:
        kind = answer.headers.get("content-type", "")
        return answer.status_code == httpx.codes.OK and kind.startswith("text/html")


async def look(growing: Growing, only: re.Pattern[str], most: int, rounds: int) -> Seen:
    """Open every page of the large tenant so many times; answer the medians."""
    path = find_chromium()
    if path is None:
        raise SystemExit("bench.pages needs a Chromium: apt-get install chromium")
    seen: dict[str, list[list[float]]] = {}
    async with growing.serving() as client:
        if not growing.tenants:
            await growing.sign_up(client)
        tenant = growing.tenants[0]
        values = {**values_of(tenant, most), **growing.made[tenant.name]}
        found = await surface.surface(client, tenant, values)
        asks = [
            one
            for one in found.asks
            if one.name.startswith("GET /") and not one.name.startswith("GET /api/")
            if one.name == one.plain and only.search(one.name)
        ]
        asks = [one for one in asks if await is_page(client, one, headers_of(one, tenant, growing))]
        with tempfile.TemporaryDirectory(prefix="tolsey-bench-") as profile:
            async with launched(path, Path(profile)) as browser:
                for _ in range(rounds):
                    for ask in asks:
                        headers = headers_of(ask, tenant, growing)
                        told = [0.0, 0.0, 0.0]  # what never says what it painted misses its aim
                        with anyio.move_on_after(PATIENCE):
                            told = await opened(browser, ask, growing.base, headers)
                        seen.setdefault(ask.name, []).append(told)
    measure.say(f"opened {len(asks)} pages, {rounds} times")
    return {
        name: (
            statistics.median(one[0] for one in all_),
            statistics.median(one[1] for one in all_) / 1_000,
            int(max(one[2] for one in all_)),
        )
        for name, all_ in seen.items()
    }


def show(stages: dict[int, Seen]) -> list[str]:
    """Print each page at each size; answer what misses its aim at the largest."""
    first, last = stages[min(stages)], stages[max(stages)]
    lines: list[list[Any]] = [
        [
            name,
            *(value for size in stages for value in stages[size].get(name, (0.0, 0.0, 0))[:2]),
            requests,
        ]
        for name, (_paint, _bytes, requests) in sorted(last.items(), key=lambda one: -one[1][0])
    ]
    columns = [text for size in stages for text in (f"ms at {size:,}", f"kB at {size:,}")]
    measure.table("Pages: largest paint and bytes", ["page", *columns, "requests"], lines)
    paints, sizes = ([one[n] for one in last.values()] for n in (0, 1))
    before = statistics.median(one[0] for one in first.values())
    print(
        f"\nOf {len(last)} pages the median paints in {statistics.median(paints):.0f} ms (before: {before:.0f}), the slowest"
        f" in {max(paints):.0f}; the median takes {statistics.median(sizes):.1f} kB, the heaviest {max(sizes):.1f}"
    )
    return [
        f"{name}: {paint:.0f} ms, {kilobytes:.1f} kB"
        for name, (paint, kilobytes, _requests) in last.items()
        if paint > PAINT_MS or kilobytes > KILOBYTES or paint == 0
    ]


async def fill_lists(growing: Growing) -> None:
    """Put so many rows behind the lists of the large tenant."""
    seller, buyer = growing.tenants
    known = {
        "organization": seller.organization_id,
        "person": seller.user_id,
        "buyer": buyer.organization_id,
        "store": seller.store_id,
    }
    database = await asyncpg.connect(growing.url, command_timeout=600)
    try:
        for statement in LISTED:
            names = [name for name in known if f"{{{name}}}" in statement]
            places = {name: f"${at}::text" for at, name in enumerate(names, 1)}
            await database.execute(
                f"{statement.format(**places)} FROM generate_series(1, {ROWS}) n",
                *(known[name] for name in names),
            )
        await database.execute("VACUUM (ANALYZE)")
    finally:
        await database.close()
    measure.say(f"put {ROWS:,} rows behind each list")


async def main(growing: Growing, only: re.Pattern[str], *, quick: bool) -> None:
    """Measure, and print what was found."""
    stages: dict[int, Seen] = {}
    for step in STEPS[:1] if quick else STEPS:
        async with growing.serving() as client:
            if not growing.tenants:
                await growing.sign_up(client)
        await growing.grow(step)
        if step == STEPS[-1]:
            await fill_lists(growing)
        stages[step] = await look(growing, only, step, 1 if quick else 3)
    missed = show(stages)
    print("\nWhat misses its aim" + "".join(f"\n- {one}" for one in missed or ["nothing"]))


def run() -> None:
    parser = measure.arguments(__doc__ or "")
    parser.add_argument("--only", type=re.compile, default="", help="a pattern of pages to open")
    given = parser.parse_args()
    measure.machine(given.loop)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="tolsey-bench-")))
        server_url, redis_url = stack.enter_context(measure.servers(None))
        url = stack.enter_context(measure.database(server_url, None))
        growing = Growing(url, redis_url, folder)
        only = re.compile(given.only) if isinstance(given.only, str) else given.only
        measure.run(partial(main, growing, only, quick=given.quick), given.loop)


if __name__ == "__main__":
    run()
