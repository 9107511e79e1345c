"""All shops of the platform under one clock, and what a test can do to them."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any

from tolsey.sandbox.clock import Clock
from tolsey.sandbox.commerce.course.faults import Faults
from tolsey.sandbox.commerce.course.life import Life
from tolsey.sandbox.commerce.shop.state import Shop, ShopSpec, open_shop
from tolsey.sandbox.commerce.webhooks.bodies import scopes_body, shop_body
from tolsey.sandbox.commerce.webhooks.deliveries import Deliveries

API_VERSION = "2026-07"
VERSIONS = ("2025-10", "2026-01", "2026-04", "2026-07", "unstable")


class Shops(Life):
    """The shops that were added, with what the platform does to them beside their own life."""

    def __init__(
        self,
        *,
        now: datetime | None = None,
        frozen_clock: bool = False,
        line_prices_exclude_returns: bool = True,
        bulk_polls: int = 1,
        deliveries: Deliveries | None = None,
    ) -> None:
        self.clock = Clock(now, frozen=frozen_clock)
        self.line_prices_exclude_returns = line_prices_exclude_returns
        self.bulk_polls = bulk_polls
        self.shops: dict[str, Shop] = {}
        self.clients: frozenset[str] = frozenset()
        self.faults = Faults()
        self.deliveries = deliveries or Deliveries()
        self.api_version = API_VERSION
        self.versions = VERSIONS
        self.url = ""
        self.requests = 0
        self.grants = 0
        self._working = False
        self._tasks: set[asyncio.Task[None]] = set()

    def now(self) -> datetime:
        """Tell the platform's time."""
        return self.clock.now()

    def advance(self, seconds: float) -> None:
        """Move the platform's clock forward: tokens age, buckets refill."""
        self.clock.advance(seconds)

    @asynccontextmanager
    async def working(self) -> AsyncIterator[None]:
        """Let work run beside the requests while the block runs."""
        self._working = True
        try:
            yield
        finally:
            self._working = False
            await self._stop()

    async def _stop(self) -> None:
        """Stop the background work, and raise what went wrong in it."""
        running = list(self._tasks)
        for task in running:
            task.cancel()
        for shop in self.shops.values():
            for operation in shop.bulk_operations.values():
                operation.close()
        for outcome in await asyncio.gather(*running, return_exceptions=True):
            if isinstance(outcome, Exception):
                raise outcome

    def background(self, work: Callable[..., Coroutine[Any, Any, None]], *args: Any) -> None:
        """Run something beside the requests, as long as the platform serves."""
        if not self._working:
            raise RuntimeError("the platform is not serving")
        task = asyncio.create_task(work(*args))
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        """Forget a task that ended well; a failed one is kept to be raised at the end."""
        if task.cancelled() or task.exception() is None:
            self._tasks.discard(task)

    def add_shop(self, spec: ShopSpec) -> Shop:
        """Open a shop; its app is known to the whole platform from now on."""
        if spec.domain in self.shops:
            raise ValueError(f"{spec.domain} is open already")
        shop = open_shop(spec, len(self.shops) + 9, self.now())
        self.shops[spec.domain] = shop
        self.clients |= {spec.client_id}
        return shop

    def shop(self, domain: str) -> Shop:
        """Give a shop's state."""
        return self.shops[domain]

    def install(self, domain: str) -> None:
        """Install the app again; subscriptions have to be made anew."""
        self.shop(domain).installed = True

    def uninstall(self, domain: str) -> None:
        """Remove the app: tokens and subscriptions die, and `app/uninstalled` is delivered."""
        shop = self.shop(domain)
        self.deliver(domain, "app/uninstalled", shop_body(shop))
        shop.installed = False
        shop.tokens.clear()
        shop.subscriptions.clear()

    def rotate_secret(self, domain: str, secret: str, *, keep_old: bool = False) -> None:
        """Give the app a new secret; with `keep_old` both work and the old one still signs."""
        shop = self.shop(domain)
        shop.secrets = [*shop.secrets, secret] if keep_old else [secret]

    def revoke_tokens(self, domain: str) -> None:
        """Let every access token of a shop die."""
        self.shop(domain).tokens.clear()

    def set_scopes(self, domain: str, *scopes: str) -> None:
        """Change what the app may do and deliver `app/scopes_update`."""
        shop = self.shop(domain)
        previous, shop.scopes = shop.scopes, tuple(scopes)
        body = scopes_body(shop, previous, self.now())
        self.deliver(domain, "app/scopes_update", body)

    def freeze(self, domain: str, *, frozen: bool = True) -> None:
        """Stop a shop for an unpaid bill (402), or let it go on."""
        self.shop(domain).frozen = frozen

    def update_shop(
        self,
        domain: str,
        *,
        plan: str | None = None,
        plan_name: str | None = None,
        partner_development: bool | None = None,
    ) -> None:
        """Change the shop's plan and deliver `shop/update`."""
        shop = self.shop(domain)
        shop.plan = plan or shop.plan
        shop.plan_name = plan_name or shop.plan_name
        if partner_development is not None:
            shop.partner_development = partner_development
        shop.updated_at = self.now()
        self.deliver(domain, "shop/update", shop_body(shop))

    def hand_over(self, domain: str, email: str) -> None:
        """Let the shop belong to somebody else, and deliver `shop/update`."""
        self.shop(domain).email = email
        self.update_shop(domain)

    def deliver(
        self,
        domain: str,
        topic: str,
        body: Mapping[str, Any] | bytes,
        *,
        event_id: str | None = None,
    ) -> int:
        """Queue a delivery for every subscription to the topic, and tell how many those are."""
        return self.deliveries.publish(
            self.shop(domain), topic, body, event_id=event_id, at=self.now()
        )
