"""The console's pages of incidents: what there was, and what everybody is told of them."""

from typing import Final, get_args

from quart import Blueprint, Response

from tolsey.http.layout.answers import answer_with_pages, shown
from tolsey.http.layout.catalogue import _
from tolsey.http.layout.forms import Filled
from tolsey.http.operators.console.tables import (
    ActPage,
    TableCell,
    TableLine,
    TablePage,
    Typed,
    acted,
    asked_for,
)
from tolsey.http.status import incidents
from tolsey.http.status.incidents import IncidentAnswer, NewIncident, NewUpdate
from tolsey.http.web.access import page, require_administrator
from tolsey.http.web.context import service
from tolsey.http.web.paging import PageQuery
from tolsey.storage.records.status import Impact, IncidentState
from tolsey.storage.status import incidents as kept

ADDRESS: Final = "/admin/incidents"

routes = Blueprint("incident_pages", __name__, url_prefix=ADDRESS)
answer_with_pages(routes)


@routes.get("")
@page
async def show_incidents() -> Response:
    """Show incidents, drafts too, with what was said last."""
    await require_administrator()
    found = await incidents.list_incidents(query_args=asked_for(PageQuery))
    return shown(
        TablePage(
            section=ADDRESS,
            title=_("Incidents"),
            lead=_(
                "What everybody reads at /status. A draft is published after ten minutes, or by your word."
            ),
            act=(_("Open an incident…"), f"{ADDRESS}/open"),
            columns=(_("Opened"), _("Part"), _("Title"), _("State"), _("Seen by"), _("Said last")),
            lines=[_of_incident(one) for one in found.items],
            nothing=_("There was no incident."),
            following=found.next_cursor,
        )
    )


def _of_incident(one: IncidentAnswer) -> TableLine:
    is_over = one.resolved_at is not None
    return TableLine(
        (
            TableCell(at=one.opened_at),
            TableCell(text=one.component),
            TableCell(text=one.title),
            TableCell(text=one.state, tone="good" if is_over else "bad"),
            TableCell(text=_("everybody") if one.published_at else _("operators")),
            TableCell(text=one.updates[-1].body if one.updates else ""),
        ),
        () if is_over else ((_("Say what is so…"), f"{ADDRESS}/{one.id}/say"),),
    )


@routes.route("/open", methods=["GET", "POST"])
@page
async def open_incident() -> Response:
    """Tell everybody that something is wrong with a part of the service."""
    await require_administrator()

    async def page_of(filled: Filled) -> ActPage:
        parts = get_args(NewIncident.model_fields["component"].annotation)
        return ActPage(
            section=ADDRESS,
            title=_("Open an incident"),
            facts=await _readers(),
            button=_("Tell everybody"),
            back=ADDRESS,
            is_final=True,
            typed=[
                Typed(name="component", label=_("Part"), options=named(parts)),
                Typed(name="impact", label=_("Impact"), options=named(get_args(Impact))),
                Typed(name="title", label=_("Title")),
                Typed(
                    name="body",
                    label=_("What everybody reads"),
                    hint=_("No names of people or shops."),
                ),
            ],
            filled=filled,
        )

    return await acted(
        page_of,
        NewIncident,
        lambda data: incidents.open_incident(data=data),
        f"{ADDRESS}?done=told",
    )


@routes.route("/<incident_id>/say", methods=["GET", "POST"])
@page
async def say_of_incident(incident_id: str) -> Response:
    """Say something of an incident to everybody; the last word ends it, and any word publishes a draft."""
    await require_administrator()

    async def page_of(filled: Filled) -> ActPage:
        return ActPage(
            section=ADDRESS,
            title=_("Say what is so"),
            facts={_("Incident"): incident_id, **await _readers()},
            button=_("Tell everybody"),
            back=ADDRESS,
            is_final=True,
            typed=[
                Typed(name="state", label=_("State"), options=named(get_args(IncidentState))),
                Typed(
                    name="body",
                    label=_("What everybody reads"),
                    hint=_("No names of people or shops."),
                ),
            ],
            filled=filled,
        )

    return await acted(
        page_of,
        NewUpdate,
        lambda data: incidents.update_incident(incident_id=incident_id, data=data),
        f"{ADDRESS}?done=told",
    )


async def _readers() -> dict[str, str]:
    """Say how many are told by mail, beside everybody who reads the page."""
    readers = await kept.count_subscribers(service().database)
    return {_("Told by mail"): f"{readers:,}"}


def named(values: tuple[str, ...]) -> dict[str, str]:
    """Show words of the API as what they are: operators read both."""
    return {one: one for one in values}
