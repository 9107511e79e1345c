"""Which payments are given back, and what is kept for it meanwhile (rules/plans#refunds)."""

import json
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from tests.actors.organization import processor
from tests.actors.organization.books import days
from tests.actors.organization.processor import END, START
from tests.actors.organization.pure_organization import (
    AT,
    DAY,
    DOLLAR,
    PureOrganization,
    invoice,
    line,
    subscription,
)
from tolsey.actors.organization.billing import refunds
from tolsey.actors.organization.billing.messages import GiveBackPayment, RefundBegun
from tolsey.actors.organization.ledger import holds, lots
from tolsey.actors.organization.ledger.credits import Hold
from tolsey.actors.organization.ledger.messages import HoldCredits, SettleHold, SpendCredits
from tolsey.actors.organization.ledger.open_lots import OpenLots
from tolsey.actors.refusals import Refusal
from tolsey.storage.records.journal import AuditRecord
from tolsey.storage.records.money.credits import CreditedPayment, CreditEntry, CreditPosting

SECOND = timedelta(seconds=1)
SUCCEEDED, PAID = "payment_intent.succeeded", "invoice.paid"


class RefundingOrganization(PureOrganization):
    """An organization of which an operator asks to give money back."""

    def begin(
        self, payment: str = "pi_1", *, at: datetime = AT, lease: float = 1, chatted: bool = False
    ) -> RefundBegun:
        message = GiveBackPayment(
            operation_id="operation_1",
            payment_ref=payment,
            reason="a mistake",
            user_id="usr_9",
            at=at,
        )
        until = at + days(lease)
        decision, begun = refunds.begin(self.state, message, has_chatted=chatted, lease_until=until)
        self.state = decision.state
        self.records = list(decision.records)
        return begun

    def refused(self, payment: str = "pi_1", **more: Any) -> tuple[int, str, str]:
        before = self.state
        with pytest.raises(Refusal) as caught:
            self.begin(payment, **more)
        assert self.state is before
        return caught.value.status, caught.value.code, str(caught.value.detail)

    def drop(self, payment: str = "pi_1", at: datetime = AT) -> None:
        decision = refunds.drop(self.state, payment, at)
        self.state, self.records = decision.state, list(decision.records)

    def refund(self, cents: int, of: int = 6_000, at: int = START) -> None:
        body = processor.charge(amount=of, amount_refunded=cents, payment_intent="pi_1")
        self.tell("charge.refunded", body, created=at, payment_ref=self.payment.payment_ref)

    def dispute(self, status: str = "needs_response") -> None:
        body = processor.dispute(amount=6_000, status=status, payment_intent="pi_1")
        self.tell("charge.dispute.created", body, payment_ref=self.payment.payment_ref)

    def know(self, **facts: Any) -> None:
        """Let other things be known of the payment."""
        known, credits = replace(self.payment, **facts), self.state.credits
        payments = credits.payments.insert(known.payment_ref, known)
        self.state = self.state.with_credits(replace(credits, payments=payments))

    @property
    def payment(self) -> CreditedPayment:
        (found,) = self.state.credits.payments.values()
        return found

    @property
    def holds(self) -> list[Hold]:
        return list(self.state.credits.holds.values())

    @property
    def said(self) -> dict[str, Any]:
        (row,) = [one for one in self.records if isinstance(one, AuditRecord)]
        assert (row.event, row.actor) == ("refund.requested", "usr_9")
        assert row.organization_id == "org_1"
        return {"subject": row.subject, **json.loads(row.metadata)}

    @property
    def entries(self) -> list[tuple[str, str, str | None]]:
        found = (one for one in self.records if isinstance(one, CreditEntry))
        return [(one.key, one.kind, one.reference) for one in found]


@pytest.fixture
def bought() -> RefundingOrganization:
    """Somebody who bought 50 USD of credits."""
    billed = RefundingOrganization()
    billed.tell(SUCCEEDED, processor.payment())
    return billed


@pytest.fixture
def subscribed() -> RefundingOrganization:
    """Somebody who pays for a month of the plan of 49 USD."""
    billed = RefundingOrganization()
    billed.tell("customer.subscription.created", subscription())
    billed.tell(PAID, invoice("in_1"))
    return billed


def test_what_no_payment_brought_cannot_be_given_back(bought: RefundingOrganization) -> None:
    nothing = (
        404,
        "not_found",
        "Your organization has no payment with this id. Check the id in the payment list.",
    )
    assert bought.refused("pi_2") == nothing
    bought.know(kind=None)
    assert bought.refused() == nothing


