"""An erasure that forgets one of its legs is caught by the canary; and deaths under more seeds."""

import dataclasses
from typing import Any

import pytest

from tests.journeys.canary.planting import (
    NAMELESS,
    OTHER,
    OTHER_SECRET,
    World,
    carry_out_steps,
    plant,
    requested,
    secrets_of,
    unnamed,
)
from tests.journeys.canary.spelling import someone
from tests.journeys.canary.test_killed import (
    erasings,
)
from tests.journeys.canary.test_killed import (
    test_an_erasure_that_dies_anywhere_under_traffic_is_done_once_and_loses_no_answered_write as dies,
)
from tests.journeys.conftest import SECRET, SHOP, sign_up
from tests.journeys.strangers import browsing
from tolsey.actors.job.erasing.effects import Erasing
from tolsey.storage.records.commerce.compliance import LEGS, ComplianceTopic, Leg, PendingStep

__all__ = ["erasings"]

OF_SHOPS = (*LEGS[ComplianceTopic.SHOP_REDACT], *PendingStep)
OF_CUSTOMERS = LEGS[ComplianceTopic.CUSTOMER_REDACT]
PROOF = ("table customer_redactions.", "table compliance_requests.", "file objects/erasures/")
"""Proof that a duty was met has the pseudonyms of whom it was about."""


@pytest.fixture
def forgotten(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Let every erasure say of one leg that it is done, and do nothing."""
    leg: str = request.param
    begin = Erasing.__init__

    async def nothing(*_: Any) -> tuple[int, int]:
        return 0, 0

    def without(self: Erasing, *args: Any, **given: Any) -> None:
        begin(self, *args, **given)
        known = dataclasses.replace(self._legs[leg], act=nothing)
        self._legs = {**self._legs, leg: known}

    monkeypatch.setattr(Erasing, "__init__", without)
    return leg


@pytest.mark.parametrize("forgotten", OF_SHOPS, indirect=True)
async def test_a_leg_that_is_forgotten_of_a_shop_is_caught(forgotten: str, planted: World) -> None:
    dora = {**someone("dora", 17), "shop_name": "Doraowner and Daughters"}
    async with browsing(planted.live) as browser:
        seller = await sign_up(browser)
        await plant(planted, seller, SHOP, SECRET, dora)
        known = await secrets_of(planted, seller.store_id, dora)
    await planted.asked("redact", {"shop_id": 1, "shop_domain": SHOP})
    await planted.run("gdpr-erasure")
    await planted.run("retention-sweep")
    request = await requested(planted)
    (found,) = await planted.places(known)
    if forgotten in set(Leg):
        assert unnamed(found, request) != set(), found
        return
    await carry_out_steps(planted, request)
    (found,) = await planted.places(known)
    assert unnamed(found, await requested(planted)) != set(), found


@pytest.mark.parametrize("forgotten", OF_CUSTOMERS, indirect=True)
async def test_a_leg_that_is_forgotten_of_a_customer_is_caught(
    forgotten: str, planted: World
) -> None:
    emil = someone("emil", 23)
    async with browsing(planted.live) as browser:
        seller = await sign_up(browser)
        await plant(planted, seller, OTHER, OTHER_SECRET, emil)
        known = await secrets_of(planted, seller.store_id, emil)
    for name in ("salt", "token", "secret"):  # they stay: the shop is not gone
        del known[name]
    customer = {"id": 7, "email": emil["email"], "phone": emil["phone"]}
    body = {"shop_id": 1, "shop_domain": OTHER, "customer": customer, "orders_to_redact": [1]}
    await planted.asked("customer-redact", body)
    await planted.run("gdpr-erasure")
    await planted.run("retention-sweep")
    (found,) = await planted.places(known)
    left = {place for place in found if not place.startswith(PROOF)} - {*NAMELESS, "dump"}
    assert left != set(), found


@pytest.mark.parametrize("seed", range(2, 12))
async def test_it_dies_elsewhere(erasings: list[Erasing], planted: World, seed: int) -> None:
    await dies(erasings, planted, seed)
