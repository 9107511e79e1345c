"""What each event of the payment processor does to an organization, and what it never does."""

import random
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.actors.organization import processor
from tests.actors.organization.processor import END, OURS, START
from tests.actors.organization.pure_organization import (
    DAY,
    MAX_5X,
    PRO,
    PRO_YEARLY,
    PureOrganization,
    apply_message,
    invoice,
    line,
    prorated,
    subscription,
)
from tolsey.actors.organization.billing.messages import Applied, ApplyPaymentEvent

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


def subscription_checkout() -> dict[str, Any]:
    return processor.checkout(
        mode="subscription", payment_intent=None, subscription="sub_1", metadata=OURS
    )


def upgrade(at: int, *, paid_cents: int = 19_900) -> dict[str, Any]:
    """Make an upgrade's invoice as we ask for it: the cycle starts anew."""
    lines = (prorated(PRO, -5_000, at), line(MAX_5X, paid_cents, at, at + 30 * DAY))
    return invoice("in_2", *lines, billing_reason="subscription_update")


# Plans.


def test_the_first_paid_invoice_brings_the_plan_and_its_allowance(told: PureOrganization) -> None:
    assert told.tell(CHECKOUT, subscription_checkout()) == APPLIED
    assert told.tell(CREATED, subscription()) == APPLIED
    assert (told.plan, told.dollars) == ("free", 0)
    assert told.tell(PAID, invoice("in_1")) == APPLIED
    assert (told.plan, told.dollars) == ("pro", 49)
    assert told.audit == ["subscription.created", "monthly.reset"]
    kept = told.subscription
    assert (kept.customer_id, kept.subscription_id, kept.item_id) == ("cus_1", "sub_1", "si_1")
    assert (kept.status, kept.cadence, kept.paid_invoice_id) == ("active", "monthly", "in_1")


def test_the_alias_of_a_paid_invoice_says_nothing_new(told: PureOrganization) -> None:
    told.tell(PAID, invoice("in_1"))
    before = told.state
    assert told.tell("invoice.payment_succeeded", invoice("in_1")) == APPLIED
    assert told.state is before


def test_an_upgrade_that_is_not_paid_brings_nothing(told: PureOrganization) -> None:
    told.tell(CREATED, subscription())
    told.tell(PAID, invoice("in_1"))
    at = START + 10 * DAY
    told.tell(UPDATED, subscription(MAX_5X, at, at + 30 * DAY), created=at)
    assert (told.plan, told.dollars) == ("pro", 49)
    assert told.subscription.price_id == MAX_5X
    open_invoice = invoice("in_2", line(MAX_5X, 19_900), status="open", amount_remaining=21_890)
    assert told.tell(PAID, open_invoice, created=at) == Applied("ignored", "not_paid")
    told.tell(FAILED, open_invoice, created=at)
    assert (told.plan, told.dollars) == ("pro", 49)


def test_an_upgrade_that_is_paid_replaces_the_allowance(told: PureOrganization) -> None:
    told.tell(PAID, invoice("in_1"))
    at = START + 10 * DAY
    told.tell(PAID, upgrade(at), created=at)
    assert (told.plan, told.dollars) == ("max_5x", 149)
    told.tell(UPDATED, subscription(MAX_5X, at, at + 30 * DAY), created=at)
    assert (told.plan, told.dollars) == ("max_5x", 149)
    assert "subscription.upgraded" in told.audit


def test_an_upgrade_within_its_period_tops_up_to_the_higher_allowance(
    told: PureOrganization,
) -> None:
    told.tell(PAID, invoice("in_1"))
    at = START + 10 * DAY
    lines = (prorated(PRO, -5_267, at), prorated(MAX_5X, 13_267, at))
    told.tell(PAID, invoice("in_2", *lines, billing_reason="subscription_update"), created=at)
    assert (told.plan, told.dollars) == ("max_5x", 149)


def test_an_upgrade_for_the_last_day_buys_no_whole_month(told: PureOrganization) -> None:
    told.tell(PAID, invoice("in_1"))
    at = START + 29 * DAY
    lines = (prorated(PRO, -263, at), prorated(MAX_5X, 663, at))
    told.tell(PAID, invoice("in_2", *lines, billing_reason="subscription_update"), created=at)
    assert (told.plan, told.dollars) == ("max_5x", 49 + 6.63)


