"""What an organization asks the payment processor to do, and what the processor answered."""

from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar

from tolsey.actors.processor import ProcessorUnreachable
from tolsey.actors.refusals import MissingCredential
from tolsey.runtime.messages import Call, LaneName, Message, Patience

AWAY = (ProcessorUnreachable, MissingCredential, TimeoutError)
"""What may be better the next time."""
SOON = (1.0, 2.0, 5.0, 30.0, 120.0, 600.0, 1_800.0)


@dataclass(frozen=True, slots=True)
class RefundMade(Message[None]):
    """The processor gave a payment back: what was paid with tax, and given back in all."""

    operation_id: str
    payment_ref: str
    refund_id: str
    total_cents: int
    refunded_cents: int
    at: datetime


@dataclass(frozen=True, slots=True)
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


@dataclass(frozen=True, slots=True)
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
    patience: ClassVar[Patience | None] = Patience(SOON, 40, AWAY)

    organization_id: str
    operation_id: str
    payment_ref: str

    def given_up(self, why: str, at: datetime) -> ReturnGivenUp:
        """Free what was kept for it."""
        del why
        return ReturnGivenUp(self.operation_id, self.payment_ref, is_returned=False, at=at)


@dataclass(frozen=True, slots=True)
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
        return ReturnGivenUp(self.operation_id, self.payment_ref, is_returned=True, at=at)
