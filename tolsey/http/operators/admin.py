"""What operators see and do: actors, crons, audit rows, deliveries (rules/operators#what-is-shown).

Every act writes an AuditLog row with who, what and why before it is answered.
"""

from typing import Annotated, Any, Literal, Self

import orjson
from pydantic import Field, StringConstraints, model_validator
from quart import Blueprint
from quart_schema import tag_blueprint

from tolsey.actors.job.catalogue import JOBS
from tolsey.actors.job.messages import RunNow, job
from tolsey.actors.refusals import Conflict, NotFound
from tolsey.http.answers.base import Accepted, ListAnswer, list_of
from tolsey.http.answers.operators.diagnosis import CallAnswer
from tolsey.http.answers.operators.operations import (
    ExecutionAnswer,
    JobAnswer,
    NamedExecutionAnswer,
    PlannedRunAnswer,
    RunningAnswer,
)
from tolsey.http.answers.operators.runtime import (
    ActorAnswer,
    ActorsAnswer,
    AuditAnswer,
    DeliveryAnswer,
    InspectedActorAnswer,
    TimerAnswer,
)
from tolsey.http.operators import diagnosis
from tolsey.http.operators.cron import WAIT_SECONDS
from tolsey.http.web.access import administrator, caller
from tolsey.http.web.api_model import Identifier, Reason
from tolsey.http.web.context import new_id, now, service
from tolsey.http.web.paging import InvalidCursor, PageQuery
from tolsey.runtime.admin import Busy, Rank, Sort
from tolsey.runtime.errors import DeadlineExceeded
from tolsey.runtime.messages import ActorId, LaneName
from tolsey.runtime.shards.oversight import Oversight
from tolsey.runtime.turns.mailbox import SLOTS
from tolsey.storage import audit, operations
from tolsey.storage.commerce import stores
from tolsey.storage.operations import AuditFilter
from tolsey.storage.reports.pool import OPERATORS
from tolsey.storage.runtime import executions

HISTORY = 20
EventName = Annotated[str, StringConstraints(pattern=r"^[a-zA-Z0-9._/-]{1,128}$")]

routes = Blueprint("admin", __name__, url_prefix="/api/admin")
tag_blueprint(routes, ["Operators"])


class ActorQuery(PageQuery):
    """Which actors to list, and in which order."""

    kind: str | None = None
    shard: Annotated[int, Field(ge=0, lt=SLOTS)] | None = None
    sort: Sort = "mailbox"

    @property
    def after_rank(self) -> Rank | None:
        """The place of the last actor of the page before; none for the first page."""
        if not self.after:
            return None
        try:
            number, kind, key = orjson.loads(self.after)
            return float(number), str(kind), str(key)
        except (ValueError, TypeError) as error:
            raise InvalidCursor from error


class CallQuery(PageQuery):
    """Which calls to list: those that are not done yet, or those of one state; of all lanes or one."""

    state: Literal["waiting", "sent", "unknown", "failed", "done"] | None = None
    lane: LaneName | None = None


class AuditQuery(PageQuery):
    """Which audit rows to list: of one subject, organization, user or event; of a subject's also one event's."""

    subject: Annotated[str, Field(max_length=256)] | None = None
    organization_id: Identifier | None = None
    actor: Identifier | None = None
    event: EventName | None = None

    @model_validator(mode="after")
    def _one_filter(self) -> Self:
        named = [self.subject, self.organization_id, self.actor]
        if (
            sum(one is not None for one in (*named, (self.subject is None and self.event) or None))
            > 1
        ):
            raise ValueError(
                "Send one of subject, organizationId, actor or event, or subject together with"
                " event."
            )
        return self


class JobRun(Reason):
    """Why a job is run now, or to be shown what that would do."""

    dry_run: bool = False


class DeliveryQuery(PageQuery):
    """Which deliveries to list: all, those of a store, or of one topic of a store."""

    store_id: Identifier | None = None
    topic: EventName | None = None

    @model_validator(mode="after")
    def _topic_of_a_store(self) -> Self:
        if self.topic is not None and self.store_id is None:
            raise ValueError(
                "topic requires storeId. Send the id of the store whose deliveries you want."
            )
        return self


async def note(event: str, subject: str, reason: str, **more: Any) -> None:
    """Write down who does what and why, before it is done."""
    async with service().database.transaction() as tx:
        await audit.write(tx, event, subject, actor=caller().user_id, reason=reason, **more)


def _oversight() -> Oversight:
    return Oversight(service().shard, service().runtime)


def actor_named(kind: str, key: str) -> ActorId:
    """Name an actor. Raises NotFound for a kind that nobody wrote."""
    if kind not in service().runtime.kinds:
        raise NotFound(
            f"There is no actor kind named {kind}. List the kinds with GET /api/admin/actors."
        )
    return ActorId(kind, key)


@routes.get("/actors")
@administrator
async def actors(query_args: ActorQuery) -> ActorsAnswer:
    """List the actors that are awake in any process; `unanswered` names processes that kept silent."""
    found = await _oversight().actors(
        query_args.limit + 1,
        kind=query_args.kind,
        slot=query_args.shard,
        sort=query_args.sort,
        after=query_args.after_rank,
    )
    listed = list_of(
        found.rows,
        query_args.limit,
        key=lambda row: orjson.dumps(row[0]).decode(),
        answer=lambda row: ActorAnswer.of(row[1]),
    )
    return ActorsAnswer(**dict(listed), unanswered=found.silent)


