from datetime import UTC, datetime, timedelta

import pytest

from tolsey.actors.organization import plans
from tolsey.actors.organization.billing.messages import list_priced_offers
from tolsey.actors.organization.plans import (
    CUSTOM,
    FREE,
    MAX_5X,
    MAX_20X,
    OFFERS,
    PRO,
    Cadence,
    Change,
    Offer,
)
from tolsey.actors.refusals import MissingCredential, Refusal
from tolsey.settings import Settings

MADE = datetime(2026, 1, 1, tzinfo=UTC)
LATER = MADE + timedelta(days=31)
MONTHLY, YEARLY = Cadence.MONTHLY, Cadence.YEARLY
USD = 1_000_000


def refusal(code: str, cadence: str, current: Offer | None = None) -> Refusal:
    with pytest.raises(Refusal) as refused:
        plans.choose(code, cadence, current=current, created_at=MADE, at=LATER)
    return refused.value


def test_the_catalogue_is_the_promised_one() -> None:
    said = {
        plan.code: (
            plan.prices[MONTHLY].cents,
            plan.prices[YEARLY].cents,
            (plan.daily_bonus_micro or 0) // USD,
            (plan.monthly_allowance_micro or 0) // USD,
            plan.stores_included,
            plan.concurrent_workflows,
            (plan.mcp_per_minute, plan.mcp_per_day),
        )
        for plan in (PRO, MAX_5X, MAX_20X)
    }
    assert said == {
        "pro": (7_900, 75_000, 1, 49, 3, 5, (500, 50_000)),
        "max_5x": (19_900, 191_000, 3, 149, 10, 20, (1_000, 100_000)),
        "max_20x": (39_900, 383_000, 5, 299, 50, None, (5_000, None)),
    }


def test_what_is_free_costs_nothing_and_what_is_by_contract_has_no_bound() -> None:
    assert (FREE.prices, FREE.monthly_allowance_micro, FREE.daily_bonus_micro) == ({}, 0, 0)
    assert (FREE.stores_included, FREE.concurrent_workflows) == (1, 1)
    assert (FREE.mcp_per_minute, FREE.mcp_per_day) == (50, 2_000)
    assert CUSTOM.prices == {}
    assert (CUSTOM.mcp_per_minute, CUSTOM.mcp_per_day) == (None, None)
    assert [plan.rank for plan in plans.CATALOGUE] == [0, 1, 2, 3, 4]


def test_each_of_the_six_prices_has_a_setting_of_its_own() -> None:
    settings = [offer.price.setting for offer in OFFERS]
    assert len(set(settings)) == 6
    assert {setting.lower() for setting in settings} <= set(Settings.model_fields)


def test_each_offer_is_sold_at_its_own_price_and_a_missing_one_is_named() -> None:
    sold = {offer.price.setting: f"price_{n}" for n, offer in enumerate(OFFERS)}
    assert [plans.price_id(offer, sold) for offer in OFFERS] == [*sold.values()]
    del sold["PAYMENTS_PRICE_MAX5_YEARLY"]
    with pytest.raises(MissingCredential, match="PAYMENTS_PRICE_MAX5_YEARLY"):
        plans.price_id(Offer(MAX_5X, YEARLY), sold)


def test_every_price_of_an_offer_is_recognised() -> None:
    prices = {
        "PAYMENTS_PRICE_PRO_MONTHLY": ("price_3", "price_2", "price_1"),
        "PAYMENTS_PRICE_PRO_YEARLY": (),
        "PAYMENTS_PRICE_MAX5_YEARLY": ("price_4",),
    }
    found = list_priced_offers(prices)
    assert [(one.price_id, one.offer) for one in found] == [
        ("price_3", Offer(PRO, MONTHLY)),
        ("price_2", Offer(PRO, MONTHLY)),
        ("price_1", Offer(PRO, MONTHLY)),
        ("price_4", Offer(MAX_5X, YEARLY)),
    ]


def test_a_first_plan_is_bought() -> None:
    chosen = plans.choose("pro", "monthly", current=None, created_at=MADE, at=MADE)
    assert chosen == (Offer(PRO, MONTHLY), Change.START)


