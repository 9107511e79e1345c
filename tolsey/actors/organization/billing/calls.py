"""What an organization asks the payment processor to do, and what the processor answered."""

from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar

from tolsey.actors.processor import ProcessorUnreachable, Subscribed
from tolsey.actors.refusals import MissingCredential
from tolsey.runtime.messages import Call, LaneName, Message, Patience

AWAY = (ProcessorUnreachable, MissingCredential, TimeoutError)
"""What may be better the next time."""
SOON = (1.0, 2.0, 5.0, 30.0, 120.0, 600.0, 1_800.0)
WITHIN_A_DAY = Patience(SOON, 40, AWAY)
"""As long as the processor knows a key."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RefundMade(Message[None]):
    """The processor gave a payment back: what was paid with tax, and given back in all."""

    operation_id: str
    payment_ref: str
    refund_id: str
    total_cents: int
    refunded_cents: int
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class RefundRefused(Message[None]):
    """The processor will not give a payment back, and says why."""

    operation_id: str
    payment_ref: str
    status: int
    code: str
    detail: str
    processor_code: str
    at: datetime


@dataclass(frozen=True, slots=True)
class SubscriptionEndedNow(Message[None]):
    """The processor has ended the subscription whose payment went back."""

    operation_id: str
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ReturnGivenUp(Message[None]):
    """A step of giving a payment back was tried for as long as it was worth it."""

    operation_id: str
    payment_ref: str
    is_returned: bool
    at: datetime


@dataclass(frozen=True, slots=True)
class RefundPayment(Call[RefundMade | RefundRefused]):
    """Give a payment back whole. The processor does it once under a key that it knows for a day."""

    lane: ClassVar[LaneName] = "processor"
    deadline_seconds: ClassVar[float] = 90.0
    patience: ClassVar[Patience | None] = WITHIN_A_DAY

    organization_id: str
    operation_id: str
    payment_ref: str

    def given_up(self, why: str, at: datetime) -> ReturnGivenUp:
        """Free what was kept for it."""
        del why
        return ReturnGivenUp(
            operation_id=self.operation_id, payment_ref=self.payment_ref, is_returned=False, at=at
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class EndSubscriptionNow(Call[SubscriptionEndedNow]):
    """End a subscription whose payment went back; for days, since nobody else does it."""

    lane: ClassVar[LaneName] = "processor"
    deadline_seconds: ClassVar[float] = 90.0
    patience: ClassVar[Patience | None] = Patience(SOON, 200, AWAY)
    repeatable: ClassVar[bool] = False
    """Its key is forgotten after a day, and it goes on for longer."""

    organization_id: str
    operation_id: str
    payment_ref: str
    subscription_id: str

    def given_up(self, why: str, at: datetime) -> ReturnGivenUp:
        """Leave it to an operator."""
        del why
        return ReturnGivenUp(
            operation_id=self.operation_id, payment_ref=self.payment_ref, is_returned=True, at=at
        )


@dataclass(frozen=True, slots=True)
class NextChange:
    """A change that waits for the end of the period, under the processor's schedule."""

    schedule_id: str
    plan: str
    cadence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanChangeMade(Message[None]):
    """The processor changed a subscription; `is_done` is False where there was nothing to put back."""

    operation_id: str
    at: datetime
    next: NextChange | None = None
    is_done: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanChangeRefused(Message[None]):
    """A subscription will not be changed, and why; `processor_code` where the processor said so."""

    operation_id: str
    at: datetime
    status: int
    code: str
    detail: str
    processor_code: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OfSubscription:
    """What every change of a subscription says: whose it is, and for how long it is tried."""

    lane: ClassVar[LaneName] = "processor"
    deadline_seconds: ClassVar[float] = 90.0
    patience: ClassVar[Patience | None] = WITHIN_A_DAY

    organization_id: str
    operation_id: str
    subscription_id: str

    def given_up(self, why: str, at: datetime) -> PlanChangeRefused:
        """Say that nobody knows what became of it."""
        del why
        detail = (
            "Stripe is unreachable, so the outcome is unknown. Check your plan in a few minutes"
            " before you try again."
        )
        return PlanChangeRefused(
            operation_id=self.operation_id,
            at=at,
            status=502,
            code="processor_unreachable",
            detail=detail,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class UpgradeSubscription(OfSubscription, Call[PlanChangeMade | PlanChangeRefused]):
    """Change the price at once and collect for it, until some time: what it costs was shown before."""

    patience: ClassVar[Patience | None] = Patience(SOON, 6, AWAY)
    repeatable: ClassVar[bool] = False
    """Its key is forgotten after a day, and money must not be collected twice."""

    held: Subscribed
    price_id: str
    key: str
    until: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleDowngrade(OfSubscription, Call[PlanChangeMade | PlanChangeRefused]):
    """Change the price when the period ends; a subscription that was to end then goes on first."""

    held: Subscribed
    price_id: str
    plan: str
    cadence: str
    resumes: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class CancelSubscription(OfSubscription, Call[PlanChangeMade | PlanChangeRefused]):
    """Let a subscription end with its period, instead of the change that waits for that."""

    schedule_id: str | None
    feedback: str | None = None
    comment: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseSchedule(OfSubscription, Call[PlanChangeMade | PlanChangeRefused]):
    """Take back the change, or the end, that waits for the end of the period."""

    schedule_id: str | None
    resumes: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoreChange(OfSubscription, Call[PlanChangeMade | PlanChangeRefused]):
    """Put back what was taken off for a change that failed; for days, since nobody else does it.

    `plan` is `free` for an end. Every try looks first: where the subscription is no more to
    `held_price_id`, or something else waits, there is nothing to put back.
    """

    patience: ClassVar[Patience | None] = Patience(SOON, 200, AWAY)

    held_price_id: str
    price_id: str
    plan: str
    cadence: str
