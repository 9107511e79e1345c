"""A year that was paid at once, from the checkout page to its renewal, with a job every night."""

from collections.abc import AsyncIterator, Mapping
from functools import partial
from typing import Any

import pytest

from tests.actors.organization import billed_service
from tests.actors.organization.billed_service import MICRO, NOW, BilledService
from tests.http.payments import market as markets
from tests.sandbox.payments.stage import STRIPE
from tolsey.actors.job.effects import CreditKeeping
from tolsey.actors.organization.ledger.messages import SpendCredits
from tolsey.actors.organization.messages import organization
from tolsey.runtime.throttle import Throttle
from tolsey.storage.database import Database
from tolsey.storage.lifecycle import retention

pytestmark = STRIPE


@pytest.fixture
async def billed(database: Database) -> AsyncIterator[BilledService]:
    async with markets.opened(NOW) as market, billed_service.opened(market, database) as opened:
        yield opened


async def night(billed: BilledService) -> Mapping[str, Any]:
    """Run what grants months, then what expires and checks."""
    work = CreditKeeping(
        billed.database,
        billed.runtime.ask,
        clock=lambda: billed.now,
        throttle=Throttle(partial(retention.commit, billed.database)),
    ).work()
    months = await work["monthly-credits-reset"](billed.now, lambda _: None)
    checked = await work["expire-credits"](billed.now, lambda _: None)
    assert (checked["failed"], checked["ledgersBroken"]) == (0, 0)
    return months


async def allowance(billed: BilledService) -> float:
    """Tell what is left of the allowance, in dollars; bonuses of days are beside it."""
    grants = (await billed.credits()).grants
    return sum(one.remaining for one in grants if one.kind == "allowance") / MICRO


async def test_a_year_brings_twelve_allowances_and_its_renewal_the_next(
    billed: BilledService,
) -> None:
    await billed.buy("pro", "yearly")
    granted = []
    for month in range(13):
        spend = SpendCredits(key=f"s:{month}", amount=20 * MICRO, reason="chat", at=billed.now)
        await billed.runtime.ask(organization("org_1"), spend)
        billed.market.processor.advance(days=31)
        await billed.settle()
        granted.append((await night(billed))["granted"])
        assert await night(billed) == {"organizations": 0, "granted": 0, "failed": 0}
        assert await allowance(billed) == 49
    assert granted == [*[1] * 11, 0, 1]  # the renewal is paid, and brings its first month itself
    rows = await billed.database.fetch("SELECT DISTINCT period_end FROM monthly_resets")
    assert len(rows) == 14


async def test_a_year_that_is_cancelled_is_granted_until_its_end(billed: BilledService) -> None:
    subscription = await billed.buy("pro", "yearly")
    await billed.market.payments.cancel(subscription, feedback=None, comment=None, key="cancel")
    granted = []
    for _ in range(14):
        billed.market.processor.advance(days=31)
        await billed.settle()
        granted.append((await night(billed))["granted"])
    assert (sum(granted), await billed.plan()) == (11, "free")


async def test_a_year_that_is_refunded_by_half_grants_halves_from_then_on(
    billed: BilledService,
) -> None:
    await billed.buy("pro", "yearly")
    (intent,) = billed.market.made("payment_intent")
    half = intent["amount"] // 2
    refund = billed.market.payments.refund
    await refund(intent["id"], half, organization_id="org_1", key="refund")
    await billed.settle()
    assert await allowance(billed) == 24.5
    billed.market.processor.advance(days=31)
    await billed.settle()
    assert (await night(billed))["granted"] == 1
    assert await allowance(billed) == 24.5
