"""`GET /metrics`: what all processes counted, as Prometheus text. No store or person is a label."""

from prometheus_client import CollectorRegistry, generate_latest
from quart import Blueprint, Response
from quart_schema import tag_blueprint

from tolsey.http.operators.exposition import DeploymentCollector
from tolsey.http.web.access import operator_metrics
from tolsey.http.web.context import service
from tolsey.storage.errors import StorageError
from tolsey.storage.runtime.outbox import Outbox

GATHER_SECONDS = 2.0

routes = Blueprint("metrics", __name__)
tag_blueprint(routes, ["Health"])


@routes.get("/metrics")
@operator_metrics
async def metrics() -> Response:
    """Answer with every counter of every process, whichever of them was asked."""
    told = await service().shard.call_all("metrics", seconds=GATHER_SECONDS)
    answers = {
        process: None if isinstance(answer, BaseException) else answer
        for process, answer in told.items()
    }
    registry = CollectorRegistry()
    registry.register(DeploymentCollector(service().shard, answers, await _outbox_pending()))
    return Response(generate_latest(registry), content_type="text/plain; version=0.0.4")


async def _outbox_pending() -> int | None:
    try:
        return await Outbox(service().database).depth()
    except StorageError:
        return None  # the rest is what one wants to see just then
