"""Decisions of a tick: what is due again, whom to remind, and what a look at the shop found."""

from collections.abc import Sequence
from datetime import datetime

import orjson

from tolsey.actors.store.launch import probing, reporting
from tolsey.actors.store.launch.dispatching import Silence, advanced, unblocked
from tolsey.actors.store.launch.executors import BUILT
from tolsey.actors.store.launch.keeping import SYSTEM, audit
from tolsey.actors.store.launch.messages import ContinueLaunch, ProbeShop, ShopProbed
from tolsey.actors.store.state import StoreState
from tolsey.runtime.decision import Decision, Effect, Perform
from tolsey.storage.records.commerce.launches import Launch


def go_on(state: StoreState, message: ContinueLaunch) -> Silence:
    """Do what is due: queue again what is no longer blocked, send, remind, and look for what people did."""
    if state.launch is None:
        return Decision(state, reply=None)
    launch, effects = unblocked(state, state.launch, message.at), list[Effect]()
    if message.is_tick:
        launch, mails = reporting.reminded(launch, message.at)
        effects += mails
        if state.connection is not None and probing.is_needed(launch, BUILT, message.at):
            effects.append(_look(launch, message.at))
    return advanced(state, launch, message.at, effects=effects, reply=None)


def _look(launch: Launch, at: datetime) -> Perform:
    head = launch.head
    is_taxed = probing.is_taxed_again(launch, BUILT, at)
    call = ProbeShop(
        store_id=head.store_id,
        organization_id=head.organization_id,
        launch_id=head.launch_id,
        orders_since=probing.asked_since(launch, BUILT, at),
        variant=probing.variant(launch) if is_taxed else None,
    )
    return Perform(call, key=f"launch-probe:{head.launch_id}")


def probed(state: StoreState, message: ShopProbed) -> Silence:
    """Approve what the look at the shop found done, hint at what it may not approve, and raise alarms."""
    launch = state.launch
    if launch is None or launch.head.launch_id != message.launch_id:
        return Decision(state, reply=None)
    found = probing.alarms(
        launch, orjson.loads(message.probe), asked_since=message.orders_since, at=message.at
    )
    raised: Sequence[str] = [one for one in found if one not in launch.head.alarms.split()]
    launch, mails = reporting.alarmed(launch, found, message.at)
    if message.was_taxed:
        launch = launch.with_head(tax_lines=message.tax_lines, taxed_at=message.at)
    launch = probing.judged(
        launch, message.probe, BUILT, asked_since=message.orders_since, at=message.at
    )
    launch = launch.with_head(
        probed_at=message.at, unprobed=" ".join(message.unprobed), changed_at=message.at
    )
    records = [audit(state, "alarm", SYSTEM, alarm=one) for one in raised]
    return advanced(state, launch, message.at, effects=mails, records=records, reply=None)
