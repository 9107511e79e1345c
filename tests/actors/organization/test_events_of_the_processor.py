"""A seller's year with the payment processor: what it tells our webhook route is applied."""

import contextlib
import random
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from tests.actors.organization import billed_service
from tests.actors.organization.billed_service import NOW, BilledService
from tests.http.payments import market as markets
from tests.sandbox.payments.stage import STRIPE
from tests.seeds import seeds
from tolsey.actors import chain
from tolsey.actors.organization.ledger.messages import SpendCredits
from tolsey.actors.organization.messages import organization
from tolsey.actors.processor import CardRefused
from tolsey.http.clients.payments import requests
from tolsey.storage.database import Database
from tolsey.storage.money import credits, disputes

pytestmark = STRIPE
MICRO = billed_service.MICRO


@pytest.fixture
async def billed(database: Database) -> AsyncIterator[BilledService]:
    async with markets.opened(NOW) as market, billed_service.opened(market, database) as opened:
        yield opened


async def test_a_plan_that_is_bought_brings_its_allowance(billed: BilledService) -> None:
    await billed.buy()
    assert (await billed.plan(), await billed.dollars()) == ("pro", 49)
    seen = await billed.subscription()
    assert (seen.status, seen.cadence, seen.is_subscribed) == ("active", "monthly", True)
    assert seen.price_id == billed.market.price("pro")
    assert seen.customer_id == billed.market.made("customer")[-1]["id"]
    assert (await billed.audit())[:2] == ["subscription.created", "monthly.reset"]
    assert set.union(*(await billed.states()).values()) <= {"applied", "ignored"}


async def test_an_upgrade_on_the_last_days_is_paid_for_a_whole_month(billed: BilledService) -> None:
    """Nobody tops up to 149 dollars for the price of a day."""
    await billed.buy()
    billed.market.processor.advance(days=29)
    paid_before = _paid(billed)
    price = billed.market.price("max_5x")
    await billed.market.payments.upgrade(await billed.held(), price, key="up")
    await billed.settle()

    assert (await billed.plan(), await billed.dollars()) == ("max_5x", 149)
    assert _paid(billed) - paid_before > 190_00
    seen = await billed.subscription()
    assert seen.period_end is not None
    assert seen.period_end > billed.now + timedelta(days=27)


async def test_an_upgrade_whose_card_is_declined_changes_nothing(billed: BilledService) -> None:
    await billed.buy()
    billed.market.processor.set_card(billed.market.made("customer")[-1]["id"], "decline")
    with pytest.raises(CardRefused):
        await billed.market.payments.upgrade(
            await billed.held(), billed.market.price("max_5x"), key="up"
        )
    await billed.settle()
    assert (await billed.plan(), await billed.dollars()) == ("pro", 49)


async def test_a_downgrade_waits_for_the_end_of_its_period(billed: BilledService) -> None:
    await billed.buy("max_5x")
    await billed.market.payments.downgrade(
        await billed.held(), billed.market.price("pro"), "pro", "monthly", key="down"
    )
    await billed.settle()
    assert (await billed.plan(), await billed.dollars()) == ("max_5x", 149)
    assert (await billed.subscription()).schedule_id is not None
    billed.market.processor.advance(days=32)
    await billed.settle()
    assert (await billed.plan(), await billed.dollars()) == ("pro", 49)
    assert "subscription.downgraded" in await billed.audit()


async def test_each_renewal_resets_the_allowance(billed: BilledService) -> None:
    await billed.buy()
    await billed.runtime.ask(
        organization("org_1"),
        SpendCredits(key="s", amount=20 * MICRO, reason="chat", at=billed.now),
    )
    for _ in range(3):
        billed.market.processor.advance(days=31)
        await billed.settle()
    grants = (await billed.credits()).grants
    assert [one.remaining for one in grants if one.kind == "allowance"] == [49 * MICRO]
    assert (await billed.audit()).count("monthly.reset") == 4


async def test_a_card_that_fails_is_dunned_until_it_pays(billed: BilledService) -> None:
    await billed.buy()
    customer = billed.market.made("customer")[-1]["id"]
    billed.market.processor.set_card(customer, "decline")
    billed.market.processor.advance(days=32)
    await billed.settle()
    seen = await billed.subscription()
    assert (seen.status, await billed.plan()) == ("past_due", "pro")
    assert seen.dunning_since is not None
    assert seen.dunning_url is not None
    billed.market.processor.set_card(customer, "ok")
    billed.market.processor.advance(days=8)
    await billed.settle()
    seen = await billed.subscription()
    assert (seen.status, seen.dunning_since, seen.dunning_url) == ("active", None, None)
    assert await billed.dollars() == 49


