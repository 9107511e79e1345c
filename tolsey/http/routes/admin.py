"""What operators see and do: actors, dead letters, crons, audit rows, deliveries (contract 11).

Every act writes an AuditLog row with who, what and why before it is answered.
"""

import json
from typing import Annotated, Any, Literal

from pydantic import Field
from quart import Blueprint
from quart.typing import ResponseReturnValue
from quart_schema import validate_querystring, validate_request

from tolsey.actors.job.catalogue import JOBS
from tolsey.actors.job.messages import RunNow, job
from tolsey.actors.refusals import Conflict, NotFound
from tolsey.http.access import administrator, caller
from tolsey.http.api_model import Reason
from tolsey.http.context import new_id, now, service
from tolsey.http.paging import PageQuery, page
from tolsey.http.routes.cron import WAIT_SECONDS, outcome
from tolsey.http.views import timestamp
from tolsey.runtime.errors import DeadlineExceeded, Unavailable
from tolsey.runtime.mailbox import SLOTS
from tolsey.runtime.messages import ActorId
from tolsey.runtime.supervision import Supervision
from tolsey.storage import audit, executions, operations
from tolsey.storage.outbox import Outbox
from tolsey.storage.records.executions import Execution

HISTORY = 20

routes = Blueprint("admin", __name__, url_prefix="/api/admin")


class ActorQuery(PageQuery):
    """Which actors to list, and in which order."""

    kind: str | None = None
    shard: Annotated[int, Field(ge=0, lt=SLOTS)] | None = None
    sort: Literal["mailbox", "age", "id"] = "mailbox"


class DeadLetterQuery(PageQuery):
    """Which dead letters to list."""

    status: Literal["dead", "replayed", "discarded"] = "dead"


async def _audit(event: str, subject: str, reason: str) -> None:
    async with service().database.transaction() as tx:
        await audit.write(tx, event, subject, actor=caller().user_id, reason=reason)


def _actor(kind: str, key: str) -> ActorId:
    if kind not in service().runtime.kinds:
        raise NotFound(f"There is no kind of actor named {kind}.")
    return ActorId(kind, key)


@routes.get("/actors")
@administrator
@validate_querystring(ActorQuery)
async def actors(query_args: ActorQuery) -> ResponseReturnValue:
    """List the actors that are awake."""
    order = {
        "mailbox": lambda row: (-row["mailboxDepth"], row["kind"], row["id"]),
        "age": lambda row: (-row["oldestMessageSeconds"], row["kind"], row["id"]),
        "id": lambda row: (row["kind"], row["id"]),
    }[query_args.sort]
    supervision = Supervision(service().runtime)
    rows = sorted(supervision.summaries(query_args.kind, query_args.shard), key=order)
    at = query_args.after_number
    found = list(enumerate(rows[at : at + query_args.limit + 1], at + 1))
    return page(found, query_args.limit, key=lambda row: str(row[0]), view=lambda row: row[1])


@routes.get("/actors/<kind>/<id>")
@administrator
async def actor(kind: str, id: str) -> ResponseReturnValue:
    """Inspect one actor; it is woken for it. Secrets are masked."""
    return await Supervision(service().runtime).inspect(_actor(kind, id))


@routes.post("/actors/<kind>/<id>/<any(pause, resume, passivate):act>")
@administrator
@validate_request(Reason)
async def act_on_actor(kind: str, id: str, act: str, data: Reason) -> ResponseReturnValue:
    """Pause, resume or put to sleep one actor."""
    to = _actor(kind, id)
    await _audit(f"admin.actor.{act}", str(to), data.reason)
    supervision = Supervision(service().runtime)
    acts = {
        "pause": supervision.pause,
        "resume": supervision.resume,
        "passivate": supervision.passivate,
    }
    try:
        return await acts[act](to)
    except Unavailable as error:
        if act == "passivate" and not service().runtime.draining:
            raise Conflict("Messages or commits wait for this actor.", code="actor_busy") from error
        raise


@routes.get("/dead-letters")
@administrator
@validate_querystring(DeadLetterQuery)
async def dead_letters(query_args: DeadLetterQuery) -> ResponseReturnValue:
    """List messages and calls that failed for good, newest first."""
    outbox = Outbox(service().database)
    rows = await outbox.dead(query_args.limit + 1, query_args.after or None, query_args.status)
    return page(rows, query_args.limit, key=lambda row: row["id"], view=_dead_letter)


