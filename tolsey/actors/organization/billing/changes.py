"""Changing what a subscription is to: up at once, down or out when its period ends, or on as it is.

Where the processor cannot do it in one request, what waits for the end of the period is taken off first.
When the change then fails, that is put back before anybody is told (rules/calls#calls).
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Final

import orjson
from pydantic import TypeAdapter

from tolsey.actors.organization import plans
from tolsey.actors.organization.billing import acts
from tolsey.actors.organization.billing.calls import (
    CancelSubscription,
    PlanChangeMade,
    PlanChangeRefused,
    ReleaseSchedule,
    RestoreChange,
    ScheduleDowngrade,
    UpgradeSubscription,
)
from tolsey.actors.organization.billing.messages import (
    CancelPlan,
    ChangePlan,
    PricedOffer,
    SubscriptionView,
    list_priced_offers,
)
from tolsey.actors.organization.operations import under_way
from tolsey.actors.organization.plans import Change, Offer
from tolsey.actors.organization.state import OrganizationState
from tolsey.actors.processor import Subscribed
from tolsey.actors.refusals import Conflict, Refusal
from tolsey.runtime.decision import Decision, Perform
from tolsey.runtime.messages import Call
from tolsey.storage.records.journal import AuditRecord, audit_record
from tolsey.storage.records.runtime.operations import Operation

PLAN_CHANGE: Final = "plan_change"
CHANGEABLE: Final = frozenset({"trialing", "active", "past_due"})
"""The states in which the processor changes what is subscribed to."""
SHOWN: Final = timedelta(minutes=15)
"""How long an upgrade may still be charged: what it costs was shown before it was confirmed."""
UNDO: Final = TypeAdapter(RestoreChange | None)

Begun = Decision[OrganizationState, Operation]
Step = Decision[OrganizationState, None]


def change(state: OrganizationState, message: ChangePlan, kept: Operation | None) -> Begun:
    """Begin to change the plan, unless that is under way; `kept` is what is on disk of it."""
    known = _known(state, message, kept)
    if known is not None:
        return under_way.answer(state, known)
    view = acts.view_of(state, message.at)
    offers = message.offers or list_priced_offers(
        {setting: (id,) for setting, id in message.price_ids.items()}
    )
    held, current = subscribed(view), current_offer(view, offers)
    whose = _whose(state, message, held.subscription_id)
    ends = view.cancel_at_period_end
    wanted = message.plan, message.cadence
    # To choose the plan that runs takes back what was to come.
    if (ends or view.schedule_id) and current and wanted == (current.plan.code, current.cadence):
        keep = ReleaseSchedule(**whose, schedule_id=view.schedule_id, resumes=ends)
        return _begin(state, message, keep, {"change": "kept"})
    offer, kind = plans.choose(*wanted, current=current, created_at=view.created_at, at=message.at)
    price_id = plans.price_id(offer, message.price_ids)
    if kind is Change.DOWNGRADE:
        down = ScheduleDowngrade(
            **whose,
            held=held,
            price_id=price_id,
            plan=message.plan,
            cadence=message.cadence,
            resumes=ends,
        )
        undo = _undo(view, message, whose) if ends else None
        outcome = {"change": "downgrade", "effectiveAt": plans.rfc3339(held.period_end)}
        return _begin(state, message, down, outcome, undo)
    # What is owed is paid before more is bought.
    if view.dunning_since is not None or view.status == "past_due":
        raise Conflict(
            "An invoice is unpaid. Pay it at `invoiceUrl`, then try again.",
            code="payment_due",
            invoiceUrl=view.dunning_url,
        )
    key = _upgrade_key(state, held, price_id)
    up = UpgradeSubscription(
        **whose, held=held, price_id=price_id, key=key, until=message.at + SHOWN
    )
    undo = _undo(view, message, whose) if view.schedule_id else None
    return _begin(state, message, up, {"change": "upgrade"}, undo)


def cancel(state: OrganizationState, message: CancelPlan, kept: Operation | None) -> Begun:
    """Begin to let the subscription end with its period; `kept` is what is on disk of it."""
    known = _known(state, message, kept)
    if known is not None:
        return under_way.answer(state, known)
    view = _require_subscription(acts.view_of(state, message.at))
    whose = _whose(state, message, str(view.subscription_id))
    outcome = {
        "cancelAtPeriodEnd": True,
        "endsAt": view.period_end and plans.rfc3339(view.period_end),
    }
    if view.cancel_at_period_end:
        done = replace(_operation(state, message, outcome), state="done", finished_at=message.at)
        return Decision(state, done)
    end = CancelSubscription(
        **whose,
        schedule_id=view.schedule_id,
        feedback=message.feedback,
        comment=message.comment,
    )
    undo = _undo(view, message, whose) if view.schedule_id else None
    return _begin(state, message, end, outcome, undo)


def made(state: OrganizationState, message: PlanChangeMade) -> Step:
    """Say that it is done, or that what waited is back: the processor's events tell the rest."""
    operation, known = under_way.find(state, message.operation_id), state.subscription
    if operation is None:
        return Decision(state, None)
    if message.next is not None and known is not None:
        state = replace(state, subscription=acts.coming(known, message.next))
    why = orjson.loads(operation.wanted)["why"]
    if why is None:
        outcome = orjson.loads(operation.result or "{}")
        if "change" in outcome:
            outcome.setdefault("effectiveAt", plans.rfc3339(message.at))
        return under_way.end(Decision(state, None), operation, message.at, result=outcome)
    rows = (_restored(operation, "plan.change_restored"),) if message.is_done else ()
    decision: Step = Decision(state, None, records=rows)
    return under_way.end(decision, operation, message.at, why=Refusal(**why))


