"""What is paid, ended and owed comes to the same, in whatever order it is told."""

from datetime import UTC, datetime
from itertools import permutations
from typing import Any

import pytest

from tests.actors.organization.processor import END, START
from tests.actors.organization.pure_organization import (
    DAY,
    MAX_5X,
    PRO,
    PureOrganization,
    apply_message,
    invoice,
    line,
    prorated,
    subscription,
)
from tolsey.actors.organization.billing.messages import Applied, ApplyPaymentEvent
from tolsey.actors.organization.billing.subscription import is_owed

UPDATED, DELETED = "customer.subscription.updated", "customer.subscription.deleted"
PAID, FAILED = "invoice.paid", "invoice.payment_failed"
APPLIED = Applied("applied")


@pytest.fixture
def told() -> PureOrganization:
    return PureOrganization()


def moment(at: int) -> datetime:
    return datetime.fromtimestamp(at, UTC)


def at_a_months_end() -> list[ApplyPaymentEvent]:
    """Tell of Pro from 30 March, noon, and of its upgrade on the 31st: it ends before Pro would."""
    bought, upgraded, ends = (
        int(datetime(2027, month, day, hour, tzinfo=UTC).timestamp())
        for month, day, hour in ((3, 30, 12), (3, 31, 9), (4, 30, 9))
    )
    rest = (PRO, -7_000, upgraded), (MAX_5X, 19_900, upgraded, ends)
    dearer = (prorated(*rest[0], bought + 31 * DAY), line(*rest[1]))
    return [
        apply_message(
            PAID, invoice("in_1", line(PRO, 7_900, bought, bought + 31 * DAY)), created=bought
        ),
        apply_message(UPDATED, subscription(MAX_5X, upgraded, ends), created=upgraded),
        apply_message(
            PAID,
            invoice("in_2", *dearer, billing_reason="subscription_update"),
            created=upgraded,
        ),
    ]


def test_an_upgrade_at_a_months_end_brings_its_plan_and_its_credits() -> None:
    for order in permutations(at_a_months_end()):
        told = PureOrganization()
        for message in (*order, *order):
            assert told.apply(message) == APPLIED
        assert (told.plan, told.dollars) == ("max_5x", 149)
        assert told.subscription.paid_invoice_id == "in_2"


def test_an_invoice_that_is_paid_late_brings_nothing_back(told: PureOrganization) -> None:
    told.tell(PAID, invoice("in_1", line(MAX_5X, 19_900)))
    later = END + 31 * DAY
    renewal = invoice("in_3", line(PRO, 7_900, END, later), billing_reason="subscription_cycle")
    told.tell(PAID, renewal, created=END)
    at = END - DAY
    owed = (prorated(MAX_5X, -600, at), prorated("price_max_20x_monthly", 1_300, at))
    told.tell(PAID, invoice("in_2", *owed, billing_reason="subscription_update"), created=END + DAY)
    assert (told.plan, told.dollars) == ("pro", 49)


@pytest.mark.parametrize("ended_at", [START + DAY, END])
def test_an_end_and_its_payment_come_to_the_same_in_any_order(ended_at: int) -> None:
    """Free has no allowance once the paid period is over, and keeps it until then."""
    over = subscription(status="canceled", ended_at=ended_at)
    tellings = [
        (PAID, invoice("in_1"), {"created": START}),
        (UPDATED, subscription(cancel_at_period_end=True), {"created": START + DAY // 2}),
        (DELETED, over, {"created": ended_at}),
    ]
    for at, dollars in ((END - 1, 49), (END, 0), (END + DAY, 0)):
        for order in permutations(tellings):
            told = PureOrganization()
            for type_, about, more in order:
                told.tell(type_, about, at=moment(at), **more)
            assert (told.plan, told.dollars) == ("free", dollars)


def test_an_older_plan_whose_end_is_told_takes_nothing_of_the_new_one(
    told: PureOrganization,
) -> None:
    told.tell(PAID, invoice("in_1"))
    second = line(MAX_5X, 19_900, END - DAY, END + 30 * DAY)
    told.tell(PAID, invoice("in_9", second, subscription="sub_2"), created=END - DAY)
    over = subscription(status="canceled", ended_at=END - DAY)
    told.tell(DELETED, over, created=END - DAY, at=moment(END + 31 * DAY))
    assert (told.plan, told.dollars) == ("max_5x", 149)


def owed_pending() -> list[ApplyPaymentEvent]:
    """Tell of an upgrade whose payment failed, and which waited a day for it in vain."""
    owed: dict[str, Any] = {"status": "open", "amount_remaining": 1}
    pending: dict[str, Any] = {"pending_update": {"expires_at": START + 2 * DAY}}
    at = START + DAY
    return [
        apply_message(PAID, invoice("in_1")),
        apply_message(FAILED, invoice("in_2", **owed), created=at),
        apply_message(UPDATED, subscription(**pending), created=at + 1),
        apply_message(UPDATED, subscription(), created=at - 1),
    ]


def test_what_waits_for_its_payment_is_owed_until_it_is_given_up() -> None:
    for order in permutations(owed_pending()):
        told = PureOrganization()
        for message in (*order, *order):
            assert told.apply(message) == APPLIED
        assert is_owed(told.subscription, moment(START + 2 * DAY - 1))
        assert not is_owed(told.subscription, moment(START + 2 * DAY))


def test_what_is_owed_is_owed_since_its_invoice_was_written() -> None:
    """Whatever order two invoices' failures are told in, and what was settled between them."""
    failed = [
        apply_message(
            FAILED, invoice(id, status="open", amount_remaining=1, created=written), created=at
        )
        for id, written, at in (("in_2", END, END + 5), ("in_3", END + 7, END + 9))
    ]
    again = apply_message(
        FAILED, invoice("in_2", status="open", amount_remaining=1, created=END), created=END + 9
    )
    settled = apply_message(UPDATED, subscription(), created=END + 6)
    for order in permutations([*failed, again, settled]):
        told = PureOrganization()
        for message in (apply_message(PAID, invoice("in_1")), *order):
            told.apply(message)
        kept = told.subscription
        assert (kept.dunning_invoice_id, kept.dunning_since) == ("in_3", moment(END + 7))


def test_what_is_withdrawn_is_owed_until_the_subscription_is_active_again() -> None:
    owed: dict[str, Any] = {"status": "open", "amount_remaining": 1}
    events = [
        apply_message(PAID, invoice("in_1")),
        apply_message(UPDATED, subscription(), created=END),
        apply_message(FAILED, invoice("in_2", **owed), created=END),
        apply_message(UPDATED, subscription(status="past_due"), created=END + 1),
    ]
    withdrawn = apply_message(UPDATED, subscription(), created=END + DAY)
    owed["created"] = END + 9 * DAY
    later = apply_message(FAILED, invoice("in_3", **owed), created=END + 9 * DAY)
    for first in permutations(events):
        told = PureOrganization()
        for message in first:
            told.apply(message)
        assert is_owed(told.subscription, moment(END + 9 * DAY))
    for order in permutations([*events[1:], withdrawn]):
        told = PureOrganization()
        for message in (events[0], *order):
            told.apply(message)
        assert not is_owed(told.subscription, moment(END + DAY))
        told.apply(later)
        assert is_owed(told.subscription, moment(END + 9 * DAY))
        assert told.subscription.dunning_since == moment(END + 9 * DAY)
