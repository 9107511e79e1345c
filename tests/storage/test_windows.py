"""What the limiter promises of every window, with callers who do their worst."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tolsey.storage.limits import Policy, Window

SECOND = 1_000_000
POLICIES = [Policy("minute", 5, 60), Policy("hour", 3, 3_600), Policy("day", 4, 86_400)]


class Caller:
    """Someone who calls against one policy, and remembers when they were admitted."""

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self.length = policy.window_seconds * SECOND
        self.window = Window()
        self.admitted: list[int] = []

    def calls(self, now: int, cost: int = 1) -> bool:
        self.window.forget(now, self.length)
        if self.window.count + cost > self.policy.limit:
            return False
        self.window.add(now, self.policy.bucket_microseconds, cost)
        self.admitted += [now] * cost
        return True

    def wait(self, now: int, cost: int = 1) -> int:
        return self.window.wait(now, self.length, self.policy.limit, cost)

    def worst_burst(self) -> int:
        """Count the calls of the fullest window, wherever it begins."""
        fullest = first = 0
        for last, at in enumerate(self.admitted):
            while self.admitted[first] <= at - self.length:
                first += 1
            fullest = max(fullest, last - first + 1)
        return fullest


def steps(policy: Policy) -> st.SearchStrategy[list[int]]:
    """Draw how long a caller waits between calls: above all, what lies near a border."""
    length, width = policy.window_seconds * SECOND, policy.bucket_microseconds
    borders = [0, 1, width - 1, width, width + 1, length - width, length - 1, length, length + 1]
    return st.lists(st.sampled_from(borders) | st.integers(0, 2 * length), max_size=120)


@given(st.data(), st.sampled_from(POLICIES), st.integers(0, 100_000 * SECOND))
def test_no_window_ever_holds_more_calls_than_its_limit(
    data: st.DataObject, policy: Policy, now: int
) -> None:
    caller = Caller(policy)
    for step in data.draw(steps(policy)):
        now += step
        caller.calls(now)
    assert caller.worst_burst() <= policy.limit


@given(st.data(), st.sampled_from(POLICIES), st.integers(0, 100_000 * SECOND), st.integers(1, 3))
def test_who_waits_as_long_as_told_is_admitted_and_no_one_is_sooner(
    data: st.DataObject, policy: Policy, now: int, cost: int
) -> None:
    caller = Caller(policy)
    for step in data.draw(steps(policy)):
        now += step
        if not caller.calls(now, cost):
            wait = caller.wait(now, cost)
            assert 0 < wait <= caller.length
            assert not caller.calls(now + wait - 1, cost)
            now += wait
            assert caller.calls(now, cost)
    assert caller.worst_burst() <= policy.limit


@pytest.mark.parametrize("phase", [0.0, 0.5, 0.9, 0.999])
def test_a_burst_at_the_end_of_a_bucket_gains_nothing(phase: float) -> None:
    policy = Policy("minute", 50, 60)
    caller = Caller(policy)
    width = policy.bucket_microseconds
    caller.calls(0)
    now = int(59 * SECOND + phase * width)
    for step in range(130_000):
        caller.calls(now + step * 1_000)
    assert caller.worst_burst() == 50
    assert len(caller.admitted) > 100


@pytest.mark.parametrize(
    "policy", [Policy("free", 50, 60), Policy("pro", 500, 60), Policy("day", 2_000, 86_400)]
)
def test_of_half_as_many_calls_again_as_allowed_nine_in_ten_places_are_taken(
    policy: Policy,
) -> None:
    chance, caller = random.Random(4), Caller(policy)  # noqa: S311 - a load, not a secret
    windows, now = 12, 0.0
    while now < windows * caller.length:
        now += chance.expovariate(1.5 * policy.limit / caller.length)
        caller.calls(int(now))
    assert caller.worst_burst() <= policy.limit
    assert len(caller.admitted) >= 0.9 * windows * policy.limit


@given(st.lists(st.integers(-90 * SECOND, 90 * SECOND), max_size=60))
def test_a_clock_that_goes_back_stands_still_until_it_is_past(steps: list[int]) -> None:
    caller, now, steady = Caller(POLICIES[0]), 1_000 * SECOND, [0]
    for step in steps:
        now += step
        if caller.calls(now):
            steady.append(max(now, steady[-1]))
    caller.admitted = steady[1:]
    assert caller.worst_burst() <= caller.policy.limit
