"""Our side of the payment processor, over real HTTP: the webhook route, the inbox, the actors."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import Any

from tests.http.payments.market import Market
from tests.timing import until
from tolsey.actors.organization.actor import OrganizationActor
from tolsey.actors.organization.billing.messages import ReadSubscription, SubscriptionView
from tolsey.actors.organization.effects import EventCalls, PaymentInbox
from tolsey.actors.organization.ledger.messages import CreditsView, ReadCredits
from tolsey.actors.organization.messages import organization
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
UNTRIED = "SELECT FROM outbox WHERE key LIKE 'payment_event:%' AND attempts = 0"


@dataclass
class BilledService:
    """A market and the service that sells on it."""

    market: Market
    database: Database
    runtime: Runtime
    inbox: PaymentInbox = field(init=False)

    async def settle(self) -> None:
        """Wait until every event was delivered and applied, or was tried once in vain."""
        await self.market.processor.webhooks.settled()

        async def is_done() -> bool:
            return not (self.runtime.admin.effects_in_flight or await self.database.fetch(UNTRIED))

        await until(is_done)

    async def reconcile(self) -> None:
        """Run the job that looks for what was left behind, and wait for what it finds."""
        await self.inbox.reconcile(self.now, lambda _: None)
        self.runtime.slots.wake_outbox()
        await self.settle()

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
            subscription_id=seen.subscription_id,
            item_id=seen.item_id,
            price_id=seen.price_id,
            period_start=seen.period_start,
            period_end=seen.period_end,
            schedule_id=seen.schedule_id,
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
async def process(
    database: Database,
    market: Market,
    name: str = "one",
    *,
    processor: StripePayments | None = None,
    journal: Journal | None = None,
) -> AsyncIterator[Runtime]:
    journal = journal or Journal(database)
    calls = EventCalls(processor or market.payments)
    async with Runtime(
        [OrganizationActor(database)],
        journal,
        Outbox(database),
        partial(slots.versions, database),
        epochs=await slots.claim(database, name),
        handlers=calls.handlers(),
        poll_seconds=0.05,
        backoff_seconds=(0.0,) * 4,
    ) as running:
        yield running
    await journal.close()


def inbox(billed: BilledService, **changed: Any) -> PaymentInbox:
    """Make the inbox as the service does, on the market's clock."""
    market = billed.market
    given: dict[str, Any] = {
        "offers": market.offers,
        "dispatch": lambda rows: billed.runtime.dispatch(rows),  # noqa: PLW0108 - a test replaces the runtime
        **changed,
    }
    return PaymentInbox(billed.database, market.payments, market.processor.clock.now, **given)


def unset() -> StripePayments:
    """Make the adapter of a service that has no key."""
    return StripePayments(None, {})


@asynccontextmanager
async def opened(market: Market, database: Database) -> AsyncIterator[BilledService]:
    """Open the service to the market's deliveries."""
    for id in ("org_1", "org_2"):
        await database.execute("INSERT INTO organizations (id, name) VALUES ($1, 'Corner')", id)
    async with AsyncExitStack() as stack:
        runtime = await stack.enter_async_context(process(database, market))
        billed = BilledService(market, database, runtime)
        billed.inbox = inbox(billed)

        async def app(scope: Any, receive: Any, send: Any) -> None:
            if scope["type"] == "http":
                receiver = PaymentEvents(
                    billed.inbox,
                    lambda: datetime.now(UTC),  # deliveries are signed with the wall clock's time
                    webhook_secret=SECRET,
                    secret_key=SECRET_KEY,
                )
                await receiver(scope, receive, send)

        port = await stack.enter_async_context(listening(app))
        market.processor.platform.tax_basis_points = 1_000
        url = f"http://127.0.0.1:{port}/api/webhooks/payments"
        market.processor.open_endpoint(url, SECRET)
        market.processor.open_endpoint(url, SECRET, connect=True)
        yield billed
