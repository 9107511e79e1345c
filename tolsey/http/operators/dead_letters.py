"""Messages and calls that failed for good: listed, grouped by their cause, sent again, edited, given up.

Every act writes an AuditLog row with who, what and why before it is done (rules/operators#acts).
"""

from typing import Annotated, Any, Literal

import orjson
from pydantic import Field, ValidationError
from quart import Blueprint
from quart_schema import tag_blueprint

from tolsey.actors.refusals import Conflict, NotFound, Unprocessable
from tolsey.http.answers.base import ListAnswer, list_of
from tolsey.http.answers.operators.diagnosis import (
    DeadLetterAnswer,
    DeadLetterGroupAnswer,
    HeldMessageAnswer,
    QuarantineAnswer,
    SettledGroupAnswer,
    SettledLetterAnswer,
)
from tolsey.http.operators.admin import note
from tolsey.http.web.access import administrator
from tolsey.http.web.api_model import Reason
from tolsey.http.web.context import service
from tolsey.http.web.paging import PageQuery
from tolsey.runtime import codec
from tolsey.runtime.messages import Message
from tolsey.storage.reports.pool import OPERATORS
from tolsey.storage.runtime import dead_letters
from tolsey.storage.runtime.dead_letters import MOST_AT_ONCE, Edited, WhichLetters

Act = Literal["replay", "discard"]
Fingerprint = Annotated[str, Field(pattern=r"^[0-9a-f]{16}$")]
FASTEST = 1_000
HELD_SHOWN = 50

SETTLED = "This dead letter doesn't exist or was already resolved. Reload the list."
STATUS = {"replay": "replayed", "discard": "discarded"}

routes = Blueprint("dead_letters", __name__, url_prefix="/api/admin/dead-letters")
tag_blueprint(routes, ["Operators"])


class DeadLetterQuery(PageQuery):
    """Which dead letters to list: all of a status, or those of a group."""

    status: Literal["dead", "replayed", "discarded"] = "dead"
    fingerprint: Fingerprint | None = None


class LetterAct(Reason):
    """Why a letter is settled; what it shall say when it is sent again; or whether it would be settled."""

    payload: dict[str, Any] | None = None
    dry_run: bool = False


class GroupAct(Reason):
    """Why a group is settled, how many a second are sent again, or only how many it would be."""

    per_second: Annotated[float, Field(ge=0.1, le=FASTEST)] | None = None
    dry_run: bool = False


@routes.get("")
@administrator
async def list_letters(query_args: DeadLetterQuery) -> ListAnswer[DeadLetterAnswer]:
    """List messages and calls that failed for good, newest first."""
    rows = await dead_letters.listed(
        service().reports.of(OPERATORS),
        query_args.limit + 1,
        query_args.after or None,
        status=query_args.status,
        fingerprint=query_args.fingerprint,
    )
    return list_of(rows, query_args.limit, key=lambda row: row["id"], answer=DeadLetterAnswer.of)


@routes.get("/groups")
@administrator
async def list_groups(query_args: PageQuery) -> ListAnswer[DeadLetterGroupAnswer]:
    """List the causes of what failed for good and is not settled: one entry for each message and error."""
    rows = await dead_letters.groups(
        service().reports.of(OPERATORS), query_args.limit + 1, query_args.after
    )
    return list_of(
        rows,
        query_args.limit,
        key=lambda row: row["fingerprint"],
        answer=DeadLetterGroupAnswer.of,
    )


@routes.get("/<id>")
@administrator
async def quarantine(id: str) -> QuarantineAnswer:
    """Show a message that failed for good and is not settled, and what waits behind it."""
    database = service().reports.of(OPERATORS)
    rows = await dead_letters.listed(database, 1, None, id=id)
    if not rows:
        raise NotFound(SETTLED)
    held = await dead_letters.waiting_behind(database, id, HELD_SHOWN)
    return QuarantineAnswer(
        letter=DeadLetterAnswer.of(rows[0]), held=[HeldMessageAnswer.of(one) for one in held]
    )


@routes.post("/<id>/<any(replay, discard):act>")
@administrator
async def settle_letter(id: str, act: Act, data: LetterAct) -> SettledLetterAnswer:
    """Send a dead letter again under its own key, as it is or with another payload, or give it up."""
    edited = None if data.payload is None else await _edited(id, act, data.payload)
    which = WhichLetters(id=id)
    behind = await dead_letters.behind(service().database, which)
    affected = await _settle(which, act, data.reason, dry_run=data.dry_run, edited=edited)
    if not affected:
        raise NotFound(SETTLED)
    return SettledLetterAnswer(
        id=id, status=STATUS[act], affected=affected, behind=behind, dry_run=data.dry_run
    )


@routes.post("/groups/<fingerprint>/<any(replay, discard):act>")
@administrator
async def settle_group(fingerprint: str, act: Act, data: GroupAct) -> SettledGroupAnswer:
    """Send a group's letters again, oldest first and so many a second, or give them up; 5,000 in one request."""
    which = WhichLetters(fingerprint=fingerprint)
    if act == "discard" and data.per_second is not None:
        raise Unprocessable("perSecond applies only to a replay. Leave it out.")
    known = await dead_letters.count(service().reports.of(OPERATORS), which)
    if not known:
        raise NotFound(
            "This dead-letter group doesn't exist or has no open messages. Reload the list of"
            " groups."
        )
    behind = await dead_letters.behind(service().reports.of(OPERATORS), which)
    affected = await _settle(
        which, act, data.reason, dry_run=data.dry_run, per_second=data.per_second
    )
    return SettledGroupAnswer(
        fingerprint=fingerprint,
        status=STATUS[act],
        affected=affected,
        behind=behind,
        remaining=max(known - affected, 0),
        dry_run=data.dry_run,
    )


async def _edited(id: str, act: Act, payload: dict[str, Any]) -> Edited:
    """Give what a letter shall say instead, when its class can be read from it."""
    if act == "discard":
        raise Unprocessable("payload applies only to a replay. Leave it out.")
    row = await dead_letters.find(service().database, id)
    if row is None:
        raise NotFound(SETTLED)
    written = orjson.dumps(payload).decode()
    try:
        value = codec.decode(row["name"], row["kind"], written)
    except LookupError as error:
        raise Conflict(
            "This release can't read the message. Replay it unchanged after you deploy a"
            " release that can.",
            code="message_unknown",
        ) from error
    except ValidationError as error:
        wrong = [".".join(map(str, one["loc"])) or one["type"] for one in error.errors()]
        raise Unprocessable(
            f"The payload is not a valid {row['name']}. Correct these fields: {', '.join(wrong)}.",
            code="invalid_payload",
        ) from error
    return Edited(payload=written, about=value.about if isinstance(value, Message) else "")


async def _settle(
    which: WhichLetters,
    act: Act,
    reason: str,
    *,
    dry_run: bool,
    per_second: float | None = None,
    edited: Edited | None = None,
) -> int:
    """Settle letters, or count those that would be."""
    database = service().database
    if dry_run:
        return min(await dead_letters.count(database, which), MOST_AT_ONCE)
    subject = which.id or which.fingerprint or ""
    event = "admin.dead_letter" if which.id else "admin.dead_letter_group"
    await note(f"{event}.{act}", subject, reason, edited=edited is not None, per_second=per_second)
    if act == "discard":
        affected = await dead_letters.discard(database, which)
        service().runtime.slots.wake_outbox()
        return affected
    affected = await dead_letters.replay(database, which, per_second=per_second, edited=edited)
    service().runtime.slots.wake_outbox()
    return affected
