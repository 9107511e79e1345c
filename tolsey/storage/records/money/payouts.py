"""The accounts that people are paid out to, and payouts that came back."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Final, Protocol

from tolsey.storage.owners import MONEY, Belongs, RowOwner
from tolsey.storage.tables import Personal, stored

CHECKING: Final = frozenset({None, "requirements.pending_verification"})
"""Reasons under which an account's owner has nothing to do but wait."""


class PayoutState(StrEnum):
    """How far an account is.

    `onboarding`: its owner has not said who they are, or the processor still checks what they said.
    `restricted`: the processor wants more, or will not pay out.
    """

    NONE = "none"
    ONBOARDING = "onboarding"
    VERIFIED = "verified"
    RESTRICTED = "restricted"


class ObservedAccount(Protocol):
    """What the processor says of an account."""

    @property
    def account_id(self) -> str:
        """Its id there."""
        ...

    @property
    def has_submitted_details(self) -> bool:
        """Whether its owner filled the form in."""
        ...

    @property
    def can_charge(self) -> bool:
        """Whether it may take payments."""
        ...

    @property
    def can_be_paid_out(self) -> bool:
        """Whether its money may go to a bank."""
        ...

    @property
    def is_verified(self) -> bool:
        """Whether its owner is known well enough to be paid."""
        ...

    @property
    def disabled_reason(self) -> str | None:
        """Why it is closed, in the processor's word."""
        ...

    @property
    def currently_due(self) -> tuple[str, ...]:
        """What is wanted by a date."""
        ...

    @property
    def past_due(self) -> tuple[str, ...]:
        """What was wanted by a date that has passed."""
        ...

    @property
    def eventually_due(self) -> tuple[str, ...]:
        """What will be wanted one day."""
        ...

    @property
    def pending_verification(self) -> tuple[str, ...]:
        """What the processor is checking."""
        ...


class FailedPayout(Protocol):
    """What the processor says of a payout that came back."""

    @property
    def payout_id(self) -> str:
        """Its id there."""
        ...

    @property
    def account_id(self) -> str | None:
        """Whose it was; None for the platform's own."""
        ...

    @property
    def amount_cents(self) -> int:
        """How much."""
        ...

    @property
    def currency(self) -> str:
        """Of what."""
        ...

    @property
    def failure_code(self) -> str | None:
        """Why, in the processor's word."""
        ...

    @property
    def failure_message(self) -> str | None:
        """Why, in a sentence."""
        ...


@stored(
    "payout_accounts",
    key=("account_id",),
    belongs=Belongs(to=RowOwner.USER, stays=MONEY),
    export="payoutAccounts",
)
@dataclass(frozen=True, slots=True, kw_only=True)
class PayoutAccount:
    """A person's account as the processor last told of it."""

    account_id: str
    user_id: Annotated[str, Personal.USER]
    has_submitted_details: bool
    can_charge: bool
    can_be_paid_out: bool
    is_verified: bool
    disabled_reason: str | None
    currently_due: tuple[str, ...]
    past_due: tuple[str, ...]
    eventually_due: tuple[str, ...]
    pending_verification: tuple[str, ...]
    created_at: datetime
    seen_at: datetime | None

    @property
    def state(self) -> PayoutState:
        """Sum up."""
        if self.is_verified:
            return PayoutState.VERIFIED
        wanted = self.currently_due or self.past_due or self.disabled_reason not in CHECKING
        if self.has_submitted_details and wanted:
            return PayoutState.RESTRICTED
        return PayoutState.ONBOARDING


@stored(
    "payout_failures",
    key=("payout_id",),
    conflict="ON CONFLICT (payout_id) DO NOTHING",
    belongs=Belongs(
        to=RowOwner.USER,
        by="account_id IN (SELECT account_id FROM payout_accounts WHERE user_id = $1)",
        stays=MONEY,
    ),
    export="payoutFailures",
)
@dataclass(frozen=True, slots=True, kw_only=True)
class PayoutFailure:
    """A payout that came back."""

    payout_id: str
    account_id: str | None
    amount_cents: int
    currency: str
    failure_code: str | None
    failure_message: str | None
    failed_at: datetime
