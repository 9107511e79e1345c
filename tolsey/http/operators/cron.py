"""Scheduled jobs from outside: `/api/cron/<name>` with `CRON_SECRET` (rules/service#scheduled-jobs)."""

from quart import Blueprint
from quart_schema import tag_blueprint

from tolsey.actors.job.catalogue import JOBS
from tolsey.actors.job.messages import Tick, job
from tolsey.actors.refusals import NotFound
from tolsey.http.answers.operators.operations import OutcomeAnswer, RunAnswer
from tolsey.http.web.access import cron
from tolsey.http.web.context import now, service
from tolsey.runtime.errors import DeadlineExceeded
from tolsey.runtime.ids import new_id

WAIT_SECONDS = 110.0
"""A longer run goes on without its caller; the answer then says that it is running."""

routes = Blueprint("cron", __name__, url_prefix="/api/cron")
tag_blueprint(routes, ["Jobs"])


@routes.route("/<name>", methods=["GET", "POST"])
@cron
async def run(name: str) -> RunAnswer:
    """Run a job for its last due time and answer with the outcome.

    A due time is run once: a repeat answers with the run that was.
    """
    known = JOBS.get(name)
    if known is None:
        raise NotFound(
            f"There is no job named {name}. List the jobs with GET /api/admin/crons.",
            code="unknown_job",
        )
    at = now()
    tick = Tick(known.due_at(at), new_id("run"), at)
    try:
        execution = await service().runtime.ask(job(name), tick, timeout=WAIT_SECONDS)
    except DeadlineExceeded:
        going_on = OutcomeAnswer(status="running")
        return RunAnswer(job=name, execution_id=tick.execution_id, outcome=going_on)
    return RunAnswer(job=name, execution_id=execution.id, outcome=OutcomeAnswer.of(execution))
