"""Milestones run and rehearsed for whoever wants it: people of the store, and their agents."""

from collections.abc import Sequence
from typing import Final, cast

from tolsey.actors.ports import OwnStorefront
from tolsey.actors.store.launch import dispatching, keeping
from tolsey.actors.store.launch.effects import LaunchCalls, LaunchPlatform
from tolsey.actors.store.launch.executors import BUILT
from tolsey.actors.store.launch.graph import DONE, MilestoneStop, unmet
from tolsey.actors.store.launch.messages import MilestoneOutcome, RunMilestone
from tolsey.actors.store.launch.playbook import PLAYBOOK
from tolsey.actors.store.messages import store
from tolsey.http.answers.stores.launch import DocumentAnswer, MilestoneRunAnswer
from tolsey.http.web.context import Service
from tolsey.http.webhooks.table import EVENTS_PATH
from tolsey.runtime.errors import DeadlineExceeded
from tolsey.storage.commerce import launches
from tolsey.storage.records.commerce.launches import Launch, MilestoneState, SoldHour

VERIFIED: Final = "launch.verify"
WAIT_SECONDS: Final = 20.0
"""How long whoever runs a milestone waits for what becomes of it."""


async def launch_of(service: Service, store_id: str) -> Launch:
    """Read the launch of a store. Raises NotFound."""
    found = await launches.find(service.database, store_id)
    if found is None:
        raise keeping.not_begun()
    return found


async def forecast(service: Service, launch: Launch) -> Sequence[launches.StepDuration]:
    """Say how long what is left of a launch took other stores."""
    left = [id for id, one in launch.milestones.items() if one.state not in DONE]
    return await launches.durations(service.database, launch.head.store_id, left)


async def sold_since_opening(service: Service, launch: Launch) -> Sequence[SoldHour]:
    """Say what an open store sold in each hour of its first week; nothing before it was found open."""
    opened_at = launch.milestones[VERIFIED].finished_at
    if opened_at is None or launch.milestones[VERIFIED].state != MilestoneState.SUCCEEDED:
        return ()
    return await launches.sold_by_hour(
        service.database, launch.head.store_id, since=opened_at, until=service.clock()
    )


async def run(
    service: Service, store_id: str, milestone: str, *, user_id: str, is_forced: bool
) -> MilestoneRunAnswer:
    """Run a milestone now; what takes longer is `running`."""
    message = RunMilestone(
        milestone=milestone, user_id=user_id, is_forced=is_forced, at=service.clock()
    )
    try:
        outcome = await service.runtime.ask(store(store_id), message, timeout=WAIT_SECONDS)
    except DeadlineExceeded:
        launch = await launch_of(service, store_id)
        outcome = dispatching.outcome(launch, launch.milestones[milestone])
    return MilestoneRunAnswer.of(outcome)


async def rehearse(service: Service, store_id: str, milestone: str) -> MilestoneRunAnswer:
    """Show what a milestone would send now, and send nothing."""
    launch = await launch_of(service, store_id)
    known = PLAYBOOK.milestones[milestone]
    if known.is_human or milestone not in BUILT or unmet(launch, milestone, BUILT):
        # These say by themselves that nothing would be sent.
        return MilestoneRunAnswer.of(_unsent(launch, milestone))
    calls = LaunchCalls(
        ask=service.runtime.ask,
        platform=cast("LaunchPlatform", service.commerce),
        database=service.database,
        vault=service.vault,
        clock=service.clock,
        storefronts=cast("OwnStorefront", service.storefronts),
        theme_url=service.settings.launch_theme_url,
    )
    events_url = service.settings.base_url + EVENTS_PATH
    sent, came = await calls.rehearse(launch, milestone, events_url)
    stop = came if isinstance(came, MilestoneStop) else None
    return MilestoneRunAnswer(
        result="dry_run",
        milestone=milestone,
        state=MilestoneState(launch.milestones[milestone].state),
        reason=stop.reason if stop else None,
        detail=stop.detail if stop else None,
        scope=stop.scope if stop else None,
        documents=[
            DocumentAnswer(document=each.document, variables=dict(each.variables)) for each in sent
        ],
    )


def _unsent(launch: Launch, milestone: str) -> MilestoneOutcome:
    """Say of a milestone why it sends nothing."""
    one = launch.milestones[milestone]
    if PLAYBOOK.milestones[milestone].is_human:
        return dispatching.outcome(launch, one, "human_required")
    if milestone not in BUILT:
        return dispatching.outcome(launch, one, "no_executor")
    return dispatching.outcome(launch, one, "not_ready")
