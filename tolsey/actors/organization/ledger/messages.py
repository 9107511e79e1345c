"""What an organization can be asked about its credits."""

from dataclasses import dataclass
from datetime import date, datetime
from typing import Final, Literal

from tolsey.runtime.messages import Message

GRANTS_SHOWN: Final = 100
"""How many grants an answer lists unless it is asked for another number."""

SpentAfter = tuple[datetime, datetime, str]
"""The place of a grant in the order in which grants are spent: its expiry, its age, its id."""

GrantKind = Literal["purchase", "allowance", "bonus", "adjustment"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """What an organization's credits come to, in micro-USD, after ledger entry `seq`.

    `balance` counts what holds pin; `available` does not, and is below zero only after a refund or
    a dispute took back what was spent.
    """

    seq: int
    balance: int
    available: int
    held: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """Credits that were granted and not yet used up; `remaining` counts what holds pin."""

    id: str
    kind: GrantKind
    amount: int
    remaining: int
    granted_at: datetime
    expires_at: datetime
    reference: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CreditsView:
    """An organization's credits as its members see them.

    `grants` are those that were asked for of the `total`, in the order they are spent; `first` is
    the first of all, and `following` what the next part begins after, if there is one.
    """

    standing: Standing
    grants: tuple[Grant, ...]
    next_expiry: datetime | None
    total: int = 0
    first: Grant | None = None
    following: SpentAfter | None = None


@dataclass(frozen=True, slots=True)
class Settled:
    """How a hold ended: `charged` was paid from it, `written_off` is cost it did not cover."""

    charged: int
    written_off: int
    standing: Standing


@dataclass(frozen=True, slots=True)
class Dispute:
    """What is known of a dispute: `amount` in the processor's cents, and how it stands.

    An inquiry that was closed without a dispute counts as won (rules/payments#shapes).
    """

    id: str
    amount: int
    status: Literal["open", "lost", "won"]


@dataclass(frozen=True, slots=True, kw_only=True)
class GrantCredits(Message[Standing]):
    """Credits are due, in micro-USD: paid for, given daily, or promised. A repeat is a Duplicate.

    `reference` names the payment they were bought with, so that its refund takes them back.
    """

    key: str
    kind: GrantKind
    amount: int
    at: datetime
    expires_at: datetime
    reference: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ResetAllowance(Message[Standing]):
    """A period of a plan is paid: its allowance stands until the next one's.

    What is left of the last period's expires. The newest period is the one that began last; two
    with one end are the same, for the rest of a period is paid from the middle of it. A higher
    allowance in the same period grants the difference; a lower one, or an older period, changes
    nothing. `reference` names the payment. While `renewed_by` names who is to renew the allowance, it
    outlives its period by some days, for a renewal that is told late.
    """

    key: str
    plan: str
    period_start: datetime
    period_end: datetime
    allowance: int
    at: datetime
    reference: str | None = None
    renewed_by: str | None = None


@dataclass(frozen=True, slots=True)
class GrantDailyBonus(Message[bool]):
    """A day has come: its bonus is due, unless the first spending of the day brought it.

    The reply is whether it was granted now.
    """

    day: date
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class AdjustCredits(Message[Standing]):
    """An administrator gives credits (above zero) or takes what is available (below)."""

    key: str
    amount: int
    reason: str
    user_id: str
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class SpendCredits(Message[Standing]):
    """Something was used at a known cost. Refused with 402 `insufficient_credits`."""

    key: str
    amount: int
    reason: str
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class HoldCredits(Message[Standing]):
    """Something will be used: pin its estimated cost, or 402 `insufficient_credits`.

    A hold that is not extended until `lease_until` ends at the cost that was last reported.
    """

    hold_id: str
    amount: int
    at: datetime
    lease_until: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtendHold(Message[Standing]):
    """Pin `amount` more (zero: only the lease), or 402; `used` is the cost so far."""

    hold_id: str
    amount: int
    at: datetime
    lease_until: datetime
    used: int = 0


@dataclass(frozen=True, slots=True)
class SettleHold(Message[Settled]):
    """What was held for cost `cost`; the rest is free again. 409 `hold_closed` when it had ended."""

    hold_id: str
    cost: int
    at: datetime


@dataclass(frozen=True, slots=True)
class ReleaseHold(Message[Settled]):
    """What was held for was not used. 409 `hold_closed` when it had ended."""

    hold_id: str
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class PaymentObserved(Message[Standing]):
    """What the processor said of a payment, in its cents; in any order, any number of times.

    `total` is what was paid with tax, `refunded` what was given back of it so far. Credits granted
    with this payment are taken back in proportion, and restored when a dispute is won; facts that
    come before the grant wait for it. `credits` is what the payment was for, for the record.
    """

    payment_ref: str
    credits: int
    total: int
    refunded: int
    disputes: tuple[Dispute, ...]
    at: datetime


@dataclass(frozen=True, slots=True)
class ExpireCredits(Message[Standing]):
    """Time has passed: credits expire, holds that were left alone end."""

    at: datetime


@dataclass(frozen=True, slots=True)
class ReadCredits(Message[CreditsView]):
    """Somebody looks at the credits, and at some of the grants: those that are spent `after` one."""

    at: datetime
    after: SpentAfter | None = None
    limit: int = GRANTS_SHOWN
