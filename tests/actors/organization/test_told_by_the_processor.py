"""A seller's year with the payment processor: what it tells our webhook route is applied."""

import contextlib
import random
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from tests.actors.organization import house as houses
from tests.actors.organization.house import NOW, House
from tests.http.payments import market as markets
from tests.sandbox.payments.stage import STRIPE
from tolsey.actors import chain
from tolsey.actors.organization.ledger.messages import SpendCredits
from tolsey.actors.organization.messages import organization
from tolsey.actors.processor import CardRefused
from tolsey.http.clients.payments import requests
from tolsey.storage.database import Database
from tolsey.storage.money import credits

pytestmark = STRIPE
MICRO = houses.MICRO


@pytest.fixture
async def house(database: Database) -> AsyncIterator[House]:
    async with markets.opened(NOW) as market, houses.opened(market, database) as opened:
        yield opened


async def test_a_plan_that_is_bought_brings_its_allowance(house: House) -> None:
    await house.buy()
    assert (await house.plan(), await house.dollars()) == ("pro", 49)
    seen = await house.subscription()
    assert (seen.status, seen.cadence, seen.is_subscribed) == ("active", "monthly", True)
    assert seen.price_id == house.market.price("pro")
    assert seen.customer_id == house.market.made("customer")[-1]["id"]
    assert (await house.audit())[:2] == ["subscription.created", "monthly.reset"]
    assert set.union(*(await house.states()).values()) <= {"applied", "ignored"}


async def test_an_upgrade_on_the_last_days_is_paid_for_a_whole_month(house: House) -> None:
    """Nobody tops up to 149 dollars for the price of a day."""
    await house.buy()
    house.market.processor.advance(days=29)
    paid_before = _paid(house)
    price = house.market.price("max_5x")
    await house.market.payments.upgrade(await house.held(), price, key="up")
    await house.settle()

    assert (await house.plan(), await house.dollars()) == ("max_5x", 149)
    assert _paid(house) - paid_before > 190_00
    seen = await house.subscription()
    assert seen.period_end is not None
    assert seen.period_end > house.now + timedelta(days=27)


async def test_an_upgrade_whose_card_is_declined_changes_nothing(house: House) -> None:
    await house.buy()
    house.market.processor.set_card(house.market.made("customer")[-1]["id"], "decline")
    with pytest.raises(CardRefused):
        await house.market.payments.upgrade(
            await house.held(), house.market.price("max_5x"), key="up"
        )
    await house.settle()
    assert (await house.plan(), await house.dollars()) == ("pro", 49)


async def test_a_downgrade_waits_for_the_end_of_its_period(house: House) -> None:
    await house.buy("max_5x")
    await house.market.payments.downgrade(
        await house.held(), house.market.price("pro"), "pro", "monthly", key="down"
    )
    await house.settle()
    assert (await house.plan(), await house.dollars()) == ("max_5x", 149)
    assert (await house.subscription()).schedule_id is not None
    house.market.processor.advance(days=32)
    await house.settle()
    assert (await house.plan(), await house.dollars()) == ("pro", 49)
    assert "subscription.downgraded" in await house.audit()


async def test_each_renewal_resets_the_allowance(house: House) -> None:
    await house.buy()
    await house.runtime.ask(
        organization("org_1"), SpendCredits(key="s", amount=20 * MICRO, reason="chat", at=house.now)
    )
    for _ in range(3):
        house.market.processor.advance(days=31)
        await house.settle()
    grants = (await house.credits()).grants
    assert [one.remaining for one in grants if one.kind == "allowance"] == [49 * MICRO]
    assert (await house.audit()).count("monthly.reset") == 4


async def test_a_card_that_fails_is_dunned_until_it_pays(house: House) -> None:
    await house.buy()
    customer = house.market.made("customer")[-1]["id"]
    house.market.processor.set_card(customer, "decline")
    house.market.processor.advance(days=32)
    await house.settle()
    seen = await house.subscription()
    assert (seen.status, await house.plan()) == ("past_due", "pro")
    assert seen.dunning_since is not None
    assert seen.dunning_url is not None
    house.market.processor.set_card(customer, "ok")
    house.market.processor.advance(days=8)
    await house.settle()
    seen = await house.subscription()
    assert (seen.status, seen.dunning_since, seen.dunning_url) == ("active", None, None)
    assert await house.dollars() == 49


async def test_a_plan_that_is_never_paid_again_ends(house: House) -> None:
    await house.buy()
    house.market.processor.set_card(house.market.made("customer")[-1]["id"], "decline")
    house.market.processor.advance(days=80)
    await house.settle()
    assert await house.plan() == "free"


