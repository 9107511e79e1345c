"""What processes counted, as families of metrics: read in each, gathered and labelled in one."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from tolsey import __version__
from tolsey.runtime.registry import Runtime
from tolsey.runtime.shards.membership import Member
from tolsey.runtime.shards.shard import Shard
from tolsey.runtime.telemetry import BUCKETS

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

Family = list[Any]
"""A family as JSON: its name, type, text, and samples of a name, labels and a value each."""


class ProcessCollector(Collector):
    """Reads what a process counted when it is asked for, so that turns pay nothing for it."""

    def __init__(self, runtime: Runtime, shard: Shard) -> None:
        self._runtime = runtime
        self._shard = shard

    def collect(self) -> Iterator[Metric]:
        """Give every metric of this process once."""
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

    async def families(self, _: Any = None) -> list[Family]:
        """Write every metric as JSON, for the process that was scraped."""
        return [
            [
                *(family.name, family.type, family.documentation),
                [[sample.name, sample.labels, sample.value] for sample in family.samples],
            ]
            for family in self.collect()
        ]


class DeploymentCollector(Collector):
    """What all processes counted, each sample labelled with its process, and what they have in common."""

    def __init__(
        self, shard: Shard, told: Mapping[str, Sequence[Family] | None], outbox_pending: int | None
    ) -> None:
        self._shard = shard
        self._told = told
        self._outbox_pending = outbox_pending

    def collect(self) -> Iterator[Metric]:
        """Give every metric once."""
        silent = sum(answer is None for answer in self._told.values())
        members = self._shard.members()
        alive = {member.id for member in members if member.alive}
        unowned = sum(holding.owner not in alive for holding in self._shard.holdings.values())
        gauges = {
            "tolsey_processes_alive": ("Processes that are there.", len(self._told)),
            "tolsey_processes_silent": ("Those among them that gave no metrics.", silent),
            "tolsey_slots_unowned": ("Slots that no living process owns.", unowned),
            "tolsey_outbox_pending": ("Rows in the outbox.", self._outbox_pending),
        }
        for name, (text, value) in gauges.items():
            if value is not None:
                yield GaugeMetricFamily(name, text, value)
        yield from self._labelled(labels(members))

    def _labelled(self, named: Mapping[str, str]) -> Iterable[Metric]:
        families: dict[str, Metric] = {}
        for process, answer in self._told.items():
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
