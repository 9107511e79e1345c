"""What a campaign is judged by beside the histories of accounts, and how it is said and kept."""

import json
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from tests.campaigns.cluster import linear
from tests.campaigns.cluster.clients import ACCOUNTS, Record
from tests.campaigns.cluster.faults import Fault
from tests.campaigns.cluster.linear import Call, Finding, Line, SearchTooLong
from tests.campaigns.cluster.nemesis import Loss, Nemesis
from tests.campaigns.cluster.processes import CHECKOUT

SEARCHED = 40
"""So many operations of an account are searched without a look at their versions."""
SAVED = CHECKOUT / ".data" / "campaigns"

LOST = ("lost_write", "lost_transfer")
DOUBLED = ("double_effect",)
STALE = ("stale_read", "future_read", "phantom_read")


@dataclass
class Verdict:
    """What a run went through and what was found."""

    seed: int
    seconds: float
    faults: list[Fault]
    nemesis: Nemesis
    record: Record
    lines: list[Line]
    counters: Counter[str]
    found: list[Finding]
    handed_over: int
    stuck: int
    quiet_seconds: float
    takeovers: dict[str, list[float]] = field(default_factory=dict)
    """By fault: how long it took until another process answered for a key of a lost owner."""

    def of(self, rules: Sequence[str]) -> int:
        return sum(finding.rule in rules for finding in self.found)

    def slowest(self) -> float:
        """Tell how long the slowest answer took."""
        return max((c.answered - c.invoked for c in self.record.calls if c.answered), default=0.0)

    def sometimes(self) -> dict[str, int]:
        """Count what has to happen now and then, or a run that finds nothing says nothing."""
        told = Counter(call.told for call in self.record.calls)
        return {
            "fenced": self.counters["commits_fenced"],
            "hand_overs": self.handed_over,
            "duplicates": told["duplicate"],
            "resends": self.counters["bus_resent"],
            "unknown": told["unknown"],
            "refused": told["none"],
            "settled": self.counters["commits_unknown"],
        }

    def __str__(self) -> str:
        landed = " ".join(f"{kind}={n}" for kind, n in sorted(self.nemesis.landed.items()))
        some = " ".join(f"{name}={n}" for name, n in self.sometimes().items())
        kinds = "".join(
            f"    after {kind} {_spread(waits)}\n" for kind, waits in sorted(self.takeovers.items())
        )
        disturbed = sum(self.record.disturbed.values())
        return (
            f"cluster seed={self.seed} seconds={self.seconds:.0f} operations={self.record.ops}"
            f" answered={self.record.answered} given_up={self.record.given_up}"
            f" ops_per_second={self.record.answered / self.seconds:.0f}"
            f" lost_answered_writes={self.of(LOST)} double_effects={self.of(DOUBLED)}"
            f" stale_reads={self.of(STALE)} findings={len(self.found)} stuck={self.stuck}"
            f" quiet_after_seconds={self.quiet_seconds:.1f}"
            f" slowest_answer_seconds={self.slowest():.2f}\n"
            f"  faults {landed} missed={sum(self.nemesis.missed.values())}\n"
            f"  unavailable_seconds_per_takeover {_spread([*chain.from_iterable(self.takeovers.values())])}"
            f"\n{kinds}"
            f"  sometimes {some} attempts_failed_in_planned_changes={disturbed}"
        )


def _spread(seconds: Sequence[float]) -> str:
    if not seconds:
        return "n=0"
    ordered = sorted(seconds)
    p50, p99 = (ordered[min(len(ordered) - 1, int(len(ordered) * q))] for q in (0.5, 0.99))
    return f"n={len(ordered)} p50={p50:.2f} p99={p99:.2f} max={ordered[-1]:.2f}"


