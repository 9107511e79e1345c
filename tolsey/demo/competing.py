"""A store's competitors, watched for a fortnight that passes in a minute: `tolsey sandbox --competitors`."""

import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from tolsey.demo.browser import Browser
from tolsey.demo.seller import Seller
from tolsey.demo.telling import Teller, until
from tolsey.sandbox.clock import Clock
from tolsey.sandbox.providers import IntelligenceProviders
from tolsey.sandbox.storefronts import Storefront, Storefronts, product

DAYS: Final = 14
DAY_SECONDS: Final = 86_400.0
IN_STOCK: Final = 0.7
SELLING, HIDING, CLOSED, LOCKED, STRICT = (
    "kettles.example",
    "tinhob.example",
    "copper.example",
    "quern.example",
    "weary.example",
)


def storefronts() -> list[Storefront]:
    """Open shops of every temper: one shows its stock, one hides it, and three want no visitors."""
    return [
        Storefront(
            domain=SELLING,
            products=[product(n, price=f"{20 + n}.00", quantity=900) for n in range(1, 25)],
        ),
        Storefront(domain=HIDING, products=[product(n, price="39.50") for n in range(1, 13)]),
        Storefront(domain=CLOSED, robots="User-agent: *\nDisallow: /"),
        Storefront(domain=LOCKED, has_password=True),
        Storefront(domain=STRICT, products=[product(1)]),
    ]


@asynccontextmanager
async def providers_of_theirs() -> AsyncIterator[dict[str, Any]]:
    """Serve who knows their visits and advertisements; no key is set for followers, which is said."""
    known = IntelligenceProviders(
        visits={SELLING: 48_200, HIDING: 6_900}, captions={SELLING: [SELLING] * 7}
    )
    async with known.serve() as settings:
        yield {name: value for name, value in settings.items() if name != "social_api_key"}


def fortnight_ago() -> Clock:
    """Begin the service's time so early that the last scan is taken now."""
    return Clock(datetime.now(UTC) - timedelta(days=DAYS))


@dataclass
class DemoCompetitors:
    """Somebody who names whom their store competes with, and what the shops do meanwhile."""

    seller: Seller
    operator: Browser
    sites: Storefronts
    clock: Clock
    teller: Teller

    @property
    def path(self) -> str:
        """Give the address of the store's competitors."""
        return f"/stores/{self.seller.store_id}/competitors"

    async def run(self) -> None:
        """Name the shops, let the days pass with a scan of each, and tell what is known at the end."""
        shops = [self.sites.add(one) for one in storefronts()]
        for shop in shops:
            await self.seller.browser.post(f"/api{self.path}", domain=shop.domain)
        self.teller.done(f"{len(shops)} shops are named as competitors")
        chance = random.Random(22)  # noqa: S311 - nothing secret
        with self.teller.counting() as progress:
            bar = progress.add_task("Days", total=DAYS)
            for _ in range(DAYS):
                for shop in shops:
                    await self._scanned(shop)
                self.clock.advance(DAY_SECONDS)
                _trade(shops[0], shops[1], chance)
                progress.advance(bar)
        for shop in shops:
            await self._tell(shop, await self._scanned(shop))

    async def _scanned(self, shop: Storefront) -> dict[str, Any]:
        """Have a shop looked at, and wait for what it came to."""
        shop.throttled = [(429, "3600")] if shop.domain == STRICT else []
        order = {"domain": shop.domain, "mode": "full", "persist": True}
        answer = await self.operator.post("/api/admin/intelligence/scan", **order)
        if "operation" not in answer:
            return answer
        where = f"/api/operations/{answer['operation']['id']}"

        async def ended() -> dict[str, Any] | None:
            found: dict[str, Any] = (await self.operator.get(where))["operation"]
            return None if found["state"] == "running" else found

        result: dict[str, Any] = (await until(ended, "the scan of a storefront"))["result"]
        return result

    async def _tell(self, shop: Storefront, report: dict[str, Any]) -> None:
        sold = report["highlights"]["best_seller_velocity"]
        said = f"{shop.domain} is {report['reached']}"
        if sold["value"] is not None and sold["low"] is not None:
            high = "more" if sold["high"] is None else f"{sold['high']:.1f}"
            said += (
                f"; its best seller sells {sold['value']:.1f} a day, {sold['low']:.1f} to {high}"
            )
        else:
            said += f": {report['diagnosis']['velocity']['reason']}"
        self.teller.done(said)


def _trade(selling: Storefront, hiding: Storefront, chance: random.Random) -> None:
    """Let a day's trade happen: stock falls, a price is cut, something sells out or comes back."""
    for place, one in enumerate(selling.products):
        variant = one["variants"][0]
        variant["inventory_quantity"] -= chance.randrange(30 if place == 0 else 5)
    cut = chance.choice(selling.products)["variants"][0]
    cut["compare_at_price"], cut["price"] = cut["price"], f"{float(cut['price']) * 0.9:.2f}"
    for one in hiding.products[:3]:
        one["variants"][0]["available"] = chance.random() < IN_STOCK