async def test_a_cancelled_plan_stays_until_its_period_ends(house: House) -> None:
    bought = await house.buy()
    await house.market.payments.cancel(bought, feedback=None, comment=None, key="cancel")
    await house.settle()
    assert (await house.subscription()).cancel_at_period_end
    assert await house.plan() == "pro"
    house.market.processor.advance(days=32)
    await house.settle()
    assert await house.plan() == "free"
    assert not (await house.subscription()).is_subscribed


async def test_a_year_is_granted_its_first_month(house: House) -> None:
    await house.buy("pro", "yearly")
    seen = await house.subscription()
    assert (seen.plan, seen.cadence, await house.dollars()) == ("pro", "yearly", 49)
    (row,) = await house.database.fetch(
        "SELECT paid_from, paid_until, paid_plan, paid_cadence FROM subscriptions"
    )
    assert (row["paid_plan"], row["paid_cadence"]) == ("pro", "yearly")
    assert row["paid_until"] - row["paid_from"] >= timedelta(days=365)


async def test_credits_are_granted_before_tax_and_once(house: House) -> None:
    await house.buy_credits(5_000)
    assert await house.dollars() == 50
    (payment,) = house.market.made("payment_intent")
    assert payment["amount"] == 5_500, "tax is on top"
    assert (await house.audit()).count("purchase.completed") == 1


async def test_a_known_customers_payment_without_a_word_waits_for_an_operator(
    house: House,
) -> None:
    await house.buy()
    customer = house.market.made("customer")[-1]["id"]
    asked = requests.sponsor_checkout(None, 5_000, houses.TO)
    asked |= {"customer": customer, "metadata": {}, "payment_intent_data": {}}
    page = await house.market.client.v1.checkout.sessions.create_async(asked)
    await house.market.pay(page.url or "")
    await house.settle()
    for _ in range(2):
        sql = "SELECT why, organization_id FROM payment_events WHERE state = 'parked'"
        (parked,) = await house.database.fetch(sql)
        assert tuple(parked) == ("no_metadata", "org_1")
        assert await house.inbox.adopt() == 0
    assert await house.dollars() == 49


async def test_a_bank_debit_grants_when_it_arrives(house: House) -> None:
    payment = await house.buy_credits(5_000, action="later")
    assert await house.dollars() == 0
    house.market.processor.settle(payment)
    await house.settle()
    assert await house.dollars() == 50


