"""How long a whole launch takes beside its critical path, and what a tick costs over many stores.

The service runs as it ships, on servers of its own; the shop is the sandbox's, every answer of which takes 200 ms, and
each human step is marked as soon as it is its turn. The path is the longest chain of milestones, each counted
by those of its calls that waited for one another: what a launch takes beyond it is dispatch, commits, the look of
whoever marks the human steps, and the processor that service, platform and servers share here.
"""

import asyncio
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from types import ModuleType
from typing import Any

import orjson
import structlog

from bench import measure
from tolsey import settings
from tolsey.actors.job.messages import RunNow, job
from tolsey.actors.store.editing import edits
from tolsey.actors.store.launch.executors import (
    catalogue,
    growth,
    opening,
    shipping,
    storefront,
    theme,
)
from tolsey.actors.store.launch.playbook import PLAYBOOK
from tolsey.demo.browser import Browser, browsing
from tolsey.demo.launching import FORM, own_site
from tolsey.demo.run import Demo
from tolsey.demo.seller import Seller
from tolsey.demo.standins import Ports
from tolsey.demo.telling import Unexpected
from tolsey.http.clients.commerce.edits.sending import WAYS
from tolsey.runtime.ids import new_id
from tolsey.sandbox.commerce.platform import Platform
from tolsey.sandbox.commerce.shop.state import (
    ALL_SCOPES,
    LAUNCH_SCOPES,
    WRITE_SCOPES,
    Shop,
    ShopSpec,
)
from tolsey.sandbox.storefronts import Storefront
from tolsey.service import running
from tolsey.storage.database import Database

ANSWER_SECONDS = 0.2
POLL_SECONDS = 0.02
DONE = frozenset({"succeeded", "approved"})
HOST = "loom.example"
STORES = """
WITH made AS (
    SELECT 'store_' || lpad(n::text, 6, '0') AS id, n FROM generate_series(1, $1) n
), organization AS (
    INSERT INTO organizations (id, name) VALUES ('org_bench', 'Bench') ON CONFLICT DO NOTHING
), stores AS (
    INSERT INTO stores (id, organization_id, name, sealed_salt, created_at)
    SELECT id, 'org_bench', 'A store', '', now() FROM made ON CONFLICT DO NOTHING
)
INSERT INTO store_launches (store_id, launch_id, organization_id, playbook, digest, begun_at,
    changed_at, has_work, is_looking)
SELECT id, 'launch_' || n, 'org_bench', 'launch-playbook/2', '', now(), now(), n % 3 = 0, n % 3 = 1
FROM made ON CONFLICT DO NOTHING
"""
NAMED = re.compile(r"(?:query|mutation)\s+(\w+)")
ASKED_OF: Mapping[str, ModuleType] = {
    "operations.shipping": shipping,
    "catalog.publish": catalogue,
    "growth.seo": growth,
    "storefront.navigation": storefront,
    "storefront.theme": theme,
    "launch.preflight": opening,
}
ASKED_BY: Mapping[str, str] = {
    "GrantedScopes": "foundation.audit",
    **dict.fromkeys(("StageUploads", "LookAtFile", "CreateFile"), "brand.assets"),
    **dict.fromkeys(
        ("LookAtMarkets", "CreateMarket", "LookAtRates", "UpdateRates"), "operations.shipping"
    ),
    **dict.fromkeys(("LookAtProduct", "ChangeProduct"), "catalog.publish"),
}
"""Documents that their ways keep beside them."""


def names() -> Iterator[tuple[str, str]]:
    """Say of each document by its name which milestone sends it; of those of several, the one that comes last here."""
    for milestone, module in ASKED_OF.items():
        for text in vars(module).values():
            found = NAMED.match(text.strip()) if isinstance(text, str) else None
            if found:
                yield found[1], milestone
    for kind, way in WAYS.items():
        tool = edits.KINDS[kind].tools[0]
        for text in vars(type(way)).values():
            found = NAMED.match(text.strip()) if isinstance(text, str) else None
            if found:
                yield found[1], tool
    for id, text in PLAYBOOK.documents.items():
        found = NAMED.match(text)
        of = next((one for one in PLAYBOOK.milestones if id.startswith(one)), None)
        if found and of is not None:
            yield found[1], of
    yield from ASKED_BY.items()


class SlowAdmin:
    """The platform's answers, each of which takes its time and is noted."""

    def __init__(self, admin: Any) -> None:
        self._admin = admin
        self._names = dict(names())
        self.spans = defaultdict[str, list[tuple[float, float]]](list)
        self.calls = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._admin, name)

    async def answer(self, shop: Shop, body: bytes) -> Any:
        """Answer a document, no sooner than a platform would."""
        began = perf_counter()
        named = NAMED.search(body.decode().replace("\\n", " "))
        answered = await self._admin.answer(shop, body)
        await asyncio.sleep(max(0.0, ANSWER_SECONDS - (perf_counter() - began)))
        name = named[1] if named else ""
        self.calls += 1
        self.spans[self._names.get(name, name)].append((began, perf_counter()))
        return answered

    def chain(self, milestone: str) -> int:
        """Count the calls of a milestone that waited for one another: the most that do not overlap."""
        count, free = 0, 0.0
        for began, ended in sorted(self.spans[milestone], key=lambda one: one[1]):
            if began >= free:
                count, free = count + 1, ended
        return count

    def path(self) -> tuple[int, list[str]]:
        """Find the chain of milestones with the most such calls."""
        longest = dict[str, tuple[int, list[str]]]()
        for id in PLAYBOOK.milestones:
            self._reach(id, longest)
        return max(longest.values())

    def _reach(self, id: str, longest: dict[str, tuple[int, list[str]]]) -> tuple[int, list[str]]:
        if id not in longest:
            before = PLAYBOOK.milestones[id].depends_on
            calls, way = max((self._reach(one, longest) for one in before), default=(0, []))
            longest[id] = (calls + self.chain(id), [*way, id])
        return longest[id]


