"""What operators say of incidents: they open, publish, follow and end them (rules/service#status)."""

from typing import Annotated, Final

from pydantic import Field, StringConstraints
from quart import Blueprint
from quart_schema import tag_blueprint

from tolsey.actors.job.alerts.effects import update_of
from tolsey.actors.refusals import NotFound
from tolsey.http.answers.base import ApiAnswer, Created, ListAnswer, Timestamp, list_of
from tolsey.http.operators.admin import note
from tolsey.http.status.standing import ToldIncident, told
from tolsey.http.status.subscribing import ComponentName
from tolsey.http.status.telling import StatusLetters
from tolsey.http.web.access import administrator
from tolsey.http.web.api_model import Name, Reason
from tolsey.http.web.context import new_id, now, service
from tolsey.http.web.paging import PageQuery
from tolsey.storage.records.status import Impact, Incident, IncidentState
from tolsey.storage.status import incidents

Said = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=2_000)]
SAID: Final = "What everybody reads; no names of people or shops."

routes = Blueprint("incidents", __name__, url_prefix="/api/admin/incidents")
tag_blueprint(routes, ["Operators"])


class NewIncident(Reason):
    """An incident that everybody is told of at once."""

    component: ComponentName
    title: Name
    impact: Impact
    body: Annotated[Said, Field(description=SAID)]


class NewUpdate(Reason):
    """What is said of an incident next; one that was a draft is published by it."""

    state: IncidentState
    body: Annotated[Said, Field(description=SAID)]


class IncidentUpdateAnswer(ApiAnswer):
    """What was said of an incident."""

    id: str
    state: IncidentState
    body: str
    at: Timestamp


class IncidentAnswer(ApiAnswer):
    """An incident; nobody else sees it while `publishedAt` is null."""

    id: str
    component: str
    title: str
    impact: Impact
    state: IncidentState
    source: str
    opened_at: Timestamp
    published_at: Timestamp | None
    resolved_at: Timestamp | None
    updates: list[IncidentUpdateAnswer]


def _answer(one: ToldIncident) -> IncidentAnswer:
    updates = [IncidentUpdateAnswer.read(update) for update in one.updates]
    return IncidentAnswer.read(one.incident, updates=updates)


@routes.get("")
@administrator
async def list_incidents(query_args: PageQuery) -> ListAnswer[IncidentAnswer]:
    """List incidents, newest first, drafts too."""
    database = service().database
    found = await incidents.listed(
        database, query_args.limit + 1, query_args.after_moment, public=False
    )
    return list_of(
        await told(database, found),
        query_args.limit,
        key=lambda one: f"{one.incident.opened_at.isoformat()}|{one.incident.id}",
        answer=_answer,
    )


@routes.post("")
@administrator
async def open_incident(data: NewIncident) -> tuple[IncidentAnswer, Created]:
    """Tell everybody, and who subscribed by mail, that something is wrong with a part of the service."""
    at = now()
    incident = Incident(
        id=new_id("inc"),
        component=data.component,
        title=data.title,
        impact=data.impact,
        state="investigating",
        source="operator",
        opened_at=at,
        published_at=at,
    )
    await note("admin.incident.opened", incident.id, data.reason)
    async with service().database.transaction() as tx:
        await incidents.open_incident(tx, incident)
    return await _said(incident, "investigating", data.body), 201


@routes.post("/<incident_id>/updates")
@administrator
async def update_incident(incident_id: str, data: NewUpdate) -> tuple[IncidentAnswer, Created]:
    """Say something of an incident to everybody: `resolved` ends it, and any word publishes a draft."""
    incident = await incidents.find(service().database, incident_id)
    if incident is None:
        raise NotFound("This incident doesn't exist. Check the list of incidents.")
    await note("admin.incident.updated", incident_id, data.reason, state=data.state)
    return await _said(incident, data.state, data.body), 201


async def _said(incident: Incident, state: IncidentState, body: str) -> IncidentAnswer:
    running, at = service(), now()
    update = update_of(incident, state, body, at)
    async with running.database.transaction() as tx:
        await incidents.publish(tx, incident.id, at)
        await incidents.say(tx, update)
    letters = StatusLetters(
        running.database, running.settings, running.mail, running.status_webhooks
    )
    await letters.tell_subscribers(incident, update)
    found = await incidents.find(running.database, incident.id)
    assert found is not None  # noqa: S101 - it was written a moment ago, and none is ever deleted
    (answer,) = await told(running.database, [found])
    return _answer(answer)
