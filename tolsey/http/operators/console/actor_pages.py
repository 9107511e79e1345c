"""Pages of actors: those awake, one of them, its turns, and its state before one."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import get_args
from urllib.parse import quote

import orjson
from quart import Blueprint, Response

from tolsey.http.answers.operators.runtime import (
    ActorAnswer,
    InspectedActorAnswer,
    JournalTurnAnswer,
    StateBeforeAnswer,
)
from tolsey.http.layout.answers import answer_with_pages, shown
from tolsey.http.layout.catalogue import _
from tolsey.http.layout.standings import Tone
from tolsey.http.operators import admin, time_travel
from tolsey.http.operators.admin import ActorQuery
from tolsey.http.operators.console.sections import ConsolePage
from tolsey.http.operators.console.tables import (
    TONES,
    TableCell,
    TableFilter,
    TableLine,
    TablePage,
    actor_address,
    asked_for,
    number,
    state_cell,
)
from tolsey.http.operators.console.work_pages import line_of_call
from tolsey.http.operators.time_travel import MessageQuery
from tolsey.http.web.access import page, require_administrator
from tolsey.http.web.context import service
from tolsey.http.web.paging import PageQuery
from tolsey.runtime.admin import Sort
from tolsey.runtime.masking import MASK

routes = Blueprint("console_actors", __name__, url_prefix="/admin")
answer_with_pages(routes)


@dataclass(frozen=True, kw_only=True)
class ActorPage(ConsolePage):
    """One actor: how it is, what it holds, what it did last, and what it asks of the outside."""

    template = "operators/console/actor.html"
    actor: InspectedActorAnswer
    calls: Sequence[TableLine]
    section: str = "/admin/actors"

    @property
    def state(self) -> str:
        """Its state as JSON, to read."""
        return orjson.dumps(self.actor.state, option=orjson.OPT_INDENT_2, default=str).decode()

    @property
    def address(self) -> str:
        """The address of its page."""
        return actor_address(self.actor.kind, self.actor.id)

    @property
    def tone(self) -> Tone:
        """How its state is shown."""
        return TONES.get(self.actor.status, "idle")


@dataclass(frozen=True, kw_only=True)
class StateBeforePage(ConsolePage):
    """An actor's state before a message and today's, side by side."""

    template = "operators/console/state_before.html"
    found: StateBeforeAnswer
    address: str
    section: str = "/admin/actors"

    @property
    def before(self) -> str:
        """The former state as JSON, to read."""
        return orjson.dumps(self.found.before, option=orjson.OPT_INDENT_2, default=str).decode()

    @property
    def now(self) -> str:
        """Today's."""
        return orjson.dumps(self.found.now, option=orjson.OPT_INDENT_2, default=str).decode()

    @property
    def differing(self) -> Sequence[tuple[str, str, str]]:
        """Each place that differs, with what stood and stands there; nothing where nothing did."""
        return [
            (one.place, MASK, MASK)
            if one.masked
            else (one.place, _said(one.before), _said(one.now))
            for one in self.found.differences
        ]


def _said(value: object) -> str:
    return "" if value is None else orjson.dumps(value, default=str).decode()


@routes.get("/actors")
@page
async def show_actors() -> Response:
    """Show the actors that are awake, those first that fall behind."""
    await require_administrator()
    asked = asked_for(ActorQuery)
    found = await admin.actors(query_args=asked)
    lead = _("What is awake in any process, by what waits.")
    if found.unanswered:
        silent = {"processes": ", ".join(found.unanswered)}
        lead = (
            _("These processes kept silent, and their actors are not below: %(processes)s") % silent
        )
    kinds = {"": _("All kinds")} | {kind: kind for kind in sorted(service().runtime.kinds)}
    orders = {one: one for one in get_args(Sort)}
    return shown(
        TablePage(
            section="/admin/actors",
            is_live=True,
            title=_("Actors"),
            lead=lead,
            choices=[
                TableFilter(name="kind", label=_("Kind"), options=kinds),
                TableFilter(name="sort", label=_("Order"), options=orders),
            ],
            columns=(
                _("Actor"),
                _("Kind"),
                _("State"),
                _("Slot"),
                _("Waiting"),
                _("Oldest, seconds"),
                _("Not yet on disk"),
            ),
            lines=[_of_actor(one) for one in found.items],
            nothing=_("No actor is awake."),
            following=found.next_cursor,
        )
    )


def _of_actor(one: ActorAnswer) -> TableLine:
    return TableLine(
        (
            TableCell(text=one.id, address=actor_address(one.kind, one.id)),
            TableCell(text=one.kind),
            state_cell(one.status),
            number(one.slot),
            number(one.mailbox_depth),
            number(round(one.oldest_message_seconds, 1)),
            number(one.uncommitted),
        )
    )


@routes.get("/actors/<kind>/<id>")
@page
async def show_actor(kind: str, id: str) -> Response:
    """Show one actor; it is woken for it."""
    await require_administrator()
    found = await admin.actor(kind=kind, id=id)
    return shown(ActorPage(actor=found, calls=[line_of_call(one) for one in found.calls]))


@routes.get("/actors/<kind>/<id>/turns")
@page
async def show_turns(kind: str, id: str) -> Response:
    """Show an actor's turns of the last week that changed something, newest first."""
    await require_administrator()
    found = await time_travel.list_turns(kind=kind, id=id, query_args=asked_for(PageQuery))
    address = actor_address(kind, id)
    return shown(
        TablePage(
            section="/admin/actors",
            title=_("Turns of %(actor)s") % {"actor": f"{kind} {id}"},
            lead=_("What changed it in the last week, newest first, as the journal has it."),
            columns=(_("Version"), _("Message"), _("Id"), _("When"), _("State before it")),
            lines=[_of_turn(one, address) for one in found.items],
            nothing=_("Nothing changed it in the last week."),
            following=found.next_cursor,
        )
    )


def _of_turn(one: JournalTurnAnswer, address: str) -> TableLine:
    before = f"{address}/at?message={quote(one.message_id, safe='')}"
    return TableLine(
        (
            number(one.version),
            TableCell(text=one.message),
            TableCell(text=one.message_id),
            TableCell(at=one.committed_at),
            TableCell(text=_("kept") if one.restorable else _("not kept")),
        ),
        ((_("The state before"), before),),
    )


@routes.get("/actors/<kind>/<id>/at")
@page
async def show_state_before(kind: str, id: str) -> Response:
    """Show an actor's state before a message beside today's, with what differs marked."""
    await require_administrator()
    found = await time_travel.state_before(kind=kind, id=id, query_args=asked_for(MessageQuery))
    return shown(StateBeforePage(found=found, address=actor_address(kind, id)))