def ready_shop(platform: Platform) -> Shop:
    """Open an empty shop in which people have done their part."""
    shop = platform.add_shop(
        ShopSpec(
            domain="loom.myshopify.com",
            scopes=(*ALL_SCOPES, *WRITE_SCOPES, *LAUNCH_SCOPES),
            primary_domain=HOST,
            maximum_points=1_000_000.0,
            restore_rate=100_000.0,
        )
    )
    shop.setup.payments_activated, shop.setup.has_password = True, False
    shop.setup.is_slow_with_themes = False
    shop.setup.themes[0]["files"] = {"config/settings_data.json": '{"favicon": "mark.svg"}'}
    return shop


async def launch(browser: Browser, store_id: str) -> float:
    """Launch a store, marking each human step at its turn; answers the seconds that it took."""
    began = perf_counter()
    await browser.post("/api/wizard/store/launch", storeId=store_id, spec=dict(FORM), brandKit={})
    while True:
        cockpit = await browser.get(f"/api/wizard/store/{store_id}")
        found = cockpit["milestones"]
        if all(one["state"] in DONE for one in found):
            return perf_counter() - began
        for one in found:
            if one["state"] in {"failed", "blocked"}:
                raise Unexpected(f"{one['id']} is {one['state']}: {one['detail']}")
            if one["kind"] == "human" and one["state"] == "pending" and not one["waitsFor"]:
                body = {"storeId": store_id, "milestone": one["id"], "action": "done"}
                await browser.post("/api/wizard/store/checkpoint", **body)
        await asyncio.sleep(POLL_SECONDS)


async def tick(database: Database, ask: Any, count: int) -> list[Any]:
    """Let a tick come over so many stores, of which two in three wait for something that it can do."""
    await database.execute(STORES, count)
    for table in ("stores", "store_launches"):
        await database.execute(f"ANALYZE {table}")
    began, before = perf_counter(), measure.peak_rss_bytes()
    # A tick of tomorrow: what it tells the stores is written, and no store is woken meanwhile.
    tomorrow = datetime.now(UTC) + timedelta(days=1)
    run = await ask(job("launch-tick"), RunNow(new_id("run"), tomorrow), timeout=120)
    took = perf_counter() - began
    grown = (measure.peak_rss_bytes() - before) / 2**20
    told = orjson.loads(run.outcome or "{}")["launches"]
    await database.execute("DELETE FROM outbox WHERE name LIKE '%ContinueLaunch'")
    return [f"{count:,}", told, took, told / took, grown]


async def ticks(quick: bool) -> None:
    """Let ticks come over few and many stores, none of which is awake."""
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="tolsey-bench-")))
        base = f"http://127.0.0.1:{measure.free_port()}"
        given = settings.read(base_url=base, data_dir=folder)
        service = (await stack.enter_async_context(running(given, timers=False))).service
        counts = (100, 200) if quick else (1_000, 10_000)
        rows = [await tick(service.database, service.runtime.ask, count) for count in counts]
    columns = ["stores", "told", "seconds", "told a second", "more MiB"]
    measure.table("one tick over stores in mixed states", columns, rows)


async def whole() -> None:
    """Launch one store, and say what of its time was the platform's."""
    ports = Ports(*(measure.free_port() for _ in range(4)))
    platform = Platform()
    slow = platform.admin = SlowAdmin(platform.admin)  # type: ignore[assignment]  # it answers for it
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="tolsey-bench-")))
        sites, known = await stack.enter_async_context(own_site())
        shop = ready_shop(platform)
        handles = ("/products/blanket", "/collections/featured", "/collections/all")
        pages = (*handles, "/pages/contact", "/cart")
        sites.add(Storefront(domain=HOST, files=dict.fromkeys(pages, "A page")))
        await stack.enter_async_context(platform.serve())
        given = settings.read(
            base_url=ports.base,
            data_dir=folder,
            commerce_url_template=platform.url_template,
            **known,
        )
        service = await stack.enter_async_context(running(given))
        await stack.enter_async_context(Demo(ports, 0, folder).served(service))
        browser = await stack.enter_async_context(browsing(ports.base))
        seller = Seller(browser)
        await seller.sign_up()
        await seller.connect(shop)
        slow.calls = 0
        took = await launch(browser, seller.store_id)
        calls, way = slow.path()
        path = calls * ANSWER_SECONDS
        title = f"a launch of {len(PLAYBOOK.milestones)} milestones, {slow.calls} calls of {ANSWER_SECONDS:g} s each"
        rows = [
            ["critical path", path, calls, 1.0],
            ["whole launch", took, slow.calls, took / path],
        ]
        measure.table(title, ["", "seconds", "calls", "times the path"], rows)
        measure.table("the path", ["milestone", "calls"], [[id, slow.chain(id)] for id in way])


if __name__ == "__main__":
    said = measure.arguments(__doc__ or "").parse_args()
    measure.machine(said.loop)
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(40))
    measure.run(whole, said.loop)
    measure.run(partial(ticks, said.quick), said.loop)
