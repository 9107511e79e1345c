"""`GET /metrics`: what all processes counted, as Prometheus or OpenMetrics text. No store or person is a label."""

import asyncio
from collections.abc import Iterable
from typing import Annotated

from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector
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
    families = FamiliesAsRead(
        DeploymentCollector(service().shard, answers, await _on_disk()).collect()
    )
    encode, content_type = choose_encoder(request.headers.get("Accept", ""))
    # Of a process that answered hundreds of routes it is half a megabyte: others are answered meanwhile.
    return Response(await asyncio.to_thread(encode, families), content_type=content_type)


class FamiliesAsRead(Collector):
    """Families that were read before, so that nothing that changes is read by a thread."""

    def __init__(self, families: Iterable[Metric]) -> None:
        self._families = list(families)

    def collect(self) -> Iterable[Metric]:
        """Give them again."""
        return self._families


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