async def test_a_plan_that_is_never_paid_again_ends(billed: BilledService) -> None:
    await billed.buy()
    billed.market.processor.set_card(billed.market.made("customer")[-1]["id"], "decline")
    billed.market.processor.advance(days=80)
    await billed.settle()
    assert await billed.plan() == "free"


async def test_a_cancelled_plan_stays_until_its_period_ends(billed: BilledService) -> None:
    bought = await billed.buy()
    await billed.market.payments.cancel(bought, feedback=None, comment=None, key="cancel")
    await billed.settle()
    assert (await billed.subscription()).cancel_at_period_end
    assert await billed.plan() == "pro"
    billed.market.processor.advance(days=32)
    await billed.settle()
    assert await billed.plan() == "free"
    assert not (await billed.subscription()).is_subscribed


async def test_a_year_is_granted_its_first_month(billed: BilledService) -> None:
    await billed.buy("pro", "yearly")
    seen = await billed.subscription()
    assert (seen.plan, seen.cadence, await billed.dollars()) == ("pro", "yearly", 49)
    (row,) = await billed.database.fetch(
        "SELECT paid_from, paid_until, paid_plan, paid_cadence FROM subscriptions"
    )
    assert (row["paid_plan"], row["paid_cadence"]) == ("pro", "yearly")
    assert row["paid_until"] - row["paid_from"] >= timedelta(days=365)


async def test_credits_are_granted_before_tax_and_once(billed: BilledService) -> None:
    await billed.buy_credits(5_000)
    assert await billed.dollars() == 50
    (payment,) = billed.market.made("payment_intent")
    assert payment["amount"] == 5_500, "tax is on top"
    assert (await billed.audit()).count("purchase.completed") == 1


async def test_a_known_customers_payment_without_a_word_waits_for_an_operator(
    billed: BilledService,
) -> None:
    await billed.buy()
    customer = billed.market.made("customer")[-1]["id"]
    asked = requests.sponsor_checkout(None, 5_000, billed_service.TO)
    asked |= {"customer": customer, "metadata": {}, "payment_intent_data": {}}
    page = await billed.market.client.v1.checkout.sessions.create_async(asked)
    await billed.market.pay(page.url or "")
    await billed.settle()
    for _ in range(2):
        sql = "SELECT why, organization_id FROM payment_events WHERE state = 'parked'"
        (parked,) = await billed.database.fetch(sql)
        assert tuple(parked) == ("no_metadata", "org_1")
        assert await billed.inbox.adopt() == 0
    assert await billed.dollars() == 49


async def test_a_bank_debit_grants_when_it_arrives(billed: BilledService) -> None:
    payment = await billed.buy_credits(5_000, action="later")
    assert await billed.dollars() == 0
    billed.market.processor.settle(payment)
    await billed.settle()
    assert await billed.dollars() == 50


