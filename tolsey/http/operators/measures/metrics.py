"""`GET /metrics`: what all processes counted, as Prometheus or OpenMetrics text. No store or person is a label."""

from typing import Annotated

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder
from quart import Blueprint, Response, request
from quart_schema import tag_blueprint

from tolsey.actors.job.alerts.thresholds import CHARGEBACK_WINDOW
from tolsey.actors.job.catalogue import JOBS
from tolsey.http.answers.base import Media
from tolsey.http.operators.measures.exposition import DeploymentCollector, OnDisk
from tolsey.http.web.access import operator_metrics
from tolsey.http.web.context import now, service
from tolsey.storage import operations
from tolsey.storage.errors import StorageError
from tolsey.storage.runtime import dead_letters, executions
from tolsey.storage.status import measuring

GATHER_SECONDS = 2.0
LAST_RUNS = 20

routes = Blueprint("metrics", __name__)
tag_blueprint(routes, ["Health"])


@routes.get("/metrics")
@operator_metrics
async def metrics() -> Annotated[
    Response, Media("text/plain"), Media("application/openmetrics-text")
]:
    """Answer with every counter of every process, whichever of them was asked."""
    collected = await service().shard.call_all("metrics", seconds=GATHER_SECONDS)
    answers = {
        process: None if isinstance(answer, BaseException) else answer
        for process, answer in collected.items()
    }
    registry = CollectorRegistry()
    registry.register(DeploymentCollector(service().shard, answers, await _on_disk()))
    encode, content_type = choose_encoder(request.headers.get("Accept", ""))
    return Response(encode(registry), content_type=content_type)


async def _on_disk() -> OnDisk | None:
    database, at = service().database, now()
    try:
        return OnDisk(
            outbox_due=sum((await operations.due_by_slot(database)).values()),
            dead_letters=await dead_letters.by_kind(database, dead_letters.MOST_COUNTED),
            runs=await executions.last(database, list(JOBS), LAST_RUNS),
            intervals={name: job.interval_at(at).total_seconds() for name, job in JOBS.items()},
            payments=await measuring.payments(database, at, CHARGEBACK_WINDOW),
            unwell={
                one.component: one.state != "operational"
                for one in await measuring.components(database)
            },
        )
    except StorageError:
        return None  # the rest is what one wants to see just then
