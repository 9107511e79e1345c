"""How each part of the service does, judged by its jobs, its calls and what failed in it (rules/service#status)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from tolsey.actors.job.catalogue import JOBS
from tolsey.storage.records.runtime.executions import Execution
from tolsey.storage.records.status import MeasuredComponent, Standing

GRACE: Final = timedelta(minutes=10)
"""A run may take so long before its job is late."""
SLOW_LANE, DOWN_LANE = timedelta(minutes=10), timedelta(hours=1)
SLOW_LETTERS, DOWN_LETTERS = 5, 50
"""Messages of one kind that failed for good within an hour."""
DOWN_MISSES: Final = 3
"""Due times in a row that a job did not keep."""
ORDER: Final[Sequence[Standing]] = (
    "operational",
    "degraded_performance",
    "partial_outage",
    "major_outage",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Component:
    """A part that people know, and what of the service it stands on."""

    name: str
    title: str
    about: str
    jobs: Sequence[str] = ()
    lanes: Sequence[str] = ()
    kinds: Sequence[str] = ()
    needs_cache: bool = False


COMPONENTS: Final = {
    one.name: one
    for one in (
        Component(
            name="api",
            title="API and pages",
            about="Signing in, stores, and all that programs call.",
            jobs=("retention-sweep", "gdpr-erasure"),
            lanes=("short", "job", "mail"),
            needs_cache=True,
        ),
        Component(
            name="mcp",
            title="Agents (MCP)",
            about="Stores' endpoints for agents, and the chat.",
            lanes=("model",),
            needs_cache=True,
        ),
        Component(
            name="webhooks",
            title="Webhooks in",
            about="Deliveries of the commerce platform and the payment processor.",
            jobs=("prune-webhook-deliveries",),
            kinds=("store",),
        ),
        Component(
            name="revenue",
            title="Revenue checks",
            about="Verified revenue of listings, read anew every hour.",
            jobs=("sync-verified-revenue",),
            lanes=("platform",),
            kinds=("listing",),
        ),
        Component(
            name="launches",
            title="Launches",
            about="Milestones that run by themselves.",
            jobs=("launch-tick",),
        ),
        Component(
            name="billing",
            title="Billing",
            about="Plans, credits and payments.",
            jobs=("reconcile-payments", "monthly-credits-reset", "daily-bonus", "expire-credits"),
            lanes=("processor",),
            kinds=("organization",),
        ),
        Component(
            name="intelligence",
            title="Competitor scans",
            about="Figures of storefronts, and the API that tells them.",
            jobs=("intelligence-tick", "discovery-harvest-tick"),
            lanes=("scan",),
            kinds=("storefront",),
        ),
    )
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Signs:
    """What the service is judged by at a moment."""

    at: datetime
    is_cache_there: bool = True
    runs: Mapping[str, Sequence[Execution]] = field(default_factory=dict)
    """The last scheduled runs of each job, newest due time first."""
    overdue_lanes: Mapping[str, timedelta] = field(default_factory=dict)
    dead_letters: Mapping[str, int] = field(default_factory=dict)
    """Of the last hour, by kind."""


def misses(name: str, runs: Sequence[Execution], at: datetime) -> int:
    """Count the due times in a row, up to three, that a job did not keep; one that never ran has none."""
    if not runs:
        return 0
    kept = next((one.scheduled_at for one in runs if one.status == "completed"), None)
    # What failed at every due time that is remembered is as late as can be told.
    last, missed = kept or runs[-1].scheduled_at - GRACE, 0
    while missed < DOWN_MISSES and (last := JOBS[name].next_at(last)) + GRACE <= at:
        missed += 1
    return missed


def judged(component: Component, signs: Signs) -> tuple[Standing, str]:
    """Say how a part does, and why it is not well, in words for everybody."""
    found: list[tuple[Standing, str]] = [("operational", "")]
    if component.needs_cache and not signs.is_cache_there:
        found.append(("degraded_performance", "Answers may be slow."))
    for name in component.jobs:
        missed = misses(name, signs.runs.get(name, ()), signs.at)
        if missed:
            is_down = missed >= DOWN_MISSES
            found.append(
                ("partial_outage" if is_down else "degraded_performance", "Its work is late.")
            )
    for lane in component.lanes:
        late = signs.overdue_lanes.get(lane, timedelta())
        if late >= SLOW_LANE:
            is_down = late >= DOWN_LANE
            found.append(
                (
                    "partial_outage" if is_down else "degraded_performance",
                    "What it asks of others waits for longer than usual.",
                )
            )
    for kind in component.kinds:
        letters = signs.dead_letters.get(kind, 0)
        if letters >= SLOW_LETTERS:
            is_down = letters >= DOWN_LETTERS
            found.append(
                (
                    "partial_outage" if is_down else "degraded_performance",
                    "Some of what was asked of it failed.",
                )
            )
    return max(found, key=lambda one: ORDER.index(one[0]))


def measured(signs: Signs, before: Mapping[str, MeasuredComponent]) -> list[MeasuredComponent]:
    """Say how every part does, and how many times in a row it was not well."""
    found = []
    for component in COMPONENTS.values():
        state, why = judged(component, signs)
        earlier = before[component.name].bad_times if component.name in before else 0
        found.append(
            MeasuredComponent(
                component=component.name,
                state=state,
                why=why,
                bad_times=earlier + 1 if state != "operational" else 0,
                checked_at=signs.at,
            )
        )
    return found
