"""`tolsey sandbox`: the main job on one's own machine, with a stand-in of the commerce platform.

Everything goes over real HTTP, as a newcomer's browser and the platform would do it: sign up, open a
store, connect the shop, publish a listing, verify its revenue, watch orders arrive as webhooks.
"""

import asyncio
import secrets
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import anyio
import httpx
import structlog
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn

from tolsey import logs, settings
from tolsey.sandbox.history import make_history
from tolsey.sandbox.platform import Platform
from tolsey.sandbox.shops import ShopSpec
from tolsey.server import serve_app
from tolsey.service import Running, running
from tolsey.storage import administrators

SHOP = "demo.myshopify.com"
CLIENT_ID = "demo-client-id"
BURST = 30
QUIET_LOOKS = 10
"""A second without a delivery is the end of the burst."""
WAIT_SECONDS = 60.0

log = structlog.get_logger()


@dataclass
class Demo:
    """One run of the sandbox."""

    port: int
    platform_port: int
    orders: int
    data_dir: Path
    once: bool = False
    console: Console = field(default_factory=Console)

    async def run(self) -> int:
        """Show the journey; serve on until interrupted unless `once`. Answers an exit status."""
        logs.configure("warning")
        self.data_dir.mkdir(parents=True, exist_ok=True)
        stop, ready = anyio.Event(), anyio.Event()
        platform = self._platform()
        async with (
            platform.serve(port=self.platform_port),
            running(self._settings(platform.url_template)) as service,
            anyio.create_task_group() as tasks,
        ):
            host = "127.0.0.1"
            tasks.start_soon(self._serve, service, host, stop, ready)
            await ready.wait()
            try:
                await self._journey(service, platform)
                if not self.once:
                    await self._serve_on(platform)
            finally:
                stop.set()
        return 0

    async def _serve(
        self, service: Running, host: str, stop: anyio.Event, ready: anyio.Event
    ) -> None:
        await serve_app(service.app, host, self.port, stop, ready=ready.set)

    def _settings(self, url_template: str) -> settings.Settings:
        return settings.read(
            base_url=f"http://127.0.0.1:{self.port}",
            data_dir=self.data_dir,
            commerce_url_template=url_template,
            cron_secret=secrets.token_urlsafe(32),
        )

    def _platform(self) -> Platform:
        platform = Platform()
        platform.add_shop(
            ShopSpec(
                domain=SHOP,
                client_id=CLIENT_ID,
                client_secret=f"shpss_{secrets.token_hex(16)}",
                name="The Demo Shop",
                orders=make_history(seed=7, days=60, orders=self.orders),
            )
        )
        return platform

    async def _journey(self, service: Running, platform: Platform) -> None:
        base = f"http://127.0.0.1:{self.port}"
        self.console.rule("tolsey sandbox")
        async with httpx.AsyncClient(
            base_url=base, headers={"Origin": base}, timeout=60
        ) as browser:
            seller = Seller(browser, self.console)
            await self._step("An account signs up", seller.sign_up)
            await self._step(
                "The store connects to its shop", lambda: seller.connect(platform.shop(SHOP))
            )
            await self._step("A listing is published", seller.publish)
            await self._step("Its revenue is verified", lambda: seller.verify(platform.shop(SHOP)))
            await self._deliveries(service, platform)
            await self._step("The badge", seller.badge)
            admin = await self._administrator(service)
            await self._actors(service)
            self._addresses(base, seller, admin)

    async def _step(self, title: str, work: Callable[[], Awaitable[str]]) -> None:
        with self.console.status(f"{title} ..."):
            said = await work()
        self.console.print(f"[green]✓[/] {title}: {said}", highlight=False)

    async def _deliveries(self, service: Running, platform: Platform) -> None:
        """Place orders; each is a few signed webhooks, some sent twice and out of order."""
        columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn())
        before = await _count(service)
        with Progress(*columns, MofNCompleteColumn(), console=self.console) as progress:
            placed = progress.add_task("orders placed", total=BURST)
            for _ in range(BURST):
                platform.place_order(SHOP)
                progress.advance(placed)
                await anyio.sleep(0.05)
            arrived = progress.add_task("webhooks applied", total=None)
            quiet, last = 0, before
            while quiet < QUIET_LOOKS:
                await anyio.sleep(0.1)
                now = await _count(service)
                quiet, last = (quiet + 1, last) if now == last else (0, now)
                progress.update(arrived, completed=now - before)
            progress.update(arrived, total=last - before)
        self.console.print(
            f"[green]✓[/] {last - before} deliveries of {BURST} orders were applied once each"
        )

    async def _administrator(self, service: Running) -> tuple[str, str]:
        email, password = "operator@tolsey.example", secrets.token_urlsafe(12)
        await administrators.create_administrator(service.service.database, email, password)
        return email, password

    async def _actors(self, service: Running) -> None:
        runtime = service.service.runtime
        turns = sum(sum(tally.outcomes.values()) for tally in runtime.telemetry.turns.values())
        self.console.print(
            f"[green]✓[/] {runtime.awake} actors are awake; they took {turns} turns,"
            f" {runtime.telemetry.batch_turns} of them in"
            f" {runtime.telemetry.counters['batches']} commits"
        )

    def _addresses(self, base: str, seller: "Seller", admin: tuple[str, str]) -> None:
        self.console.rule()
        for name, value in (
            ("seller", f"{seller.email}  password {seller.password}"),
            ("operator", f"{admin[0]}  password {admin[1]}"),
            ("badge", f"{base}/api/public/listings/{seller.slug}/badge.svg"),
            ("embed", f"{base}/api/public/listings/{seller.slug}/embed"),
            ("verification", f"{base}/api/public/listings/{seller.slug}/verification"),
            ("actors", f"{base}/api/admin/actors (sign in as the operator)"),
            ("API", f"{base}/docs/api"),
        ):
            self.console.print(f"{name:>13}  {value}", highlight=False, soft_wrap=True)

    async def _serve_on(self, platform: Platform) -> None:
        self.console.print("An order arrives every few seconds. Ctrl+C ends the sandbox.")
        with anyio.open_signal_receiver(*_signals()) as signals:
            async with anyio.create_task_group() as tasks:

                async def live() -> None:
                    while True:
                        await anyio.sleep(3)
                        platform.place_order(SHOP)

                tasks.start_soon(live)
                async for _ in signals:
                    tasks.cancel_scope.cancel()


