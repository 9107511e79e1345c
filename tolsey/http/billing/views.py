"""What the billing pages show: an organization's plan, its credits and what moved them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, Literal
from urllib.parse import urlencode, urlsplit

from tolsey.actors import chain
from tolsey.actors.organization import plans
from tolsey.actors.organization.billing.messages import SubscriptionView
from tolsey.actors.organization.plans import Cadence, Offer, Plan
from tolsey.actors.processor import ChargePreview
from tolsey.http.answers.money.credits import CreditsAnswer, GrantAnswer, LedgerEntryAnswer
from tolsey.http.layout.forms import Filled
from tolsey.http.layout.templates import Page
from tolsey.storage.people.accounts import OrganizationRow

PATH: Final = "/billing"
ACTING: Final = frozenset({"owner", "admin"})
"""The roles that may spend an organization's money."""
EXPIRED: Final = "expired"
TAKEN: Final = {"refunded": "refund", "clawback": "dispute"}
FEEDBACK: Final = (
    "too_expensive",
    "missing_features",
    "switched_service",
    "unused",
    "customer_service",
    "too_complex",
    "low_quality",
    "other",
)
"""Why people leave, in the processor's words."""
LONGEST_COMMENT: Final = 500

Arrival = Literal["active", "confirming", "credited", "credits", "done", "sponsor", "waiting"]
"""What someone comes back from: a plan that is paid, one that is being paid, and so on."""


def address(organization_id: str, path: str = PATH, **more: str) -> str:
    """Give the address of an organization's page."""
    return f"{path}?{urlencode({'organizationId': organization_id, **more})}"


@dataclass(frozen=True, slots=True)
class BalanceLine:
    """One line of what moved a balance: the kind of movement, its reference, by how much."""

    at: datetime
    kind: str
    reference: str
    amount: int


@dataclass(frozen=True, slots=True)
class BillingAccount:
    """What there is to show: an organization, what it pays for, its credits, at a moment."""

    organization: OrganizationRow
    held: SubscriptionView
    credits: CreditsAnswer
    first: GrantAnswer | None
    """The grant that is spent first."""
    entries: Sequence[LedgerEntryAnswer]
    at: datetime

    @property
    def id(self) -> str:
        """The organization's id."""
        return self.organization.id

    @property
    def address(self) -> str:
        """The address of its page."""
        return address(self.id)

    @property
    def keep_address(self) -> str:
        """Where what waits for the end of the period is taken back."""
        same = {"plan": self.plan.code, "cadence": str(self.cadence)}
        return address(self.id, f"{PATH}/change", **same)

    @property
    def cancel_address(self) -> str:
        """Where the plan is cancelled."""
        return address(self.id, f"{PATH}/cancel")

    @property
    def plan(self) -> Plan:
        """The plan in effect."""
        return plans.BY_CODE[self.held.plan]

    @property
    def cadence(self) -> Cadence:
        """How often it is paid."""
        return Cadence(self.held.cadence or Cadence.MONTHLY)

    @property
    def price_cents(self) -> int | None:
        """What it costs a period; None for a plan that has no price of the catalogue."""
        return self.plan.prices[self.cadence].cents if self.plan.is_sold else None

    @property
    def next_plan(self) -> Plan | None:
        """The plan that follows at the end of the period, if another does."""
        return plans.BY_CODE[self.held.next_plan] if self.held.next_plan else None

    @property
    def may_act(self) -> bool:
        """Whether who looks may spend the organization's money."""
        return self.organization.role in ACTING

    @property
    def changes_later(self) -> bool:
        """Whether a change or the end waits for the end of the period."""
        return self.held.cancel_at_period_end or self.held.schedule_id is not None

    @property
    def invoice_address(self) -> str | None:
        """Where an invoice that could not be collected is paid; nothing but a web address."""
        url = self.held.dunning_url
        return url if url and urlsplit(url).scheme in {"https", "http"} else None

    @property
    def catalogue(self) -> Sequence[Plan]:
        """The plans that can be chosen; none where there is a contract, or no right to choose."""
        if not self.may_act or self.plan is plans.CUSTOM:
            return ()
        return [plan for plan in plans.CATALOGUE if plan.is_sold]

    @property
    def chosen(self) -> Plan:
        """The plan that is chosen before the reader chooses."""
        return self.plan if self.plan.is_sold else plans.PRO

    @property
    def yearly_from(self) -> datetime | None:
        """When a year can be paid for at once; None when it can."""
        created_at = self.held.created_at
        return None if plans.is_yearly_open(created_at, self.at) else plans.yearly_from(created_at)

    @property
    def next_grants(self) -> str | None:
        """The address of the page with the grants that are spent after those shown."""
        following = self.credits.next_cursor
        return address(self.id, cursor=following) if following else None

    @property
    def lines(self) -> Iterator[BalanceLine]:
        """What each entry did, newest first: what expired in it is a line of its own."""
        for entry in self.entries:
            moves = [(one.debit, one.credit, one.amount) for one in entry.postings]
            ended = chain.balance_moved(one for one in moves if one[0] == EXPIRED)
            amount = entry.amount - ended
            if amount:
                reference = entry.reference if entry.kind == "spend" else ""
                yield BalanceLine(entry.at, _kind(entry), reference or "", amount)
            if ended:
                yield BalanceLine(entry.at, EXPIRED, "", ended)


def _kind(entry: LedgerEntryAnswer) -> str:
    """Name what an entry did; what a payment did is told by the accounts that it moved."""
    for one in entry.postings:
        if one.debit in TAKEN:
            return f"taken_{TAKEN[one.debit]}"
        if one.credit in TAKEN:
            return f"returned_{TAKEN[one.credit]}"
    return entry.kind


@dataclass(frozen=True, kw_only=True)
class BillingPage(Page):
    """What an organization pays for, with what is said first and the form as it was sent."""

    template = "billing/billing.html"
    account: BillingAccount
    filled: Filled = field(default_factory=Filled)
    arrival: Arrival | None = None
    refused: str = ""
    look_again: str | None = None


@dataclass(frozen=True, kw_only=True)
class OfferPage(Page):
    """A question before a plan changes to an offer."""

    account: BillingAccount
    wanted: Offer


class KeepPage(OfferPage):
    """Whether what waits for the end of the period shall not come."""

    template = "billing/keep.html"


class DowngradePage(OfferPage):
    """Whether the plan shall be a lower one at the end of the period."""

    template = "billing/downgrade.html"


@dataclass(frozen=True, kw_only=True)
class UpgradePage(OfferPage):
    """Whether a higher plan shall be paid at once: what it will charge, in the processor's words."""

    template = "billing/upgrade.html"
    charge: ChargePreview


@dataclass(frozen=True, kw_only=True)
class CancellationPage(Page):
    """Whether the plan shall end with its period, and why."""

    template = "billing/cancel.html"
    account: BillingAccount
    filled: Filled = field(default_factory=Filled)
    feedback = FEEDBACK
    longest_comment = LONGEST_COMMENT
