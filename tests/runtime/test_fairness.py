"""A thousand slow calls of one tenant, on a loop whose time is its own: what it takes others is counted, not timed."""

import asyncio
import random
from collections import defaultdict

import pytest

from tests.campaigns.simloop import SimLoop
from tests.seeds import seeds
from tolsey.runtime.messages import LaneName
from tolsey.runtime.outbox import lanes
from tolsey.runtime.outbox.lanes import Lanes

ACTS: dict[str, tuple[LaneName, float]] = {
    "renewal": ("short", 0.2),
    "edit": ("platform", 0.3),
    "pull": ("platform", 2.0),
    "upgrade": ("processor", 0.5),
}
"""What a tenant has done: its lane, and the seconds of the call itself."""
SLOW_SECONDS = 15.0
SLOW_CALLS = 1_000
TIMES = 200
EVERY_SECONDS = 5.0
P99 = 0.99


async def lived(*, slow: int, luck: random.Random) -> dict[str, float]:
    """Let one tenant act again and again beside another's slow calls; answers the p99 of each act."""
    loop, lived_in = asyncio.get_running_loop(), Lanes()
    took: defaultdict[str, list[float]] = defaultdict(list)

    async def call(lane: LaneName, tenant: str, seconds: float) -> None:
        async with lived_in.place(lane, tenant):
            await asyncio.sleep(seconds)

    async def act(name: str, at: float) -> None:
        await asyncio.sleep(at)
        began, (lane, seconds) = loop.time(), ACTS[name]
        await call(lane, "cleo", seconds)
        took[name].append(loop.time() - began)

    async with asyncio.TaskGroup() as tasks:
        for lane in {lane for lane, _ in ACTS.values()}:
            for _ in range(slow):
                tasks.create_task(call(lane, "ann", SLOW_SECONDS))
        for name in ACTS:
            for n in range(TIMES):
                tasks.create_task(act(name, (n + luck.random()) * EVERY_SECONDS))
    return {name: sorted(some)[int(P99 * len(some)) - 1] for name, some in took.items()}


def p99(slow: int, seed: int) -> dict[str, float]:
    return SimLoop(seed).play(lived(slow=slow, luck=random.Random(seed)))  # noqa: S311 - a seed


@pytest.mark.parametrize("seed", seeds(3, first=1))
def test_a_thousand_slow_calls_leave_anothers_p99_within_twice_its_idle_value(seed: int) -> None:
    idle, beside = p99(0, seed), p99(SLOW_CALLS, seed)
    assert idle.keys() == beside.keys() == ACTS.keys()
    assert {name: beside[name] for name in ACTS if beside[name] > 2 * idle[name]} == {}


def test_a_lane_without_shares_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def first_come(lane: lanes.Lane, _: str) -> bool:
        return bool(lane._taken < lane._places)

    monkeypatch.setattr(lanes.Lane, "_has_place_for", first_come)
    idle, beside = p99(0, 1), p99(SLOW_CALLS, 1)
    assert {name for name in ACTS if beside[name] > 2 * idle[name]} == ACTS.keys()
