"""Payout accounts of sellers and affiliates, and payouts that failed: no organization is theirs."""

from dataclasses import dataclass

from tolsey.actors.bodies import Body, Unreadable, table
from tolsey.actors.organization.billing.payment_events.envelopes import EventEnvelope
from tolsey.actors.organization.billing.payment_events.fields import (
    currency,
    flag,
    identifier,
    paid_cents,
    text,
    within,
    word,
    words,
)
from tolsey.actors.organization.billing.payment_events.metadata import Metadata


class OfAPerson:
    """Facts of a person, who may belong to many organizations: none of them is theirs."""

    __slots__ = ()

    @property
    def said(self) -> Metadata:
        """Nothing of an organization."""
        return Metadata()

    @property
    def links(self) -> tuple[str, ...]:
        """Nothing."""
        return ()

    @property
    def needs_organization(self) -> bool:
        """It is applied to the account's owner."""
        return False


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountFacts(OfAPerson):
    """What the processor knows and still wants of a payout account."""

    account_id: str
    user_id: str | None
    has_submitted_details: bool
    can_charge: bool
    can_be_paid_out: bool
    disabled_reason: str | None
    currently_due: tuple[str, ...]
    past_due: tuple[str, ...]
    eventually_due: tuple[str, ...]
    pending_verification: tuple[str, ...]

    @property
    def is_verified(self) -> bool:
        """Whether its owner is known well enough to be paid (rules/payments#payout-accounts)."""
        return (
            self.has_submitted_details
            and self.can_be_paid_out
            and self.disabled_reason is None
            and not self.past_due
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PayoutFacts(OfAPerson):
    """A payout that failed; without an account it is the platform's own."""

    payout_id: str
    account_id: str | None
    withdrawal_id: str | None
    currency: str
    amount_cents: int
    status: str
    failure_code: str | None
    failure_message: str | None


def read_account(envelope: EventEnvelope) -> AccountFacts:
    """Read an account; one that does not say what is still required is refused, never verified."""
    body = envelope.object
    account_id = identifier(body)
    if envelope.account not in {None, account_id}:
        raise Unreadable("id", "not the account that the event is of")
    where = "requirements" if body.get("requirements") is not None else "verification"
    wanted = table(body, where)
    if not wanted:
        raise Unreadable("requirements", "missing")
    with within(where):
        disabled_reason = text(wanted, "disabled_reason", 100)
        # Before API version 2019-02-19 an account said what it needs in one list.
        currently_due = words(wanted, "currently_due") or words(wanted, "fields_needed")
        past_due = words(wanted, "past_due")
        eventually_due = words(wanted, "eventually_due")
        pending_verification = words(wanted, "pending_verification")
    return AccountFacts(
        account_id=account_id,
        user_id=_said(body, "user_id"),
        has_submitted_details=flag(body, "details_submitted"),
        can_charge=flag(body, "charges_enabled"),
        can_be_paid_out=flag(body, "payouts_enabled"),
        disabled_reason=disabled_reason,
        currently_due=currently_due,
        past_due=past_due,
        eventually_due=eventually_due,
        pending_verification=pending_verification,
    )


def read_payout(envelope: EventEnvelope) -> PayoutFacts:
    """Read a payout."""
    body = envelope.object
    return PayoutFacts(
        payout_id=identifier(body),
        account_id=envelope.account,
        withdrawal_id=_said(body, "withdrawal_id"),
        currency=currency(body),
        amount_cents=paid_cents(body, "amount"),
        status=word(body, "status"),
        failure_code=text(body, "failure_code", 100),
        failure_message=text(body, "failure_message"),
    )


def _said(body: Body, name: str) -> str | None:
    with within("metadata"):
        return text(table(body, "metadata"), name, 100)