@routes.get("/actors/<kind>/<id>")
@administrator
async def actor(kind: str, id: str) -> InspectedActorAnswer:
    """Inspect one actor, with its timers and its calls to the outside; it is woken for it. Secrets are masked."""
    to = actor_named(kind, id)
    reported = await _oversight().actor("inspect", to)
    being_made = set(reported.pop("atWorkOn", ()))
    reader = service().reports.of(OPERATORS)
    rows = await operations.calls_of(reader, kind, id, HISTORY)
    later = await operations.timers_of(reader, reported["slot"], kind, id, HISTORY)
    besides = {
        "calls": [CallAnswer.of(to, row, being_made) for row in rows],
        "timers": [TimerAnswer.read(row) for row in later],
    }
    row = await stores.find(service().database, id) if kind == "store" else None
    if row is None:
        return InspectedActorAnswer.of(reported, **besides)
    shop = (reported["state"]["connection"] or {}).get("shop_domain")
    sold = await diagnosis.listings_of(row, shop)
    return InspectedActorAnswer.of(reported, **besides, listings=sold)


@routes.post("/actors/<kind>/<id>/<any(pause, resume, passivate, drain):act>")
@administrator
async def act_on_actor(
    kind: str, id: str, act: Literal["pause", "resume", "passivate", "drain"], data: Reason
) -> ActorAnswer:
    """Pause or resume one actor, put it to sleep at once, or once what waits for it has ended (`drain`)."""
    to = actor_named(kind, id)
    await note(f"admin.actor.{act}", str(to), data.reason)
    try:
        return ActorAnswer.of(await _oversight().actor(act, to))
    except Busy as error:
        raise Conflict(
            "Messages or commits are pending for this actor. Try again in a moment.",
            code="actor_busy",
        ) from error


@routes.get("/calls")
@administrator
async def calls(query_args: CallQuery) -> ListAnswer[CallAnswer]:
    """List calls to the outside, first due first; failed and done ones, of which a day is kept, newest first."""
    rows = await operations.calls(
        service().reports.of(OPERATORS),
        query_args.limit + 1,
        query_args.after_moment,
        state=query_args.state,
        lane=query_args.lane,
    )
    return list_of(
        rows,
        query_args.limit,
        key=lambda row: f"{(row['due_at'] or row['finished_at']).isoformat()}|{row['key']}",
        answer=lambda row: CallAnswer.of(ActorId(row["kind"], row["actor_key"]), row, ()),
    )


@routes.get("/crons")
@administrator
async def crons() -> ListAnswer[JobAnswer]:
    """List every job: when it is due, its last runs and what they counted."""
    found = await executions.last(service().database, list(JOBS), HISTORY)
    at = now()
    items = [
        JobAnswer.read(
            known,
            next_due_at=known.next_at(at),
            history=[ExecutionAnswer.of(execution) for execution in found[known.name]],
        )
        for known in JOBS.values()
    ]
    return ListAnswer(items=items, next_cursor=None)


@routes.post("/crons/<name>/run")
@administrator
async def run_cron(
    name: str, data: JobRun
) -> NamedExecutionAnswer | PlannedRunAnswer | tuple[RunningAnswer, Accepted]:
    """Run a job now, or join the run that goes on; answers when it has ended. With `dryRun` nothing is begun."""
    if data.dry_run:
        return await _planned(name)
    await note("admin.cron.run", name, data.reason)
    message = RunNow(new_id("run"), now())
    try:
        ended = await service().runtime.ask(job(name), message, timeout=WAIT_SECONDS)
    except DeadlineExceeded:
        going_on = RunningAnswer(job=name, execution_id=message.execution_id, status="running")
        return going_on, 202
    return NamedExecutionAnswer.of(ended, job=name)


async def _planned(name: str) -> PlannedRunAnswer:
    """Say what a run of a job would do, and what its last one counted."""
    known = JOBS.get(name)
    if known is None:
        raise NotFound(
            f"There is no job named {name}. List the jobs with GET /api/admin/crons.",
            code="unknown_job",
        )
    database = service().database
    going_on = await executions.running(database, [name])
    (last,) = (await executions.last(database, [name], HISTORY)).values()
    ended = next((one for one in last if one.finished_at is not None), None)
    return PlannedRunAnswer(
        job=name,
        does=known.reason,
        joins=going_on[name].id if name in going_on else None,
        last=ExecutionAnswer.of(ended) if ended else None,
    )


@routes.get("/audit")
@administrator
async def audit_log(query_args: AuditQuery) -> ListAnswer[AuditAnswer]:
    """List audit rows, newest first."""
    wanted = AuditFilter(
        subject=query_args.subject,
        organization_id=query_args.organization_id,
        actor=query_args.actor,
        event=query_args.event,
    )
    rows = await operations.audit_rows(
        service().reports.of(OPERATORS),
        query_args.limit + 1,
        query_args.after_number or None,
        wanted,
    )
    return list_of(rows, query_args.limit, key=lambda row: str(row["id"]), answer=AuditAnswer.of)


@routes.get("/webhooks")
@administrator
async def webhooks(query_args: DeliveryQuery) -> ListAnswer[DeliveryAnswer]:
    """List the last deliveries from the commerce platform, newest first."""
    rows = await operations.deliveries(
        service().reports.of(OPERATORS),
        query_args.limit + 1,
        query_args.after_moment,
        query_args.store_id,
        query_args.topic,
    )
    return list_of(
        rows,
        query_args.limit,
        key=lambda row: f"{row['created_at'].isoformat()}|{row['delivery_id']}",
        answer=DeliveryAnswer.read,
    )