def test_what_is_left_of_a_purchase_is_kept_for_its_refund(bought: RefundingOrganization) -> None:
    at = AT + days(1) - SECOND
    assert bought.begin(at=at) == RefundBegun(is_returned=False, subscription_id=None)
    (kept,) = bought.holds
    ((lot, amount),) = kept.lines
    assert (lot, amount, kept.amount, kept.used) == ("purchase:pi_1", 50 * DOLLAR, amount, 0)
    assert kept.lease_until == at + days(1)
    assert bought.payment.refund_asked_at == at
    assert bought.state.credits.available == 0
    assert bought.entries == [(kept.id, "hold", "pi_1")]
    assert kept.id == "refund:pi_1:2"
    (move,) = [one for one in bought.records if isinstance(one, CreditPosting)]
    assert (move.debit, move.credit) == ("held:refund:pi_1:2", "lot:purchase:pi_1")
    assert bought.said == {
        "subject": "pi_1",
        "payment": "pi_1",
        "reason": "a mistake",
        "subscription": None,
        "elsewhere": False,
    }


def test_a_purchase_of_a_day_ago_is_too_old(bought: RefundingOrganization) -> None:
    late = (
        409,
        "refund_too_late",
        "Credit purchases can be refunded only within 24 hours. Contact support if you need help.",
    )
    assert bought.refused(at=AT + days(1)) == late
    bought.know(granted_at=None)
    assert bought.refused() == late


def test_a_purchase_of_which_something_was_used_or_is_held_stays(
    bought: RefundingOrganization,
) -> None:
    used = (
        409,
        "refund_credits_used",
        "Some of these credits were already used, so the purchase can't be refunded.",
    )
    bought.state = holds.hold(
        bought.state, HoldCredits(hold_id="h", amount=1, at=AT, lease_until=AT + days(1))
    ).state
    assert bought.refused() == used
    bought.state = holds.settle(bought.state, SettleHold("h", 1, AT)).state
    assert bought.refused() == used


def test_the_credits_of_another_purchase_are_left_alone(bought: RefundingOrganization) -> None:
    bought.tell(SUCCEEDED, processor.payment(id="pi_2"))
    bought.begin("pi_2")
    assert bought.state.credits.available == 50 * DOLLAR
    ((kept, _),) = bought.holds[0].lines
    assert kept == "purchase:pi_2"
    bought.state = lots.spend(
        bought.state, SpendCredits(key="s", amount=DOLLAR, reason="chat", at=AT)
    ).state
    assert bought.refused("pi_1")[1] == "refund_credits_used"
    assert bought.begin("pi_2").is_returned is False


def test_a_repeat_is_judged_by_when_it_was_decided_and_keeps_it_for_longer(
    bought: RefundingOrganization,
) -> None:
    bought.begin(lease=10)
    at = AT + days(3)
    assert bought.begin(at=at, lease=10) == RefundBegun(is_returned=False, subscription_id=None)
    (kept,) = bought.holds
    assert (kept.amount, kept.lease_until) == (50 * DOLLAR, at + days(10))
    assert bought.payment.refund_asked_at == AT
    assert bought.entries == []
    assert bought.said["elsewhere"] is False


def test_what_became_free_since_is_kept_beside_the_rest(bought: RefundingOrganization) -> None:
    bought.begin()
    (kept,) = bought.holds
    some = ((kept.lines[0][0], 20 * DOLLAR),)
    lot = bought.state.credits.lots["purchase:pi_1"]
    bought.state = bought.state.with_credits(
        replace(
            bought.state.credits,
            free=30 * DOLLAR,
            held=20 * DOLLAR,
            lots=OpenLots([replace(lot, pinned=20 * DOLLAR)]),
            holds={kept.id: replace(kept, lines=some, amount=20 * DOLLAR)},
        )
    )
    bought.begin()
    (both,) = bought.holds
    assert (both.id, both.amount) == (kept.id, 50 * DOLLAR)
    assert both.lines == (*some, (lot.id, 30 * DOLLAR))
    assert bought.state.credits.available == 0


def test_a_payment_that_went_back_is_not_given_back_again(bought: RefundingOrganization) -> None:
    bought.refund(1)
    assert bought.refused() == (
        409,
        "already_refunded",
        "This payment was already refunded. Check the payment list for its date.",
    )


def test_a_disputed_payment_is_its_banks_to_give_back(bought: RefundingOrganization) -> None:
    bought.dispute()
    said = "This payment is disputed, so the cardholder's bank decides about it. Wait for the outcome of the dispute."
    assert bought.refused() == (409, "payment_disputed", said)


def test_a_month_goes_back_within_a_week_and_its_subscription_ends(
    subscribed: RefundingOrganization,
) -> None:
    spent = SpendCredits(key="s", amount=9 * DOLLAR, reason="chat", at=AT)
    subscribed.state = lots.spend(subscribed.state, spent).state
    at = AT + days(7) - SECOND
    assert subscribed.begin("in_1", at=at) == RefundBegun(
        is_returned=False, subscription_id="sub_1"
    )
    assert (subscribed.said["subscription"], subscribed.said["elsewhere"]) == ("sub_1", False)
    assert [one.amount for one in subscribed.holds] == [40 * DOLLAR]
    late = (
        409,
        "refund_too_late",
        (
            "Subscription payments can be refunded only within 7 days. Cancel the subscription to"
            " stop renewal."
        ),
    )
    subscribed.drop("in_1", at=at)
    assert subscribed.refused("in_1", at=AT + days(7)) == late
    over = subscription(status="canceled", ended_at=START + DAY)
    subscribed.tell("customer.subscription.deleted", over, created=START + DAY)
    assert subscribed.begin("in_1", at=at) == RefundBegun(is_returned=False, subscription_id=None)


