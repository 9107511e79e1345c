"""A year that was paid at once, from the checkout page to its renewal, with a job every night."""

from collections.abc import AsyncIterator, Mapping
from functools import partial
from typing import Any

import pytest

from tests.actors.organization import house as houses
from tests.actors.organization.house import MICRO, NOW, House
from tests.http.payments import market as markets
from tests.sandbox.payments.stage import STRIPE
from tolsey.actors.job.effects import CreditKeeping
from tolsey.actors.organization.ledger.messages import SpendCredits
from tolsey.actors.organization.messages import organization
from tolsey.runtime.throttle import Throttle
from tolsey.storage import retention
from tolsey.storage.database import Database

pytestmark = STRIPE


@pytest.fixture
async def house(database: Database) -> AsyncIterator[House]:
    async with markets.opened(NOW) as market, houses.opened(market, database) as opened:
        yield opened


async def night(house: House) -> Mapping[str, Any]:
    """Run what grants months, then what expires and checks."""
    work = CreditKeeping(
        house.database,
        house.runtime.ask,
        clock=lambda: house.now,
        throttle=Throttle(partial(retention.commit, house.database)),
    ).work()
    months = await work["monthly-credits-reset"](house.now, lambda _: None)
    checked = await work["expire-credits"](house.now, lambda _: None)
    assert (checked["failed"], checked["ledgersBroken"]) == (0, 0)
    return months


async def allowance(house: House) -> float:
    """Tell what is left of the allowance, in dollars; bonuses of days are beside it."""
    grants = (await house.credits()).grants
    return sum(one.remaining for one in grants if one.kind == "allowance") / MICRO


async def test_a_year_brings_twelve_allowances_and_its_renewal_the_next(house: House) -> None:
    await house.buy("pro", "yearly")
    granted = []
    for month in range(13):
        spend = SpendCredits(key=f"s:{month}", amount=20 * MICRO, reason="chat", at=house.now)
        await house.runtime.ask(organization("org_1"), spend)
        house.market.processor.advance(days=31)
        await house.settle()
        granted.append((await night(house))["granted"])
        assert await night(house) == {"organizations": 0, "granted": 0, "failed": 0}
        assert await allowance(house) == 49
    assert granted == [*[1] * 11, 0, 1]  # the renewal is paid, and brings its first month itself
    rows = await house.database.fetch("SELECT DISTINCT period_end FROM monthly_resets")
    assert len(rows) == 14


async def test_a_year_that_is_cancelled_is_granted_until_its_end(house: House) -> None:
    subscription = await house.buy("pro", "yearly")
    await house.market.payments.cancel(subscription, feedback=None, comment=None, key="cancel")
    granted = []
    for _ in range(14):
        house.market.processor.advance(days=31)
        await house.settle()
        granted.append((await night(house))["granted"])
    assert (sum(granted), await house.plan()) == (11, "free")


async def test_a_year_that_is_refunded_by_half_grants_halves_from_then_on(house: House) -> None:
    await house.buy("pro", "yearly")
    (intent,) = house.market.made("payment_intent")
    half = intent["amount"] // 2
    refund = house.market.payments.refund
    await refund(intent["id"], half, organization_id="org_1", key="refund")
    await house.settle()
    assert await allowance(house) == 24.5
    house.market.processor.advance(days=31)
    await house.settle()
    assert (await night(house))["granted"] == 1
    assert await allowance(house) == 24.5
