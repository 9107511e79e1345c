"""Forms of operators' acts: what an act would touch first, then the reason, then the act (rules/operators#acts)."""

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal

import orjson
from pydantic import Field, Json
from quart import Blueprint, Response

from tolsey.http.answers.operators.operations import PlannedRunAnswer
from tolsey.http.layout.answers import answer_with_pages
from tolsey.http.layout.catalogue import _, marked
from tolsey.http.layout.forms import Filled
from tolsey.http.operators import admin, dead_letters, shards
from tolsey.http.operators.admin import JobRun
from tolsey.http.operators.console.tables import ActPage, Typed, acted, actor_address
from tolsey.http.operators.dead_letters import Act, GroupAct, LetterAct
from tolsey.http.operators.shards import Move
from tolsey.http.web.access import page, require_administrator
from tolsey.http.web.api_model import Reason
from tolsey.http.web.context import service

ActorAct = Literal["pause", "resume", "passivate", "drain"]

LOOK: Final = "look"
"""The reason given for a dry run, which does nothing and keeps none."""
BUTTONS: Final[Mapping[str, str]] = {
    "replay": marked("Send again"),
    "discard": marked("Give up"),
    "pause": marked("Pause"),
    "resume": marked("Resume"),
    "passivate": marked("Put to sleep"),
    "drain": marked("Drain"),
}

routes = Blueprint("console_acts", __name__, url_prefix="/admin")
answer_with_pages(routes)


class EditedLetter(Reason):
    """What a letter is to say instead, as JSON text."""

    payload: Json[dict[str, Any]]


class MovedSlot(Reason):
    """Why a slot goes to a process, or, where none is named, wherever it falls."""

    slot: Annotated[str, Field(pattern=r"^[0-9]{1,4}$")]
    to: str | None = None


@routes.route(
    "/dead-letters/groups/<fingerprint>/<any(replay, discard):act>", methods=["GET", "POST"]
)
@page
async def settle_group(fingerprint: str, act: Act) -> Response:
    """Show how many letters of a cause would be sent again or given up, and do it for a reason."""
    await require_administrator()

    async def page_of(filled: Filled) -> ActPage:
        would = await dead_letters.settle_group(
            fingerprint=fingerprint, act=act, data=GroupAct(reason=LOOK, dry_run=True)
        )
        rate = Typed(
            name="perSecond",
            label=_("How many a second"),
            hint=_("Left empty, all at once; a cause that is not mended fails them again."),
            type="number",
            is_required=False,
        )
        return ActPage(
            section="/admin/dead-letters",
            title=_("Replay a cause") if act == "replay" else _("Discard a cause"),
            facts={
                _("Letters"): f"{would.affected:,}",
                _("Waiting behind them"): f"{would.behind:,}",
                _("Left for another time"): f"{would.remaining:,}",
                _("Cause"): fingerprint,
            },
            button=_(BUTTONS[act]),
            back=f"/admin/dead-letters?fingerprint={fingerprint}",
            is_final=act == "discard",
            typed=[rate] if act == "replay" else [],
            filled=filled,
        )

    return await acted(
        page_of,
        GroupAct,
        lambda data: dead_letters.settle_group(fingerprint=fingerprint, act=act, data=data),
        f"/admin/dead-letters?done={act}",
    )


@routes.route("/dead-letters/<id>/<any(replay, discard):act>", methods=["GET", "POST"])
@page
async def settle_letter(id: str, act: Act) -> Response:
    """Show what of one letter would be done, and do it for a reason."""
    await require_administrator()

    async def page_of(filled: Filled) -> ActPage:
        would = await dead_letters.settle_letter(
            id=id, act=act, data=LetterAct(reason=LOOK, dry_run=True)
        )
        return ActPage(
            section="/admin/dead-letters",
            title=_("Replay a letter") if act == "replay" else _("Discard a letter"),
            facts={
                _("Letter"): would.id,
                _("Letters"): f"{would.affected:,}",
                _("Waiting behind it"): f"{would.behind:,}",
            },
            button=_(BUTTONS[act]),
            back="/admin/dead-letters",
            is_final=act == "discard",
            filled=filled,
        )

    return await acted(
        page_of,
        Reason,
        lambda data: dead_letters.settle_letter(id=id, act=act, data=LetterAct(reason=data.reason)),
        f"/admin/dead-letters?done={act}",
    )


