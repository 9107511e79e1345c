"""`tolsey sandbox --launch`: a store goes from an empty shop to an open one, over HTTP.

What runs by itself does; what a person does in the shop's admin is done there once somebody presses a key.
"""

import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final

import anyio
from rich.progress import Progress, TaskID

from tolsey.demo.browser import Browser
from tolsey.demo.telling import LOOK_SECONDS, Teller, Unexpected
from tolsey.demo.trade import SHELF
from tolsey.sandbox.commerce.course.life import Item
from tolsey.sandbox.commerce.platform import Platform
from tolsey.sandbox.commerce.shop.state import (
    ALL_SCOPES,
    LAUNCH_SCOPES,
    WRITE_SCOPES,
    Shop,
    ShopSpec,
)
from tolsey.sandbox.storefronts import Storefront, Storefronts

DONE: Final = frozenset({"succeeded", "approved", "skipped"})
STUCK: Final = frozenset({"failed", "blocked"})
LONGEST_SECONDS: Final = 600.0
FORM: Final[Mapping[str, Any]] = {
    "businessName": "Loom & Co",
    "country": "US",
    "industry": "hand-woven blankets",
    "description": "Blankets and cushions, woven by hand from the wool of our own sheep.",
    "tone": "warm",
    "contactEmail": "hello@loom.example",
    "location": {"name": "Mill", "address1": "1 Weaver St", "city": "Salem", "zip": "97301"},
    "shipping": {"countries": ["US", "CA", "DE"], "flatRate": "6.50", "freeFrom": "80"},
    "products": [
        {
            "title": "Blanket",
            "price": "120",
            "cost": "70",
            "type": "blankets",
            "options": [{"name": "Size", "values": ["Small", "Large"]}],
            "variants": [
                {"values": ["Small"], "stock": 12},
                {"values": ["Large"], "price": "150", "stock": 8},
            ],
            "imageUrl": "https://pictures.example/blanket.png",
            "oldPath": "/shop/blanket",
        },
        {
            "title": "Cushion",
            "price": "45",
            "type": "cushions",
            "stock": 20,
            "imageUrl": "https://pictures.example/cushion.png",
        },
    ],
}


@asynccontextmanager
async def own_site() -> AsyncIterator[tuple[Storefronts, dict[str, Any]]]:
    """Serve the web that the store's own site will be found on, and give the settings that lead there."""
    sites = Storefronts()
    async with sites.serve() as url:
        theme = "https://themes.example/theme.zip"
        yield sites, {"storefront_url": url, "scan_pace_seconds": 0, "launch_theme_url": theme}


def empty_shop(platform: Platform) -> Shop:
    """Open a shop that has nothing yet, with an app that may do all that a launch takes."""
    name = f"loom-{secrets.token_hex(3)}"
    spec = ShopSpec(
        domain=f"{name}.myshopify.com",
        client_id=f"client-{name}",
        client_secret=f"shpss_{secrets.token_hex(16)}",
        name="Loom & Co",
        scopes=(*ALL_SCOPES, *WRITE_SCOPES, *LAUNCH_SCOPES),
        partner_development=True,
    )
    return platform.add_shop(spec)


