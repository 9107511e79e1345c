"""What the processor tells, in trouble: crashes, repeats, any order, no key, and what nobody can apply."""

from collections import Counter
from collections.abc import AsyncIterator
from typing import Any

import pytest
import structlog

from tests.actors.organization import billed_service
from tests.actors.organization.billed_service import NOW, BilledService
from tests.http.payments import market as markets
from tests.sandbox.payments.stage import STRIPE
from tests.seeds import seeds
from tests.timing import until
from tolsey.actors.organization.billing import applying
from tolsey.actors.organization.billing.messages import ApplyPaymentEvent
from tolsey.actors.processor import ProcessorRefused
from tolsey.storage.database import Database
from tolsey.storage.errors import OutcomeUnknown, StorageUnavailable
from tolsey.storage.money import payment_events, payouts
from tolsey.storage.records.runtime.turns import Batch, BatchOutcome
from tolsey.storage.runtime.journal import Journal

pytestmark = STRIPE
MICRO = billed_service.MICRO


@pytest.fixture
async def billed(database: Database) -> AsyncIterator[BilledService]:
    async with markets.opened(NOW) as market, billed_service.opened(market, database) as opened:
        yield opened


class Failing(Journal):
    """A journal of which every third commit fails, and of every third nobody knows that it did not."""

    commits = 0

    async def write(self, batch: Batch) -> BatchOutcome:
        self.commits += 1
        if self.commits % 3 == 1:
            raise StorageUnavailable("before the commit")
        outcome = await super().write(batch)
        if self.commits % 3 == 2:
            raise OutcomeUnknown("after the commit")
        return outcome


async def test_a_commit_that_fails_or_may_have_loses_nothing_and_does_nothing_twice(
    billed: BilledService, database: Database
) -> None:
    journal = Failing(database)
    async with billed_service.process(
        database, billed.market, "two", journal=journal
    ) as billed.runtime:
        await billed.buy()
        await billed.buy_credits(5_000)
    async with billed_service.process(database, billed.market, "three") as billed.runtime:
        assert await billed.dollars() == 99
    assert journal.commits > 6
    assert await database.fetch("SELECT FROM payment_events WHERE state = 'new'") == []


async def test_what_one_process_left_another_takes_up(
    billed: BilledService, database: Database
) -> None:
    """It was ended between the answer to a delivery and the turn of its message."""
    billed.inbox = billed_service.inbox(billed, dispatch=lambda _: None)
    async with billed_service.process(database, billed.market, "two"):
        billed.market.processor.webhooks.pause()
        page = await billed.market.payments.credits_checkout(
            billed_service.Buyer("org_1"), 5_000, billed_service.TO, key="c"
        )
        await billed.market.pay(page.url)
    billed.market.processor.webhooks.resume()
    await billed.market.processor.webhooks.settled()
    assert set.union(*(await billed.states()).values()) == {"new"}
    async with billed_service.process(database, billed.market, "three") as billed.runtime:
        await billed.settle()
        assert await billed.dollars() == 50


@pytest.mark.parametrize("seed", seeds(4))
async def test_deliveries_in_any_order_and_repeated_come_to_the_same(
    billed: BilledService, seed: int
) -> None:
    hooks = billed.market.processor.webhooks
    hooks.pause()
    hooks._random.seed(seed)
    hooks.repeats, hooks.reorders = 0.3, 0.9
    payments = billed.market.payments
    price = billed.market.price("pro")
    page = await payments.subscription_checkout(
        billed_service.Buyer("org_1"), price, "pro", "monthly", billed_service.TO, key="b"
    )
    await billed.market.pay(page.url)
    bought = await payments.credits_checkout(
        billed_service.Buyer("org_1"), 5_000, billed_service.TO, key="c"
    )
    await billed.market.pay(bought.url)
    payment = str(billed.market.made("payment_intent")[-1]["id"])
    dispute = billed.market.processor.open_dispute(billed.charge(payment))
    billed.market.processor.close_dispute(dispute["id"], "won")
    (subscription,) = billed.market.made("subscription")
    facts = await payments.subscription(subscription["id"])
    (item,) = facts.items
    held = billed_service.Subscribed(
        subscription_id=facts.subscription_id,
        item_id=item.item_id,
        price_id=item.price_id,
        period_start=item.period_start,
        period_end=item.period_end,
        schedule_id=None,
    )
    await payments.upgrade(held, billed.market.price("max_5x"), key="up")
    hooks.resume()
    await billed.settle()
    assert (await billed.plan(), await billed.dollars()) == ("max_5x", 149 + 50)
    assert (await billed.subscription()).price_id == billed.market.price("max_5x")


