"""What people ask about their subscription, and what they see of it."""

from dataclasses import replace
from datetime import datetime

from tolsey.actors.organization import plans
from tolsey.actors.organization.billing.calls import NextChange
from tolsey.actors.organization.billing.messages import (
    ReadSubscription,
    RecordBillingAct,
    SubscriptionView,
)
from tolsey.actors.organization.billing.subscription import is_owed
from tolsey.actors.organization.plans import Offer
from tolsey.actors.organization.state import OrganizationState
from tolsey.actors.refusals import NotFound
from tolsey.runtime.decision import Decision
from tolsey.storage.records.journal import audit_record
from tolsey.storage.records.money.subscription import SubscriptionRecord


def read(
    state: OrganizationState, message: ReadSubscription
) -> Decision[OrganizationState, SubscriptionView]:
    """Show what the organization pays for, and what of it changes next."""
    return Decision(state, view_of(state, message.at))


def view_of(state: OrganizationState, at: datetime) -> SubscriptionView:
    """Say what the organization pays for, and what of it changes next."""
    created_at = state.created_at
    if not state.exists or created_at is None:
        raise NotFound("This organization doesn't exist, or you don't belong to it. Check the id.")
    known = state.subscription
    if known is None:
        return SubscriptionView(
            organization_id=state.organization_id, created_at=created_at, plan=state.plan
        )
    owes = is_owed(known, at)
    waits = known.schedule_id is not None and known.schedule_id == known.next_schedule_id
    return SubscriptionView(
        organization_id=state.organization_id,
        created_at=created_at,
        plan=state.plan,
        cadence=known.cadence,
        customer_id=known.customer_id,
        subscription_id=known.subscription_id,
        item_id=known.item_id,
        price_id=known.price_id,
        status=known.status,
        period_start=known.period_start,
        period_end=known.period_end,
        cancel_at_period_end=known.cancel_at_period_end,
        schedule_id=known.schedule_id,
        next_plan=known.next_plan if waits else None,
        next_cadence=known.next_cadence if waits else None,
        paid_invoice_id=known.paid_invoice_id,
        paid_at=known.paid_at,
        paid_until=known.paid_until,
        dunning_since=known.dunning_since if owes else None,
        dunning_url=known.dunning_url if owes else None,
    )


def record(
    state: OrganizationState, message: RecordBillingAct
) -> Decision[OrganizationState, None]:
    """Write down what a person asked for."""
    if not state.exists:
        raise NotFound("This organization doesn't exist, or you don't belong to it. Check the id.")
    known = state.subscription
    subject = (known and known.subscription_id) or state.organization_id
    row = audit_record(
        message.act, subject, state.organization_id, message.user_id, **message.detail
    )
    return Decision(state, None, records=(row,))


def next_plan(view: SubscriptionView) -> Offer | None:
    """Tell what the organization will have when the period ends; None when that is no change.

    A schedule outlives the change it made by one period.
    """
    if not view.is_subscribed:
        return None
    if view.cancel_at_period_end:
        return Offer(plans.FREE, plans.Cadence.MONTHLY)
    if view.next_plan is None or view.next_cadence is None:
        return None
    following = Offer(plans.BY_CODE[view.next_plan], plans.Cadence(view.next_cadence))
    return None if following == plans.held(view.plan, view.cadence) else following


def with_scheduled_offer(known: SubscriptionRecord, offer: Offer | None) -> SubscriptionRecord:
    """Remember what a schedule brings that was made elsewhere; ours say it themselves."""
    id = known.schedule_id
    if offer is None or id is None or id == known.next_schedule_id:
        return known
    return coming(known, NextChange(id, offer.plan.code, offer.cadence.value))


def coming(known: SubscriptionRecord, next: NextChange) -> SubscriptionRecord:  # noqa: A002 - the message's word
    """Remember what a schedule brings when the period ends."""
    return replace(
        known,
        schedule_id=next.schedule_id,
        next_schedule_id=next.schedule_id,
        next_plan=next.plan,
        next_cadence=next.cadence,
    )
