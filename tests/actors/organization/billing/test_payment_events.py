"""What is read from the payment processor's events, and what is refused."""

import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.actors.organization import processor
from tests.actors.organization.processor import (
    CREDITS,
    END,
    OLD,
    START,
    event,
    line,
    old_line,
)
from tolsey.actors.bodies import Unreadable
from tolsey.actors.organization.billing.payment_events.catalogue import (
    TYPES,
    keep,
    read,
    restore,
)
from tolsey.actors.organization.billing.payment_events.envelopes import is_thin, open_envelope
from tolsey.actors.organization.billing.payment_events.invoices import InvoiceFacts, InvoiceLine
from tolsey.actors.organization.billing.payment_events.metadata import Metadata
from tolsey.actors.organization.billing.payment_events.payouts import AccountFacts, PayoutFacts
from tolsey.actors.organization.billing.payment_events.purchases import CheckoutFacts, PaymentFacts
from tolsey.actors.organization.billing.payment_events.reversals import DisputeFacts, RefundFacts
from tolsey.actors.organization.billing.payment_events.subscriptions import (
    SubscribedItem,
    SubscriptionFacts,
)

STARTS, ENDS = datetime.fromtimestamp(START, UTC), datetime.fromtimestamp(END, UTC)
PURCHASE = Metadata(organization_id="org_1", kind="credits", credits_cents=5000)
ORGANIZATION = Metadata(organization_id="org_1")


def facts(type_: str, about: dict[str, Any], **outside: Any) -> Any:
    return read(open_envelope(event(type_, about, **outside)))


def refused(type_: str, about: dict[str, Any], **outside: Any) -> str:
    with pytest.raises(Unreadable) as caught:
        facts(type_, about, **outside)
    return caught.value.field


def test_a_purchase_is_worth_its_amount_before_tax() -> None:
    assert facts("checkout.session.completed", processor.checkout()) == CheckoutFacts(
        session_id="cs_1",
        said=PURCHASE,
        mode="payment",
        is_paid=True,
        customer_id="cus_1",
        subscription_id=None,
        payment_intent_id="pi_1",
        invoice_id=None,
        currency="usd",
        pretax_cents=5000,
        total_cents=6000,
    )
    assert facts("payment_intent.succeeded", processor.payment()) == PaymentFacts(
        payment_intent_id="pi_1",
        said=PURCHASE,
        customer_id="cus_1",
        charge_id="ch_1",
        invoice_id=None,
        status="succeeded",
        is_paid=True,
        currency="usd",
        amount_cents=6000,
        received_cents=6000,
        failure_code=None,
        decline_code=None,
    )


@pytest.mark.parametrize("status", ["unpaid", "no_payment_required"])
def test_a_checkout_whose_money_has_not_come_proves_no_payment(status: str) -> None:
    read = facts("checkout.session.completed", processor.checkout(payment_status=status))
    assert read.is_paid is False


@pytest.mark.parametrize("status", ["processing", "requires_payment_method", "requires_capture"])
def test_a_payment_that_did_not_succeed_proves_nothing(status: str) -> None:
    body = processor.payment(status=status, amount_received=0)
    assert facts("payment_intent.succeeded", body).is_paid is False


@pytest.mark.parametrize("said", ["", "0", "-5", "5e3", "50.00", "\u0665", "1" * 10, None, 5000])
def test_credits_that_are_not_whole_cents_are_refused(said: object) -> None:
    body = processor.payment(metadata={**CREDITS, "credits_cents": said})
    assert refused("payment_intent.succeeded", body) == "data.object.metadata.credits_cents"


def test_credits_of_more_than_was_paid_are_refused() -> None:
    little = processor.payment(amount_received=4999)
    assert refused("payment_intent.succeeded", little) == "data.object.amount_received"
    cheap = processor.checkout(amount_subtotal=4999)
    assert refused("checkout.session.completed", cheap) == "data.object.amount_subtotal"


def test_credits_paid_in_another_currency_are_refused() -> None:
    yen = {"currency": "jpy"}
    assert refused("payment_intent.succeeded", processor.payment(**yen)) == "data.object.currency"
    body = processor.checkout(**yen)
    assert refused("checkout.session.completed", body) == "data.object.currency"


def test_only_metadata_says_whose_a_payment_is() -> None:
    body = processor.checkout(metadata={}, client_reference_id="org_other")
    assert facts("checkout.session.completed", body).said == Metadata()


def test_a_sponsor_needs_no_organization() -> None:
    body = processor.checkout(metadata={"kind": "sponsor"}, customer=None)
    assert facts("checkout.session.completed", body).needs_organization is False
    assert facts("checkout.session.completed", processor.checkout()).needs_organization


