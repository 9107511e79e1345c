"""Pages of what is at work: actors, what failed for good, calls, jobs, processes."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, get_args
from urllib.parse import quote

import orjson
from quart import Blueprint, Response

from tolsey.http.answers.operators.diagnosis import (
    CallAnswer,
    DeadLetterAnswer,
    DeadLetterGroupAnswer,
)
from tolsey.http.answers.operators.runtime import (
    ActorAnswer,
    InspectedActorAnswer,
    JournalTurnAnswer,
    StateBeforeAnswer,
)
from tolsey.http.layout.answers import answer_with_pages, shown
from tolsey.http.layout.catalogue import _
from tolsey.http.layout.standings import Tone
from tolsey.http.operators import admin, dead_letters, shards, time_travel
from tolsey.http.operators.admin import ActorQuery, CallQuery
from tolsey.http.operators.console.sections import ConsolePage
from tolsey.http.operators.console.tables import (
    TableCell,
    TableFilter,
    TableLine,
    TablePage,
    asked_for,
)
from tolsey.http.operators.dead_letters import DeadLetterQuery
from tolsey.http.operators.shards import SlotQuery
from tolsey.http.operators.time_travel import MessageQuery
from tolsey.http.web.access import page, require_administrator
from tolsey.http.web.context import service
from tolsey.http.web.paging import PageQuery
from tolsey.runtime.admin import Sort
from tolsey.runtime.masking import MASK
from tolsey.runtime.messages import LaneName

TONES: Final[dict[str, Tone]] = {
    "awake": "good",
    "cold": "idle",
    "paused": "warn",
    "waiting": "wait",
    "sent": "wait",
    "unknown": "warn",
    "failed": "bad",
    "done": "good",
    "completed": "good",
    "running": "wait",
    "dead": "bad",
    "replayed": "good",
    "discarded": "idle",
}

routes = Blueprint("console", __name__, url_prefix="/admin")
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


def actor_address(kind: str, id: str, act: str = "") -> str:
    """Give the address of an actor's page, or of the form of an act on it."""
    return f"/admin/actors/{quote(kind)}/{quote(id, safe='')}" + (f"/{act}" if act else "")


def state_cell(state: str) -> TableCell:
    """Show a state in its word."""
    return TableCell(text=state, tone=TONES.get(state, "idle"))


def number(value: float) -> TableCell:
    """Show a number."""
    return TableCell(text=f"{value:,}", is_amount=True)


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
    return shown(ActorPage(actor=found, calls=[_of_call(one) for one in found.calls]))


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


@routes.get("/dead-letters")
@page
async def show_dead_letters() -> Response:
    """Show what failed for good by its cause, or the letters of one cause."""
    await require_administrator()
    asked = asked_for(DeadLetterQuery)
    if asked.fingerprint is not None or asked.status != "dead":
        return shown(await _letters(asked))
    found = await dead_letters.list_groups(
        query_args=PageQuery(limit=asked.limit, cursor=asked.cursor)
    )
    return shown(
        TablePage(
            section="/admin/dead-letters",
            is_live=True,
            title=_("Dead letters, by what went wrong"),
            lead=_(
                "Messages and calls that failed for good. Nothing of them is lost: send them again once it is mended."
            ),
            columns=(_("Letters"), _("Error"), _("Message"), _("Actor"), _("First"), _("Last")),
            lines=[_of_group(one) for one in found.items],
            nothing=_("Nothing failed for good."),
            following=found.next_cursor,
        )
    )


def _of_group(one: DeadLetterGroupAnswer) -> TableLine:
    address = f"/admin/dead-letters/groups/{one.fingerprint}"
    return TableLine(
        (
            TableCell(
                text=f"{one.letters:,}{'+' if one.more else ''}",
                address=f"/admin/dead-letters?fingerprint={one.fingerprint}",
                is_amount=True,
            ),
            TableCell(text=one.error),
            TableCell(text=one.message),
            TableCell(text=one.kind),
            TableCell(at=one.first_died_at),
            TableCell(at=one.last_died_at),
        ),
        ((_("Replay…"), f"{address}/replay"), (_("Discard…"), f"{address}/discard")),
    )


async def _letters(asked: DeadLetterQuery) -> TablePage:
    found = await dead_letters.list_letters(query_args=asked)
    return TablePage(
        section="/admin/dead-letters",
        title=_("Dead letters of one cause"),
        lead=_(
            "Newest first. A replay keeps the message's own key, so that nothing is done twice."
        ),
        columns=(
            _("Letter"),
            _("Actor"),
            _("Message"),
            _("About"),
            _("Behind it"),
            _("State"),
            _("Tries"),
            _("Error"),
            _("Failed"),
        ),
        lines=[_of_letter(one) for one in found.items],
        nothing=_("No letter of this cause is left."),
        following=found.next_cursor,
    )


