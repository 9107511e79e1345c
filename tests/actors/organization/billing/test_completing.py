"""What the processor is asked before an event is applied, and what is asked again."""

from datetime import timedelta

from tests.actors.organization.pure_organization import (
    AT,
    PRO,
    PureOrganization,
    apply_message,
    invoice,
    subscription,
)
from tolsey.actors.organization.billing import completing
from tolsey.actors.organization.billing.completing import CompletePaymentEvent, PaymentEventReceived
from tolsey.actors.organization.billing.messages import Applied, ApplyPaymentEvent

UPDATED = "customer.subscription.updated"


def received(message: ApplyPaymentEvent) -> PaymentEventReceived:
    return PaymentEventReceived(
        event_id=message.event_id,
        type=message.type,
        livemode=message.livemode,
        created_at=message.created_at,
        facts=message.facts,
        at=message.at,
        offers=message.offers,
    )


def asked(answered: PureOrganization, message: ApplyPaymentEvent) -> CompletePaymentEvent | None:
    found = completing.lacking(answered.state, received(message), message.payment_ref)
    if found is None:
        return None
    assert isinstance(found.call, CompletePaymentEvent)
    return found.call


def test_a_subscription_is_asked_for_when_its_event_is_no_news() -> None:
    answered = PureOrganization()
    answered.tell(UPDATED, subscription())
    again = apply_message(UPDATED, subscription())
    later = apply_message(UPDATED, subscription(), created=int(AT.timestamp()) + 5)

    call = asked(answered, again)
    assert call is not None
    assert call.seen_at == AT
    assert asked(answered, later) is None


def test_what_its_schedule_brings_is_asked_for() -> None:
    message = apply_message(UPDATED, subscription(schedule="sub_sched_1"))
    assert asked(PureOrganization(), message) is not None


def test_an_answer_that_was_overtaken_is_asked_for_again() -> None:
    answered = PureOrganization()
    answered.tell(UPDATED, subscription())
    overtaken = apply_message(
        UPDATED, subscription(), is_asked=True, asked_after=AT - timedelta(seconds=1)
    )
    before = answered.state

    assert answered.apply(overtaken) == completing.STALE
    assert answered.state is before
    found = completing.outdated(answered.state, overtaken)
    assert found is not None
    assert isinstance(found.call, CompletePaymentEvent)
    assert found.call.seen_at == AT


def test_an_answer_about_another_subscription_than_the_known_one_is_not_asked_for_for_ever() -> (
    None
):
    answered = PureOrganization()
    answered.tell("invoice.paid", invoice("in_1"))
    answered.tell(UPDATED, subscription())
    other = subscription(id="sub_2", status="canceled", ended_at=int(AT.timestamp()))
    answer = apply_message(UPDATED, other, is_asked=True, asked_after=None)

    assert answered.apply(answer) == Applied("applied")
    assert answered.subscription.subscription_id == "sub_1"


def test_an_end_is_remembered_until_it_is_on_disk() -> None:
    answered = PureOrganization()
    answered.tell(UPDATED, subscription(PRO))
    answered.tell(
        "customer.subscription.deleted",
        subscription(PRO, status="canceled", ended_at=int(AT.timestamp())),
        created=int(AT.timestamp()) + 1,
    )
    assert answered.state.over == ("sub_1",)