@dataclass
class DemoLaunch:
    """A launch, and the merchant who does in the shop's admin what only they can."""

    browser: Browser
    platform: Platform
    shop: Shop
    sites: Storefronts
    store_id: str
    tick: Callable[[], Awaitable[None]]
    agreed: Callable[[str], Awaitable[None]]
    """Waits for somebody at the terminal to let the merchant do what it says."""
    teller: Teller
    done: set[str] = field(default_factory=set)

    @property
    def host(self) -> str:
        """Name the domain that the merchant connects."""
        return f"{self.shop.domain.partition('.')[0]}.example"

    async def run(self) -> None:
        """Begin the launch, and go with it to its end."""
        body = {"storeId": self.store_id, "spec": dict(FORM), "brandKit": {}}
        await self.browser.post("/api/wizard/store/launch", **body)
        with self.teller.counting() as progress, anyio.move_on_after(LONGEST_SECONDS) as limit:
            bars = dict[str, TaskID]()
            cockpit = await self._look(progress, bars)
            while any(one["state"] not in DONE for one in cockpit["milestones"]):
                await self._act(progress, cockpit)
                await self.tick()
                await anyio.sleep(LOOK_SECONDS)
                cockpit = await self._look(progress, bars)
        if limit.cancelled_caught:
            raise Unexpected(f"The launch came to no end within {LONGEST_SECONDS:.0f} seconds.")
        live = next(one for one in cockpit["milestones"] if one["id"] == "launch.verify")
        self.teller.done(f"The store is open at https://{live['result']['host']}")

    def sell(self) -> None:
        """Let a buyer order what the shop has most of; what is gone is put on the shelf anew."""
        some = [(one, each) for one in self.shop.products.values() for each in one.variants]
        product, variant = max(some, key=lambda one: one[1].available)
        self.platform.place_order(self.shop.domain, (Item(title=product.title, variant=variant),))
        if variant.available <= 0:
            self.platform.set_stock(self.shop.domain, variant, SHELF)

    async def _look(self, progress: Progress, bars: dict[str, TaskID]) -> dict[str, Any]:
        """Read the cockpit and move the bar of each section."""
        cockpit = await self.browser.get(f"/api/wizard/store/{self.store_id}")
        for section in cockpit["sections"]:
            own = [one for one in cockpit["milestones"] if one["section"] == section["id"]]
            bar = bars.get(section["id"])
            if bar is None:
                bar = bars[section["id"]] = progress.add_task(section["title"], total=len(own))
            progress.update(bar, completed=sum(one["state"] in DONE for one in own))
        return cockpit

    async def _act(self, progress: Progress, cockpit: Mapping[str, Any]) -> None:
        """Do what waits for a person now, one after the other; what is stuck ends the demo."""
        for one in cockpit["milestones"]:
            if one["state"] in STUCK:
                raise Unexpected(f"{one['title']} is {one['state']}: {one['detail']}")
            if one["state"] == "queued" and one["detail"] and one["detail"] not in self.done:
                self.teller.say(f"{one['title']} waits: {one['detail']}")
                self.done.add(one["detail"])
            is_open = one["kind"] == "human" and one["state"] == "pending"
            if not is_open or one["waitsFor"] or one["id"] in self.done:
                continue
            progress.stop()
            await self.agreed(f"{one['title']}: {one['checkpoint']['instructions']}")
            progress.start()
            await self._decide(one["id"])
            self.done.add(one["id"])

    async def _decide(self, milestone: str) -> None:
        """Do it in the shop's admin; where nothing shows there, say so in the wizard."""
        acts = self._acts()
        if milestone in acts:
            acts[milestone]()
            return
        body = {"storeId": self.store_id, "milestone": milestone, "action": "done"}
        await self.browser.post("/api/wizard/store/checkpoint", **body)

    def _acts(self) -> Mapping[str, Callable[[], None]]:
        return {
            "foundation.plan": self._choose_plan,
            "storefront.publish_theme": self._publish_theme,
            "operations.payments": self._activate_payments,
            "launch.domain": self._connect_domain,
            "launch.test_order": self._order,
            "launch.unlock": self._unlock,
        }

    def _choose_plan(self) -> None:
        self.shop.partner_development = False

    def _publish_theme(self) -> None:
        main, *others = self.shop.setup.themes
        main["role"], others[-1]["role"] = "UNPUBLISHED", "MAIN"

    def _activate_payments(self) -> None:
        self.shop.setup.payments_activated = True

    def _connect_domain(self) -> None:
        self.platform.add_domain(self.shop.domain, self.host)
        self.shop.primary_domain = self.host

    def _order(self) -> None:
        self.platform.place_order(self.shop.domain, test=True)

    def _unlock(self) -> None:
        """Have the site answer to everybody, with the pages that buyers come by."""
        paths = [f"/products/{one.handle}" for one in self.shop.products.values()]
        paths += [f"/collections/{one.handle}" for one in self.shop.collections.values()]
        files = dict.fromkeys((*paths, "/cart"), "A page")
        self.sites.add(Storefront(domain=self.host, files=files))
        self.shop.setup.has_password = False
