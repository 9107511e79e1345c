"""An actor's state as it stood before a message, beside today's (rules/operators#time-travel).

It is put together aside of the actor, from its rows on disk and from what its journal kept of its turns: no turn is
taken, so nothing is told or called.
"""

from typing import Annotated, Any, Final

import anyio.to_thread
from pydantic import Field
from quart import Blueprint
from quart_schema import tag_blueprint

from tolsey.actors.refusals import Conflict, NotFound
from tolsey.http.answers.base import ListAnswer, list_of
from tolsey.http.answers.operators.runtime import (
    JournalTurnAnswer,
    StateBeforeAnswer,
    StateDifferenceAnswer,
    TurnReachedAnswer,
)
from tolsey.http.operators.admin import actor_named
from tolsey.http.web.access import administrator, caller
from tolsey.http.web.api_model import ApiModel
from tolsey.http.web.context import service
from tolsey.http.web.paging import PageQuery
from tolsey.runtime.messages import ActorId
from tolsey.runtime.turns.way_back import (
    MISSING,
    Place,
    Rebuilding,
    differences,
    kept_state,
    shortened,
)
from tolsey.storage import audit
from tolsey.storage.database import Row
from tolsey.storage.runtime import journal_turns, slots

MOST_TURNS: Final = 5_000
"""So many turns are taken back at most."""
MOST_DIFFERENCES: Final = 500
READS: Final = 5
"""So often an actor is read again that was told something meanwhile."""

NOT_KEPT: Final = "A turn since then kept no way back: HISTORY_KINDS did not name its kind, or it changed too much."
NOT_IN_JOURNAL: Final = "The journal keeps a week, and turns since then are gone."

routes = Blueprint("time_travel", __name__, url_prefix="/api/admin/actors")
tag_blueprint(routes, ["Operators"])


class MessageQuery(ApiModel):
    """Before which message the state is wanted: its id in the journal."""

    message: Annotated[str, Field(min_length=1, max_length=512)]


@routes.get("/<kind>/<id>/turns")
@administrator
async def list_turns(kind: str, id: str, query_args: PageQuery) -> ListAnswer[JournalTurnAnswer]:
    """List an actor's turns of the last week that changed something, newest first."""
    to = actor_named(kind, id)
    rows = await journal_turns.turns(
        service().database, *to, query_args.limit + 1, query_args.after_number or None
    )
    return list_of(
        rows, query_args.limit, key=lambda row: str(row["version"]), answer=JournalTurnAnswer.of
    )


@routes.get("/<kind>/<id>/at")
@administrator
async def state_before(kind: str, id: str, query_args: MessageQuery) -> StateBeforeAnswer:
    """Show an actor's state as it stood before a message, beside today's; who looks is on record."""
    to, database = actor_named(kind, id), service().database
    async with database.transaction() as tx:
        await audit.write(
            tx,
            "admin.actor.state_before",
            str(to),
            actor=caller().user_id,
            message=query_args.message,
        )
    version, state = await _on_disk(to)
    turn = await journal_turns.turn_of(database, *to, query_args.message, MOST_TURNS)
    if turn is None:
        raise NotFound(
            "This actor's journal has no such message. It retains one week of messages that"
            " changed state.",
            code="message_not_in_journal",
        )
    now = await anyio.to_thread.run_sync(kept_state, state)
    rebuilding = Rebuilding(await anyio.to_thread.run_sync(kept_state, state))
    reached, why = await _take_back(rebuilding, to, newest=version, oldest=turn["version"])
    found = [] if why else differences(rebuilding.state, now)
    hidden = [] if why else [(place, None, None) for place in sorted(rebuilding.masked, key=str)]
    return StateBeforeAnswer.read(
        turn,
        kind=kind,
        id=id,
        current_version=version,
        before=None if why else shortened(rebuilding.state),
        now=shortened(now),
        differences=[
            *(_difference(*one) for one in found[:MOST_DIFFERENCES]),
            *(_difference(*one, masked=True) for one in hidden[:MOST_DIFFERENCES]),
        ],
        more=len(found) > MOST_DIFFERENCES,
        unknown=[] if why else sorted(map(said, rebuilding.unknown)),
        reached=_reached(reached),
        why=why,
    )


async def _take_back(
    rebuilding: Rebuilding, to: ActorId, *, newest: int, oldest: int
) -> tuple[Row | None, str | None]:
    """Take turns back, newest first; answers the last that was, and why not all of them."""
    reached = None
    async for rows in journal_turns.ways_back(
        service().database, *to, newest=newest, oldest=oldest
    ):
        for row in rows:
            if row["version"] != newest:
                return reached, NOT_IN_JOURNAL
            if row["way_back"] is None:
                return reached, NOT_KEPT
            rebuilding.take_back(row["way_back"])
            newest, reached = newest - 1, row
    return reached, NOT_IN_JOURNAL if newest >= oldest else None


def said(place: Place) -> str:
    """Write a place of a state as people do."""
    return ".".join(map(str, place))


def _difference(
    place: Place, before: Any, now: Any, *, masked: bool = False
) -> StateDifferenceAnswer:
    sides = {} if masked else {"before": before, "now": now}
    shown = {side: shortened(value) for side, value in sides.items() if value is not MISSING}
    return StateDifferenceAnswer(place=said(place), masked=masked, **shown)


def _reached(row: Row | None) -> TurnReachedAnswer | None:
    return None if row is None else TurnReachedAnswer.read(row)


async def _on_disk(to: ActorId) -> tuple[int, Any]:
    """Read an actor from its rows, with the version that they are of; it is not woken."""
    database, kind = service().database, service().runtime.kinds[to.kind]
    for _ in range(READS):
        before = await slots.versions(database, to.kind, [to.key])
        states = await kind.load([to.key])
        if await slots.versions(database, to.kind, [to.key]) == before:
            return before.get(to.key, 0), states[to.key]
    raise Conflict(
        "The actor changed during every read. Try again, or pause the actor.",
        code="actor_busy",
    )