def refused(state: OrganizationState, message: PlanChangeRefused) -> Step:
    """Put back what was taken off for a change that will not be, and then say why it will not."""
    operation, known = under_way.find(state, message.operation_id), state.subscription
    if operation is None:
        return Decision(state, None)
    wanted = orjson.loads(operation.wanted)
    if wanted["why"] is not None:  # what cannot be put back is left to a person
        decision: Step = Decision(state, None, records=(_restored(operation, "plan.change_lost"),))
        return under_way.end(decision, operation, message.at, why=Refusal(**wanted["why"]))
    decision = Decision(state, None)
    why: dict[str, Any] = {"status": message.status, "code": message.code, "detail": message.detail}
    if message.processor_code is not None:
        why["processorCode"] = message.processor_code
        outcome = orjson.loads(operation.result or "{}")
        if outcome.get("change") == "upgrade" and known is not None:
            counted = replace(known, refused_changes=known.refused_changes + 1)
            said = {**wanted["asked"], "change": "upgrade", "reason": message.processor_code}
            row = _audit(operation, "plan.change_refused", operation.user_id, **said)
            decision = Decision(replace(state, subscription=counted), None, records=(row,))
    undo = UNDO.validate_python(wanted["undo"])
    if undo is None:
        return under_way.end(decision, operation, message.at, why=Refusal(**why))
    going = replace(operation, wanted=orjson.dumps({**wanted, "why": why}).decode())
    return Decision(
        under_way.keep(decision.state, going),
        None,
        records=decision.records,
        effects=(Perform(undo, key=f"restore:{operation.id}"),),
    )


def subscribed(view: SubscriptionView) -> Subscribed:
    """Say what a change starts from. Raises Conflict when there is nothing to change, or not now."""
    match _require_subscription(view):
        case SubscriptionView(
            subscription_id=str(id),
            item_id=str(item),
            price_id=str(price),
            period_start=datetime() as start,
            period_end=datetime() as end,
        ) if view.status in CHANGEABLE:
            return Subscribed(
                subscription_id=id,
                item_id=item,
                price_id=price,
                period_start=start,
                period_end=end,
                schedule_id=view.schedule_id,
            )
    raise Conflict(
        "The subscription can't be changed in its current status. Check `status` and settle any"
        " open invoice.",
        code="subscription_not_active",
        subscriptionStatus=view.status,
    )


def current_offer(view: SubscriptionView, offers: Iterable[PricedOffer]) -> Offer | None:
    """Return the subscribed offer, which may be more than the plan in effect until it is paid."""
    if view.plan == plans.CUSTOM.code:
        return plans.held(view.plan, None)
    found = next((one.offer for one in offers if one.price_id == view.price_id), None)
    return found or plans.held(view.plan, view.cadence)


