"""The applier in trouble: crashes, repeats, any order, no key, and what nobody can apply."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any

import anyio
import pytest
import structlog

from tests.actors.organization import house as houses
from tests.actors.organization.house import NOW, House
from tests.http.payments import market as markets
from tests.sandbox.payments.stage import STRIPE
from tolsey.storage.database import Database
from tolsey.storage.money import payment_events, payouts

pytestmark = STRIPE
MICRO = houses.MICRO


@pytest.fixture
async def house(database: Database) -> AsyncIterator[House]:
    async with markets.opened(NOW) as market, houses.opened(market, database) as opened:
        yield opened


async def test_a_crash_after_any_step_loses_nothing_and_does_nothing_twice(
    house: House, database: Database
) -> None:
    """The asker dies before and after the turn; another applier takes the events up."""
    calls = 0

    async def dying(*args: Any, **more: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls % 3 == 1:
            raise TimeoutError("before the turn")
        answer = await house.runtime.ask(*args, **more)
        if calls % 3 == 2:
            raise TimeoutError("after its commit")
        return answer

    house.applier = houses.applier(
        house.market, database, house.runtime, ask=dying, backoff_seconds=(0.0,) * 50
    )
    await house.buy()
    await house.buy_credits(5_000)
    assert await house.dollars() == 99
    assert calls > 6
    (row,) = await database.fetch("SELECT count(*) FROM payment_events WHERE state = 'new'")
    assert row["count"] == 0


async def test_two_appliers_at_once_do_everything_once(house: House, database: Database) -> None:
    house.market.processor.webhooks.repeats = 0.5
    house.market.processor.webhooks.reorders = 0.5
    other = houses.applier(house.market, database, house.runtime)
    for n in range(4):
        page = await house.market.payments.credits_checkout(
            houses.Buyer("org_1"), 1_000, houses.TO, key=f"c{n}"
        )
        await house.market.pay(page.url)
    await house.market.processor.webhooks.settled()
    await asyncio.gather(house.applier.look(), other.look())
    assert await house.dollars() == 40


@pytest.mark.parametrize("seed", range(4))
async def test_deliveries_in_any_order_and_repeated_come_to_the_same(
    house: House, seed: int
) -> None:
    hooks = house.market.processor.webhooks
    hooks.pause()
    hooks._random.seed(seed)
    hooks.repeats, hooks.reorders = 0.3, 0.9
    payments = house.market.payments
    price = house.market.price("pro")
    page = await payments.subscription_checkout(
        houses.Buyer("org_1"), price, "pro", "monthly", houses.TO, key="b"
    )
    await house.market.pay(page.url)
    bought = await payments.credits_checkout(houses.Buyer("org_1"), 5_000, houses.TO, key="c")
    await house.market.pay(bought.url)
    payment = str(house.market.made("payment_intent")[-1]["id"])
    dispute = house.market.processor.open_dispute(house.charge(payment))
    house.market.processor.close_dispute(dispute["id"], "won")
    (subscription,) = house.market.made("subscription")
    facts = await payments.subscription(subscription["id"])
    (item,) = facts.items
    held = houses.Subscribed(
        *(facts.subscription_id, item.item_id, item.price_id, item.period_start, item.period_end),
        None,
    )
    await payments.upgrade(held, house.market.price("max_5x"), key="up")
    hooks.resume()
    await house.settle()
    assert (await house.plan(), await house.dollars()) == ("max_5x", 149 + 50)
    assert (await house.subscription()).price_id == house.market.price("max_5x")


async def test_without_a_key_what_needs_no_answer_is_applied(
    house: House, database: Database
) -> None:
    house.applier = houses.applier(
        house.market, database, house.runtime, processor=houses.unset(), away_seconds=60.0
    )
    await house.buy()
    payment = await house.buy_credits(5_000)
    assert (await house.plan(), await house.dollars()) == ("pro", 99)
    house.market.processor.open_dispute(house.charge(payment))
    await house.settle()
    assert await house.dollars() == 49
    subscribed = str(house.market.made("payment_intent")[0]["id"])
    house.market.processor.open_dispute(house.charge(subscribed))
    await house.settle()
    assert await house.dollars() == 49
    states = await house.states()
    assert states["charge.dispute.created"] == {"applied", "new"}
    (waits,) = await database.fetch("SELECT attempts, why FROM payment_events WHERE state = 'new'")
    assert tuple(waits) == (0, "MissingCredential"), "waiting uses up no tries"

    house.applier = houses.applier(house.market, database, house.runtime)
    await database.execute("UPDATE payment_events SET due_at = now()")
    await house.settle()
    assert await house.dollars() == 0


async def test_what_cannot_be_applied_is_given_up_after_some_tries_and_can_be_retried(
    house: House, database: Database
) -> None:
    async def failing(*_: Any, **__: Any) -> Any:
        raise RuntimeError("no such luck")

    house.applier = houses.applier(house.market, database, house.runtime, ask=failing)
    await house.buy_credits(5_000)
    rows = await database.fetch(
        "SELECT event_id, state, why FROM payment_events WHERE organization_id = 'org_1'"
    )
    assert {(row["state"], row["why"]) for row in rows} == {
        ("failed", "RuntimeError: no such luck")
    }

    async with database.transaction() as tx:
        for row in rows:
            assert await payment_events.retry(tx, row["event_id"])
            assert not await payment_events.retry(tx, row["event_id"])
    house.applier = houses.applier(house.market, database, house.runtime)
    await house.settle()
    assert await house.dollars() == 50


async def test_an_event_that_fails_holds_no_other_up(house: House, database: Database) -> None:
    async def choosy(to: Any, message: Any, **more: Any) -> Any:
        if message.type == "checkout.session.completed":
            raise RuntimeError("not this one")
        return await house.runtime.ask(to, message, **more)

    house.applier = houses.applier(house.market, database, house.runtime, ask=choosy)
    await house.buy_credits(5_000)
    assert await house.dollars() == 50
    states = await house.states()
    assert states["checkout.session.completed"] == {"failed"}
    assert states["payment_intent.succeeded"] == {"applied"}


async def test_a_price_of_a_setting_that_was_missing_is_applied_when_it_is_set(
    house: House, database: Database
) -> None:
    house.applier = houses.applier(house.market, database, house.runtime, price_ids={})
    await house.buy()
    assert (await house.plan(), await house.dollars()) == ("free", 0)
    failed: Sequence[Any] = await database.fetch(
        "SELECT event_id, why FROM payment_events WHERE state = 'failed'"
    )
    assert {row["why"] for row in failed} == {"unknown_price"}
    async with database.transaction() as tx:
        for row in failed:
            await payment_events.retry(tx, row["event_id"])
    house.applier = houses.applier(house.market, database, house.runtime)
    await house.settle()
    assert (await house.plan(), await house.dollars()) == ("pro", 49)


async def test_it_looks_by_itself_and_at_once_when_it_is_told(house: House) -> None:
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(house.applier.run)
        page = await house.market.payments.credits_checkout(
            houses.Buyer("org_1"), 5_000, houses.TO, key="c"
        )
        await house.market.pay(page.url)
        await house.market.processor.webhooks.settled()
        with anyio.fail_after(60):
            while await house.dollars() != 50:
                house.applier.arrived()
                await anyio.sleep(0.01)
        tasks.cancel_scope.cancel()


async def test_of_a_dispute_that_ended_twice_the_processor_is_asked(
    house: House, database: Database
) -> None:
    payment = await house.buy_credits(5_000)
    dispute = house.market.processor.open_dispute(house.charge(payment))
    house.market.processor.close_dispute(dispute["id"], "lost")
    await house.settle()
    await _end_again(database, "won")
    await house.settle()
    assert await house.dollars() == 0, "the processor says that it was lost"
    dispute["status"] = "won"
    await _end_again(database, "won", "evt_2")
    await house.settle()
    assert await house.dollars() == 50


async def test_a_dispute_that_was_won_and_is_lost_is_left_to_a_person(
    house: House, database: Database
) -> None:
    payment = await house.buy_credits(5_000)
    dispute = house.market.processor.open_dispute(house.charge(payment))
    house.market.processor.close_dispute(dispute["id"], "won")
    await house.settle()
    dispute["status"] = "lost"
    await _end_again(database, "lost")
    await house.settle()
    (row,) = await database.fetch("SELECT state, why FROM payment_events WHERE event_id = 'evt_1'")
    assert tuple(row) == ("failed", "dispute_won_then_lost")
    assert await house.dollars() == 50


async def _end_again(database: Database, status: str, id: str = "evt_1") -> None:
    """Tell of another end of the dispute than the one that was told."""
    await database.execute(
        """
        INSERT INTO payment_events
            (event_id, type, livemode, created_at, facts, organization_id, state)
        SELECT $2, type, livemode, created_at,
            jsonb_set(facts, '{status}', to_jsonb($1::text)), organization_id, 'new'
        FROM payment_events WHERE type = 'charge.dispute.closed' LIMIT 1
        """,
        *(status, id),
    )


async def test_it_finds_the_organization_of_what_a_crash_left_parked(
    house: House, database: Database
) -> None:
    payment = await house.buy_credits(5_000)
    dispute = house.market.processor.open_dispute(house.charge(payment))
    await house.market.processor.webhooks.settled()
    await database.execute(
        "UPDATE payment_events SET state = 'parked', organization_id = NULL"
        " WHERE type = 'charge.dispute.created'"
    )
    await house.applier.reconcile()
    await house.applier.look()
    assert await house.dollars() == 0
    assert dispute["status"] == "needs_response"


async def test_what_never_reached_us_is_counted_and_told(house: House) -> None:
    house.market.processor.webhooks.pause()
    page = await house.market.payments.credits_checkout(
        houses.Buyer("org_1"), 5_000, houses.TO, key="c"
    )
    await house.market.pay(page.url)
    with structlog.testing.capture_logs() as logs:
        await house.applier.reconcile()
    (said,) = [one for one in logs if one["event"] == "payments.events_undelivered"]
    assert said["events"] >= 2
    house.market.processor.webhooks.resume()


async def test_a_persons_payout_account_is_told_of_too(house: House, database: Database) -> None:
    await database.execute(
        "INSERT INTO users (id, email, password_hash) VALUES ('usr_1', 'a@example.com', 'x')"
    )
    facts = await house.market.payments.open_payout_account("usr_1", "a@example.com", key="k")
    await payouts.opened(database, "usr_1", facts, house.now)
    house.market.processor.advance(days=1)
    house.market.processor.onboard(facts.account_id)
    house.market.processor.fail_payout(facts.account_id, 25_000)
    await house.settle()
    kept = await payouts.find(database, "usr_1")
    assert kept is not None
    assert kept.is_verified
    assert [one.amount_cents for one in await payouts.failures(database, facts.account_id)] == [
        25_000
    ]
    states = await house.states()
    assert (states["account.updated"], states["payout.failed"]) == ({"applied"}, {"applied"})
