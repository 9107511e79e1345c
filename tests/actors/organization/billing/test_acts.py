"""What people ask about their subscription, and what they see of it."""

from dataclasses import replace
from typing import Any

import pytest

from tests.actors.organization.processor import END, START
from tests.actors.organization.pure_organization import (
    AT,
    DAY,
    MAX_5X,
    PRO,
    PureOrganization,
    invoice,
    line,
    subscription,
)
from tolsey.actors.organization.billing import acts
from tolsey.actors.organization.billing.calls import NextChange
from tolsey.actors.organization.billing.messages import (
    ReadSubscription,
    RecordBillingAct,
    SubscriptionView,
)
from tolsey.actors.refusals import NotFound


@pytest.fixture
def told() -> PureOrganization:
    return PureOrganization()


def act(told: PureOrganization, name: Any, **more: Any) -> list[Any]:
    decision = acts.record(told.state, RecordBillingAct(act=name, user_id="usr_1", at=AT, **more))
    told.state = decision.state
    return list(decision.records)


def view(told: PureOrganization) -> SubscriptionView:
    seen = acts.read(told.state, ReadSubscription(AT)).reply
    assert isinstance(seen, SubscriptionView)
    return seen


def test_an_organization_that_never_paid_is_seen_on_the_free_plan(told: PureOrganization) -> None:
    seen = view(told)
    assert told.state.created_at is not None
    assert seen == SubscriptionView(
        organization_id="org_1", created_at=told.state.created_at, plan="free"
    )
    assert not seen.is_subscribed


def test_what_is_paid_for_is_seen_with_all_that_a_change_starts_from(
    told: PureOrganization,
) -> None:
    told.tell("customer.subscription.created", subscription())
    told.tell("invoice.paid", invoice("in_1"))
    seen = view(told)
    assert (seen.plan, seen.cadence, seen.status) == ("pro", "monthly", "active")
    assert (seen.customer_id, seen.subscription_id) == ("cus_1", "sub_1")
    assert (seen.item_id, seen.price_id, seen.paid_invoice_id) == ("si_1", PRO, "in_1")
    assert seen.period_end is not None
    assert seen.period_end.timestamp() == END
    assert seen.is_subscribed


def test_every_act_is_written_down_with_who_did_it(told: PureOrganization) -> None:
    (row,) = act(told, "credits.purchase_started", detail={"cents": 5_000})
    assert (row.event, row.subject, row.organization_id, row.actor, row.metadata) == (
        *("credits.purchase_started", "org_1", "org_1", "usr_1"),
        '{"cents": 5000}',
    )
    assert told.state.subscription is None
    told.tell("invoice.paid", invoice("in_1"))
    (row,) = act(told, "portal.opened")
    assert row.subject == "sub_1"


def test_a_downgrade_is_seen_until_its_schedule_is_gone(told: PureOrganization) -> None:
    told.tell("invoice.paid", invoice("in_1", line(MAX_5X, 19_900)))
    coming = acts.coming(told.subscription, NextChange("sub_sched_1", "pro", "monthly"))
    told.state = replace(told.state, subscription=coming)
    assert (view(told).next_plan, view(told).next_cadence) == ("pro", "monthly")
    late = subscription(MAX_5X)
    told.tell("customer.subscription.updated", late, created=START + 1)
    assert view(told).next_plan is None
    scheduled = subscription(MAX_5X, schedule="sub_sched_1")
    told.tell("customer.subscription.updated", scheduled, created=START + DAY)
    assert (view(told).next_plan, view(told).schedule_id) == ("pro", "sub_sched_1")
    told.tell("customer.subscription.updated", late, created=START + 2 * DAY)
    assert (view(told).next_plan, view(told).schedule_id) == (None, None)


def test_nobody_sees_or_asks_anything_of_an_organization_that_is_not_there(
    told: PureOrganization,
) -> None:
    told.state = replace(told.state, exists=False)
    with pytest.raises(NotFound):
        view(told)
    with pytest.raises(NotFound):
        act(told, "portal.opened")


def test_a_second_subscription_beside_one_that_lives_is_written_down(
    told: PureOrganization,
) -> None:
    told.tell("customer.subscription.created", subscription())
    told.tell("invoice.paid", invoice("in_1"))
    told.tell("invoice.paid", invoice("in_2", subscription="sub_2"), created=START + DAY)
    assert view(told).subscription_id == "sub_2"
    assert "subscription.replaced" in told.audit