def test_the_plan_is_that_of_the_dearest_line_that_costs_something(told: PureOrganization) -> None:
    lines = (line(PRO, 7_900), line(MAX_5X, -19_900), line("price_other", 900))
    told.tell(PAID, invoice("in_1", *lines))
    assert (told.plan, told.dollars) == ("pro", 49)


def test_a_downgrade_begins_with_its_period_and_is_kept_when_it_is_paid(
    told: PureOrganization,
) -> None:
    told.tell(PAID, invoice("in_1", line(MAX_5X, 19_900)))
    told.tell(UPDATED, subscription(MAX_5X, schedule="sub_sched_1"), created=START + DAY)
    assert told.plan == "max_5x"
    later = END + 30 * DAY
    told.tell(UPDATED, subscription(PRO, END, later), created=END)
    assert (told.plan, told.dollars) == ("pro", 149)
    renewal = invoice("in_2", line(PRO, 7_900, END, later), billing_reason="subscription_cycle")
    told.tell(PAID, renewal, created=END + 3_600)
    assert (told.plan, told.dollars) == ("pro", 49)
    assert told.audit.count("subscription.downgraded") == 1


def test_a_renewal_resets_the_allowance_and_does_not_add_to_it(told: PureOrganization) -> None:
    told.tell(PAID, invoice("in_1"))
    later = END + 30 * DAY
    renewal = invoice("in_2", line(PRO, 7_900, END, later), billing_reason="subscription_cycle")
    told.tell(PAID, renewal, created=END)
    assert told.dollars == 49
    assert told.audit.count("monthly.reset") == 2


def test_a_year_that_is_paid_grants_its_first_month(told: PureOrganization) -> None:
    yearly = invoice("in_1", line(PRO_YEARLY, 75_000, START, START + 365 * DAY))
    told.tell(PAID, yearly)
    assert (told.plan, told.dollars) == ("pro", 49)
    kept = told.subscription
    assert kept.cadence == "yearly"
    assert kept.paid_until is not None
    assert (kept.paid_until.timestamp(), kept.paid_invoice_id) == (START + 365 * DAY, "in_1")
    ends = told.state.credits.period_end
    assert ends is not None
    assert kept.paid_from is not None
    assert (ends - kept.paid_from).days == 30


def test_a_cancellation_keeps_the_plan_until_its_period_ends(told: PureOrganization) -> None:
    told.tell(PAID, invoice("in_1"))
    told.tell(UPDATED, subscription(cancel_at_period_end=True), created=START + DAY)
    assert told.plan == "pro"
    assert told.subscription.cancel_at_period_end
    told.tell(DELETED, subscription(status="canceled", ended_at=END), created=END)
    assert (told.plan, told.dollars) == ("free", 0)
    assert told.audit[-1] == "subscription.cancelled"


@pytest.mark.parametrize(("status", "plan"), [("past_due", "pro"), ("unpaid", "free")])
def test_a_plan_is_kept_while_it_is_dunned_and_no_longer(
    told: PureOrganization, status: str, plan: str
) -> None:
    told.tell(PAID, invoice("in_1"))
    told.tell(UPDATED, subscription(status=status), created=END + DAY)
    assert told.plan == plan


def test_what_is_subscribed_to_next_takes_the_place_of_what_ended(told: PureOrganization) -> None:
    told.tell(PAID, invoice("in_1"))
    told.tell(DELETED, subscription(status="canceled", ended_at=START), created=START + DAY)
    assert told.plan == "free"
    at = START + 2 * DAY
    second = line(MAX_5X, 19_900, at, at + 30 * DAY)
    told.tell(PAID, invoice("in_9", second, subscription="sub_2"), created=at)
    told.tell(UPDATED, subscription(), created=START)
    assert (told.plan, told.subscription.subscription_id) == ("max_5x", "sub_2")


def test_an_invoice_that_comes_after_the_end_brings_no_plan_back(told: PureOrganization) -> None:
    told.tell(DELETED, subscription(status="canceled", ended_at=START), created=START + DAY)
    told.tell(PAID, invoice("in_1"))
    assert (told.plan, told.dollars) == ("free", 49)


def test_a_plan_by_contract_is_not_touched_by_events(told: PureOrganization) -> None:
    told.state = _with_plan(told, "custom")
    told.tell(PAID, invoice("in_1"))
    assert told.state.plan == "custom"


