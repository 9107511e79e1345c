"""What people ask about their subscription, and what they see of it."""

from dataclasses import replace
from datetime import datetime

from tolsey.actors.organization.billing.messages import (
    NextChange,
    ReadSubscription,
    RecordBillingAct,
    SetAside,
    SettleChange,
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
        raise NotFound("There is no such organization.")
    known = state.subscription
    if known is None:
        return SubscriptionView(state.organization_id, created_at, state.plan)
    owes = is_owed(known, at)
    waits = known.schedule_id is not None and known.schedule_id == known.next_schedule_id
    return SubscriptionView(
        state.organization_id,
        created_at,
        state.plan,
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
        refused_changes=known.refused_changes,
        aside=_aside(known),
    )


def record(
    state: OrganizationState, message: RecordBillingAct
) -> Decision[OrganizationState, None]:
    """Write down what a person asked for."""
    if not state.exists:
        raise NotFound("There is no such organization.")
    known = state.subscription
    subject = (known and known.subscription_id) or state.organization_id
    row = audit_record(
        message.act, subject, state.organization_id, message.user_id, **message.detail
    )
    after = state if known is None else replace(state, subscription=_acted(known, message))
    return Decision(after, None, records=(row,))


def settle(state: OrganizationState, message: SettleChange) -> Decision[OrganizationState, None]:
    """Remember what waits after a change, and that nothing is to be put back."""
    known = state.subscription
    if known is None:
        return Decision(state, None)
    after = replace(
        known, aside_plan=None, aside_cadence=None, aside_price_id=None, aside_until=None
    )
    if message.next is not None:
        after = _coming(replace(after, schedule_id=message.next.schedule_id), message.next)
    if after == known:
        return Decision(state, None)
    records = []
    if message.put_back is not None and known.aside_until is not None:
        records.append(
            audit_record(
                "plan.change_restored" if message.put_back else "plan.change_lost",
                *(known.subscription_id or "", known.organization_id, "platform"),
                plan=known.aside_plan,
                cadence=known.aside_cadence,
            )
        )
    return Decision(replace(state, subscription=after), None, records=tuple(records))


def foretold(known: SubscriptionRecord, offer: Offer | None) -> SubscriptionRecord:
    """Remember what a schedule brings that was made elsewhere; ours say it themselves."""
    id = known.schedule_id
    if offer is None or id is None or id == known.next_schedule_id:
        return known
    return _coming(known, NextChange(id, offer.plan.code, offer.cadence.value))


def _coming(known: SubscriptionRecord, next: NextChange) -> SubscriptionRecord:  # noqa: A002 - the message's word
    return replace(
        known,
        next_schedule_id=next.schedule_id,
        next_plan=next.plan,
        next_cadence=next.cadence,
    )


def _acted(known: SubscriptionRecord, message: RecordBillingAct) -> SubscriptionRecord:
    if message.act == "plan.change_refused":
        return replace(known, refused_changes=known.refused_changes + 1)
    aside = message.aside
    if aside is None:
        return known
    return replace(
        known,
        aside_plan=aside.plan,
        aside_cadence=aside.cadence,
        aside_price_id=aside.price_id,
        aside_until=aside.until,
    )


def _aside(known: SubscriptionRecord) -> SetAside | None:
    match known:
        case SubscriptionRecord(
            aside_plan=str(plan),
            aside_cadence=str(cadence),
            aside_price_id=str(price_id),
            aside_until=datetime() as until,
        ):
            return SetAside(plan, cadence, price_id, until)
    return None
