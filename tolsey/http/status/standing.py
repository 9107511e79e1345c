"""How the service does, put together for its page, its feed and its documents."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from tolsey.actors.job.alerts.components import COMPONENTS, ORDER, Component
from tolsey.http.layout.catalogue import _
from tolsey.storage.database import Reader
from tolsey.storage.records.status import ComponentDay, Incident, IncidentUpdate, Standing
from tolsey.storage.status import incidents, measuring

DAYS: Final = 90
STALE: Final = timedelta(minutes=15)
"""Three looks that did not happen: then what they saw says nothing any more."""
SHOWN: Final = 50
WORST: Final[Mapping[str, Standing]] = {
    "none": "operational",
    "minor": "degraded_performance",
    "major": "partial_outage",
    "critical": "major_outage",
}
"""What an incident of an impact says of its part, at least."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ComponentStanding:
    """A part of the service: how it does, and how it did on each of 90 days, the oldest first."""

    component: Component
    state: Standing
    why: str
    checked_at: datetime | None
    days: Sequence[ComponentDay | None]

    @property
    def uptime(self) -> str:
        """Say in how many looks of a hundred it was not down; nothing before the first."""
        samples = sum(one.samples for one in self.days if one)
        down = sum(one.down for one in self.days if one)
        return f"{100 * (samples - down) / samples:.2f}%" if samples else ""

    @property
    def summary(self) -> str:
        """Say on how many days something was wrong."""
        bad = sum(bool(one and (one.slow or one.down)) for one in self.days)
        if not any(self.days):
            return _("Not measured yet")
        if not bad:
            return _("No trouble")
        return (
            _("Trouble on one day") if bad == 1 else _("Trouble on %(days)s days") % {"days": bad}
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ToldIncident:
    """An incident that is public, and what was said of it, newest first."""

    incident: Incident
    updates: Sequence[IncidentUpdate]


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceStanding:
    """The whole service at a moment."""

    at: datetime
    components: Sequence[ComponentStanding]
    open_incidents: Sequence[ToldIncident]
    past: Sequence[ToldIncident]

    @property
    def state(self) -> Standing:
        """How the part does that does worst."""
        return max((one.state for one in self.components), key=ORDER.index)

    @property
    def sentence(self) -> str:
        """Say in a sentence whether it is them or us."""
        unwell = [one.component.title for one in self.components if one.state != "operational"]
        if not unwell:
            return _("Everything works.")
        if len(unwell) == len(self.components):
            return _("Nothing works as it should.")
        return _("%(parts)s: not well. All else works.") % {"parts": ", ".join(unwell)}


async def told(database: Reader, found: Sequence[Incident]) -> list[ToldIncident]:
    """Put incidents together with what was said of them."""
    said: dict[str, list[IncidentUpdate]] = {one.id: [] for one in found}
    for update in await incidents.updates(database, list(said)):
        said[update.incident_id].append(update)
    return [ToldIncident(incident=one, updates=said[one.id]) for one in found]


async def standing(database: Reader, at: datetime) -> ServiceStanding:
    """Look how the service does."""
    newest = await told(database, await incidents.listed(database, SHOWN, None, public=True))
    open_ones = [one for one in newest if one.incident.resolved_at is None]
    kept = {one.component: one for one in await measuring.components(database)}
    today = at.replace(hour=0, minute=0, second=0, microsecond=0)
    since = today - timedelta(days=DAYS - 1)
    by_day = {(one.component, one.day): one for one in await measuring.days(database, since)}
    days = [since + timedelta(days=number) for number in range(DAYS)]
    found = []
    for name, component in COMPONENTS.items():
        one = kept.get(name)
        state: Standing = one.state if one else "operational"
        why = one.why if one else ""
        # A service whose looks have stopped cannot say that it is well.
        if name == "api" and one is not None and at - one.checked_at > STALE:
            state, why = "partial_outage", _("It has not looked at itself for a while.")
        of_people = [
            WORST[told_one.incident.impact]
            for told_one in open_ones
            if told_one.incident.component == name
        ]
        found.append(
            ComponentStanding(
                component=component,
                state=max((state, *of_people), key=ORDER.index),
                why=why,
                checked_at=one.checked_at if one else None,
                days=[by_day.get((name, day)) for day in days],
            )
        )
    return ServiceStanding(
        at=at,
        components=found,
        open_incidents=open_ones,
        past=[one for one in newest if one.incident.resolved_at is not None],
    )
