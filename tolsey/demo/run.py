"""One run of the sandbox: the stand-ins, the service, the steps, and the addresses at the end."""

import secrets
import shlex
import signal
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import click

from tolsey import logs, settings
from tolsey.actors.store.launch.messages import ContinueLaunch
from tolsey.actors.store.messages import store
from tolsey.demo.browser import Browser, browsing
from tolsey.demo.buyer import DemoBuyer
from tolsey.demo.competing import DemoCompetitors, fortnight_ago, providers_of_theirs
from tolsey.demo.launching import DemoLaunch, empty_shop, own_site
from tolsey.demo.orders import deliver
from tolsey.demo.question import ask
from tolsey.demo.seller import Seller
from tolsey.demo.standins import Ports, StandIns, standing_in
from tolsey.demo.telling import Teller, Unexpected
from tolsey.sandbox.clock import Clock
from tolsey.sandbox.storefronts import Storefronts
from tolsey.server import serve_app
from tolsey.service import Running, running
from tolsey.storage.people import administrators

ORDER_SECONDS = 3.0
INSPECT = "npx @modelcontextprotocol/inspector@2.12.0 --cli --transport http"
"""Without its version npx takes one that fits the machine's Node, and an old one knows none of this."""


@dataclass
class Operator:
    """Who runs the service, and how they sign in."""

    browser: Browser
    email: str = "operator@tolsey.example"
    password: str = field(default_factory=lambda: secrets.token_urlsafe(12))

    async def sign_in(self, service: Running) -> None:
        """Make the administrator, as `tolsey admin create` does, and sign in."""
        await administrators.create_administrator(
            service.service.database, self.email, self.password
        )
        await self.browser.post("/api/auth/login", email=self.email, password=self.password)


