"""What processes counted, as families of metrics: read in each, gathered and labelled in one."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Final

from prometheus_client import REGISTRY
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from tolsey import __version__
from tolsey.http.web.requests import RequestTally
from tolsey.runtime.registry import Runtime
from tolsey.runtime.shards.membership import Member
from tolsey.runtime.shards.shard import Shard
from tolsey.runtime.telemetry import BUCKETS, Durations
from tolsey.storage.records.runtime.executions import Execution
from tolsey.storage.records.status import PaymentTally

COUNTED = {
    "bus_sent": ("tolsey_asks_sent", "Asks sent to other processes."),
    "bus_resent": ("tolsey_asks_resent", "Asks sent again: moved, lost or unanswered."),
    "asks_not_known": ("tolsey_asks_not_known", "Asks that only another version can read."),
    "bus_served": ("tolsey_asks_served", "Asks of other processes that were answered."),
    "slots_taken": ("tolsey_slots_taken", "Slots taken that nobody alive held."),
    "slots_received": ("tolsey_slots_received", "Slots that another process handed over."),
    "slots_handed_over": ("tolsey_slots_handed_over", "Slots handed over to other processes."),
    "commits_fenced": ("tolsey_commits_fenced", "Commits refused: another process had the slot."),
    "leases_lapsed": ("tolsey_leases_lapsed", "Times that this process lost its lease."),
    "redis_data_lost": ("tolsey_redis_data_lost", "Times that Redis was found emptied."),
}
"""Events of the runtime that are metrics of their own, so that they are there before they happen."""

FAILED: Final = "failed"
Family = list[Any]
"""A family as JSON: its name, type, text, and samples of a name, labels and a value each."""


class ProcessCollector(Collector):
    """Reads what a process counted when it is asked for, so that turns pay nothing for it."""

    def __init__(self, runtime: Runtime, shard: Shard, requests: RequestTally) -> None:
        self._runtime = runtime
        self._shard = shard
        self._requests = requests

    def collect(self) -> Iterator[Metric]:
        """Give every metric of this process once."""
        yield from REGISTRY.collect()  # what the client library tells of any Python process
        yield from self._of_runtime()
        yield from self._turns()
        yield from self._calls()
        yield from self._of_requests()

    def _of_runtime(self) -> Iterator[Metric]:
        runtime, bus, telemetry = self._runtime, self._shard.bus, self._runtime.telemetry
        gauges = {
            "tolsey_actors_awake": ("Actors in memory.", runtime.admin.awake),
            "tolsey_messages_waiting": ("Messages in mailboxes.", runtime.admin.waiting),
            "tolsey_turns_uncommitted": ("Turns not yet on disk.", runtime.admin.uncommitted),
            "tolsey_commit_waits_seconds": (
                "How long the commit under way has waited for its answer.",
                runtime.admin.commit_seconds,
            ),
            "tolsey_effects_in_flight": (
                "Effects being worked on.",
                runtime.admin.effects_in_flight,
            ),
            "tolsey_outbox_unread": (
                "Rows due for ten minutes that only another version can read.",
                sum(found.rows for found in runtime.admin.unread),
            ),
            "tolsey_slots_owned": ("Slots this process owns.", len(runtime.slots.epochs)),
            "tolsey_lease_seconds_left": (
                "How long this process may answer without another beat.",
                self._shard.lease_left_seconds,
            ),
            "tolsey_redis_away_seconds": (
                "How long Redis or the map has been out of reach.",
                self._shard.away_seconds,
            ),
            "tolsey_bus_lag_seconds": (
                "How long the last frame from another process had waited.",
                bus.lag_seconds,
            ),
            "tolsey_asks_in_flight": ("Asks on their way to other processes.", bus.in_flight),
        }
        for name, (text, value) in gauges.items():
            yield GaugeMetricFamily(name, text, value)
        build = GaugeMetricFamily("tolsey_build_info", "The build.", labels=["version"])
        build.add_metric([__version__], 1)
        yield build
        for event, (name, text) in COUNTED.items():
            yield CounterMetricFamily(name, text, telemetry.counters[event])
        counted = CounterMetricFamily("tolsey_runtime_events", "Runtime events.", labels=["event"])
        for event, count in sorted(telemetry.counters.items()):
            if event not in COUNTED:
                counted.add_metric([event], count)
        yield counted
        yield CounterMetricFamily("tolsey_committed_turns", "Turns on disk.", telemetry.batch_turns)
        yield CounterMetricFamily(
            "tolsey_commit_seconds", "Time spent committing.", telemetry.commit_seconds
        )

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
            seconds.add_metric([kind, message], _added_up(BUCKETS, tally.buckets), tally.seconds)
        yield outcomes
        yield seconds

    def _calls(self) -> Iterator[Metric]:
        working = GaugeMetricFamily("tolsey_calls_working", "Calls being made.", labels=["lane"])
        waiting = GaugeMetricFamily(
            "tolsey_calls_waiting", "Calls that wait for a place in their lane.", labels=["lane"]
        )
        for name, lane in self._runtime.admin.lanes:
            working.add_metric([name], lane.working)
            waiting.add_metric([name], lane.waiting)
        yield working
        yield waiting
        yield _histogram(
            ("tolsey_call_seconds", "How long tries of calls to the outside took."),
            ("lane", "call", "outcome"),
            self._runtime.telemetry.calls,
        )

    def _of_requests(self) -> Iterator[Metric]:
        # Names and labels of OpenTelemetry's conventions, as its exporter to Prometheus writes them.
        yield GaugeMetricFamily(
            "http_server_active_requests", "Requests being answered.", self._requests.active
        )
        yield _histogram(
            ("http_server_request_duration_seconds", "How long requests took."),
            ("http_request_method", "http_route", "http_response_status_code"),
            self._requests.answered,
        )
        taken = CounterMetricFamily(
            "tolsey_webhook_deliveries",
            "Deliveries to our receivers, by what they were taken as or why they were refused.",
            labels=["http_route", "outcome"],
        )
        for key, count in sorted(self._requests.deliveries.items()):
            taken.add_metric(key, count)
        yield taken

    async def families(self, _: Any = None) -> list[Family]:
        """Write every metric as JSON, for the process that was scraped."""
        return [
            [
                family.name,
                family.type,
                family.documentation,
                [[sample.name, sample.labels, sample.value] for sample in family.samples],
            ]
            for family in self.collect()
        ]


def _gauges(said: tuple[str, str], label: str, values: Mapping[str, float]) -> GaugeMetricFamily:
    family = GaugeMetricFamily(*said, labels=[label])
    for name, value in sorted(values.items()):
        family.add_metric([name], value)
    return family


def _histogram(
    said: tuple[str, str], labels: Sequence[str], tally: Mapping[tuple[Any, ...], Durations]
) -> HistogramMetricFamily:
    """Write durations by their labels."""
    family = HistogramMetricFamily(*said, labels=labels)
    for key, durations in sorted(tally.items()):
        buckets = _added_up(durations.bounds, durations.buckets)
        family.add_metric([str(one) for one in key], buckets, durations.seconds)
    return family


def _added_up(bounds: Sequence[float], counts: Sequence[int]) -> list[tuple[str, float]]:
    """Count in each bucket what is in those before it too, as Prometheus wants it."""
    names = [str(bound) for bound in bounds]
    return list(zip((*names, "+Inf"), accumulate(counts), strict=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class OnDisk:
    """What all processes have in common: what waits, what failed for good, how jobs went."""

    outbox_due: int
    dead_letters: Mapping[str, int]
    """By kind of actor; counted up to a bound."""
    runs: Mapping[str, Sequence[Execution]]
    """The last runs of each job, newest first."""
    intervals: Mapping[str, float]
    """How many seconds lie between the due times of each job."""
    payments: PaymentTally
    unwell: Mapping[str, bool]
    """Of each part of the service, whether it was not well at the last look."""

    def families(self) -> Iterator[Metric]:
        """Give every metric once."""
        due = "Rows of the outbox that are due."
        yield GaugeMetricFamily("tolsey_outbox_pending", due, self.outbox_due)
        dead = GaugeMetricFamily(
            "tolsey_dead_letters", "Messages and calls that failed for good.", labels=["kind"]
        )
        for kind, count in sorted(self.dead_letters.items()):
            dead.add_metric([kind], count)
        yield dead
        succeeded = GaugeMetricFamily(
            "tolsey_job_last_success_timestamp_seconds",
            "When a job last ended well, of its last runs.",
            labels=["job"],
        )
        failed = GaugeMetricFamily(
            "tolsey_job_last_run_failed", "Whether the last run that ended failed.", labels=["job"]
        )
        for name, runs in sorted(self.runs.items()):
            ended = [run for run in runs if run.finished_at is not None]
            well = [run.finished_at for run in ended if run.status != FAILED and run.finished_at]
            if ended:
                failed.add_metric([name], float(ended[0].status == FAILED))
            if well:
                succeeded.add_metric([name], well[0].timestamp())
        yield succeeded
        yield failed
        yield _gauges(
            ("tolsey_job_interval_seconds", "Between two due times of a job."),
            "job",
            self.intervals,
        )
        yield _gauges(
            ("tolsey_component_unwell", "Whether a part of the service is not well."),
            "component",
            self.unwell,
        )
        for name, text, value in (
            ("payments_taken", "Payments of 30 days.", self.payments.payments),
            ("payments_charged_back", "Chargebacks of 30 days.", self.payments.chargebacks),
            (
                "payment_events_failed_last_hour",
                "Events of the processor that failed within an hour.",
                self.payments.failed_events,
            ),
        ):
            yield GaugeMetricFamily(f"tolsey_{name}", text, value)


class DeploymentCollector(Collector):
    """What all processes counted, each sample labelled with its process, and what they have in common."""

    def __init__(
        self, shard: Shard, answers: Mapping[str, Sequence[Family] | None], on_disk: OnDisk | None
    ) -> None:
        self._shard = shard
        self._answers = answers
        self._on_disk = on_disk

    def collect(self) -> Iterator[Metric]:
        """Give every metric once."""
        silent = sum(answer is None for answer in self._answers.values())
        members = self._shard.members()
        alive = {member.id for member in members if member.alive}
        unowned = sum(holding.owner not in alive for holding in self._shard.holdings.values())
        gauges = {
            "tolsey_processes_alive": ("Processes that are there.", len(self._answers)),
            "tolsey_processes_silent": ("Those among them that gave no metrics.", silent),
            "tolsey_slots_unowned": ("Slots that no living process owns.", unowned),
        }
        for name, (text, value) in gauges.items():
            yield GaugeMetricFamily(name, text, value)
        if self._on_disk is not None:
            yield from self._on_disk.families()
        yield from self._labelled(labels(members))

    def _labelled(self, named: Mapping[str, str]) -> Iterable[Metric]:
        families: dict[str, Metric] = {}
        for process, answer in self._answers.items():
            for name, kind, text, samples in answer or ():
                family = families.setdefault(name, Metric(name, text, kind))
                for sample, its_labels, value in samples:
                    labelled = {**its_labels, "process": named.get(process, process)}
                    family.add_sample(sample, labelled, value)
        return families.values()


def labels(members: Sequence[Member]) -> dict[str, str]:
    """Name processes shortly, by host and number; where two have the same, by more of their id."""
    named: dict[str, str] = {}
    short = [f"{member.host}:{member.pid}" for member in members]
    for member, name in zip(members, short, strict=True):
        nonce = member.id.rpartition("-")[2]
        named[member.id] = name if short.count(name) == 1 else f"{name}:{nonce}"
    return named