async def test_refunds_take_back_what_they_are_of(house: House) -> None:
    payment = await house.buy_credits(5_000)
    total = house.market.made("payment_intent")[0]["amount"]
    refund = house.market.payments.refund
    await refund(payment, total // 2, organization_id="org_1", key="half")
    await house.settle()
    assert await house.dollars() == 25
    await refund(payment, None, organization_id="org_1", key="rest")
    await house.settle()
    assert await house.dollars() == 0


async def test_a_refund_of_a_subscription_finds_the_allowance_it_paid(house: House) -> None:
    """The payment's events name no invoice any more: the processor is asked which it paid."""
    bought = await house.buy()
    payment = str(house.market.made("payment_intent")[-1]["id"])
    await house.market.payments.refund(payment, None, organization_id="org_1", key="refund")
    await house.market.payments.end_now(bought, key="end")
    await house.settle()
    assert (await house.plan(), await house.dollars()) == ("free", 0)


async def test_a_dispute_of_a_subscription_takes_its_allowance_until_it_is_won(
    house: House,
) -> None:
    await house.buy()
    payment = str(house.market.made("payment_intent")[-1]["id"])
    dispute = house.market.processor.open_dispute(house.charge(payment))
    await house.settle()
    assert (await house.plan(), await house.dollars()) == ("pro", 0)
    house.market.processor.close_dispute(dispute["id"], "won")
    await house.settle()
    assert await house.dollars() == 49
    audit = await house.audit()
    assert "chargeback.received" in audit
    assert "clawback.applied" in audit


@pytest.mark.parametrize(
    ("inquiry", "end", "left"),
    [(False, "won", 50), (False, "lost", 0), (True, "warning_closed", 50)],
)
async def test_a_dispute_of_credits_ends_as_it_is_decided(
    house: House, end: str, left: int, *, inquiry: bool
) -> None:
    payment = await house.buy_credits(5_000)
    dispute = house.market.processor.open_dispute(house.charge(payment), inquiry=inquiry)
    await house.settle()
    assert await house.dollars() == 0
    house.market.processor.close_dispute(dispute["id"], end)
    await house.settle()
    assert await house.dollars() == left


async def test_a_sponsors_payment_is_kept_and_grants_nothing(house: House) -> None:
    for organization_id in ("org_1", None):
        page = await house.market.payments.sponsor_checkout(
            organization_id, 50_000, houses.TO, key=f"sponsor:{organization_id}"
        )
        await house.market.pay(page.url)
    await house.settle()
    first, second = await house.database.fetch(
        "SELECT * FROM sponsorships ORDER BY organization_id NULLS LAST"
    )
    assert [first["organization_id"], second["organization_id"]] == ["org_1", None]
    assert first["paid_cents"] == second["paid_cents"] >= 50_000
    payment = first["payment_ref"]
    await house.market.payments.refund(payment, 1_000, organization_id="org_1", key="r")
    await house.settle()
    rows = await house.database.fetch("SELECT refunded_cents FROM sponsorships ORDER BY 1")
    assert [row["refunded_cents"] for row in rows] == [0, 1_000]
    for payment in (first["payment_ref"], second["payment_ref"]):
        dispute = house.market.processor.open_dispute(house.charge(payment))
        house.market.processor.close_dispute(dispute["id"], "lost")
    await house.settle()
    states = await house.states()
    assert states["charge.dispute.created"] == states["charge.dispute.closed"] == {"applied"}
    assert await house.dollars() == 0
    received = await house.database.fetch(
        "SELECT subject, organization_id FROM audit_log WHERE event = 'chargeback.received'"
        " ORDER BY organization_id NULLS LAST"
    )
    assert [tuple(row) for row in received] == [
        (first["payment_ref"], "org_1"),
        (second["payment_ref"], None),
    ]


@pytest.mark.parametrize("seed", range(4))
async def test_a_life_of_many_turns_ends_as_the_processor_has_it(house: House, seed: int) -> None:
    """Whatever people, banks and time do: the plan and the purchases are what is paid for."""
    chance = random.Random(seed)  # noqa: S311 - a life that can be lived again
    hooks = house.market.processor.webhooks
    hooks.repeats, hooks.reorders = 0.2, 0.5
    bought = 0
    for n in range(12):
        step = chance.choice(("plan", "plan", "credits", "up", "down", "card", "time", "time"))
        seen = await house.subscription()
        if step == "plan" and not seen.is_subscribed:
            await house.buy(chance.choice(("pro", "max_5x")))
        elif step == "credits":
            cents = chance.randrange(500, 9_000)
            await house.buy_credits(cents, key=f"c{n}")
            bought += cents
        elif step == "card" and seen.customer_id:
            card = chance.choice(("ok", "decline"))
            house.market.processor.set_card(seen.customer_id, card)
        elif step in {"up", "down"} and seen.status == "active":
            await _change(house, "max_20x" if step == "up" else "pro", n)
        elif step == "time":
            house.market.processor.advance(days=chance.choice((1, 9, 20, 31)))
        await house.settle()
    alive = [one for one in house.market.made("subscription") if one["status"] in KEEPING]
    prices = {one["items"]["data"][0]["price"]["id"] for one in alive}
    assert (
        {house.market.price(await house.plan())} == prices
        if prices
        else (await house.plan() == "free")
    )
    (row,) = await house.database.fetch(
        "SELECT coalesce(sum(granted), 0) AS granted FROM payment_facts WHERE kind = 'purchase'"
    )
    assert row["granted"] == bought * 10_000
    pairs = await credits.history(house.database, "org_1")
    assert chain.broken_at(pairs) is None
    assert sum(chain.replayed([move for _, moves in pairs for move in moves]).values()) == 0
    assert set.union(set(), *(await house.states()).values()) <= {"applied", "ignored"}


KEEPING = {"active", "past_due"}


async def _change(house: House, plan: str, n: int) -> None:
    held = await house.held()
    price = house.market.price(plan)
    if price == held.price_id:
        return
    with contextlib.suppress(CardRefused):
        if plan == "max_20x":
            if held.schedule_id is not None:
                await house.market.payments.release(held.schedule_id, key=f"release:{n}")
            await house.market.payments.upgrade(held, price, key=f"up:{n}")
        else:
            await house.market.payments.downgrade(held, price, plan, "monthly", key=f"down:{n}")


def _paid(house: House) -> int:
    return sum(int(one["amount_received"]) for one in house.market.made("payment_intent"))
