"""What purchases, refunds and disputes do to an organization, and what no event does."""

from typing import Any

import pytest

from tests.actors.organization import processor
from tests.actors.organization.processor import CREDITS, OURS, START
from tests.actors.organization.pure_organization import (
    DAY,
    DOLLAR,
    PureOrganization,
    apply_message,
    invoice,
    subscription,
)
from tolsey.actors.organization.billing.messages import Applied
from tolsey.actors.organization.ledger import lots
from tolsey.actors.organization.ledger.messages import SpendCredits

CREATED, UPDATED, DELETED = (
    f"customer.subscription.{what}" for what in ("created", "updated", "deleted")
)
PAID, FAILED = "invoice.paid", "invoice.payment_failed"
CHECKOUT, INTENT = "checkout.session.completed", "payment_intent.succeeded"
REFUNDED, DISPUTED, CLOSED = "charge.refunded", "charge.dispute.created", "charge.dispute.closed"
APPLIED = Applied("applied")


@pytest.fixture
def told() -> PureOrganization:
    return PureOrganization()


def test_a_purchase_is_granted_once_and_before_tax_whoever_tells_of_it(
    told: PureOrganization,
) -> None:
    its_invoice = processor.invoice(
        *(processor.line(parent=None),), parent=None, billing_reason="manual"
    )
    for type_, about in (
        (CHECKOUT, processor.checkout()),
        (INTENT, processor.payment()),
        (PAID, its_invoice),
        (CHECKOUT, processor.checkout()),
    ):
        told.tell(type_, about)
    assert told.dollars == 50
    assert told.audit == ["purchase.completed"]


def test_a_checkout_whose_money_is_on_its_way_grants_nothing_yet(told: PureOrganization) -> None:
    unpaid = processor.checkout(payment_status="unpaid")
    assert told.tell(CHECKOUT, unpaid) == Applied("ignored", "not_paid")
    assert told.dollars == 0
    told.tell(INTENT, processor.payment())
    assert told.dollars == 50


def test_money_that_nothing_says_the_purpose_of_is_parked(told: PureOrganization) -> None:
    assert told.tell(CHECKOUT, processor.checkout(metadata={})) == Applied("parked", "no_metadata")
    unpaid = processor.checkout(metadata={}, payment_status="unpaid")
    assert told.tell(CHECKOUT, unpaid) == Applied("ignored", "nothing_to_apply")
    assert told.dollars == 0


def test_a_payment_that_failed_or_is_for_something_else_does_nothing(
    told: PureOrganization,
) -> None:
    failed = processor.payment(status="requires_payment_method", amount_received=0)
    nothing = Applied("ignored", "nothing_to_apply")
    assert told.tell("payment_intent.payment_failed", failed) == Applied("ignored", "not_paid")
    assert told.tell(INTENT, processor.payment(metadata=OURS)) == nothing
    assert told.tell(CHECKOUT, processor.checkout(metadata=OURS)) == nothing
    assert told.dollars == 0


def test_refunds_are_cumulative_and_take_back_in_proportion_to_what_was_paid(
    told: PureOrganization,
) -> None:
    told.tell(CHECKOUT, processor.checkout())
    told.tell(REFUNDED, processor.charge(amount_refunded=3_000))
    assert told.dollars == 25
    told.tell(REFUNDED, processor.charge(amount_refunded=6_000))
    told.tell(REFUNDED, processor.charge(amount_refunded=3_000))
    assert told.dollars == 0


def test_what_was_spent_before_its_refund_is_owed(told: PureOrganization) -> None:
    told.tell(CHECKOUT, processor.checkout())
    _spend(told, 30)
    told.tell(REFUNDED, processor.charge(amount_refunded=6_000))
    assert told.dollars == -30


def test_a_dispute_takes_the_credits_back_and_a_won_one_restores_them(
    told: PureOrganization,
) -> None:
    told.tell(CHECKOUT, processor.checkout())
    told.tell(DISPUTED, processor.dispute())
    assert told.dollars == 0
    assert told.audit[-2:] == ["chargeback.received", "clawback.applied"]
    told.tell(CLOSED, processor.dispute(status="won"))
    assert told.dollars == 50


def test_a_dispute_of_a_part_with_tax_takes_that_part(told: PureOrganization) -> None:
    told.tell(DISPUTED, processor.dispute(amount=3_000))
    told.tell(CHECKOUT, processor.checkout())
    assert told.dollars == 25
    assert len(told.kinds) == 1


@pytest.mark.parametrize("status", ["won", "warning_closed"])
def test_a_dispute_that_was_won_before_it_was_opened_takes_nothing(
    told: PureOrganization, status: str
) -> None:
    told.tell(CHECKOUT, processor.checkout())
    told.tell(CLOSED, processor.dispute(status=status))
    told.tell(DISPUTED, processor.dispute(status="needs_response"))
    assert told.dollars == 50


def test_a_refund_and_a_dispute_of_one_payment_take_it_back_once(told: PureOrganization) -> None:
    told.tell(CHECKOUT, processor.checkout())
    told.tell(REFUNDED, processor.charge(amount_refunded=3_000))
    told.tell(DISPUTED, processor.dispute())
    assert told.dollars == 0
    told.tell(CLOSED, processor.dispute(status="won"))
    assert told.dollars == 25


def test_a_refund_of_a_subscription_takes_its_allowance_back(told: PureOrganization) -> None:
    told.tell(PAID, invoice("in_1"))
    refund = processor.charge(amount=8_690, amount_refunded=8_690, metadata={})
    told.tell(REFUNDED, refund, payment_ref="in_1")
    assert told.dollars == 0


def test_a_dispute_of_half_a_subscriptions_payment_takes_half_its_allowance(
    told: PureOrganization,
) -> None:
    """The dispute does not say of how much: the invoice does, with tax."""
    told.tell(PAID, invoice("in_1"))
    half = processor.dispute(amount=4_345)
    told.tell(DISPUTED, half, payment_ref="in_1")
    assert told.dollars == 24.5


def test_another_organizations_payment_is_refused(told: PureOrganization) -> None:
    foreign = processor.checkout(metadata={**CREDITS, "org_id": "org_2"})
    assert told.tell(CHECKOUT, foreign) == Applied("failed", "foreign_organization")
    of_another = subscription(metadata={"org_id": "org_2"})
    assert told.tell(CREATED, of_another) == Applied("failed", "foreign_organization")
    assert (told.dollars, told.state.subscription) == (0, None)


def test_sponsors_are_granted_nothing(told: PureOrganization) -> None:
    sponsor = {**OURS, "kind": "sponsor"}
    told.tell(CHECKOUT, processor.checkout(metadata=sponsor))
    told.tell(INTENT, processor.payment(metadata=sponsor))
    assert told.dollars == 0


def _spend(told: PureOrganization, dollars: int) -> None:
    spent = SpendCredits(key="chat", amount=dollars * DOLLAR, reason="chat", at=_at(START + DAY))
    told.state = lots.spend(told.state, spent).state


def _at(seconds: int) -> Any:
    return apply_message(CREATED, subscription(), created=seconds).at