def _signals() -> tuple[Any, ...]:
    import signal  # noqa: PLC0415 - only the sandbox that stays needs it

    return signal.SIGINT, signal.SIGTERM


async def _count(service: Running) -> int:
    row = await service.service.database.fetchrow(
        "SELECT count(*) AS n FROM commerce_webhook_events"
    )
    return int(row["n"]) if row else 0


@dataclass
class Seller:
    """The newcomer, with a browser."""

    browser: httpx.AsyncClient
    console: Console
    email: str = field(default_factory=lambda: f"seller+{datetime.now(UTC):%H%M%S}@tolsey.example")
    password: str = field(default_factory=lambda: secrets.token_urlsafe(12))
    organization_id: str = ""
    store_id: str = ""
    listing_id: str = ""
    slug: str = ""

    async def sign_up(self) -> str:
        """Make an account with an organization."""
        made = await self._post(
            "/api/auth/signup",
            email=self.email,
            password=self.password,
            organizationName="The Demo Company",
        )
        self.organization_id = made["organization"]["id"]
        return self.email

    async def connect(self, shop: Any) -> str:
        """Open a store and connect it with the app's credentials."""
        store = await self._post(
            "/api/stores", organizationId=self.organization_id, name="The Demo Shop"
        )
        self.store_id = store["id"]
        answer = await self._post(
            "/api/integrations/commerce/custom-app",
            storeId=self.store_id,
            shopDomain=SHOP,
            clientId=shop.spec.client_id,
            clientSecret=shop.spec.client_secret,
        )
        return f"{SHOP} is {answer['connection']['status']}"

    async def publish(self) -> str:
        """Offer the business."""
        listing = await self._post(
            "/api/sell/listings",
            organizationId=self.organization_id,
            storeId=self.store_id,
            title="A demo shop with real-looking customers",
            teaser="Sixty days of orders, one busy seller.",
            category="fashion",
            askingPrice={"amount": 12_000_000, "currency": "USD"},
        )
        self.listing_id, self.slug = listing["id"], listing["slug"]
        published = await self._post(f"/api/sell/listings/{self.listing_id}/publish")
        return f"{self.slug} is {published['status']}"

    async def verify(self, shop: Any) -> str:
        """Paste the credentials into the listing and wait for the first sync."""
        await self._post(
            f"/api/sell/listings/{self.listing_id}/verify/commerce",
            shopDomain=SHOP,
            clientId=shop.spec.client_id,
            clientSecret=shop.spec.client_secret,
        )
        until = datetime.now(UTC) + timedelta(seconds=WAIT_SECONDS)
        while datetime.now(UTC) < until:
            answer = await self.browser.get(f"/api/sell/listings/{self.listing_id}")
            verification = answer.json()["verification"]
            if verification["state"] in {"verified", "verified_new"}:
                amount = verification["revenue30d"] / 100
                return (
                    f"{verification['state']}, {amount:,.2f} {verification['currency']} in 30 days"
                )
            await asyncio.sleep(0.2)
        raise TimeoutError("the first sync did not end in time")

    async def badge(self) -> str:
        """Look at what the public sees."""
        answer = await self.browser.get(f"/api/public/listings/{self.slug}/badge.svg")
        answer.raise_for_status()
        return f"{len(answer.content)} bytes of SVG, ETag {answer.headers['ETag']}"

    async def _post(self, path: str, **body: Any) -> dict[str, Any]:
        answer = await self.browser.post(path, json=body)
        if answer.is_error:
            raise RuntimeError(f"{path} answered {answer.status_code}: {answer.text[:300]}")
        parsed: dict[str, Any] = answer.json()
        return parsed
