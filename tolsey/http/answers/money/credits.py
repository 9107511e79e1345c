"""Plans, credits and what is paid, as an organization's members see them."""

from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, Final, Self

from tolsey.actors import chain
from tolsey.actors.organization import plans
from tolsey.actors.organization.ledger.messages import CreditsView, SpentAfter
from tolsey.actors.organization.plans import Cadence, Plan
from tolsey.http.answers.base import ApiAnswer, Omittable, Timestamp
from tolsey.http.web.paging import InvalidCursor, cursor_of
from tolsey.storage.records.money.credits import CreditEntry, CreditPosting
from tolsey.storage.records.money.currencies import EXPONENTS, in_units

PAIR: Final = frozenset({"amount", "currency"})


class MoneyAnswer(ApiAnswer):
    """An amount in minor units of its currency."""

    amount: int
    currency: str


class UrlAnswer(ApiAnswer):
    """An address to go to next."""

    url: str


class CallsAnswer(ApiAnswer):
    """How many calls agents may make."""

    per_minute: int | None
    per_day: int | None


class PlanAnswer(ApiAnswer):
    """A plan: no price is one that is not sold, and what is null besides has no bound.

    Of a plan by contract, null is what the contract says.
    """

    code: str
    name: str
    by_contract: bool
    monthly_price: MoneyAnswer | None
    yearly_price: MoneyAnswer | None
    tax_behavior: str
    monthly_credits: MoneyAnswer | None
    daily_bonus: MoneyAnswer | None
    stores_included: int | None
    concurrent_workflows: int | None
    mcp_calls: CallsAnswer

    @classmethod
    def of(cls, plan: Plan) -> Self:
        """Show a plan of the catalogue."""
        return cls(
            code=plan.code,
            name=plan.name,
            by_contract=plan is plans.CUSTOM,
            monthly_price=_price(plan, Cadence.MONTHLY),
            yearly_price=_price(plan, Cadence.YEARLY),
            tax_behavior=plans.TAX_BEHAVIOUR,
            monthly_credits=_credits(plan.monthly_allowance_micro),
            daily_bonus=_credits(plan.daily_bonus_micro),
            stores_included=plan.stores_included,
            concurrent_workflows=plan.concurrent_workflows,
            mcp_calls=CallsAnswer(per_minute=plan.mcp_per_minute, per_day=plan.mcp_per_day),
        )


class ChoicesAnswer(ApiAnswer):
    """What an organization has, and when it can pay for a year."""

    id: str
    plan: str
    yearly_available: bool
    yearly_from: Timestamp


class PlansAnswer(ApiAnswer):
    """The plans, and what the organization may choose that was named."""

    items: list[PlanAnswer]
    next_cursor: None
    organization: Omittable[ChoicesAnswer] = None


class GrantAnswer(ApiAnswer):
    """A part of the credits, in micro-USD, with its end."""

    id: str
    kind: str
    amount: int
    remaining: int
    granted_at: Timestamp
    expires_at: Timestamp | None
    reference: str | None


class StandingAnswer(ApiAnswer):
    """Credits in micro-USD: all of them, those that may be spent, those that are held."""

    balance: int
    available: int
    held: int


class CreditsAnswer(StandingAnswer):
    """An organization's credits, with the grants that are spent next."""

    grants: list[GrantAnswer]
    grants_total: int
    next_expiry: Timestamp | None
    next_cursor: str | None

    @classmethod
    def of(cls, view: CreditsView) -> Self:
        """Show what an organization's actor says of its credits."""
        following = view.following
        return cls.read(
            view.standing,
            grants=[GrantAnswer.read(grant) for grant in view.grants],
            grants_total=view.total,
            next_expiry=view.next_expiry,
            next_cursor=cursor_of(key_of(following)) if following else None,
        )


class AdjustedAnswer(StandingAnswer):
    """What an operator gave or took, and what there is since."""

    id: str
    organization_id: str


class PostingAnswer(ApiAnswer):
    """Credits that moved from one account of the ledger to another, in micro-USD."""

    debit: str
    credit: str
    amount: int


class LedgerEntryAnswer(ApiAnswer):
    """An entry of the ledger; `hash` ties it to the one before."""

    seq: int
    kind: str
    key: str
    reference: str | None
    at: Timestamp
    amount: int
    postings: list[PostingAnswer]
    hash: str

    @classmethod
    def of(cls, pair: tuple[CreditEntry, list[CreditPosting]]) -> Self:
        """Show an entry with its postings."""
        entry, postings = pair
        moves = [(one.debit, one.credit, one.amount) for one in postings]
        return cls.read(
            entry,
            amount=chain.balance_moved(moves),
            postings=[
                PostingAnswer(debit=debit, credit=credit, amount=amount)
                for debit, credit, amount in moves
            ],
        )


def money(amount: int | None, currency: str | None) -> MoneyAnswer | None:
    """Show an amount of minor units with its currency; None where there is none."""
    if amount is None or currency is None:
        return None
    return MoneyAnswer(amount=amount, currency=currency)


def _price(plan: Plan, cadence: Cadence) -> MoneyAnswer | None:
    price = plan.prices.get(cadence)
    return None if price is None else money(price.cents, plans.CURRENCY)


def _credits(micro: int | None) -> MoneyAnswer | None:
    return None if micro is None else money(micro // plans.MICRO_PER_CENT, plans.CURRENCY)


def in_digits_of(amount: Decimal, currency: str) -> Decimal:
    """Write an amount of whole units with the digits of its currency, or with those that it has beyond."""
    exact = amount.quantize(Decimal(1).scaleb(-EXPONENTS.get(currency, 2)))
    return exact if exact == amount else amount.normalize()


def in_dollars(micro: int) -> Decimal:
    """Give micro-USD to the cent, and on to the last digit where fractions of a cent are left."""
    return in_digits_of(Decimal(micro).scaleb(-6), "USD")


def key_of(after: SpentAfter) -> str:
    """Write down the place of a grant in the order in which grants are spent."""
    expires_at, granted_at, id = after
    return f"{expires_at.isoformat()}|{granted_at.isoformat()}|{id}"


def spent_after(key: str) -> SpentAfter | None:
    """Read such a place; None for the first part."""
    if not key:
        return None
    try:
        expires_at, granted_at, id = key.split("|", 2)
        return _moment(expires_at), _moment(granted_at), id
    except (ValueError, OverflowError) as error:
        raise InvalidCursor from error


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)


def written_out(value: Any) -> Any:
    """Write every amount in a value of JSON as decimal text, as agents get it (rules/agents#tools)."""
    if isinstance(value, list):
        return [written_out(one) for one in value]
    if not isinstance(value, Mapping):
        return value
    if value.keys() == PAIR and isinstance(value["amount"], int):
        return {**value, "amount": f"{in_units(value['amount'], value['currency']):f}"}
    return {name: written_out(one) for name, one in value.items()}
