"""Which process owns which slots, and moving one (rules/operators#what-is-shown)."""

from collections import defaultdict
from typing import Annotated, Literal

import anyio
from pydantic import Field
from quart import Blueprint
from quart_schema import tag_blueprint

from tolsey.actors.refusals import Conflict, NotFound, Unprocessable
from tolsey.http.answers.base import list_of
from tolsey.http.answers.operators.runtime import ProcessAnswer, SlotAnswer, SlotsAnswer
from tolsey.http.operators.admin import note
from tolsey.http.web.access import administrator
from tolsey.http.web.api_model import Reason
from tolsey.http.web.context import service
from tolsey.http.web.paging import PageQuery
from tolsey.runtime.shards.oversight import Oversight
from tolsey.runtime.turns.mailbox import SLOTS
from tolsey.storage import operations
from tolsey.storage.database import Row
from tolsey.storage.runtime.slots import Slots

MOVE_SECONDS = 10.0
"""How long a move is waited for; a slot whose turns do not end is moved a little later."""

LOOK_SECONDS = 0.02
NOBODY = "none"

Process = Annotated[str, Field(min_length=1, max_length=200)]

routes = Blueprint("shards", __name__, url_prefix="/api/admin/shards")
tag_blueprint(routes, ["Operators"])


class SlotQuery(PageQuery):
    """Which slots to list: those of a process (`none`: of nobody), those that are pinned."""

    owner: Process | None = None
    pinned: bool | None = None


class Move(Reason):
    """Where a slot should be: a process's id, or null to let it be wherever it falls."""

    to: Process | None


@routes.get("")
@administrator
async def shards(query_args: SlotQuery) -> SlotsAnswer:
    """List slots, and beside them every process: how it is and which slots it has."""
    rows = await operations.slots(service().database)
    wanted = [
        row
        for row in rows[query_args.after_number :]
        if query_args.owner in {None, row["owner"] or NOBODY}
        and query_args.pinned in {None, row["pinned_to"] is not None}
    ]
    listed = list_of(
        wanted, query_args.limit, key=lambda row: str(row["slot"] + 1), answer=SlotAnswer.read
    )
    return SlotsAnswer(**dict(listed), processes=await _processes(rows))


async def _processes(rows: list[Row]) -> list[ProcessAnswer]:
    shard = service().shard
    waiting = await operations.due_by_slot(service().database)
    vitals = await Oversight(shard, service().runtime).vitals()
    held: dict[str | None, list[int]] = defaultdict(list)
    for row in rows:
        held[row["owner"]].append(row["slot"])
    return [
        ProcessAnswer.of(
            member,
            held[member.id],
            vitals.get(member.id),
            outbox=sum(waiting.get(slot, 0) for slot in held[member.id]),
        )
        for member in shard.members()
    ]


@routes.post("/<int:slot>/move")
@administrator
async def move(slot: int, data: Move) -> tuple[SlotAnswer, Literal[200, 202]]:
    """Hand a slot to a process and keep it there; null lets it go. Answers where it is now.

    202 when its turns have not ended yet: it is moved when they have.
    """
    if slot >= SLOTS:
        raise NotFound(f"This slot doesn't exist. Send a number from 0 to {SLOTS - 1}.")
    if data.to is not None:
        _check(data.to)
    await note("admin.shard.move", f"slot:{slot}", data.reason, to=data.to)
    is_there = False
    with anyio.move_on_after(MOVE_SECONDS):
        await _pin(slot, data.to)
        is_there = data.to is None or await _arrived(slot, data.to)
    row = await operations.slot(service().database, slot)
    if row is None:
        raise LookupError(slot)
    return SlotAnswer.read(row), 200 if is_there else 202


def _check(process: str) -> None:
    """Refuse a process that cannot take a slot."""
    member = {member.id: member for member in service().shard.members()}.get(process)
    if member is None:
        raise Unprocessable(
            "This process doesn't exist. Choose one from the list of processes.",
            code="unknown_process",
        )
    if not member.alive:
        raise Conflict(
            "The target process isn't responding. Choose another process.", code="process_dead"
        )
    if member.draining:
        raise Conflict(
            "The target process is shutting down. Choose another process.", code="process_draining"
        )


async def _pin(slot: int, to: str | None) -> None:
    shard = service().shard
    if to is None:
        await Slots(service().database).pin(slot, None)
        await shard.call_all("look", {})
        await shard.round()
        return
    try:
        await shard.move(slot, to)
    except LookupError as error:
        raise Conflict(
            "The target process isn't ready for slots yet. Wait, or choose another process.",
            code="process_unready",
        ) from error


async def _arrived(slot: int, to: str) -> bool:
    while True:
        row = await operations.slot(service().database, slot)
        if row is not None and row["owner"] == to:
            return True
        await anyio.sleep(LOOK_SECONDS)