def _require_subscription(view: SubscriptionView) -> SubscriptionView:
    if not view.is_subscribed:
        raise Conflict(
            "Your organization has no subscription. Subscribe to a plan first.",
            code="no_subscription",
        )
    return view


def _known(
    state: OrganizationState, message: ChangePlan | CancelPlan, kept: Operation | None
) -> Operation | None:
    """Find a change that was asked for before, or the same that is under way."""
    known = under_way.known(state, message.operation_id, kept)
    if known is not None:
        return known
    running = next((one for one in state.operations if one.kind == PLAN_CHANGE), None)
    # Those about one thing go one after another (rules/calls#calls).
    if running is not None and orjson.loads(running.wanted)["asked"] != _asked(message):
        raise Conflict(
            "Another plan change is in progress. Try again when it has completed.",
            code="change_in_progress",
            operation=running.id,
        )
    return running


def _asked(message: ChangePlan | CancelPlan) -> dict[str, str]:
    """Say which plan is wanted: none, where the subscription shall end."""
    if isinstance(message, CancelPlan):
        return {}
    return {"plan": message.plan, "cadence": message.cadence}


def _upgrade_key(state: OrganizationState, held: Subscribed, price_id: str) -> str:
    """Name an upgrade by what it changes, not by who asked: whoever asks twice pays once.

    The processor repeats its answer to a key, so after a refusal the next attempt has another.
    """
    refusals = 0 if state.subscription is None else state.subscription.refused_changes
    ends = int(held.period_end.timestamp())
    return f"upgrade:{held.subscription_id}:{held.price_id}:{price_id}:{ends}:{refusals}"


def _whose(
    state: OrganizationState, message: ChangePlan | CancelPlan, subscription_id: str
) -> dict[str, str]:
    return {
        "organization_id": state.organization_id,
        "operation_id": message.operation_id,
        "subscription_id": subscription_id,
    }


def _undo(
    view: SubscriptionView, message: ChangePlan | CancelPlan, whose: Mapping[str, str]
) -> RestoreChange | None:
    """Say what puts back what waits, if anything does."""
    waits = acts.next_plan(view)
    if waits is None:
        return None
    price_id = plans.price_id(waits, message.price_ids) if waits.plan.is_sold else ""
    return RestoreChange(
        **whose,
        held_price_id=str(view.price_id),
        price_id=price_id,
        plan=waits.plan.code,
        cadence=waits.cadence,
    )


def _operation(
    state: OrganizationState,
    message: ChangePlan | CancelPlan,
    outcome: Mapping[str, Any],
    undo: RestoreChange | None = None,
) -> Operation:
    asked = _asked(message)
    wanted = {"asked": asked, "undo": UNDO.dump_python(undo, mode="json"), "why": None}
    result = {"organizationId": state.organization_id, **asked, **outcome}
    return Operation(
        id=message.operation_id,
        organization_id=state.organization_id,
        user_id=message.user_id,
        kind=PLAN_CHANGE,
        subject=(state.subscription and state.subscription.subscription_id) or "",
        state="running",
        wanted=orjson.dumps(wanted).decode(),
        created_at=message.at,
        result=orjson.dumps(result).decode(),
    )


def _begin(
    state: OrganizationState,
    message: ChangePlan | CancelPlan,
    call: Call[Any],
    outcome: Mapping[str, Any],
    undo: RestoreChange | None = None,
) -> Begun:
    operation = _operation(state, message, outcome, undo)
    if isinstance(message, CancelPlan):
        event, said = "plan.cancel_requested", {"feedback": message.feedback}
    else:
        event, said = "plan.change_requested", {**_asked(message), "change": outcome["change"]}
    return Decision(
        under_way.begin(state, operation),
        operation,
        records=(_audit(operation, event, message.user_id, **said),),
        effects=(Perform(call, key=f"change:{operation.id}"),),
    )


def _restored(operation: Operation, event: str) -> AuditRecord:
    """Write down what became of what waited."""
    waited = orjson.loads(operation.wanted)["undo"]
    said = {name: waited[name] for name in ("plan", "cadence")}
    return _audit(operation, event, "platform", **said)


def _audit(operation: Operation, event: str, actor: str, **said: Any) -> AuditRecord:
    return audit_record(event, operation.subject, operation.organization_id, actor, **said)