def _dead_letter(row: Any) -> dict[str, Any]:
    return {
        "id": row["id"],
        "key": row["key"],
        "kind": row["kind"],
        "actorId": row["actor_key"],
        "message": row["name"],
        "payload": json.loads(row["payload"]),
        "attempts": row["attempts"],
        "error": row["error"],
        "status": row["status"],
        "requestId": row["request_id"],
        "createdAt": timestamp(row["created_at"]),
        "diedAt": timestamp(row["died_at"]),
        "settledAt": timestamp(row["settled_at"]),
    }


@routes.post("/dead-letters/<id>/<any(replay, discard):act>")
@administrator
@validate_request(Reason)
async def act_on_dead_letter(id: str, act: str, data: Reason) -> ResponseReturnValue:
    """Send a dead letter again under its own key, or give it up."""
    outbox = Outbox(service().database)
    await _audit(f"admin.dead_letter.{act}", id, data.reason)
    if act == "replay":
        done = await outbox.revive(id) is not None
        service().runtime.wake_outbox()
    else:
        done = await outbox.discard(id)
    if not done:
        raise NotFound("There is no such dead letter, or it is settled.")
    return {"id": id, "status": "replayed" if act == "replay" else "discarded"}


@routes.get("/crons")
@administrator
async def crons() -> ResponseReturnValue:
    """List every job: when it is due, its last runs and what they counted."""
    found = await executions.last(service().database, list(JOBS), HISTORY)
    at = now()
    items = [
        {
            "name": known.name,
            "expression": known.expression,
            "reason": known.reason,
            "built": known.built,
            "nextDueAt": timestamp(known.next_at(at)),
            "history": [_execution(execution) for execution in found[known.name]],
        }
        for known in JOBS.values()
    ]
    return {"items": items, "nextCursor": None}


@routes.post("/crons/<name>/run")
@administrator
@validate_request(Reason)
async def run_cron(name: str, data: Reason) -> ResponseReturnValue:
    """Run a job now, or join the run that goes on; answers when it has ended."""
    await _audit("admin.cron.run", name, data.reason)
    message = RunNow(new_id("run"), now())
    try:
        ended = await service().runtime.ask(job(name), message, timeout=WAIT_SECONDS)
    except DeadlineExceeded:
        return {"job": name, "executionId": message.execution_id, "status": "running"}, 202
    return {"job": name, **_execution(ended)}


def _execution(execution: Execution) -> dict[str, Any]:
    return {
        "executionId": execution.id,
        "trigger": execution.trigger,
        "scheduledAt": timestamp(execution.scheduled_at),
        "startedAt": timestamp(execution.started_at),
        "finishedAt": timestamp(execution.finished_at),
        "status": execution.status,
        "outcome": outcome(execution),
        "error": execution.error,
    }


@routes.get("/audit")
@administrator
@validate_querystring(PageQuery)
async def audit_log(query_args: PageQuery) -> ResponseReturnValue:
    """List audit rows, newest first."""
    rows = await operations.audit_rows(
        service().database, query_args.limit + 1, query_args.after_number or None
    )
    return page(
        rows,
        query_args.limit,
        key=lambda row: str(row["id"]),
        view=lambda row: {
            "id": str(row["id"]),
            "event": row["event"],
            "subject": row["subject"],
            "organizationId": row["organization_id"],
            "actor": row["actor"],
            "metadata": json.loads(row["metadata"]),
            "createdAt": timestamp(row["created_at"]),
        },
    )


@routes.get("/webhooks")
@administrator
@validate_querystring(PageQuery)
async def webhooks(query_args: PageQuery) -> ResponseReturnValue:
    """List the last deliveries from the commerce platform, newest first."""
    rows = await operations.deliveries(
        service().database, query_args.limit + 1, query_args.after_moment
    )
    return page(
        rows,
        query_args.limit,
        key=lambda row: f"{row['created_at'].isoformat()}|{row['delivery_id']}",
        view=lambda row: {
            "storeId": row["store_id"],
            "deliveryId": row["delivery_id"],
            "topic": row["topic"],
            "shopDomain": row["shop_domain"],
            "triggeredAt": timestamp(row["triggered_at"]),
            "createdAt": timestamp(row["created_at"]),
        },
    )