@routes.route("/dead-letters/<id>/edit", methods=["GET", "POST"])
@page
async def edit_letter(id: str) -> Response:
    """Show what a letter says, and send it again with other words for a reason."""
    await require_administrator()

    async def page_of(filled: Filled) -> ActPage:
        found = await dead_letters.quarantine(id=id)
        said = orjson.dumps(found.letter.payload, option=orjson.OPT_INDENT_2).decode()
        return ActPage(
            section="/admin/dead-letters",
            title=_("Edit and replay a letter"),
            facts={
                _("Letter"): id,
                _("Message"): found.letter.message,
                _("Error"): found.letter.error,
                _("Letters"): "1",
                _("Waiting behind it"): f"{found.letter.behind:,}",
            },
            button=_(BUTTONS["replay"]),
            back="/admin/dead-letters",
            typed=[
                Typed(
                    name="payload",
                    label=_("What it says, as JSON"),
                    hint=_("Its key stays, so that it takes effect once."),
                    type="textarea",
                )
            ],
            filled=filled if filled.values else Filled({"payload": said}, {}),
        )

    async def send(data: EditedLetter) -> object:
        act = LetterAct(reason=data.reason, payload=data.payload)
        return await dead_letters.settle_letter(id=id, act="replay", data=act)

    return await acted(page_of, EditedLetter, send, "/admin/dead-letters?done=replay")


@routes.route(
    "/actors/<kind>/<id>/<any(pause, resume, passivate, drain):act>", methods=["GET", "POST"]
)
@page
async def act_on_actor(kind: str, id: str, act: ActorAct) -> Response:
    """Show what waits for an actor, and pause, resume or put it to sleep for a reason."""
    await require_administrator()

    async def page_of(filled: Filled) -> ActPage:
        found = await admin.actor(kind=kind, id=id)
        return ActPage(
            section="/admin/actors",
            title=f"{found.kind} {found.id}",
            facts={
                _("State"): found.status,
                _("Messages waiting"): f"{found.mailbox_depth:,}",
                _("Not yet on disk"): f"{found.uncommitted:,}",
                _("Process"): found.process,
            },
            button=_(BUTTONS[act]),
            back=actor_address(kind, id),
            filled=filled,
        )

    return await acted(
        page_of,
        Reason,
        lambda data: admin.act_on_actor(kind=kind, id=id, act=act, data=data),
        f"/admin/actors?done={act}",
    )


@routes.route("/jobs/<name>/run", methods=["GET", "POST"])
@page
async def run_job(name: str) -> Response:
    """Show what a run of a job would do, and run it for a reason."""
    await require_administrator()

    async def page_of(filled: Filled) -> ActPage:
        would = await admin.run_cron(name=name, data=JobRun(reason=LOOK, dry_run=True))
        assert isinstance(would, PlannedRunAnswer)  # noqa: S101 - what a dry run answers
        last = would.last.outcome.model_dump_json(exclude_none=True) if would.last else ""
        return ActPage(
            section="/admin/jobs",
            title=name,
            facts={
                _("What it is for"): would.does,
                _("Joins a run that goes on"): would.joins or _("no"),
                _("The last one counted"): last or _("nothing yet"),
            },
            button=_("Run now"),
            back="/admin/jobs",
            filled=filled,
        )

    return await acted(
        page_of,
        JobRun,
        lambda data: admin.run_cron(name=name, data=data),
        "/admin/jobs?done=run",
    )


@routes.route("/shards/move", methods=["GET", "POST"])
@page
async def move_slot() -> Response:
    """Hand a slot to a process and keep it there, or let it go, for a reason."""
    await require_administrator()

    async def page_of(filled: Filled) -> ActPage:
        processes = {one.id: one.id for one in service().shard.members() if one.alive}
        return ActPage(
            section="/admin/shards",
            title=_("Move a slot"),
            facts={
                _("What it touches"): _(
                    "The stores and organizations of one slot, for some milliseconds"
                )
            },
            button=_("Move it"),
            back="/admin/shards",
            typed=[
                Typed(name="slot", label=_("Slot"), type="number"),
                Typed(
                    name="to",
                    label=_("Process"),
                    options={"": _("Wherever it falls"), **processes},
                ),
            ],
            filled=filled,
        )

    return await acted(
        page_of,
        MovedSlot,
        lambda data: shards.move(slot=int(data.slot), data=Move(reason=data.reason, to=data.to)),
        "/admin/shards?done=move",
    )