def sums(
    lines: Sequence[Line], standing: dict[str, tuple[int, int]], moving: int
) -> Iterator[Finding]:
    """What an account has is what its postings say, and nothing is made or lost on the way."""
    counted: dict[str, tuple[int, int]] = {}
    for line in lines:
        count, total = counted.get(line.key, (0, 0))
        counted[line.key] = count + 1, total + line.amount
    for key in sorted({*counted, *standing}):
        if counted.get(key) != standing.get(key):
            yield Finding("torn", f"{key} has {standing.get(key)}, posted {counted.get(key)}")
    came = sum(line.amount for line in lines if line.op.startswith(("deposit", "accept", "once")))
    there = moving + sum(total for _, total in standing.values())
    if came != there:
        yield Finding("not_conserved", f"{came} came in, {there} is there")


class Claim(NamedTuple):
    """A line of the history of the map: a slot was given to a process under a new epoch."""

    order: int
    slot: int
    epoch: int
    owner: str | None
    previous: str | None


def owned(lines: Sequence[Line], claims: Sequence[Claim]) -> Iterator[Finding]:
    """Epochs are minted one by one, and who was given one commits under it until the next."""
    slots: dict[int, list[Claim]] = {}
    for claim in claims:
        of_slot = slots.setdefault(claim.slot, [])
        if of_slot and claim.epoch != of_slot[-1].epoch + 1:
            yield Finding("epoch_order", f"{claim} came after {of_slot[-1]}")
        of_slot.append(claim)
    for line in lines:
        of_slot = slots.get(line.slot, [])
        given = next((claim for claim in of_slot if claim.epoch == line.epoch), None)
        later = next((claim for claim in of_slot if claim.epoch > line.epoch), None)
        if given is None or given.owner != line.owner:
            yield Finding("two_owners", f"{line} was committed under {given}")
        elif line.order < given.order or (later and later.order < line.order):
            yield Finding("epoch_order", f"{line} was committed under {given}, and then {later}")


def searched(calls: Sequence[Call], lines: Sequence[Line]) -> Iterator[Finding]:
    """Ask the other oracle about the beginning of every account."""
    for key in ACCOUNTS:
        seen = sorted(linear.seen_of(key, calls, lines))
        if not seen:
            continue
        end = seen[min(SEARCHED, len(seen)) - 1].invoked
        with suppress(SearchTooLong):
            if not linear.linearizable(linear.until(seen, end), steps=20_000):
                yield Finding("not_linearizable", f"{key}: the first {SEARCHED} operations")


def waits(loss: Loss, calls: Sequence[Call], lines: Sequence[Line]) -> Iterator[float]:
    """Tell for each key of a lost owner when another first answered for it, and after how long."""
    epochs = {
        line.op: line.epoch for line in lines if line.epoch > loss.owned.get(line.slot, 1 << 60)
    }
    slots = {line.key: line.slot for line in lines}
    first: dict[str, float] = {}
    for call in calls:
        if call.told == "reply" and call.op in epochs and slots[call.key] in loss.owned:
            assert call.answered is not None
            if call.answered > loss.at:
                first[call.key] = min(first.get(call.key, call.answered), call.answered)
    yield from (at - loss.at for at in first.values())


def save(verdict: Verdict) -> Path:
    """Write down everything that is known of a run."""
    SAVED.mkdir(parents=True, exist_ok=True)
    path = SAVED / f"cluster-{verdict.seed}-{time.time_ns()}.jsonl"
    with path.open("w") as out:
        out.write(f"{json.dumps({'seed': verdict.seed, 'verdict': str(verdict)})}\n")
        for finding in verdict.found:
            out.write(f"{json.dumps({'found': finding})}\n")
        for line in verdict.nemesis.log:
            out.write(f"{json.dumps({'fault': line})}\n")
        for name, n in verdict.record.errors.most_common():
            out.write(f"{json.dumps({'error': name, 'times': n})}\n")
        for row in verdict.lines:
            out.write(f"{json.dumps({'line': asdict(row)})}\n")
        for call in verdict.record.calls:
            out.write(f"{json.dumps({'call': asdict(call)})}\n")
    return path
