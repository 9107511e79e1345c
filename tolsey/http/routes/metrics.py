"""`GET /metrics`: what the runtime counted, as Prometheus text. No store or person is a label."""

from collections.abc import Iterator

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector
from quart import Blueprint, Response

from tolsey import __version__
from tolsey.http.access import operator_metrics
from tolsey.http.context import service
from tolsey.runtime.registry import Runtime
from tolsey.runtime.telemetry import BUCKETS
from tolsey.storage.outbox import Outbox

routes = Blueprint("metrics", __name__)


@routes.get("/metrics")
@operator_metrics
async def metrics() -> Response:
    """Answer with every counter of this process."""
    registry = CollectorRegistry()
    registry.register(RuntimeCollector(service().runtime, await Outbox(service().database).depth()))
    return Response(generate_latest(registry), content_type="text/plain; version=0.0.4")


class RuntimeCollector(Collector):
    """Reads the runtime's telemetry when it is scraped, so that turns pay nothing for it."""

    def __init__(self, runtime: Runtime, outbox_pending: int) -> None:
        self._runtime = runtime
        self._outbox_pending = outbox_pending

    def collect(self) -> Iterator[Metric]:
        """Give every metric once."""
        runtime, telemetry = self._runtime, self._runtime.telemetry
        gauges = {
            "tolsey_actors_awake": ("Actors in memory.", runtime.awake),
            "tolsey_messages_waiting": ("Messages in mailboxes.", runtime.waiting),
            "tolsey_turns_uncommitted": ("Turns not yet on disk.", runtime.uncommitted),
            "tolsey_effects_in_flight": ("Effects being worked on.", runtime.effects_in_flight),
            "tolsey_outbox_pending": ("Rows in the outbox.", self._outbox_pending),
            "tolsey_slots_owned": ("Slots this process owns.", len(runtime.epochs)),
        }
        for name, (text, value) in gauges.items():
            yield GaugeMetricFamily(name, text, value)
        build = GaugeMetricFamily("tolsey_build_info", "The build.", labels=["version"])
        build.add_metric([__version__], 1)
        yield build
        counted = CounterMetricFamily("tolsey_runtime_events", "Runtime events.", labels=["event"])
        for event, count in sorted(telemetry.counters.items()):
            counted.add_metric([event], count)
        yield counted
        yield CounterMetricFamily("tolsey_committed_turns", "Turns on disk.", telemetry.batch_turns)
        yield CounterMetricFamily(
            "tolsey_commit_seconds", "Time spent committing.", telemetry.commit_seconds
        )
        yield from self._turns()

    def _turns(self) -> Iterator[Metric]:
        outcomes = CounterMetricFamily(
            "tolsey_turns", "Turns by outcome.", labels=["kind", "message", "outcome"]
        )
        seconds = HistogramMetricFamily(
            "tolsey_turn_seconds", "How long turns took.", labels=["kind", "message"]
        )
        for (kind, message), tally in sorted(self._runtime.telemetry.turns.items()):
            for outcome, count in sorted(tally.outcomes.items()):
                outcomes.add_metric([kind, message, outcome], count)
            total, buckets = 0, []
            for bound, count in zip((*BUCKETS, "+Inf"), tally.buckets, strict=True):
                total += count
                buckets.append((str(bound), total))
            seconds.add_metric([kind, message], buckets, tally.seconds)
        yield outcomes
        yield seconds
