"""Our side of the payment processor, over real HTTP: the webhook route, the applier, the actors."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import Any

from tests.http.payments.market import Market
from tolsey.actors.organization.actor import OrganizationActor
from tolsey.actors.organization.billing.messages import ReadSubscription, SubscriptionView
from tolsey.actors.organization.effects import Applier
from tolsey.actors.organization.messages import CreditsView, ReadCredits, organization
from tolsey.actors.processor import Addresses, Buyer, Subscribed
from tolsey.http.clients.payments.processor import StripePayments
from tolsey.http.webhooks.payments.receiver import PaymentEvents
from tolsey.runtime.registry import Runtime
from tolsey.sandbox.payments.processor import SECRET_KEY
from tolsey.sandbox.server import listening
from tolsey.storage.database import Database
from tolsey.storage.runtime import slots
from tolsey.storage.runtime.journal import Journal
from tolsey.storage.runtime.outbox import Outbox

__all__ = ["Buyer", "Subscribed"]

NOW = datetime(2026, 11, 1, 12, tzinfo=UTC)
SECRET = "whsec_test"
TO = Addresses("https://ours.test/billing?from=checkout", "https://ours.test/billing")
MICRO = 1_000_000


@dataclass
class House:
    """A market and the service that sells on it."""

    market: Market
    database: Database
    runtime: Runtime
    applier: Applier
    arrivals: list[None] = field(default_factory=list)

    async def settle(self) -> None:
        """Wait until every event was delivered, then apply what waits."""
        await self.market.processor.webhooks.settled()
        await self.applier.look()

    async def buy(self, plan: str = "pro", cadence: str = "monthly", **form: str) -> Any:
        """Buy a plan on the processor's page; answers the subscription's id."""
        price = self.market.price(plan, cadence)
        page = await self.market.payments.subscription_checkout(
            Buyer("org_1"), price, plan, cadence, TO, key=f"buy:{plan}:{cadence}"
        )
        await self.market.pay(page.url, **form)
        await self.settle()
        return self.market.made("subscription")[-1]["id"]

    async def buy_credits(self, cents: int, key: str = "credits", action: str = "pay") -> str:
        """Buy credits on the processor's page; answers the payment's id."""
        page = await self.market.payments.credits_checkout(Buyer("org_1"), cents, TO, key=key)
        await self.market.pay(page.url, action)
        await self.settle()
        return str(self.market.made("payment_intent")[-1]["id"])

    async def held(self) -> Subscribed:
        seen = await self.subscription()
        assert seen.subscription_id is not None
        assert seen.item_id is not None
        assert seen.price_id is not None
        assert seen.period_start is not None
        assert seen.period_end is not None
        return Subscribed(
            *(seen.subscription_id, seen.item_id, seen.price_id),
            *(seen.period_start, seen.period_end, seen.schedule_id),
        )

    async def subscription(self) -> SubscriptionView:
        return await self.runtime.ask(organization("org_1"), ReadSubscription(self.now))

    async def credits(self) -> CreditsView:
        return await self.runtime.ask(organization("org_1"), ReadCredits(self.now))

    async def dollars(self) -> float:
        return (await self.credits()).standing.balance / MICRO

    async def plan(self) -> str:
        """Read the plan where everything else of the service reads it: on disk."""
        row = await self.database.fetchrow("SELECT plan FROM organizations WHERE id = 'org_1'")
        assert row is not None
        told: str = (await self.subscription()).plan
        assert told == row["plan"]
        return told

    async def states(self) -> dict[str, set[str]]:
        """List what became of the events, by type."""
        found: dict[str, set[str]] = {}
        for row in await self.database.fetch("SELECT type, state FROM payment_events"):
            found.setdefault(row["type"], set()).add(row["state"])
        return found

    async def audit(self) -> list[str]:
        rows = await self.database.fetch("SELECT event FROM audit_log ORDER BY id")
        return [row["event"] for row in rows]

    @property
    def now(self) -> datetime:
        return self.market.processor.clock.now()

    def charge(self, payment: str) -> str:
        intents = {one["id"]: one for one in self.market.made("payment_intent")}
        return str(intents[payment]["latest_charge"])


@asynccontextmanager
async def process(database: Database, name: str = "one") -> AsyncIterator[Runtime]:
    journal = Journal(database)
    async with Runtime(
        [OrganizationActor(database)],
        journal,
        Outbox(database),
        partial(slots.versions, database),
        epochs=await slots.claim(database, name),
    ) as running:
        yield running
    await journal.close()


def applier(house_of: Market, database: Database, runtime: Runtime, **changed: Any) -> Applier:
    """Make the applier as the service does, on the market's clock."""
    given: dict[str, Any] = {
        "database": database,
        "ask": runtime.ask,
        "processor": house_of.payments,
        "price_ids": house_of.prices,
        "clock": house_of.processor.clock.now,
        "backoff_seconds": (0.0,) * 3,
        "away_seconds": 0.0,
        **changed,
    }
    return Applier(**given)


def unset() -> StripePayments:
    """Make the adapter of a service that has no key."""
    return StripePayments(None, {})


@asynccontextmanager
async def opened(market: Market, database: Database) -> AsyncIterator[House]:
    """Open the house to the market's deliveries."""
    for id in ("org_1", "org_2"):
        await database.execute("INSERT INTO organizations (id, name) VALUES ($1, 'Corner')", id)
    async with AsyncExitStack() as stack:
        runtime = await stack.enter_async_context(process(database))
        house = House(market, database, runtime, applier(market, database, runtime))
        receiver = PaymentEvents(
            database,
            lambda: datetime.now(UTC),  # deliveries are signed with the wall clock's time
            webhook_secret=SECRET,
            secret_key=SECRET_KEY,
            arrived=lambda: house.arrivals.append(None),
        )

        async def app(scope: Any, receive: Any, send: Any) -> None:
            if scope["type"] == "http":
                await receiver(scope, receive, send)

        port = await stack.enter_async_context(listening(app))
        market.processor.platform.tax_basis_points = 1_000
        url = f"http://127.0.0.1:{port}/api/webhooks/payments"
        market.processor.open_endpoint(url, SECRET)
        market.processor.open_endpoint(url, SECRET, connect=True)
        yield house
