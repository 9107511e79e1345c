"""How a subscription changes (specification, Subscriptions): up at once, down when its period ends."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final, Literal

import structlog

from tolsey.actors.organization import plans
from tolsey.actors.organization.billing.messages import (
    BillingAct,
    NextChange,
    SetAside,
    SettleChange,
    SubscriptionView,
)
from tolsey.actors.organization.messages import organization
from tolsey.actors.organization.plans import Cadence, Change, Offer
from tolsey.actors.processor import ChargePreview, ProcessorError, ProcessorRefused, Subscribed
from tolsey.actors.refusals import Conflict, MissingCredential
from tolsey.http.billing import waiting_changes
from tolsey.http.billing.acts import next_plan, record, subscription
from tolsey.http.billing.waiting_changes import LEASE
from tolsey.http.web.access import member_of
from tolsey.http.web.context import ask, new_id, now, service
from tolsey.runtime import ids

log = structlog.get_logger()

CHANGEABLE: Final = frozenset({"trialing", "active", "past_due"})
"""The states in which the processor changes what is subscribed to."""
ENDING: Final = Offer(plans.FREE, Cadence.MONTHLY)
"""What waits when the subscription ends with its period."""


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
    waits = view.schedule_id is not None or view.cancel_at_period_end or view.aside is not None
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


async def preview(organization_id: str, offer: Offer) -> ChargePreview:
    """Ask the processor what changing to an offer at once would charge."""
    await member_of(organization_id, at_least="admin")
    _, held = await _held(organization_id)
    price_id = plans.price_id(offer, service().settings.payment_prices)
    return await service().payments.preview_upgrade(held, price_id)


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
    async with _instead(view, None, "plan.change_requested", change="kept"):
        if view.schedule_id is not None:
            await _release(view.schedule_id)
        if view.cancel_at_period_end:
            await _resume(view)
    return Changed("kept", current.plan.code, current.cadence, now())


async def _upgrade(
    view: SubscriptionView, held: Subscribed, offer: Offer, price_id: str
) -> Changed:
    """Change at once. Whoever asks twice pays once: the key says what is changed, not who asked.

    The processor repeats its answer to a key, so after a refusal the next attempt has another.
    """
    key = (
        f"upgrade:{held.subscription_id}:{held.price_id}:{price_id}"
        f":{int(held.period_end.timestamp())}:{view.refused_changes}"
    )
    asked: dict[str, Any] = {
        "change": "upgrade",
        "plan": offer.plan.code,
        "cadence": offer.cadence.value,
    }
    async with _instead(view, _scheduled(view), "plan.change_requested", **asked):
        if held.schedule_id is not None:
            await _release(held.schedule_id)
        try:
            await service().payments.upgrade(held, price_id, key=key)
        except ProcessorRefused as refused:
            await record(view.organization_id, "plan.change_refused", **asked, reason=refused.code)
            raise
    return Changed("upgrade", offer.plan.code, offer.cadence, now())


async def _downgrade(
    view: SubscriptionView, held: Subscribed, offer: Offer, price_id: str
) -> Changed:
    """Let a change wait for the end of the period; one that waits already is another from now on."""
    plan, cadence = offer.plan.code, offer.cadence.value
    # What ends goes on first. A repeat may find that it ends again, and must not be answered before.
    nonce = ids.new_id("change") if view.cancel_at_period_end else new_id("change")
    key = f"downgrade:{held.subscription_id}:{held.price_id}:{price_id}:{nonce}"
    asked = {"change": "downgrade", "plan": plan, "cadence": cadence}
    ends = ENDING if view.cancel_at_period_end else None
    async with _instead(view, ends, "plan.change_requested", **asked):
        if view.cancel_at_period_end:
            await _resume(view)
        schedule_id = await service().payments.downgrade(held, price_id, plan, cadence, key=key)
        coming = SettleChange(NextChange(schedule_id, plan, cadence))
        await ask(organization(view.organization_id), coming)
    return Changed("downgrade", offer.plan.code, offer.cadence, held.period_end)


async def cancel(
    organization_id: str, *, feedback: str | None = None, comment: str | None = None
) -> datetime | None:
    """Let the subscription end with its period; answers when that is."""
    await member_of(organization_id, at_least="admin")
    view = await subscription(organization_id)
    if view.cancel_at_period_end:
        return view.period_end
    id = str(view.subscription_id)
    async with _instead(view, _scheduled(view), "plan.cancel_requested", feedback=feedback):
        if view.schedule_id is not None:
            await _release(view.schedule_id)
        key = f"cancel:{id}:{ids.new_id('cancel')}"
        await service().payments.cancel(id, feedback=feedback, comment=comment, key=key)
    return view.period_end


def _scheduled(view: SubscriptionView) -> Offer | None:
    """Tell what a schedule brings, which must go before the subscription itself can change."""
    return None if view.schedule_id is None else next_plan(view)


@asynccontextmanager
async def _instead(
    view: SubscriptionView, offer: Offer | None, act: BillingAct, **asked: Any
) -> AsyncIterator[None]:
    """Do in the block what is asked for, instead of an offer that waits and is taken off in it.

    When the processor does not do it, what waited is put back; `waiting_changes` does so later when
    even that fails, or when this process dies.
    """
    aside, until = view.aside and replace(view.aside, until=now() + LEASE), now() + LEASE
    if offer is not None:
        aside = SetAside(offer.plan.code, offer.cadence.value, str(view.price_id), until)
    await record(view.organization_id, act, aside=aside, **asked)
    try:
        yield
    except ProcessorError as error:
        if aside is not None:
            await _put_back(view.organization_id, aside, error)
        raise
    if aside is not None:
        await ask(organization(view.organization_id), SettleChange())


async def _put_back(organization_id: str, aside: SetAside, error: ProcessorError) -> None:
    """Put back what made way, or write down that it is not yet and let the error say so too."""
    try:
        await waiting_changes.put_back(service(), organization_id)
    except (ProcessorError, MissingCredential) as another:
        log.warning("billing.change_suspended", organization_id=organization_id)
        await record(
            *(organization_id, "plan.change_suspended"),
            plan=aside.plan,
            cadence=aside.cadence,
            reason=type(another).__name__,
        )
        error.message = f"{error.message} {waiting_changes.said(aside)}"


async def _release(schedule_id: str) -> None:
    await service().payments.release(schedule_id, key=f"release:{schedule_id}")


async def _resume(view: SubscriptionView) -> None:
    id = str(view.subscription_id)
    await service().payments.resume(id, key=f"resume:{id}:{ids.new_id('change')}")
