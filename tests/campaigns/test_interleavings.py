"""The runtime, unchanged, under a seeded scheduler: every order of events, every kind of fault."""

import os
import time
from collections import Counter

import pytest

from tests.campaigns.checks import check
from tests.campaigns.simulation import CLIENTS, OPS, Run, simulate

SEEDS = 1500
FIRST = int(os.environ.get("CAMPAIGN_SEED", "1"))
SECONDS = float(os.environ.get("CAMPAIGN_SECONDS", "0"))
PROGRESS_SECONDS = 10.0

SOMETIMES = (
    "write_unavailable",
    "write_lost_before",
    "write_lost_after",
    "write_lost_running",
    "write_slow",
    "settle_unavailable",
    "load_unavailable",
    "outbox_unavailable",
    "outbox_lost_after",
    "effect_failed",
    "crash",
    "takeover",
    "half",
    "intruder",
    "stop",
    "cancelled",
    "accepted",
    "DeadlineExceeded",
    "Duplicate",
    "Overloaded",
    "TurnFailed",
    "runtime commits_unknown",
    "runtime commits_fenced",
    "runtime commits_stale",
    "runtime turns_not_written",
    "runtime abandoned",
    "runtime expired",
)
"""What has to happen now and then, or a campaign that finds nothing says nothing."""


class Tally:
    """What a campaign went through."""

    def __init__(self) -> None:
        self.began = time.monotonic()
        self.seeds = self.steps = self.asks = 0
        self.virtual_seconds = 0.0
        self.seen: Counter[str] = Counter()
        self.found: dict[int, list[str]] = {}

    def add(self, run: Run) -> None:
        self.seeds += 1
        self.steps += run.steps
        self.asks += len(run.tries)
        self.virtual_seconds += run.seconds
        self.seen.update(run.seen)
        if run.found:
            self.found[run.seed] = run.found

    def __str__(self) -> str:
        seconds = time.monotonic() - self.began
        faults = " ".join(
            f"{name.removeprefix('runtime ')}={self.seen[name]}" for name in SOMETIMES
        )
        return (
            f"interleavings first_seed={FIRST} seeds={self.seeds} asks={self.asks}"
            f" steps={self.steps} virtual_seconds={self.virtual_seconds:.0f} seconds={seconds:.1f}"
            f" seeds_per_minute={60 * self.seeds / seconds:.0f} findings={len(self.found)} {faults}"
        )


@pytest.mark.timeout(SECONDS + 900)
def test_no_order_of_events_and_no_fault_breaks_a_promise(
    capsys: pytest.CaptureFixture[str],
) -> None:
    tally = Tally()
    shown = tally.began
    seed = FIRST
    while tally.seeds < SEEDS or time.monotonic() - tally.began < SECONDS:
        tally.add(simulate(seed, check=check))
        seed += 1
        if SECONDS and time.monotonic() - shown > PROGRESS_SECONDS:
            shown = time.monotonic()
            with capsys.disabled():
                print(f"\n{tally}", flush=True)  # noqa: T201 - progress of a long campaign
    with capsys.disabled():
        print(f"\n{tally}")  # noqa: T201 - the figures are what a campaign is for
    assert not tally.found
    assert [name for name in SOMETIMES if not tally.seen[name]] == []
    assert tally.asks >= tally.seeds * CLIENTS * OPS


@pytest.mark.parametrize("seed", [1, 2, 3, 5, 8, 13, 21, 34])
def test_the_same_seed_gives_the_same_run(seed: int) -> None:
    first, second = simulate(seed, check=check), simulate(seed, check=check)
    assert (first.trace, first.steps, first.seconds) == (second.trace, second.steps, second.seconds)
    assert first.tries == second.tries


def test_another_seed_gives_another_run() -> None:
    assert len({simulate(seed).trace for seed in range(1, 31)}) == 30