def test_a_price_that_is_not_ours_fails_loudly_and_can_be_tried_again(
    told: PureOrganization,
) -> None:
    unknown = apply_message(PAID, invoice("in_1", line("price_other", 7_900)), offers=())
    assert told.apply(unknown) == Applied("failed", "unknown_price")
    assert told.tell(CREATED, subscription("price_other")) == Applied("failed", "unknown_price")
    assert told.settled == [("failed", "unknown_price")] * 2
    assert (told.state.subscription, told.dollars) == (None, 0)
    assert told.tell(PAID, invoice("in_1")) == APPLIED


def test_an_invoice_that_no_subscription_wrote_grants_no_plan(told: PureOrganization) -> None:
    manual = invoice("in_1", billing_reason="manual")
    assert told.tell(PAID, manual) == Applied("ignored", "billing_reason")
    of_a_purchase = processor.invoice(
        *(processor.line(parent=None),), parent=None, billing_reason="manual"
    )
    assert told.tell(PAID, of_a_purchase) == Applied("ignored", "no_subscription")
    assert (told.plan, told.dollars) == ("free", 0)


# Order among snapshots.


def test_an_older_snapshot_never_undoes_a_newer_one(told: PureOrganization) -> None:
    told.tell(PAID, invoice("in_1"))
    told.tell(DELETED, subscription(status="canceled", ended_at=END), created=END)
    before = told.state
    told.tell(UPDATED, subscription(), created=START + DAY)
    assert told.state is before


def test_an_older_snapshot_says_nothing_of_what_is_subscribed_to_now(
    told: PureOrganization,
) -> None:
    told.tell(UPDATED, subscription(MAX_5X), created=START + DAY)
    told.tell(UPDATED, subscription(PRO))
    assert told.subscription.price_id == MAX_5X


def test_a_snapshot_of_before_an_upgrade_was_paid_lowers_nothing(told: PureOrganization) -> None:
    told.tell(PAID, invoice("in_1"))
    at = START + 10 * DAY
    told.tell(PAID, upgrade(at), created=at)
    told.tell(UPDATED, subscription(PRO), created=START + DAY)
    assert told.plan == "max_5x"
    assert "subscription.downgraded" not in told.audit


def test_of_two_snapshots_of_one_second_the_same_stands_in_any_order() -> None:
    snapshots = [
        (CREATED, subscription(status="incomplete")),
        (UPDATED, subscription()),
        (UPDATED, subscription(MAX_5X)),
        (UPDATED, subscription(cancel_at_period_end=True)),
    ]
    ends = []
    for seed in range(24):
        told, shuffled = PureOrganization(), snapshots[:]
        random.Random(seed).shuffle(shuffled)  # noqa: S311 - a shuffle
        for type_, about in shuffled:
            told.tell(type_, about)
        ends.append(told.subscription)
    assert ends == [ends[0]] * 24


def test_what_the_processor_says_now_counts_whatever_the_event_said(told: PureOrganization) -> None:
    told.tell(UPDATED, subscription(MAX_5X))
    seen_at = told.subscription.seen_at
    asked = {"is_asked": True, "asked_after": seen_at}
    assert told.tell(UPDATED, subscription(PRO), **asked) == APPLIED
    assert told.subscription.price_id == PRO


def test_an_answer_of_before_the_newest_event_is_asked_for_again(told: PureOrganization) -> None:
    told.tell(UPDATED, subscription(MAX_5X), created=START + DAY)
    asked: dict[str, Any] = {"is_asked": True, "asked_after": None}
    before = told.state
    assert told.tell(UPDATED, subscription(PRO), **asked).state == "stale"
    assert told.state is before
    assert told.settled == [("applied", None)]


# Dunning.


def test_a_failed_invoice_is_owed_until_it_is_paid(told: PureOrganization) -> None:
    told.tell(PAID, invoice("in_1"))
    owed: dict[str, Any] = {"status": "open", "amount_remaining": 8_690, "created": END}
    told.tell(FAILED, invoice("in_2", **owed), created=END + 1)
    told.tell("invoice.payment_action_required", invoice("in_2", **owed), created=END + DAY)
    kept = told.subscription
    assert kept.dunning_url == "https://invoice.example/1"
    assert kept.dunning_since is not None
    assert kept.dunning_since.timestamp() == END
    assert told.plan == "pro"
    renewal = line(PRO, 7_900, END, END + 30 * DAY)
    told.tell(PAID, invoice("in_2", renewal), created=END + 2 * DAY)
    assert (told.subscription.dunning_since, told.subscription.dunning_url) == (None, None)