def test_a_month_in_which_messages_were_sent_stays(subscribed: RefundingOrganization) -> None:
    said = (
        409,
        "refund_messages_sent",
        (
            "The plan was used after this payment, so it can't be refunded. Cancel the subscription"
            " to stop renewal."
        ),
    )
    assert subscribed.refused("in_1", chatted=True) == said


def test_only_the_newest_payment_of_a_subscription_goes_back(
    subscribed: RefundingOrganization,
) -> None:
    renewal = line("price_pro_monthly", 7_900, END, END + 30 * DAY)
    subscribed.tell(PAID, invoice("in_2", renewal), created=END)
    at = AT + timedelta(seconds=END - START)
    newer = (
        409,
        "refund_not_newest",
        (
            "Only the most recent payment can be refunded, and a newer one exists. Request a refund"
            " for that one."
        ),
    )
    assert subscribed.refused("in_1", at=AT) == newer
    assert subscribed.begin("in_2", at=at).subscription_id == "sub_1"
    known = subscribed.state.subscription
    assert known is not None
    subscribed.state = replace(subscribed.state, subscription=replace(known, paid_at=None))
    assert subscribed.refused("in_2", at=at) == newer


def test_a_subscription_whose_payment_went_back_elsewhere_ends_without_another_refund(
    subscribed: RefundingOrganization,
) -> None:
    subscribed.refund(8_689, 8_690)
    already = (
        409,
        "already_refunded",
        "This payment was already refunded. Check the payment list for its date.",
    )
    assert subscribed.refused("in_1", at=AT + days(20)) == already
    subscribed.refund(8_690, 8_690)
    before = subscribed.state.credits
    assert subscribed.begin("in_1", at=AT + days(20), chatted=True) == RefundBegun(
        is_returned=True, subscription_id="sub_1"
    )
    assert subscribed.said["elsewhere"] is True
    assert (subscribed.state.credits, subscribed.holds) == (before, [])
    assert subscribed.payment.refund_asked_at is None


@pytest.mark.parametrize(("total", "is_returned"), [(0, False), (1, True)])
def test_of_what_nobody_told_the_total_nothing_went_back(
    subscribed: RefundingOrganization, total: int, is_returned: bool
) -> None:
    subscribed.know(total=total, refunded=total)
    assert subscribed.begin("in_1").is_returned is is_returned


def test_a_payment_that_went_back_elsewhere_and_is_not_the_newest_ends_nothing(
    subscribed: RefundingOrganization,
) -> None:
    subscribed.refund(8_690, 8_690)
    renewal = line("price_pro_monthly", 7_900, END, END + 30 * DAY)
    subscribed.tell(PAID, invoice("in_2", renewal), created=END)
    assert subscribed.refused("in_1")[1] == "already_refunded"


def test_a_refund_of_ours_that_arrived_is_not_told_to_be_of_elsewhere(
    subscribed: RefundingOrganization,
) -> None:
    subscribed.begin("in_1")
    subscribed.refund(8_690, 8_690)
    assert subscribed.holds == []
    moves = [one for one in subscribed.records if isinstance(one, CreditPosting)]
    assert "usage" not in {one.debit for one in moves}
    assert subscribed.begin("in_1").is_returned is True
    assert subscribed.said["elsewhere"] is False


def test_what_was_kept_for_a_refund_that_will_not_be_is_free_again(
    bought: RefundingOrganization,
) -> None:
    bought.begin()
    bought.drop()
    assert (bought.holds, bought.state.credits.available) == ([], 50 * DOLLAR)
    assert bought.payment.refund_asked_at is None
    assert bought.entries == [("refund.dropped:pi_1:3", "release", "pi_1")]
    bought.drop()
    bought.drop("pi_2")
    assert (bought.entries, list(bought.state.credits.payments)) == ([], ["pi_1"])
    assert bought.refused(at=AT + days(1))[1] == "refund_too_late"


def test_what_was_kept_for_a_refund_that_nobody_knows_of_is_free_and_it_was_asked_in_time(
    bought: RefundingOrganization,
) -> None:
    bought.begin(at=AT)
    asked_at = bought.payment.refund_asked_at
    decision = refunds.release(bought.state, "pi_1", AT + SECOND)
    bought.state, bought.records = decision.state, list(decision.records)

    assert (bought.holds, bought.state.credits.available) == ([], 50 * DOLLAR)
    assert bought.entries == [("refund.dropped:pi_1:3", "release", "pi_1")]
    assert {one.at for one in bought.records if isinstance(one, CreditEntry)} == {AT + SECOND}
    assert bought.payment.refund_asked_at == asked_at
    assert asked_at is not None
