"""The work of the job that looks how the service does (rules/service#status, rules/service#alerts)."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, Protocol

import structlog

from tolsey.actors.job.alerts.components import COMPONENTS, GRACE, Signs, measured
from tolsey.actors.job.alerts.thresholds import (
    CHARGEBACK_WINDOW,
    REMIND_AFTER,
    Alert,
    alerts,
)
from tolsey.actors.job.catalogue import JOBS
from tolsey.actors.job.effects import Progress, Work
from tolsey.runtime.ids import new_id
from tolsey.storage.database import Database
from tolsey.storage.records.status import (
    Impact,
    Incident,
    IncidentState,
    IncidentUpdate,
    MeasuredComponent,
)
from tolsey.storage.runtime import executions
from tolsey.storage.status import incidents, measuring

log = structlog.get_logger()

FAILED_PROBES: Final = 2
"""Looks in a row that found a part unwell before an incident is opened (rules/service#status)."""
UNPUBLISHED: Final = timedelta(minutes=10)
"""How long an operator may look at a draft before everybody sees it."""
LAST_RUNS: Final = 5
SYSTEM: Final = "system"
OPENED: Final = "We are looking for the cause."
MENDED: Final = "It works again."


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetSigns:
    """What the processes of this deployment tell together."""

    is_cache_there: bool
    limit_hits: int
    """How often agents were refused for calling too often, in the last hour."""


class StatusTellers(Protocol):
    """Writes to people about how the service does."""

    async def tell_subscribers(self, incident: Incident, update: IncidentUpdate) -> int:
        """Write to who subscribed what was said of an incident; answers to how many."""
        ...

    async def tell_operator(self, alert: Alert, at: datetime) -> bool:
        """Write to the operator of an alert; whether there is one."""
        ...


class StatusWatch:
    """Looks at the service, keeps how its parts do, and tells who wants to know."""

    def __init__(
        self,
        database: Database,
        tellers: StatusTellers,
        fleet: Callable[[], Awaitable[FleetSigns]],
        clock: Callable[[], datetime],
    ) -> None:
        self._database = database
        self._tellers = tellers
        self._fleet = fleet
        self._clock = clock

    def work(self) -> Mapping[str, Work]:
        """List it by the job's name."""
        return {"alerts-tick": self.look}

    async def look(self, scheduled_at: datetime, progress: Progress) -> Mapping[str, int]:
        """Judge every part, open and end incidents, and raise alerts."""
        del scheduled_at, progress
        at, fleet = self._clock(), await self._fleet()
        found = await self._judge(at, is_cache_there=fleet.is_cache_there)
        counters = {"unwell": sum(one.state != "operational" for one in found)}
        counters |= await self._follow(found, at)
        return counters | await self._alarm(fleet.limit_hits, at)

    async def _judge(self, at: datetime, *, is_cache_there: bool) -> list[MeasuredComponent]:
        database = self._database
        signs = Signs(
            at=at,
            is_cache_there=is_cache_there,
            runs=await executions.last(database, list(JOBS), LAST_RUNS, trigger="schedule"),
            overdue_lanes=await measuring.overdue_lanes(database, at - GRACE),
            dead_letters=await measuring.dead_since(database, at - timedelta(hours=1)),
        )
        before = {one.component: one for one in await measuring.components(database)}
        found = measured(signs, before)
        async with database.transaction() as tx:
            await measuring.note(tx, found)
        return found

    async def _follow(self, found: list[MeasuredComponent], at: datetime) -> dict[str, int]:
        """Open incidents of what was unwell twice, publish those nobody did, end those that are over."""
        counters = {"opened": 0, "published": 0, "resolved": 0, "subscribersTold": 0}
        open_ones = await incidents.unresolved(self._database)
        own = {one.component: one for one in open_ones if one.source == SYSTEM}
        for one in found:
            incident = own.get(one.component)
            if incident is None and one.bad_times >= FAILED_PROBES:
                counters["opened"] += await self._open(one, at)
            elif incident is not None and one.state == "operational":
                counters["resolved"] += 1
                counters["subscribersTold"] += await self._say(incident, "resolved", MENDED, at)
            # Published by a person, or by the clock after ten minutes (rules/service#status).
            elif (
                incident is not None
                and incident.published_at is None
                and at - incident.opened_at >= UNPUBLISHED
            ):
                async with self._database.transaction() as tx:
                    await incidents.publish(tx, incident.id, at)
                counters["published"] += 1
                (said,) = (await incidents.updates(self._database, [incident.id]))[:1]
                counters["subscribersTold"] += await self._tellers.tell_subscribers(incident, said)
        return counters

    async def _open(self, one: MeasuredComponent, at: datetime) -> bool:
        impact: Impact = "minor" if one.state == "degraded_performance" else "major"
        word = "is slow or late" if impact == "minor" else "does not work as it should"
        incident = Incident(
            id=new_id("inc"),
            component=one.component,
            title=f"{COMPONENTS[one.component].title} {word}",
            impact=impact,
            state="investigating",
            source=SYSTEM,
            opened_at=at,
        )
        async with self._database.transaction() as tx:
            is_new = await incidents.open_incident(tx, incident)
            if is_new:
                await incidents.say(
                    tx, update_of(incident, "investigating", f"{one.why} {OPENED}", at)
                )
        if is_new:
            log.warning("incident.opened", incident=incident.id, component=one.component)
        return is_new

    async def _say(self, incident: Incident, state: IncidentState, body: str, at: datetime) -> int:
        """Say something of an incident; who subscribed is told what is public."""
        update = update_of(incident, state, body, at)
        async with self._database.transaction() as tx:
            await incidents.say(tx, update)
        if incident.published_at is None:
            return 0
        return await self._tellers.tell_subscribers(incident, update)

    async def _alarm(self, limit_hits: int, at: datetime) -> dict[str, int]:
        tally = await measuring.payments(self._database, at, CHARGEBACK_WINDOW)
        raised = {one.name: one for one in alerts(tally, limit_hits)}
        before = await measuring.raised(self._database)
        due = [
            one
            for one in raised.values()
            if one.name not in before or at - before[one.name] >= REMIND_AFTER
        ]
        told = 0
        for one in due:
            log.error("alert.raised", alert=one.name, sentence=one.sentence)
            told += await self._tellers.tell_operator(one, at)
        cleared = [name for name in before if name not in raised]
        async with self._database.transaction() as tx:
            names = [one.name for one in due]
            await measuring.keep_alerts(tx, told=names, cleared=cleared, at=at)
        return {"alerts": len(raised), "operatorsTold": told}


def update_of(incident: Incident, state: IncidentState, body: str, at: datetime) -> IncidentUpdate:
    """Make what is said of an incident."""
    return IncidentUpdate(id=new_id("upd"), incident_id=incident.id, state=state, body=body, at=at)
