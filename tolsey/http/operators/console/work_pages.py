"""Pages of what is at work: calls to the outside, jobs, processes."""

from typing import get_args

import orjson
from quart import Blueprint, Response

from tolsey.http.answers.operators.diagnosis import CallAnswer
from tolsey.http.layout.answers import answer_with_pages, shown
from tolsey.http.layout.catalogue import _
from tolsey.http.layout.standings import Tone
from tolsey.http.operators import admin, shards
from tolsey.http.operators.admin import CallQuery
from tolsey.http.operators.console.tables import (
    TableCell,
    TableFilter,
    TableLine,
    TablePage,
    actor_address,
    asked_for,
    number,
    state_cell,
)
from tolsey.http.operators.shards import SlotQuery
from tolsey.http.web.access import page, require_administrator
from tolsey.runtime.messages import LaneName

routes = Blueprint("console_work", __name__, url_prefix="/admin")
answer_with_pages(routes)


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
            lines=[line_of_call(one) for one in found.items],
            nothing=_("No such call."),
            following=found.next_cursor,
        )
    )


def line_of_call(one: CallAnswer) -> TableLine:
    """Tell a call in a line."""
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
