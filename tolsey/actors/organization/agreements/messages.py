"""What an organization can be asked about contracts and affiliates."""

from dataclasses import dataclass
from datetime import datetime

from tolsey.actors.organization.ledger.messages import Standing
from tolsey.runtime.messages import Message


@dataclass(frozen=True, slots=True)
class Redeemed:
    """What a code granted, in micro-USD, and what the organization has now."""

    credits: int
    expires_at: datetime
    standing: Standing


@dataclass(frozen=True, slots=True, kw_only=True)
class RedeemAffiliateCode(Message[Redeemed]):
    """Somebody redeems an affiliate's code for the organization: once ever, a repeat is a Duplicate.

    404 for an unknown code, 403 for the affiliate's own, 409 `already_redeemed`.
    """

    redemption_id: str
    code: str
    user_id: str
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class PaidPeriod:
    """What a subscription is paid for: a plan from one moment to another, with which payment."""

    subscription_id: str
    plan: str
    starts_at: datetime
    ends_at: datetime
    payment_ref: str | None


@dataclass(frozen=True, slots=True)
class StartMonth(Message[bool]):
    """A month may have begun of a contract or of a year that is `paid`: its allowance is due.

    The reply is whether it was granted now.
    """

    at: datetime
    paid: PaidPeriod | None = None

    @property
    def payment_ref(self) -> str | None:
        """The payment of the year."""
        return self.paid.payment_ref if self.paid else None


@dataclass(frozen=True, slots=True)
class ContractTerms:
    """What a contract grants: stores (None: no bound), and micro-USD a month and a day."""

    stores_included: int | None
    monthly_allowance: int
    daily_bonus: int


@dataclass(frozen=True, slots=True)
class ContractPapers:
    """Where an operator filed the manual check of who the customer is, and the signed contract."""

    kyc: str | None = None
    signed_contract: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ContractView:
    """An organization's plan, and the contract it is under, if it is."""

    plan: str
    terms: ContractTerms | None
    since: datetime | None
    papers: ContractPapers = ContractPapers()


@dataclass(frozen=True, slots=True, kw_only=True)
class SetContract(Message[ContractView]):
    """An administrator puts an organization under a contract, or (no terms) ends it: then what is paid for.

    409 `subscription_exists` while a subscription pays for a plan. Papers that are not named stay as
    they were recorded.
    """

    terms: ContractTerms | None
    reason: str
    user_id: str
    at: datetime
    papers: ContractPapers = ContractPapers()