def test_a_year_opens_to_organizations_older_than_thirty_days() -> None:
    exactly = MADE + timedelta(days=30)
    with pytest.raises(Refusal) as refused:
        plans.choose("pro", "yearly", current=None, created_at=MADE, at=exactly)
    assert (refused.value.status, refused.value.code) == (403, "yearly_not_open")
    assert refused.value.fields == {"yearlyFrom": "2026-01-31T00:00:00.000Z"}
    older = exactly + timedelta(microseconds=1)
    chosen, _ = plans.choose("pro", "yearly", current=None, created_at=MADE, at=older)
    assert chosen == Offer(PRO, YEARLY)


def test_a_young_organization_cannot_go_around_by_an_upgrade() -> None:
    current = plans.held("pro", "monthly")
    with pytest.raises(Refusal) as refused:
        plans.choose("max_5x", "yearly", current=current, created_at=MADE, at=MADE)
    assert refused.value.code == "yearly_not_open"


@pytest.mark.parametrize(
    ("code", "cadence", "status", "reason"),
    [
        ("free", "monthly", 422, "plan_not_sold"),
        ("custom", "monthly", 422, "plan_by_contract"),
        ("gold", "monthly", 422, "unknown_plan"),
        ("pro", "quarterly", 422, "unknown_cadence"),
    ],
)
def test_what_is_not_sold_is_refused(code: str, cadence: str, status: int, reason: str) -> None:
    refused = refusal(code, cadence)
    assert (refused.status, refused.code) == (status, reason)


def test_the_plan_one_has_is_no_change_and_a_contract_is_changed_by_us() -> None:
    assert refusal("pro", "yearly", plans.held("pro", "yearly")).code == "plan_unchanged"
    by_contract = refusal("max_20x", "monthly", plans.held("custom", None))
    assert (by_contract.status, by_contract.code) == (409, "plan_by_contract")


@pytest.mark.parametrize(
    ("current", "wanted", "change"),
    [
        (Offer(PRO, MONTHLY), Offer(MAX_5X, MONTHLY), Change.UPGRADE),
        (Offer(PRO, MONTHLY), Offer(PRO, YEARLY), Change.UPGRADE),
        (Offer(PRO, YEARLY), Offer(MAX_20X, YEARLY), Change.UPGRADE),
        (Offer(MAX_5X, MONTHLY), Offer(PRO, MONTHLY), Change.DOWNGRADE),
        (Offer(PRO, YEARLY), Offer(PRO, MONTHLY), Change.DOWNGRADE),
        (Offer(PRO, YEARLY), Offer(MAX_5X, MONTHLY), Change.DOWNGRADE),
        (Offer(MAX_20X, MONTHLY), Offer(PRO, YEARLY), Change.DOWNGRADE),
    ],
)
def test_a_lower_tier_or_a_shorter_interval_waits_for_the_end_of_the_period(
    current: Offer, wanted: Offer, change: Change
) -> None:
    code, cadence = wanted.plan.code, wanted.cadence
    chosen = plans.choose(code, cadence, current=current, created_at=MADE, at=LATER)
    assert chosen == (wanted, change)


def test_of_the_two_ways_between_two_offers_one_is_down() -> None:
    for one in OFFERS:
        for other in OFFERS:
            if one != other:
                ways = {plans.change(one, other), plans.change(other, one)}
                assert Change.DOWNGRADE in ways


def test_an_upgrade_tops_the_allowance_up_and_a_lower_tier_grants_nothing() -> None:
    granted = plans.top_up(0, plans.monthly_allowance("pro", None))
    assert granted == 49 * USD
    assert plans.top_up(granted, plans.monthly_allowance("max_5x", None)) == 100 * USD
    assert plans.top_up(149 * USD, plans.monthly_allowance("pro", None)) == 0
    assert plans.top_up(149 * USD, 149 * USD) == 0


def test_a_contract_says_what_a_custom_plan_grants() -> None:
    assert plans.monthly_allowance("custom", 500 * USD) == 500 * USD
    assert plans.monthly_allowance("custom", None) == 0
    assert plans.monthly_allowance("pro", 500 * USD) == 49 * USD


def test_no_one_holds_the_free_plan() -> None:
    assert plans.held("free", None) is None
    assert plans.held("max_5x", "yearly") == Offer(MAX_5X, YEARLY)
    assert [plan.code for plan in plans.CATALOGUE if not plan.is_sold] == ["free", "custom"]


def test_the_store_add_on_stands_and_nothing_sells_it() -> None:
    assert plans.STORE_ADD_ON_CENTS == 900
    assert plans.STORE_ADD_ON_CENTS not in {offer.price.cents for offer in plans.OFFERS}
