"""Who is paid out: accounts at the payment processor, and affiliates with their codes."""

from collections.abc import Iterable
from typing import Literal, Self

from tolsey.http.answers.base import ApiAnswer, Timestamp
from tolsey.http.answers.money.credits import MoneyAnswer
from tolsey.storage.records.money.payouts import PayoutAccount, PayoutFailure, PayoutState


class FailedPayoutAnswer(ApiAnswer):
    """A payout that came back."""

    id: str
    amount: MoneyAnswer
    failure_code: str | None
    failure_message: str | None
    failed_at: Timestamp

    @classmethod
    def of(cls, failure: PayoutFailure) -> Self:
        """Show a payout that came back."""
        amount = MoneyAnswer(amount=failure.amount_cents, currency=failure.currency.upper())
        return cls.read(failure, id=failure.payout_id, amount=amount)


class NoPayoutAccountAnswer(ApiAnswer):
    """That there is no account yet."""

    state: Literal[PayoutState.NONE]


class PayoutAccountAnswer(ApiAnswer):
    """How far an account is, and what the processor still wants."""

    id: str
    state: PayoutState
    disabled_reason: str | None
    currently_due: list[str]
    past_due: list[str]
    eventually_due: list[str]
    pending_verification: list[str]
    created_at: Timestamp
    failed_payouts: list[FailedPayoutAnswer]

    @classmethod
    def of(cls, account: PayoutAccount, failures: Iterable[PayoutFailure]) -> Self:
        """Show an account with its payouts that came back."""
        returned = [FailedPayoutAnswer.of(one) for one in failures]
        return cls.read(account, id=account.account_id, failed_payouts=returned)


class OnboardingAnswer(ApiAnswer):
    """A page at the processor on which a person says who they are, and their account."""

    url: str
    account: PayoutAccountAnswer


class RecordedPayoutAnswer(ApiAnswer):
    """A payout that was written down; `paidThisYear` is the sum of its kind in the calendar year, with it."""

    id: str
    kind: str
    payee: str
    amount: MoneyAnswer
    paid_this_year: MoneyAnswer
    reason: str
    recorded_at: Timestamp


class AffiliateCodeAnswer(ApiAnswer):
    """A code that an affiliate hands out, and how often it was redeemed."""

    id: str
    code: str
    redemptions: int
    created_at: Timestamp


class RedemptionAnswer(ApiAnswer):
    """A code that was redeemed: what it brought, and what there is since, in micro-USD."""

    id: str
    organization_id: str
    credits: int
    redeemed_at: Timestamp
    balance: int
    available: int