@pytest.mark.parametrize("type_", ["invoice.paid", "invoice.payment_succeeded"])
def test_both_shapes_of_an_invoice_say_the_same(type_: str) -> None:
    new = facts(type_, processor.invoice())
    old = facts(type_, processor.old_invoice(), api_version=OLD)
    assert new == InvoiceFacts(
        invoice_id="in_1",
        said=ORGANIZATION,
        customer_id="cus_1",
        subscription_id="sub_1",
        payment_intent_id=None,
        charge_id=None,
        billing_reason="subscription_create",
        status="paid",
        is_paid=True,
        currency="usd",
        pretax_cents=7900,
        total_cents=8690,
        paid_cents=8690,
        lines=(
            InvoiceLine(
                price_id="price_pro",
                amount_cents=7900,
                period_start=STARTS,
                period_end=ENDS,
                is_proration=False,
                subscription_id="sub_1",
            ),
        ),
        has_all_lines=True,
        attempts=1,
        next_attempt_at=None,
        hosted_url="https://invoice.example/1",
        written_at=STARTS,
    )
    assert old == replace(new, payment_intent_id="pi_1", charge_id="ch_1")


def test_an_invoice_of_neither_shape_is_refused() -> None:
    body = processor.old_invoice()
    del body["subscription"]
    assert refused("invoice.paid", body) == "data.object.parent"


def test_a_manual_invoice_has_no_subscription() -> None:
    read = facts("invoice.paid", processor.invoice(parent=None, billing_reason="manual"))
    assert (read.subscription_id, read.said) == (None, Metadata())


@pytest.mark.parametrize(
    "open_", [{"status": "open"}, {"status": "draft"}, {"amount_remaining": 1}, {"status": "void"}]
)
def test_an_invoice_that_is_not_wholly_paid_proves_no_payment(open_: dict[str, Any]) -> None:
    assert facts("invoice.paid", processor.invoice(**open_)).is_paid is False


def test_the_lines_of_an_upgrade_keep_what_is_given_back() -> None:
    unused = line(amount=-5267)
    unused["parent"]["subscription_item_details"]["proration"] = True
    read = facts("invoice.paid", processor.invoice(unused, line(amount=13267)))
    assert [(one.amount_cents, one.is_proration) for one in read.lines] == [
        (-5267, True),
        (13267, False),
    ]


def test_lines_that_the_event_left_out_are_told() -> None:
    body = processor.invoice(lines={"data": [line()], "has_more": True})
    assert facts("invoice.paid", body).has_all_lines is False
    assert refused("invoice.paid", processor.invoice(lines=None)) == "data.object.lines"


@pytest.mark.parametrize("bad", [line(period={}), line(amount="79.00"), old_line(amount=None)])
def test_a_line_that_cannot_be_read_is_named(bad: dict[str, Any]) -> None:
    field = refused("invoice.paid", processor.invoice(line(), bad))
    assert field.startswith("data.object.lines.data.1.")


def test_both_shapes_of_a_subscription_say_the_same() -> None:
    body = processor.subscription()
    new = facts("customer.subscription.updated", body)
    moved = {
        name: body["items"]["data"][0].pop(name)
        for name in ("current_period_start", "current_period_end")
    }
    assert facts("customer.subscription.updated", {**body, **moved}, api_version=OLD) == new
    assert new == SubscriptionFacts(
        subscription_id="sub_1",
        said=ORGANIZATION,
        customer_id="cus_1",
        status="active",
        items=(
            SubscribedItem(
                item_id="si_1",
                price_id="price_pro",
                quantity=1,
                period_start=STARTS,
                period_end=ENDS,
            ),
        ),
        has_all_items=True,
        has_pending_update=False,
        cancel_at_period_end=False,
        cancel_at=None,
        canceled_at=None,
        ended_at=None,
        schedule_id=None,
        latest_invoice_id="in_1",
    )
    period = "data.object.items.data.0.current_period_start"
    assert refused("customer.subscription.updated", body) == period


def test_a_change_that_waits_for_its_payment_is_told() -> None:
    body = processor.subscription(pending_update={"expires_at": END})
    answered = facts("customer.subscription.updated", body)
    assert answered.has_pending_update
    assert answered.pending_until == ENDS


def test_a_refund_is_all_that_was_ever_refunded() -> None:
    assert facts("charge.refunded", processor.charge()) == RefundFacts(
        charge_id="ch_1",
        said=PURCHASE,
        payment_intent_id="pi_1",
        customer_id="cus_1",
        currency="usd",
        total_cents=6000,
        refunded_cents=3000,
        is_disputed=False,
    )
    more = processor.charge(amount_refunded=6001)
    assert refused("charge.refunded", more) == "data.object.amount_refunded"
    assert refused("charge.refunded", processor.charge(amount="60.00")) == "data.object.amount"