@dataclass
class Demo:
    """What the command was told."""

    ports: Ports
    orders: int
    data_dir: Path
    once: bool = False
    launch: bool = False
    """Launch a store from an empty shop in the place of selling one."""
    competitors: bool = False
    """Watch the storefronts that a store competes with in the place of selling it."""
    teller: Teller = field(default_factory=Teller)
    clock: Clock = field(default_factory=fortnight_ago)
    cron_secret: str = field(default_factory=lambda: secrets.token_urlsafe(32))

    async def run(self) -> int:
        """Show the journey; serve on until interrupted unless `once`. Answers an exit status."""
        logs.configure("error")  # that an event waits for another one is no news here
        taken = ", ".join(map(str, self.ports.taken()))
        if taken:
            self.teller.failed(f"another program listens on {taken}; the options name other ports")
            return 1
        self.data_dir.mkdir(parents=True, exist_ok=True)
        async with (
            standing_in(self.ports, self.orders) as others,
            own_site() as (sites, known),
            providers_of_theirs() as keys,
            self._begun(others, known, keys) as service,
            self.served(service),
        ):
            sell = others.trade.sell
            try:
                if self.launch:
                    sell = await self._launched(service, others, sites)
                elif self.competitors:
                    await self._watched(service, others, sites)
                else:
                    await self._journey(service, others)
            except Unexpected as ended:
                self.teller.failed(str(ended))
                return 1
            if not self.once:
                await self._serve_on(sell)
        return 0

    def _begun(
        self, others: StandIns, known: Mapping[str, Any], keys: Mapping[str, Any]
    ) -> AbstractAsyncContextManager[Running]:
        """Start the service; where competitors are watched its time begins a fortnight ago."""
        if not self.competitors:
            return running(self._settings(others, known if self.launch else {}))
        return running(self._settings(others, {**known, **keys}), clock=self.clock.now)

    def _settings(self, others: StandIns, more: Mapping[str, Any]) -> settings.Settings:
        return settings.read(
            base_url=self.ports.base,
            data_dir=self.data_dir,
            cron_secret=self.cron_secret,
            **others.settings,
            **more,
        )

    @asynccontextmanager
    async def served(self, service: Running) -> AsyncIterator[None]:
        """Serve the application while the block runs."""
        stop, ready = anyio.Event(), anyio.Event()

        async def serve() -> None:
            await serve_app(service.app, "127.0.0.1", self.ports.service, stop, ready=ready.set)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(serve)
            await ready.wait()
            try:
                yield
            finally:
                stop.set()

    async def _journey(self, service: Running, others: StandIns) -> None:
        self.teller.chapter("tolsey sandbox")
        async with browsing(self.ports.base) as mine, browsing(self.ports.base) as theirs:
            seller, operator = Seller(mine), Operator(theirs)
            await self._sell(service, others, seller)
            await operator.sign_in(service)
            self.teller.chapter("money")
            await self._pay(others, seller, operator)
            self._actors(service)
            self._write_variables(others, seller, operator)
            self._addresses(seller, operator, others)

    async def _launched(
        self, service: Running, others: StandIns, sites: Storefronts
    ) -> Callable[[], None]:
        """Show a launch, with what people do in between; gives what lets somebody buy there."""
        self.teller.chapter("tolsey sandbox --launch")
        platform = others.trade.platform
        shop = empty_shop(platform)
        async with browsing(self.ports.base) as mine:
            seller = Seller(mine)
            await self.teller.step("An account signs up", seller.sign_up)
            await self.teller.step("The store connects to its shop", lambda: seller.connect(shop))
            self.teller.named("seller", f"{seller.email}  password {seller.password}")
            self.teller.named("sign in", f"{self.ports.base}/login")
            self.teller.named("launch", f"{self.ports.base}/stores/{seller.store_id}/launch")
            demo = DemoLaunch(
                browser=mine,
                platform=platform,
                shop=shop,
                sites=sites,
                store_id=seller.store_id,
                tick=partial(self._tick, service, seller.store_id),
                agreed=self._agreed,
                teller=self.teller,
            )
            await demo.run()
            return demo.sell

    async def _watched(self, service: Running, others: StandIns, sites: Storefronts) -> None:
        """Show competitors, with a fortnight of snapshots."""
        self.teller.chapter("tolsey sandbox --competitors")
        async with browsing(self.ports.base) as mine, browsing(self.ports.base) as theirs:
            seller, operator = Seller(mine), Operator(theirs)
            shop, step = others.trade.shop, self.teller.step
            await step("An account signs up", seller.sign_up)
            await step("The store connects to its shop", lambda: seller.connect(shop))
            await operator.sign_in(service)
            demo = DemoCompetitors(seller, operator.browser, sites, self.clock, self.teller)
            await demo.run()
            self.teller.named("seller", f"{seller.email}  password {seller.password}")
            self.teller.named("operator", f"{operator.email}  password {operator.password}")
            self.teller.named("sign in", f"{self.ports.base}/login")
            self.teller.named("competitors", f"{self.ports.base}{demo.path}")

    async def _tick(self, service: Running, store_id: str) -> None:
        """Have the launch go on as a tick does, which tells each store within ten minutes."""
        at = service.service.clock()
        await service.service.runtime.ask(store(store_id), ContinueLaunch(at=at, is_tick=True))

    async def _agreed(self, what: str) -> None:
        """Say what the merchant does now, and wait for a key unless nobody is there to press one."""
        if self.once:
            self.teller.done(what)
        else:
            await anyio.to_thread.run_sync(click.pause, f"{what} Press any key, and it is done.")

    async def _sell(self, service: Running, others: StandIns, seller: Seller) -> None:
        trade, step = others.trade, self.teller.step
        shop, key = trade.shop, trade.restricted_key
        await step("An account signs up", seller.sign_up)
        await step("The store connects to its shop", lambda: seller.connect(shop))
        await step("Goods are put on its shelves", trade.open_shelves)
        await deliver(self.teller, service.service.database, trade.sell)
        await step("A payout account is opened", seller.open_payouts)
        await step("A listing is published", seller.publish)
        await step("Its revenue is verified", lambda: seller.verify(shop))
        await step("Its payments say the same", lambda: seller.corroborate(key))
        await step("The badge", seller.badge)

    async def _pay(self, others: StandIns, seller: Seller, operator: Operator) -> None:
        buyer = DemoBuyer(
            seller.browser, operator.browser, others.processor, seller.organization_id
        )
        step = self.teller.step
        await step("A plan is bought", buyer.subscribe)
        await step("Credits are bought", buyer.buy_credits)
        await step("A question is answered", lambda: ask(seller.browser, seller.store_id))
        await step("A purchase is refunded", buyer.refund)
        await step("The bank disputes a purchase", buyer.dispute)
        await step("A month passes", buyer.renew)
        await step("The ledger", buyer.look_back)

    def _actors(self, service: Running) -> None:
        runtime = service.service.runtime
        turns = sum(sum(tally.outcomes.values()) for tally in runtime.telemetry.turns.values())
        self.teller.done(
            f"{runtime.admin.awake} actors are awake; they took {turns} turns,"
            f" {runtime.telemetry.batch_turns} of them in"
            f" {runtime.telemetry.counters['batches']} commits"
        )

    def _write_variables(self, others: StandIns, seller: Seller, operator: Operator) -> None:
        """Write what `docs/start.md` types by hand: a shop to connect, keys, and who operates."""
        yours = others.spare.shop.spec
        variables = {
            "B": self.ports.base,
            "SHOP": yours.domain,
            "CLIENT_ID": yours.client_id,
            "CLIENT_SECRET": yours.client_secret,
            "RESTRICTED_KEY": others.spare.restricted_key,
            "MCP_URL": seller.agents_address,
            "BADGE_OF": seller.slug,
            "OPERATOR_EMAIL": operator.email,
            "OPERATOR_PASSWORD": operator.password,
            "CRON_SECRET": self.cron_secret,
        }
        lines = (f"{name}={shlex.quote(value)}\n" for name, value in variables.items())
        self.variables.touch(mode=0o600)
        self.variables.write_text("".join(lines))

    @property
    def variables(self) -> Path:
        """Name the file of shell variables."""
        return self.data_dir / "env.sh"

    def _addresses(self, seller: Seller, operator: Operator, others: StandIns) -> None:
        base = self.ports.base
        self.teller.chapter()
        for name, value in (
            ("seller", f"{seller.email}  password {seller.password}"),
            ("operator", f"{operator.email}  password {operator.password}"),
            ("listing", seller.listing_id),
            (
                "payments key",
                f"{seller.payments_key} (reads the payments of the listing's revenue)",
            ),
            ("sign in", f"{base}/login"),
            ("billing", f"{base}/billing?organizationId={seller.organization_id}"),
            ("processor", f"{others.processor.url}/sandbox (time, banks and cards)"),
            ("escrow", f"{others.settings['escrow_api_url']}/control/ (POST open, fund, release)"),
            ("signing", f"{others.settings['esign_api_url']}/control/ (POST complete)"),
            ("badge", f"{base}/api/public/listings/{seller.slug}/badge.svg"),
            ("embed", f"{base}/api/public/listings/{seller.slug}/embed"),
            ("verification", f"{base}/api/public/listings/{seller.slug}/verification"),
            ("actors", f"{base}/api/admin/actors (sign in as the operator)"),
            ("API", f"{base}/docs/api"),
            ("agents", f"{seller.agents_address} (sign in as the seller)"),
            ("Claude", f"claude mcp add --transport http demo {seller.agents_address}"),
            ("Inspector", f"{INSPECT} --server-url {seller.agents_address} --method tools/list"),
            ("variables", f"{self.variables} (docs/start.md goes on with them)"),
        ):
            self.teller.named(name, value)

    async def _serve_on(self, sell: Callable[[], None]) -> None:
        self.teller.say("An order arrives every few seconds. Ctrl+C ends the sandbox.")
        with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
            async with anyio.create_task_group() as tasks:

                async def live() -> None:
                    while True:
                        await anyio.sleep(ORDER_SECONDS)
                        sell()

                tasks.start_soon(live)
                async for _ in signals:
                    tasks.cancel_scope.cancel()