async def test_without_a_key_what_needs_no_answer_is_applied(
    billed: BilledService, database: Database
) -> None:
    async with billed_service.process(
        database, billed.market, "two", processor=billed_service.unset()
    ) as billed.runtime:
        await billed.buy()
        payment = await billed.buy_credits(5_000)
        assert (await billed.plan(), await billed.dollars()) == ("pro", 99)
        billed.market.processor.open_dispute(billed.charge(payment))
        await billed.settle()
        assert await billed.dollars() == 49
        subscribed = str(billed.market.made("payment_intent")[0]["id"])
        billed.market.processor.open_dispute(billed.charge(subscribed))
        await billed.settle()
        assert await billed.dollars() == 49
    states = await billed.states()
    assert states["charge.dispute.created"] == {"applied", "new"}
    waits = await payment_events.listed(database, 10, state="new")
    assert [one["why"].partition("(")[0] for one in waits] == ["MissingCredential"]

    await database.execute("UPDATE outbox SET due_at = now(), attempts = 0")
    async with billed_service.process(database, billed.market, "three") as billed.runtime:
        await billed.settle()
        assert await billed.dollars() == 0


async def test_what_cannot_be_applied_is_given_up_after_some_tries_and_can_be_retried(
    billed: BilledService, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    tries: Counter[str] = Counter()

    def failing(_: Any, message: ApplyPaymentEvent) -> Any:
        tries[message.event_id] += 1
        raise RuntimeError("no such luck")

    with monkeypatch.context() as patched:
        patched.setattr(applying, "apply", failing)
        await billed.buy_credits(5_000)
        await given_up(billed)
    rows = await payment_events.listed(database, 10, organization_id="org_1")
    assert {(row["state"], row["why"]) for row in rows} == {
        ("failed", "TurnFailed: PaymentEventReceived: RuntimeError")
    }
    assert set(tries.values()) == {5}

    async with database.transaction() as tx:
        for row in rows:
            assert await billed.inbox.retry(tx, row["event_id"])
            assert not await billed.inbox.retry(tx, row["event_id"])
    await billed.settle()
    assert await billed.dollars() == 50


async def test_an_event_that_fails_holds_no_other_up(
    billed: BilledService, monkeypatch: pytest.MonkeyPatch
) -> None:
    apply = applying.apply

    def choosy(state: Any, message: ApplyPaymentEvent) -> Any:
        if message.type == "checkout.session.completed":
            raise RuntimeError("not this one")
        return apply(state, message)

    monkeypatch.setattr(applying, "apply", choosy)
    await billed.buy_credits(5_000)
    await given_up(billed)
    assert await billed.dollars() == 50
    states = await billed.states()
    assert states["checkout.session.completed"] == {"failed"}
    assert states["payment_intent.succeeded"] == {"applied"}


async def test_what_the_processor_will_not_tell_fails_at_once_and_can_be_retried(
    billed: BilledService, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refused(*_: object) -> Any:
        raise ProcessorRefused("No such invoice.", "resource_missing")

    await billed.buy()
    with monkeypatch.context() as patched:
        patched.setattr(type(billed.market.payments), "invoice_of_payment", refused)
        payment = str(billed.market.made("payment_intent")[-1]["id"])
        billed.market.processor.open_dispute(billed.charge(payment))
        await billed.market.processor.webhooks.settled()
        await given_up(billed)
    (failed,) = await payment_events.listed(database, 10, state="failed")
    assert failed["why"] == "ProcessorRefused: No such invoice."
    async with database.transaction() as tx:
        assert await billed.inbox.retry(tx, failed["event_id"])
    await billed.settle()
    assert await billed.dollars() == 0


async def test_a_price_of_a_setting_that_was_missing_is_applied_when_it_is_set(
    billed: BilledService, database: Database
) -> None:
    billed.inbox = billed_service.inbox(billed, offers=())
    await billed.buy()
    assert (await billed.plan(), await billed.dollars()) == ("free", 0)
    failed = await payment_events.listed(database, 10, state="failed")
    assert {row["why"] for row in failed} == {"unknown_price"}
    billed.inbox = billed_service.inbox(billed)
    async with database.transaction() as tx:
        for row in failed:
            assert await billed.inbox.retry(tx, row["event_id"])
    await billed.settle()
    assert (await billed.plan(), await billed.dollars()) == ("pro", 49)


async def given_up(billed: BilledService) -> None:
    """Wait until nothing is tried any more."""

    async def is_done() -> bool:
        return not await billed.database.fetch("SELECT FROM outbox")

    await until(is_done)


async def test_of_a_dispute_that_ended_twice_the_processor_is_asked(
    billed: BilledService, database: Database
) -> None:
    payment = await billed.buy_credits(5_000)
    dispute = billed.market.processor.open_dispute(billed.charge(payment))
    billed.market.processor.close_dispute(dispute["id"], "lost")
    await billed.settle()
    await _end_again(database, "won")
    await billed.reconcile()
    assert await billed.dollars() == 0, "the processor says that it was lost"
    dispute["status"] = "won"
    await _end_again(database, "won", "evt_2")
    await billed.reconcile()
    assert await billed.dollars() == 50


async def test_a_dispute_that_was_won_and_is_lost_is_left_to_a_person(
    billed: BilledService, database: Database
) -> None:
    payment = await billed.buy_credits(5_000)
    dispute = billed.market.processor.open_dispute(billed.charge(payment))
    billed.market.processor.close_dispute(dispute["id"], "won")
    await billed.settle()
    dispute["status"] = "lost"
    await _end_again(database, "lost")
    await billed.reconcile()
    (row,) = await database.fetch("SELECT state, why FROM payment_events WHERE event_id = 'evt_1'")
    assert tuple(row) == ("failed", "dispute_won_then_lost")
    assert await billed.dollars() == 50


async def _end_again(database: Database, status: str, id: str = "evt_1") -> None:
    """Tell of another end of the dispute than was told, as a release does that writes no message."""
    await database.execute(
        """
        INSERT INTO payment_events
            (event_id, type, livemode, created_at, facts, organization_id, state, due_at)
        SELECT $2, type, livemode, created_at,
            jsonb_set(facts, '{status}', to_jsonb($1::text)), organization_id, 'new',
            now() - interval '1 hour'
        FROM payment_events WHERE type = 'charge.dispute.closed' LIMIT 1
        """,
        *(status, id),
    )


async def test_it_finds_the_organization_of_what_a_crash_left_parked(
    billed: BilledService, database: Database
) -> None:
    payment = await billed.buy_credits(5_000)
    dispute = billed.market.processor.open_dispute(billed.charge(payment))
    await billed.market.processor.webhooks.settled()
    await database.execute(
        "UPDATE payment_events SET state = 'parked', organization_id = NULL"
        " WHERE type = 'charge.dispute.created'"
    )
    await billed.reconcile()
    assert await billed.dollars() == 0
    assert dispute["status"] == "needs_response"


async def test_what_never_reached_us_is_counted_and_told(billed: BilledService) -> None:
    billed.market.processor.webhooks.pause()
    page = await billed.market.payments.credits_checkout(
        billed_service.Buyer("org_1"), 5_000, billed_service.TO, key="c"
    )
    await billed.market.pay(page.url)
    with structlog.testing.capture_logs() as logs:
        await billed.inbox.reconcile(billed.now, lambda _: None)
    (said,) = [one for one in logs if one["event"] == "payments.events_undelivered"]
    assert said["events"] >= 2
    billed.market.processor.webhooks.resume()


async def test_a_persons_payout_account_is_told_of_too(
    billed: BilledService, database: Database
) -> None:
    await database.execute(
        "INSERT INTO users (id, email, password_hash) VALUES ('usr_1', 'a@example.com', 'x')"
    )
    facts = await billed.market.payments.open_payout_account("usr_1", "a@example.com", key="k")
    await payouts.opened(database, "usr_1", facts, billed.now)
    billed.market.processor.advance(days=1)
    billed.market.processor.onboard(facts.account_id)
    billed.market.processor.fail_payout(facts.account_id, 25_000)
    await billed.settle()
    kept = await payouts.find(database, "usr_1")
    assert kept is not None
    assert kept.is_verified
    assert [one.amount_cents for one in await payouts.failures(database, facts.account_id)] == [
        25_000
    ]
    states = await billed.states()
    assert (states["account.updated"], states["payout.failed"]) == ({"applied"}, {"applied"})
