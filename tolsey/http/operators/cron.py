"""Scheduled jobs from outside: `/api/cron/<name>` with `CRON_SECRET` (contract 5)."""

import json
from typing import Any

from quart import Blueprint
from quart.typing import ResponseReturnValue
from quart_schema import tag_blueprint

from tolsey.actors.job.catalogue import JOBS
from tolsey.actors.job.messages import Tick, job
from tolsey.actors.refusals import NotFound
from tolsey.http.web.access import cron
from tolsey.http.web.context import now, service
from tolsey.runtime.errors import DeadlineExceeded
from tolsey.runtime.ids import new_id
from tolsey.storage.records.runtime.executions import Execution

WAIT_SECONDS = 110.0
"""A longer run goes on without its caller; the answer then says that it is running."""

routes = Blueprint("cron", __name__, url_prefix="/api/cron")
tag_blueprint(routes, ["Jobs"])


@routes.route("/<name>", methods=["GET", "POST"])
@cron
async def run(name: str) -> ResponseReturnValue:
    """Run a job for its last due time and answer with the outcome.

    A due time is run once: a repeat answers with the run that was.
    """
    known = JOBS.get(name)
    if known is None:
        raise NotFound(f"There is no job named {name}.", code="unknown_job")
    at = now()
    tick = Tick(known.due_at(at), new_id("run"), at)
    try:
        execution = await service().runtime.ask(job(name), tick, timeout=WAIT_SECONDS)
    except DeadlineExceeded:
        return {"job": name, "executionId": tick.execution_id, "outcome": {"status": "running"}}
    return {"job": name, "executionId": execution.id, "outcome": outcome(execution)}


def outcome(execution: Execution) -> dict[str, Any]:
    """Show how a run ended: its status, its counters, its error if it has one."""
    shown = {"status": execution.status, **json.loads(execution.outcome or "{}")}
    if execution.error is not None:
        shown["error"] = execution.error
    return shown
