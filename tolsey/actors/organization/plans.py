"""The plan catalogue, and which plan an organization may choose when.

rules/plans#catalogue and rules/plans#changing; what a plan may call is in rules/limits#windows. Prices
are cents before tax, in USD. Credits are micro-USD, of which a cent has 10,000.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum

from tolsey.actors.refusals import Conflict, Forbidden, MissingCredential, Unprocessable

CURRENCY = "USD"
TAX_BEHAVIOUR = "exclusive"
"""Tax is added to every price, and no credit is ever granted for it."""
MICRO_PER_CENT = 10_000
MICRO_PER_USD = 100 * MICRO_PER_CENT
STORE_ADD_ON_CENTS = 9_00
"""A month of another store; it stands and is not sold, since stores are included by plan."""
YEARLY_AFTER = timedelta(days=30)
"""How old an organization must have become before it can pay for a year."""


class Cadence(StrEnum):
    """How often a subscription is paid; there is no quarterly one."""

    MONTHLY = "monthly"
    YEARLY = "yearly"


class Change(StrEnum):
    """What choosing a plan is, for an organization that has one."""

    START = "start"
    """There is no subscription: it is bought."""
    UPGRADE = "upgrade"
    """At once, with a prorated invoice that must be paid before credits are topped up."""
    DOWNGRADE = "downgrade"
    """At the end of the period, without proration: the tier or the interval goes down."""


@dataclass(frozen=True, slots=True)
class Price:
    """A price in cents before tax; `setting` is the variable with the processor's price id."""

    cents: int
    setting: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A plan. What a contract says is None: stores included, monthly allowance, daily bonus.

    `concurrent_workflows`, the calls an organization's MCP endpoints and API keys take, the scans it asks for, and how many
    competitors a store may name are None when unbounded.
    """

    code: str
    name: str
    rank: int
    stores_included: int | None
    monthly_allowance_micro: int | None
    daily_bonus_micro: int | None
    concurrent_workflows: int | None
    mcp_per_minute: int | None
    mcp_per_day: int | None
    intelligence_per_minute: int | None
    intelligence_per_day: int | None
    scans_per_day: int | None
    competitors_per_store: int | None
    prices: Mapping[Cadence, Price]

    @property
    def is_sold(self) -> bool:
        """Whether it can be bought at the checkout: not the free one, nor one by contract."""
        return bool(self.prices)


def _prices(name: str, monthly_cents: int, yearly_cents: int) -> Mapping[Cadence, Price]:
    return {
        Cadence.MONTHLY: Price(monthly_cents, f"PAYMENTS_PRICE_{name}_MONTHLY"),
        Cadence.YEARLY: Price(yearly_cents, f"PAYMENTS_PRICE_{name}_YEARLY"),
    }


FREE = Plan(
    code="free",
    name="Free",
    rank=0,
    stores_included=1,
    monthly_allowance_micro=0,
    daily_bonus_micro=0,
    concurrent_workflows=1,
    mcp_per_minute=50,
    mcp_per_day=2_000,
    intelligence_per_minute=10,
    intelligence_per_day=200,
    scans_per_day=1,
    competitors_per_store=5,
    prices={},
)
PRO = Plan(
    code="pro",
    name="Pro",
    rank=1,
    stores_included=3,
    monthly_allowance_micro=49 * MICRO_PER_USD,
    daily_bonus_micro=1 * MICRO_PER_USD,
    concurrent_workflows=5,
    mcp_per_minute=500,
    mcp_per_day=50_000,
    intelligence_per_minute=60,
    intelligence_per_day=5_000,
    scans_per_day=20,
    competitors_per_store=25,
    prices=_prices("PRO", 79_00, 750_00),
)
MAX_5X = Plan(
    code="max_5x",
    name="Max 5x",
    rank=2,
    stores_included=10,
    monthly_allowance_micro=149 * MICRO_PER_USD,
    daily_bonus_micro=3 * MICRO_PER_USD,
    concurrent_workflows=20,
    mcp_per_minute=1_000,
    mcp_per_day=100_000,
    intelligence_per_minute=300,
    intelligence_per_day=50_000,
    scans_per_day=100,
    competitors_per_store=100,
    prices=_prices("MAX5", 199_00, 1_910_00),
)
MAX_20X = Plan(
    code="max_20x",
    name="Max 20x",
    rank=3,
    stores_included=50,
    monthly_allowance_micro=299 * MICRO_PER_USD,
    daily_bonus_micro=5 * MICRO_PER_USD,
    concurrent_workflows=None,
    mcp_per_minute=5_000,
    mcp_per_day=None,
    intelligence_per_minute=600,
    intelligence_per_day=200_000,
    scans_per_day=500,
    competitors_per_store=500,
    prices=_prices("MAX20", 399_00, 3_830_00),
)
CUSTOM = Plan(
    code="custom",
    name="Custom",
    rank=4,
    stores_included=None,
    monthly_allowance_micro=None,
    daily_bonus_micro=None,
    concurrent_workflows=None,
    mcp_per_minute=None,
    mcp_per_day=None,
    intelligence_per_minute=None,
    intelligence_per_day=None,
    scans_per_day=None,
    competitors_per_store=None,
    prices={},
)

CATALOGUE = (FREE, PRO, MAX_5X, MAX_20X, CUSTOM)
BY_CODE = {plan.code: plan for plan in CATALOGUE}


@dataclass(frozen=True, slots=True)
class Offer:
    """A plan at a cadence: what a subscription is to, and what one of the six prices buys."""

    plan: Plan
    cadence: Cadence

    @property
    def price(self) -> Price:
        """What it costs; only for an offer that is sold."""
        return self.plan.prices[self.cadence]


OFFERS = tuple(Offer(plan, cadence) for plan in CATALOGUE for cadence in plan.prices)


def stores_included(code: str, contracted: int | None) -> int | None:
    """Tell how many stores a plan includes; None means no bound, as for a contract without one."""
    plan = BY_CODE[code]
    return contracted if plan.stores_included is None else plan.stores_included


def proposed_for(stores: int) -> str:
    """Name the smallest plan that includes so many stores; past the catalogue it is by contract."""
    for plan in CATALOGUE:
        if plan.stores_included is not None and plan.stores_included >= stores:
            return plan.code
    return CUSTOM.code


def proposed_for_workflows(workflows: int) -> str:
    """Name the smallest plan that runs so many workflows at once."""
    bounds = {plan.code: plan.concurrent_workflows for plan in CATALOGUE}
    return next(code for code, bound in bounds.items() if bound is None or bound >= workflows)


def proposed_for_competitors(competitors: int) -> str:
    """Name the smallest plan whose stores may name so many competitors."""
    bounds = {plan.code: plan.competitors_per_store for plan in CATALOGUE}
    return next(code for code, bound in bounds.items() if bound is None or bound >= competitors)


def daily_bonus(code: str, contracted_micro: int | None) -> int:
    """Tell the micro-USD a plan grants each day; under a contract, what it says."""
    bonus = BY_CODE[code].daily_bonus_micro
    return (contracted_micro or 0) if bonus is None else bonus


def monthly_allowance(code: str, contracted_micro: int | None) -> int:
    """Tell the micro-USD a plan grants each month; a contract that names none grants none."""
    allowance = BY_CODE[code].monthly_allowance_micro
    return (contracted_micro or 0) if allowance is None else allowance


def top_up(granted_micro: int, allowance_micro: int) -> int:
    """Tell what is still to grant in a period that has granted so much: nothing on a lower tier."""
    return max(0, allowance_micro - granted_micro)


def yearly_from(created_at: datetime) -> datetime:
    """Tell the moment after which an organization can pay for a year."""
    return created_at + YEARLY_AFTER


def is_yearly_open(created_at: datetime, at: datetime) -> bool:
    """Tell whether an organization is older than 30 days."""
    return at > yearly_from(created_at)


def choose(
    code: str, cadence: str, *, current: Offer | None, created_at: datetime, at: datetime
) -> tuple[Offer, Change]:
    """Tell what choosing a plan now is for an organization, or refuse.

    `current` is what it has by `held`; `created_at` is when the organization was made.
    """
    offer = _offer(code, cadence)
    if current is not None and current.plan is CUSTOM:
        raise Conflict(
            "Your plan is defined by a contract. Contact us to change it.", code="plan_by_contract"
        )
    if offer == current:
        raise Conflict(
            "Your organization is already on this plan. Choose another plan.", code="plan_unchanged"
        )
    if offer.cadence is Cadence.YEARLY and not is_yearly_open(created_at, at):
        raise Forbidden(
            "Yearly billing isn't available yet because your organization is less than 30 days"
            " old. Choose monthly billing.",
            code="yearly_not_open",
            yearlyFrom=rfc3339(yearly_from(created_at)),
        )
    return offer, change(current, offer)


def held(code: str, cadence: str | None) -> Offer | None:
    """Read what an organization has: None on the free plan; a contract is as if paid monthly."""
    plan = BY_CODE[code]
    return None if plan is FREE else Offer(plan, Cadence(cadence or Cadence.MONTHLY))


def _offer(code: str, cadence: str) -> Offer:
    plan = BY_CODE.get(code)
    if plan is None:
        raise Unprocessable(
            "This plan doesn't exist. Choose one of the plans on the pricing page.",
            code="unknown_plan",
            allowed=[plan.code for plan in CATALOGUE if plan.is_sold],
        )
    if plan is FREE:
        raise Unprocessable(
            "The Free plan can't be purchased. Cancel your subscription to return to it.",
            code="plan_not_sold",
        )
    if not plan.is_sold:
        raise Unprocessable(
            "This plan is available by contract only. Contact us to set one up.",
            code="plan_by_contract",
        )
    if cadence not in set(Cadence):
        raise Unprocessable(
            "This billing period doesn't exist. Choose monthly or yearly.",
            code="unknown_cadence",
            allowed=[*Cadence],
        )
    return Offer(plan, Cadence(cadence))


def change(current: Offer | None, wanted: Offer) -> Change:
    """Tell whether a change is paid at once, or waits because the tier or the interval goes down."""
    if current is None:
        return Change.START
    shortens = current.cadence is Cadence.YEARLY and wanted.cadence is Cadence.MONTHLY
    lowers = wanted.plan.rank < current.plan.rank
    return Change.DOWNGRADE if lowers or shortens else Change.UPGRADE


def price_id(offer: Offer, sold_prices: Mapping[str, str]) -> str:
    """Return the price id that an offer is sold at. Raise MissingCredential when none is set."""
    setting = offer.price.setting
    if setting not in sold_prices:
        raise MissingCredential(setting)
    return sold_prices[setting]


def rfc3339(at: datetime) -> str:
    """Write a time as answers do."""
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