def test_a_failure_that_comes_after_its_payment_is_not_owed(told: PureOrganization) -> None:
    told.tell(PAID, invoice("in_2"), created=END + DAY)
    told.tell(FAILED, invoice("in_2", status="open", amount_remaining=1), created=END)
    assert told.subscription.dunning_since is None
    told.tell(FAILED, invoice("in_0", status="open", amount_remaining=1), created=END)
    assert told.subscription.dunning_since is None


def history() -> list[ApplyPaymentEvent]:
    """Tell a life: a plan, a purchase, a part refunded, an upgrade, two disputes, a renewal, an end."""
    at, later = START + 10 * DAY, START + 40 * DAY
    other = {"id": "ch_2", "payment_intent": "pi_2"}
    return [
        apply_message(CHECKOUT, subscription_checkout()),
        apply_message(CREATED, subscription(status="incomplete")),
        apply_message(UPDATED, subscription()),
        apply_message(PAID, invoice("in_1")),
        apply_message("invoice.payment_succeeded", invoice("in_1")),
        apply_message(CHECKOUT, processor.checkout(), created=START + DAY),
        apply_message(INTENT, processor.payment(), created=START + DAY),
        apply_message(REFUNDED, processor.charge(), created=START + 2 * DAY),
        apply_message(PAID, upgrade(at), created=at),
        apply_message(UPDATED, subscription(MAX_5X, at, later), created=at),
        apply_message(INTENT, processor.payment(id="pi_2", latest_charge="ch_2"), created=at),
        apply_message(DISPUTED, processor.dispute(**{**other, "id": "dp_2", "charge": "ch_2"})),
        apply_message(CLOSED, processor.dispute(**{**other, "id": "dp_2", "status": "won"})),
        apply_message(DISPUTED, processor.dispute(amount=1_000), created=at),
        apply_message(FAILED, invoice("in_3", status="open", amount_remaining=1), created=later),
        apply_message(
            PAID,
            invoice("in_3", line(MAX_5X, 19_900, later, later + 30 * DAY)),
            created=later + DAY,
        ),
        apply_message(UPDATED, subscription(MAX_5X, later, later + 30 * DAY), created=later + DAY),
        apply_message(
            DELETED,
            subscription(
                MAX_5X, later, later + 30 * DAY, status="canceled", ended_at=later + 9 * DAY
            ),
            created=later + 9 * DAY,
        ),
    ]


@given(st.randoms(use_true_random=False), st.data())
def test_any_order_and_any_repetition_comes_to_the_same(
    chance: random.Random, data: st.DataObject
) -> None:
    life = history()
    orderly = PureOrganization()
    for message in life:
        orderly.apply(message)
    repeated = data.draw(st.lists(st.sampled_from(life), max_size=8))
    shuffled = [*life, *repeated]
    chance.shuffle(shuffled)
    told = PureOrganization()
    for message in shuffled:
        assert told.apply(message).state in {"applied", "ignored"}
    assert told.plan == orderly.plan == "free"
    assert told.dollars == orderly.dollars
    assert told.kinds == orderly.kinds
    assert _essence(told) == _essence(orderly)


def _essence(told: PureOrganization) -> Any:
    kept = told.subscription
    return (
        *(kept.subscription_id, kept.status, kept.plan, kept.seen_at, kept.period_end),
        *(kept.paid_plan, kept.paid_until, kept.paid_invoice_id, kept.paid_at),
        *(kept.dunning_since, kept.dunning_url),
    )


def _with_plan(told: PureOrganization, plan: str) -> Any:
    return replace(told.state, plan=plan)


def test_credits_follow_what_was_due_before_the_customers_balance(told: PureOrganization) -> None:
    """What a balance paid was paid; what a coupon made free brings the plan and no credits."""
    of_balance = invoice("in_1", amount_paid=0, amount_due=0, starting_balance=-8_690)
    told.tell(PAID, of_balance)
    assert (told.plan, told.dollars) == ("pro", 49)
    free = PureOrganization()
    assert free.tell(PAID, invoice("in_1", total=0, amount_paid=0)) == Applied(
        "applied", "nothing_was_due"
    )
    assert (free.plan, free.dollars) == ("pro", 0)
