"""How a subscription changes (specification, Subscriptions): up at once, down when its period ends."""

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final, Literal

import structlog

from tolsey.actors.organization import plans
from tolsey.actors.organization.billing.messages import NextChange, SubscriptionView
from tolsey.actors.organization.plans import Change, Offer
from tolsey.actors.processor import ProcessorError, ProcessorRefused, Subscribed
from tolsey.actors.refusals import Conflict
from tolsey.http.access import member_of
from tolsey.http.context import new_id, now, service
from tolsey.http.money.billing import next_plan, record, subscription

log = structlog.get_logger()

CHANGEABLE: Final = frozenset({"trialing", "active", "past_due"})
"""The states in which the processor changes what is subscribed to."""


@dataclass(frozen=True, slots=True)
class Changed:
    """What became of a choice: `kept` took back a change or an end that was to come."""

    change: Literal["upgrade", "downgrade", "kept"]
    plan: str
    cadence: str
    effective_at: datetime


async def change(organization_id: str, plan: str, cadence: str) -> Changed:
    """Change the plan: up at once and paid, down when the period ends; or take back what was to come."""
    await member_of(organization_id, at_least="admin")
    view, held = await _held(organization_id)
    prices = service().settings.payment_prices
    current = plans.offer_of(prices, held.price_id) or plans.held(view.plan, view.cadence)
    if view.plan == plans.CUSTOM.code:
        current = plans.held(view.plan, None)
    wanted = (plan, cadence)
    waits = view.schedule_id is not None or view.cancel_at_period_end
    if waits and current and wanted == (current.plan.code, current.cadence):
        return await _keep(view, current)
    offer, kind = plans.choose(plan, cadence, current=current, created_at=view.created_at, at=now())
    price_id = plans.price_id(offer, prices)
    if kind is Change.DOWNGRADE:
        return await _downgrade(view, held, offer, price_id)
    if view.dunning_since is not None or view.status == "past_due":
        raise Conflict(
            "Pay the open invoice first.", code="payment_due", invoiceUrl=view.dunning_url
        )
    return await _upgrade(view, held, offer, price_id)


async def _held(organization_id: str) -> tuple[SubscriptionView, Subscribed]:
    view = await subscription(organization_id)
    match view:
        case SubscriptionView(
            subscription_id=str(id),
            item_id=str(item),
            price_id=str(price),
            period_start=datetime() as start,
            period_end=datetime() as end,
        ) if view.status in CHANGEABLE:
            return view, Subscribed(id, item, price, start, end, view.schedule_id)
    raise Conflict(
        "The subscription cannot be changed now.",
        code="subscription_not_active",
        subscriptionStatus=view.status,
    )


async def _keep(view: SubscriptionView, current: Offer) -> Changed:
    """Take back the change or the end that waits for the end of the period."""
    nonce = new_id("change")
    await record(view.organization_id, "plan.change_requested", change="kept")
    if view.schedule_id is not None:
        await _release(view.schedule_id)
    if view.cancel_at_period_end:
        await _resume(view, nonce)
    return Changed("kept", current.plan.code, current.cadence, now())


async def _upgrade(
    view: SubscriptionView, held: Subscribed, offer: Offer, price_id: str
) -> Changed:
    """Change at once. Whoever asks twice pays once: the key says what is changed, not who asked.

    The processor repeats its answer to a key, so after a refusal the next attempt has another.
    """
    nonce = new_id("change")
    key = (
        f"upgrade:{held.subscription_id}:{held.price_id}:{price_id}"
        f":{int(held.period_end.timestamp())}:{view.refused_changes}"
    )
    asked: dict[str, Any] = {
        "change": "upgrade",
        "plan": offer.plan.code,
        "cadence": offer.cadence.value,
    }
    await record(view.organization_id, "plan.change_requested", **asked)
    if held.schedule_id is not None:
        await _release(held.schedule_id)
    try:
        await service().payments.upgrade(held, price_id, key=key)
    except ProcessorRefused as refused:
        await record(view.organization_id, "plan.change_refused", **asked, reason=refused.code)
        await _put_back(view, held, nonce)
        raise
    if view.cancel_at_period_end:
        await _resume(view, nonce)
    return Changed("upgrade", offer.plan.code, offer.cadence, now())


async def _put_back(view: SubscriptionView, held: Subscribed, nonce: str) -> None:
    """Let the change wait again that made way for an upgrade which was not paid."""
    offer = next_plan(view)
    if held.schedule_id is None or offer is None:
        return
    free = replace(held, schedule_id=None)
    price_id = plans.price_id(offer, service().settings.payment_prices)
    try:
        await _schedule(view, free, offer, price_id, f"again:{nonce}")
    except ProcessorError:
        log.exception("billing.change_lost", organization_id=view.organization_id)


async def _downgrade(
    view: SubscriptionView, held: Subscribed, offer: Offer, price_id: str
) -> Changed:
    nonce = new_id("change")
    if view.cancel_at_period_end:
        await _resume(view, nonce)
    await _schedule(view, held, offer, price_id, nonce)
    return Changed("downgrade", offer.plan.code, offer.cadence, held.period_end)


async def _schedule(
    view: SubscriptionView, held: Subscribed, offer: Offer, price_id: str, nonce: str
) -> None:
    """Let a change wait for the end of the period, and write down what it brings."""
    plan, cadence = offer.plan.code, offer.cadence.value
    key = f"downgrade:{held.subscription_id}:{held.price_id}:{price_id}:{nonce}"
    schedule_id = await service().payments.downgrade(held, price_id, plan, cadence, key=key)
    await record(
        view.organization_id,
        "plan.change_requested",
        next=NextChange(schedule_id, plan, cadence),
        change="downgrade",
        plan=plan,
        cadence=cadence,
    )


async def _release(schedule_id: str) -> None:
    await service().payments.release(schedule_id, key=f"release:{schedule_id}")


async def _resume(view: SubscriptionView, nonce: str) -> None:
    id = str(view.subscription_id)
    await service().payments.resume(id, key=f"resume:{id}:{nonce}")


async def cancel(
    organization_id: str, *, feedback: str | None = None, comment: str | None = None
) -> datetime | None:
    """Let the subscription end with its period; answers when that is."""
    await member_of(organization_id, at_least="admin")
    view = await subscription(organization_id)
    if view.cancel_at_period_end:
        return view.period_end
    nonce, id = new_id("cancel"), str(view.subscription_id)
    await record(organization_id, "plan.cancel_requested", feedback=feedback)
    if view.schedule_id is not None:
        await _release(view.schedule_id)
    await service().payments.cancel(
        id, feedback=feedback, comment=comment, key=f"cancel:{id}:{nonce}"
    )
    return view.period_end
