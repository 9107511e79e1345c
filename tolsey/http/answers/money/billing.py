"""What an organization pays for and under which contract, and what the processor tells of it."""

from typing import Any, Self

from tolsey.actors.organization.agreements.messages import ContractView
from tolsey.http.answers.base import ApiAnswer, Omittable, Timestamp
from tolsey.storage.records.money.payment_event import EventState


class PlanChangedAnswer(ApiAnswer):
    """What became of a choice of plan: `kept` took back a change or an end that was to come."""

    organization_id: str
    change: str
    plan: str
    cadence: str
    effective_at: Timestamp


class CancelledAnswer(ApiAnswer):
    """When a subscription that was cancelled ends."""

    organization_id: str
    cancel_at_period_end: bool
    ends_at: Timestamp | None


class NextPlanAnswer(ApiAnswer):
    """The plan that follows when the period ends."""

    plan: str
    cadence: str | None
    at: Timestamp | None


class DunningAnswer(ApiAnswer):
    """Since when an invoice is open, and where it is paid, for who may pay it."""

    since: Timestamp
    invoice_url: str | None


class SubscriptionAnswer(ApiAnswer):
    """What an organization pays for, what changes next, and what is owed."""

    organization_id: str
    plan: str
    cadence: str | None
    status: str | None
    period_start: Timestamp | None
    period_end: Timestamp | None
    cancel_at_period_end: bool
    next_change: NextPlanAnswer | None
    dunning: DunningAnswer | None
    yearly_from: Timestamp


class RefundAnswer(ApiAnswer):
    """A payment that was given back, and the subscription that ended with it, if it was of one."""

    id: str | None
    organization_id: str
    payment_ref: str
    subscription_ended: str | None


class ContractAnswer(ApiAnswer):
    """An organization's plan, and the contract it is under, if it is; amounts in micro-USD."""

    organization_id: str
    plan: str
    stores_included: int | None
    monthly_allowance: int | None
    daily_bonus: int | None
    since: Timestamp | None
    kyc: Omittable[str] = None
    signed_contract: Omittable[str] = None

    @classmethod
    def of(cls, organization_id: str, contract: ContractView) -> Self:
        """Show what an organization's actor says of its contract."""
        terms, papers = contract.terms, contract.papers
        return cls(
            organization_id=organization_id,
            plan=contract.plan,
            stores_included=terms.stores_included if terms else None,
            monthly_allowance=terms.monthly_allowance if terms else None,
            daily_bonus=terms.daily_bonus if terms else None,
            since=contract.since,
            kyc=papers.kyc or None,
            signed_contract=papers.signed_contract or None,
        )


class PaymentEventAnswer(ApiAnswer):
    """An event of the payment processor: whose it is, and what became of it."""

    id: str
    type: str
    object_id: str | None
    account: str | None
    api_version: str | None
    livemode: bool
    organization_id: str | None
    state: EventState
    why: str | None
    tries: int
    attempts: int
    created_at: Timestamp
    received_at: Timestamp
    settled_at: Timestamp | None

    @classmethod
    def of(cls, row: Any) -> Self:
        """Show a row of the events."""
        return cls.read(row, id=row["event_id"])


class RetriedAnswer(ApiAnswer):
    """An event that is to be applied again."""

    id: str
    state: EventState
