"""What waits for the end of a paid period, and makes way for another change: none gets lost.

Where the processor cannot do both in one request, what waits is written down as set aside before it
is taken off. It is put back by whoever asked when the change fails, and by any process when nobody
speaks of it any more.
"""

from datetime import timedelta
from typing import Final

import anyio
import structlog

from tolsey.actors.organization import plans
from tolsey.actors.organization.billing.messages import (
    NextChange,
    ReadSubscription,
    SetAside,
    SettleChange,
)
from tolsey.actors.organization.billing.payment_events.subscriptions import SubscriptionFacts
from tolsey.actors.organization.messages import organization
from tolsey.actors.organization.plans import Cadence, Offer
from tolsey.actors.processor import ProcessorRefused, ProcessorUnreachable, Subscribed
from tolsey.actors.refusals import MissingCredential
from tolsey.http.web.context import Service
from tolsey.runtime import ids
from tolsey.storage.errors import StorageError
from tolsey.storage.money import subscriptions

log = structlog.get_logger()

LEASE: Final = timedelta(minutes=5)
"""How long whoever set something aside may take: twice what its requests can."""
LOOK_SECONDS: Final = 60.0
BATCH: Final = 50


async def run(running: Service) -> None:
    """Look every minute for what was left aside: it ends when it is cancelled."""
    while True:
        try:
            await look(running)
        except StorageError as error:
            log.warning("billing.changes_wait", why=type(error).__name__)
        except Exception:  # the edge of a look: the next one goes on
            log.exception("billing.changes_failed")
        await anyio.sleep(LOOK_SECONDS)


async def look(running: Service) -> None:
    """Put back what nobody speaks of any more; what the processor refuses is left to a person."""
    for id in await subscriptions.set_aside(running.database, running.clock(), BATCH):
        try:
            await put_back(running, id)
        except (ProcessorUnreachable, MissingCredential) as error:
            log.warning("billing.change_waits", organization_id=id, why=type(error).__name__)
        except ProcessorRefused as refused:
            log.error("billing.change_lost", organization_id=id, why=refused.message)  # noqa: TRY400 - its words say all
            await running.runtime.ask(organization(id), SettleChange(put_back=False))


async def put_back(running: Service, organization_id: str) -> None:
    """Let what was set aside wait again, unless the processor says that something came in its place."""
    to = organization(organization_id)
    view = await running.runtime.ask(to, ReadSubscription(running.clock()))
    aside, id = view.aside, view.subscription_id
    if aside is None:
        return
    facts = await running.payments.subscription(id) if view.is_subscribed and id else None
    held = None if facts is None else await _held(running, facts, aside)
    if held is None:
        await running.runtime.ask(to, SettleChange())
        return
    settled = await _restored(running, held, aside)
    await running.runtime.ask(to, SettleChange(settled, put_back=True))


async def _held(running: Service, facts: SubscriptionFacts, aside: SetAside) -> Subscribed | None:
    """Read what there is to put something back on; None where another change has come."""
    if facts.ended_at is not None or facts.cancel_at_period_end or facts.cancel_at is not None:
        return None
    item = next((one for one in facts.items if one.price_id == aside.price_id), None)
    schedule_id = facts.schedule_id
    if item is None or (schedule_id and await running.payments.next_price_id(schedule_id)):
        return None
    return Subscribed(
        *(facts.subscription_id, item.item_id, item.price_id),
        *(item.period_start, item.period_end, schedule_id),
    )


async def _restored(running: Service, held: Subscribed, aside: SetAside) -> NextChange | None:
    payments, id = running.payments, held.subscription_id
    key = f"again:{id}:{ids.new_id('change')}"
    if aside.plan == plans.FREE.code:
        if held.schedule_id is not None:  # of a change that was only half made
            await payments.release(held.schedule_id, key=f"release:{held.schedule_id}")
        await payments.cancel(id, feedback=None, comment=None, key=key)
        return None
    offer = Offer(plans.BY_CODE[aside.plan], Cadence(aside.cadence))
    price_id = plans.price_id(offer, running.settings.payment_prices)
    schedule_id = await payments.downgrade(held, price_id, aside.plan, aside.cadence, key=key)
    return NextChange(schedule_id, aside.plan, aside.cadence)


def said(aside: SetAside) -> str:
    """Say what stands when it could not be put back yet."""
    if aside.plan == plans.FREE.code:
        waited = "the end of your plan"
    else:
        waited = f"the change to {plans.BY_CODE[aside.plan].name}"
    return (
        f"Your plan is as it was, but {waited} that was to come with the end of the period could not"
        " be put back yet. We go on trying."
    )