def _of_letter(one: DeadLetterAnswer) -> TableLine:
    address = f"/admin/dead-letters/{quote(one.id, safe='')}"
    acts = (
        (_("Replay…"), f"{address}/replay"),
        (_("Edit…"), f"{address}/edit"),
        (_("Discard…"), f"{address}/discard"),
    )
    return TableLine(
        (
            TableCell(text=one.id),
            TableCell(text=one.actor_id, address=actor_address(one.kind, one.actor_id)),
            TableCell(text=one.message),
            TableCell(text=one.about),
            number(one.behind),
            state_cell(one.status),
            number(one.attempts),
            TableCell(text=one.error),
            TableCell(at=one.died_at),
        ),
        acts if one.status == "dead" else (),
    )


@routes.get("/calls")
@page
async def show_calls() -> Response:
    """Show calls to the outside, first due first."""
    await require_administrator()
    found = await admin.calls(query_args=asked_for(CallQuery))
    states = ("waiting", "sent", "unknown", "failed", "done")
    lanes = {"": _("All lanes")} | {one: one for one in get_args(LaneName)}
    return shown(
        TablePage(
            section="/admin/calls",
            is_live=True,
            title=_("Calls to the outside"),
            lead=_(
                "What waits for another service, first due first. Turns go round by organization in each lane."
            ),
            choices=[
                TableFilter(
                    name="state",
                    label=_("State"),
                    options={"": _("Not done yet"), **{one: one for one in states}},
                ),
                TableFilter(name="lane", label=_("Lane"), options=lanes),
            ],
            columns=(
                _("Call"),
                _("Actor"),
                _("Lane"),
                _("State"),
                _("Tries"),
                _("Next try"),
                _("Last error"),
            ),
            lines=[_of_call(one) for one in found.items],
            nothing=_("No such call."),
            following=found.next_cursor,
        )
    )


def _of_call(one: CallAnswer) -> TableLine:
    return TableLine(
        (
            TableCell(text=one.call),
            TableCell(text=one.actor_id, address=actor_address(one.kind, one.actor_id)),
            TableCell(text=one.lane),
            state_cell(one.state),
            number(one.attempts),
            TableCell(at=one.next_try_at),
            TableCell(text=one.last_error or ""),
        )
    )


@routes.get("/jobs")
@page
async def show_jobs() -> Response:
    """Show every job: when it is due, how it last went and what that counted."""
    await require_administrator()
    found = await admin.crons()
    lines = []
    for job in found.items:
        last = job.history[0] if job.history else None
        counted = last.outcome.model_dump(exclude={"status"}, exclude_none=True) if last else {}
        lines.append(
            TableLine(
                (
                    TableCell(text=job.name),
                    TableCell(text=job.expression),
                    TableCell(at=job.next_due_at),
                    TableCell(at=last.started_at) if last else TableCell(text=_("never")),
                    state_cell(last.status) if last else TableCell(),
                    TableCell(
                        text=(last and last.error)
                        or (orjson.dumps(counted).decode() if counted else "")
                    ),
                ),
                ((_("Run…"), f"/admin/jobs/{job.name}/run"),),
            )
        )
    return shown(
        TablePage(
            section="/admin/jobs",
            is_live=True,
            title=_("Jobs"),
            lead=_("Each runs once for each of its due times, whichever process it falls to."),
            columns=(
                _("Job"),
                _("Schedule"),
                _("Next due"),
                _("Last run"),
                _("State"),
                _("What it counted"),
            ),
            lines=lines,
            nothing=_("There are no jobs."),
        )
    )


@routes.get("/shards")
@page
async def show_shards() -> Response:
    """Show every process: how it is, which slots it has, and what waits for it."""
    await require_administrator()
    found = await shards.shards(query_args=SlotQuery(limit=1))
    lines = []
    for one in found.processes:
        tone: Tone = "good" if one.alive and one.answers else "bad"
        word = _("Answers") if tone == "good" else _("Silent")
        lines.append(
            TableLine(
                (
                    TableCell(text=one.id),
                    TableCell(text=_("Leaves"), tone="wait")
                    if one.draining
                    else TableCell(text=word, tone=tone),
                    number(one.slots),
                    number(one.actors or 0),
                    number(one.lag.outbox),
                    number(round(one.lease_left_seconds or 0, 1)),
                )
            )
        )
    return shown(
        TablePage(
            section="/admin/shards",
            is_live=True,
            title=_("Shards"),
            lead=_("Every process, its slots, and how long it may answer without another beat."),
            columns=(
                _("Process"),
                _("State"),
                _("Slots"),
                _("Actors"),
                _("Due in the outbox"),
                _("Lease, seconds"),
            ),
            lines=lines,
            nothing=_("No process is there."),
        )
    )