async def test_refunds_take_back_what_they_are_of(billed: BilledService) -> None:
    payment = await billed.buy_credits(5_000)
    total = billed.market.made("payment_intent")[0]["amount"]
    refund = billed.market.payments.refund
    await refund(payment, total // 2, organization_id="org_1", key="half")
    await billed.settle()
    assert await billed.dollars() == 25
    await refund(payment, None, organization_id="org_1", key="rest")
    await billed.settle()
    assert await billed.dollars() == 0


async def test_a_refund_of_a_subscription_finds_the_allowance_it_paid(
    billed: BilledService,
) -> None:
    """The payment's events name no invoice any more: the processor is asked which it paid."""
    bought = await billed.buy()
    payment = str(billed.market.made("payment_intent")[-1]["id"])
    await billed.market.payments.refund(payment, None, organization_id="org_1", key="refund")
    await billed.market.payments.end_now(bought, key="end")
    await billed.settle()
    assert (await billed.plan(), await billed.dollars()) == ("free", 0)


async def test_a_dispute_of_a_subscription_takes_its_allowance_until_it_is_won(
    billed: BilledService,
) -> None:
    await billed.buy()
    payment = str(billed.market.made("payment_intent")[-1]["id"])
    dispute = billed.market.processor.open_dispute(billed.charge(payment))
    await billed.settle()
    assert (await billed.plan(), await billed.dollars()) == ("pro", 0)
    billed.market.processor.close_dispute(dispute["id"], "won")
    await billed.settle()
    assert await billed.dollars() == 49
    audit = await billed.audit()
    assert "chargeback.received" in audit
    assert "clawback.applied" in audit


@pytest.mark.parametrize(
    ("inquiry", "end", "left"),
    [(False, "won", 50), (False, "lost", 0), (True, "warning_closed", 50)],
)
async def test_a_dispute_of_credits_ends_as_it_is_decided(
    billed: BilledService, end: str, left: int, *, inquiry: bool
) -> None:
    payment = await billed.buy_credits(5_000)
    dispute = billed.market.processor.open_dispute(billed.charge(payment), inquiry=inquiry)
    await billed.settle()
    assert await billed.dollars() == 0
    (listed,) = await disputes.payments(billed.database, None, 10)
    assert (listed.id, listed.since is not None) == (payment, True)
    billed.market.processor.close_dispute(dispute["id"], end)
    await billed.settle()
    assert await disputes.payments(billed.database, None, 10) == []
    assert await billed.dollars() == left


async def test_a_sponsors_payment_is_kept_and_grants_nothing(billed: BilledService) -> None:
    for organization_id in ("org_1", None):
        page = await billed.market.payments.sponsor_checkout(
            organization_id, 50_000, billed_service.TO, key=f"sponsor:{organization_id}"
        )
        await billed.market.pay(page.url)
    await billed.settle()
    first, second = await billed.database.fetch(
        "SELECT * FROM sponsorships ORDER BY organization_id NULLS LAST"
    )
    assert [first["organization_id"], second["organization_id"]] == ["org_1", None]
    assert first["paid_cents"] == second["paid_cents"] >= 50_000
    payment = first["payment_ref"]
    await billed.market.payments.refund(payment, 1_000, organization_id="org_1", key="r")
    await billed.settle()
    rows = await billed.database.fetch("SELECT refunded_cents FROM sponsorships ORDER BY 1")
    assert [row["refunded_cents"] for row in rows] == [0, 1_000]
    for payment in (first["payment_ref"], second["payment_ref"]):
        dispute = billed.market.processor.open_dispute(billed.charge(payment))
        billed.market.processor.close_dispute(dispute["id"], "lost")
    await billed.settle()
    states = await billed.states()
    assert states["charge.dispute.created"] == states["charge.dispute.closed"] == {"applied"}
    assert await billed.dollars() == 0
    received = await billed.database.fetch(
        "SELECT subject, organization_id FROM audit_log WHERE event = 'chargeback.received'"
        " ORDER BY organization_id NULLS LAST"
    )
    assert [tuple(row) for row in received] == [
        (first["payment_ref"], "org_1"),
        (second["payment_ref"], None),
    ]


@pytest.mark.parametrize("seed", seeds(4))
async def test_a_life_of_many_turns_ends_as_the_processor_has_it(
    billed: BilledService, seed: int
) -> None:
    """Whatever people, banks and time do: the plan and the purchases are what is paid for."""
    chance = random.Random(seed)  # noqa: S311 - a life that can be lived again
    hooks = billed.market.processor.webhooks
    hooks.repeats, hooks.reorders = 0.2, 0.5
    bought = 0
    for n in range(12):
        step = chance.choice(("plan", "plan", "credits", "up", "down", "card", "time", "time"))
        seen = await billed.subscription()
        if step == "plan" and not seen.is_subscribed:
            await billed.buy(chance.choice(("pro", "max_5x")))
        elif step == "credits":
            cents = chance.randrange(500, 9_000)
            await billed.buy_credits(cents, key=f"c{n}")
            bought += cents
        elif step == "card" and seen.customer_id:
            card = chance.choice(("ok", "decline"))
            billed.market.processor.set_card(seen.customer_id, card)
        elif step in {"up", "down"} and seen.status == "active":
            await _change(billed, "max_20x" if step == "up" else "pro", n)
        elif step == "time":
            billed.market.processor.advance(days=chance.choice((1, 9, 20, 31)))
        await billed.settle()
    alive = [one for one in billed.market.made("subscription") if one["status"] in KEEPING]
    prices = {one["items"]["data"][0]["price"]["id"] for one in alive}
    assert (
        {billed.market.price(await billed.plan())} == prices
        if prices
        else (await billed.plan() == "free")
    )
    (row,) = await billed.database.fetch(
        "SELECT coalesce(sum(granted), 0) AS granted FROM payment_facts WHERE kind = 'purchase'"
    )
    assert row["granted"] == bought * 10_000
    pairs = await credits.history(billed.database, "org_1")
    assert chain.broken_at(pairs) is None
    assert sum(chain.replayed([move for _, moves in pairs for move in moves]).values()) == 0
    assert set.union(set(), *(await billed.states()).values()) <= {"applied", "ignored"}


KEEPING = {"active", "past_due"}


async def _change(billed: BilledService, plan: str, n: int) -> None:
    held = await billed.held()
    price = billed.market.price(plan)
    if price == held.price_id:
        return
    with contextlib.suppress(CardRefused):
        if plan == "max_20x":
            if held.schedule_id is not None:
                await billed.market.payments.release(held.schedule_id, key=f"release:{n}")
            await billed.market.payments.upgrade(held, price, key=f"up:{n}")
        else:
            await billed.market.payments.downgrade(held, price, plan, "monthly", key=f"down:{n}")


def _paid(billed: BilledService) -> int:
    return sum(int(one["amount_received"]) for one in billed.market.made("payment_intent"))