@pytest.mark.parametrize(
    ("status", "standing"),
    [
        ("warning_needs_response", "open"),
        ("needs_response", "open"),
        ("appeal_under_review", "open"),
        ("lost", "lost"),
        ("won", "won"),
        ("warning_closed", "won"),
        ("prevented", "won"),
    ],
)
def test_a_dispute_stands_open_lost_or_won(status: str, standing: str) -> None:
    read = facts("charge.dispute.closed", processor.dispute(status=status))
    assert read == DisputeFacts(
        dispute_id="dp_1",
        said=Metadata(),
        charge_id="ch_1",
        payment_intent_id="pi_1",
        currency="usd",
        disputed_cents=6000,
        status=status,
        reason="fraudulent",
    )
    assert (read.standing, read.payment_ref) == (standing, "pi_1")


def test_a_dispute_of_an_unknown_standing_or_payment_is_refused() -> None:
    assert refused("charge.dispute.closed", processor.dispute(status="x")) == "data.object.status"
    nobodys = processor.dispute(charge=None, payment_intent=None)
    assert refused("charge.dispute.created", nobodys) == "data.object.payment_intent"


def test_an_account_is_verified_when_nothing_is_overdue() -> None:
    read = facts("account.updated", processor.account(), account="acct_1")
    assert isinstance(read, AccountFacts)
    assert (read.is_verified, read.user_id) == (True, "usr_1")
    assert not replace(read, past_due=("external_account",)).is_verified
    assert not replace(read, disabled_reason="under_review").is_verified
    assert not replace(read, can_be_paid_out=False).is_verified
    assert not replace(read, has_submitted_details=False).is_verified


def test_an_account_that_says_nothing_of_its_requirements_is_refused() -> None:
    body = processor.account(requirements=None)
    assert refused("account.updated", body) == "data.object.requirements"
    old = {"disabled_reason": "fields_needed", "fields_needed": ["external_account"]}
    read = facts("account.updated", {**body, "verification": old})
    assert (read.is_verified, read.currently_due) == (False, ("external_account",))


def test_an_account_of_another_account_is_refused() -> None:
    field = refused("account.updated", processor.account(), account="acct_other")
    assert field == "data.object.id"


def test_a_failed_payout_says_why() -> None:
    assert facts("payout.failed", processor.payout(), account="acct_1") == PayoutFacts(
        payout_id="po_1",
        account_id="acct_1",
        withdrawal_id="wd_1",
        currency="usd",
        amount_cents=25_000,
        status="failed",
        failure_code="account_closed",
        failure_message="The bank account has been closed.",
    )


def test_an_object_of_another_kind_is_refused() -> None:
    assert refused("invoice.paid", processor.charge()) == "data.object.object"


@pytest.mark.parametrize(
    "outside",
    [
        {"object": "list"},
        {"id": None},
        {"id": "evt 1"},
        {"id": "e" * 256},
        {"type": None},
        {"livemode": None},
        {"created": "now"},
        {"created": True},
        {"data": {}},
        {"data": []},
        {"account": 7},
    ],
)
def test_what_is_no_event_is_refused(outside: dict[str, Any]) -> None:
    with pytest.raises(Unreadable):
        open_envelope(event("invoice.paid", processor.invoice(), **outside))


def test_a_thin_event_is_known_by_its_object() -> None:
    assert is_thin({"object": "v2.core.event", "id": "evt_1", "type": "v1.invoice.paid"})
    assert not is_thin(event("invoice.paid", processor.invoice()))


SAMPLES = {
    "checkout.session": processor.checkout(),
    "subscription": processor.subscription(),
    "invoice": processor.invoice(),
    "payment_intent": processor.payment(),
    "charge": processor.charge(),
    "dispute": processor.dispute(),
    "payout": processor.payout(),
    "account": processor.account(),
}


@pytest.mark.parametrize("type_", TYPES)
def test_facts_are_restored_as_they_were_kept(type_: str) -> None:
    read = facts(type_, SAMPLES[TYPES[type_].object])
    assert restore(type_, keep(read)) == read


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=5,
)


@given(st.data())
def test_no_value_in_place_of_another_breaks_the_reader(data: st.DataObject) -> None:
    type_ = data.draw(st.sampled_from(sorted(TYPES)))
    body = json.loads(json.dumps(SAMPLES[TYPES[type_].object]))
    places = list(_places(body))
    holder, key = data.draw(st.sampled_from(places))
    holder[key] = data.draw(JSON)
    try:
        read = facts(type_, body)
    except Unreadable:
        return
    assert "\\u0000" not in keep(read)  # no jsonb holds it
    assert restore(type_, keep(read)) == read


def _places(value: Any) -> Any:
    keys = value if isinstance(value, dict) else range(len(value))
    for key in keys:
        yield value, key
        if isinstance(value[key], dict | list):
            yield from _places(value[key])
