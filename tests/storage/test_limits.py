import asyncio
import itertools
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest
import redis.asyncio
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tolsey.storage.cache import Cache, CacheUnavailable, Script
from tolsey.storage.limits import ADMIT, Limits, Policy, spoken

SMALL = Policy("small", 2, 60)
LARGE = Policy("large", 3, 3_600)


@pytest.fixture
async def limits(redis_url: str) -> AsyncIterator[Limits]:
    cache = Cache(redis_url)
    yield Limits(cache)
    await cache.close()


async def test_a_window_admits_its_limit_and_no_more(limits: Limits) -> None:
    verdicts = [await limits.admit([SMALL], "ann") for _ in range(3)]
    assert [verdict.allowed for verdict in verdicts] == [True, True, False]
    assert [verdict.remaining for verdict in verdicts] == [1, 0, 0]
    assert 59 < verdicts[2].retry_after <= 60
    assert (await limits.admit([SMALL], "bob")).allowed


async def test_a_refusal_says_the_limit_and_when_to_come_back(limits: Limits) -> None:
    for _ in range(3):
        verdict = await limits.admit([SMALL], "ann")
    assert (
        verdict.sentence == "The limit of 2 requests in a minute is reached. Try again in a minute."
    )


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (1, "a second"),
        (59, "59 seconds"),
        (60, "a minute"),
        (61, "2 minutes"),
        (900, "15 minutes"),
        (3_600, "an hour"),
        (86_400, "a day"),
        (86_401, "2 days"),
    ],
)
def test_times_are_said_in_the_largest_unit_that_they_fill(seconds: int, said: str) -> None:
    assert spoken(seconds) == said


async def test_a_call_that_one_policy_refuses_counts_for_none(limits: Limits) -> None:
    for _ in range(5):
        verdict = await limits.admit([SMALL, LARGE], "ann")
    assert not verdict.allowed
    assert verdict.policy == SMALL
    verdict = await limits.admit([LARGE], "ann")
    assert verdict.allowed
    assert verdict.remaining == 0


@pytest.fixture(params=["redis", "process"])
async def either(request: pytest.FixtureRequest, redis_url: str) -> AsyncIterator[Limits]:
    """Count in Redis, or in the process while it is away."""
    cache = Cache(redis_url if request.param == "redis" else "redis://127.0.0.1:1/0")
    yield Limits(cache)
    await cache.close()


async def test_calls_that_come_together_count_all_or_none(either: Limits) -> None:
    minute, day = Policy("minute", 5, 60), Policy("day", 8, 86_400)
    first = await either.admit([minute, day], "ann", 3)
    assert (first.allowed, [one.remaining for one in first.standings]) == (True, [2, 5])
    for _ in range(3):
        refused = await either.admit([minute, day], "ann", 3)
        assert (refused.allowed, refused.violated, refused.policy) == (False, (minute,), minute)
        assert [one.remaining for one in refused.standings] == [2, 5]
        assert 55 < refused.retry_after <= 60
    assert (await either.admit([minute, day], "ann", 2)).allowed
    both = await either.admit([day, minute], "ann", 4)
    assert (both.violated, both.policy) == ((day, minute), day)
    assert 86_395 < both.retry_after <= 86_400
    assert await either.used([minute, day], "ann") == (5, 5)


async def test_more_calls_than_a_limit_has_are_never_admitted(either: Limits) -> None:
    refused = await either.admit([SMALL, LARGE], "ann", 3)
    assert (refused.allowed, refused.violated) == (False, (SMALL,))
    assert refused.retry_after == 60
    assert await either.used([SMALL, LARGE], "ann") == (0, 0)


async def test_without_redis_the_process_keeps_its_own_window() -> None:
    now = [0.0]
    cache = Cache("redis://127.0.0.1:1/0")
    limits = Limits(cache, lambda: now[0])
    assert not await cache.ping()
    with pytest.raises(CacheUnavailable):
        await cache.get("key")
    assert (await limits.admit([SMALL], "ann")).allowed
    now[0] = 30.0
    assert (await limits.admit([SMALL], "ann")).allowed
    refused = await limits.admit([SMALL], "ann")
    assert (refused.allowed, refused.retry_after) == (False, 30.0)
    now[0] = 60.0
    assert (await limits.admit([SMALL], "ann")).allowed
    assert not (await limits.admit([SMALL], "ann")).allowed
    await cache.close()


async def test_without_redis_each_of_many_processes_admits_its_share_and_at_least_one() -> None:
    processes = [2]
    cache = Cache("redis://127.0.0.1:1/0")
    limits = Limits(cache, lambda: 0.0, sharers=lambda: processes[0])
    tens = Policy("tens", 10, 60)
    admitted = [(await limits.admit([tens], "ann")).allowed for _ in range(10)]
    assert admitted == [True] * 5 + [False] * 5
    processes[0] = 20
    verdicts = [await limits.admit([SMALL, tens], "bob") for _ in range(2)]
    assert [verdict.allowed for verdict in verdicts] == [True, False]
    assert verdicts[1].policy.limit == 2
    assert 0 < verdicts[1].retry_after <= 60
    await cache.close()


async def test_all_policies_of_a_call_are_told_and_those_that_refuse_are_named(
    limits: Limits,
) -> None:
    first = await limits.admit([LARGE, SMALL], "ann")
    assert [(one.policy, one.remaining) for one in first.standings] == [(LARGE, 2), (SMALL, 1)]
    assert first.violated == ()
    await limits.admit([SMALL], "ann")
    refused = await limits.admit([LARGE, SMALL], "ann")
    assert refused.violated == (SMALL,)
    assert [one.remaining for one in refused.standings] == [2, 0]
    assert (await limits.admit([LARGE], "ann")).remaining == 1


async def test_no_policy_is_no_limit(limits: Limits) -> None:
    for _ in range(3):
        verdict = await limits.admit([], "ann")
        assert verdict.allowed
        assert verdict.standings == ()


async def test_callers_at_once_are_admitted_as_often_as_the_limit_says(limits: Limits) -> None:
    fifty, hundred = Policy("fifty", 50, 60), Policy("hundred", 100, 3_600)
    verdicts = await asyncio.gather(*(limits.admit([fifty, hundred], "ann") for _ in range(200)))
    assert sum(verdict.allowed for verdict in verdicts) == 50
    assert (await limits.admit([hundred], "ann")).remaining == 49


async def test_a_plan_with_more_calls_keeps_those_that_were_made(limits: Limits) -> None:
    free, paid = Policy("calls", 2, 60), Policy("calls", 5, 60)
    assert [(await limits.admit([free], "ann")).allowed for _ in range(3)] == [True, True, False]
    assert [(await limits.admit([paid], "ann")).allowed for _ in range(4)] == [True] * 3 + [False]
    refused = await limits.admit([free], "ann")
    assert (refused.allowed, refused.remaining) == (False, 0)


async def test_a_redis_that_was_emptied_begins_anew_and_never_fails(
    limits: Limits, redis_url: str
) -> None:
    server = redis.asyncio.from_url(redis_url)
    for empty in (server.flushall, server.script_flush):
        await server.flushall()
        assert [(await limits.admit([SMALL], "ann")).allowed for _ in range(3)][-1] is False
        await empty()
    # The script is gone and the windows are not: they still refuse.
    assert not (await limits.admit([SMALL], "ann")).allowed
    await server.aclose()


async def test_a_window_takes_a_few_hundred_bytes_whatever_its_limit(
    servers: Any, redis_url: str
) -> None:
    cache, policy = Steered(redis_url), Policy("busy", 100_000, 86_400)
    limits = Limits(cache)
    for step in range(500):
        cache.now = step * 400 * SECOND
        assert (await limits.admit([policy], "ann")).allowed
    server = redis.asyncio.from_url(redis_url)
    assert await server.strlen("window:{ann}:busy") <= 4 + 49 * 12
    assert 86_400 <= await server.ttl("window:{ann}:busy") <= 86_401
    await server.aclose()
    await cache.close()


SECOND = 1_000_000
NUMBERS = itertools.count()
WIDTH = SMALL.bucket_microseconds
GAPS = st.sampled_from(
    [0, 1, WIDTH - 1, WIDTH, WIDTH + 1, 59 * SECOND, 60 * SECOND - 1, 60 * SECOND]
) | st.integers(0, 90 * SECOND)
COSTS = st.sampled_from([1, 1, 1, 2, 3])
ASKED = st.sampled_from([(SMALL,), (LARGE,), (SMALL, LARGE), (LARGE, SMALL)])


class Steered(Cache):
    """The real Redis with the script's clock in the hands of the test."""

    now = 0

    async def run(self, script: Script, keys: Sequence[str], args: Sequence[Any]) -> Any:
        assert script is ADMIT
        return await super().run(STEERED, keys, [*args, self.now])


STEERED = Script(ADMIT.source.replace("redis.call('TIME')", "{0, ARGV[#ARGV]}"))


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(GAPS, ASKED, COSTS), max_size=40))
async def test_redis_and_the_process_give_the_same_verdicts(
    redis_url: str, asked: list[tuple[int, tuple[Policy, ...], int]]
) -> None:
    # The fixture empties Redis once for all examples, so each has an identity of its own.
    identity = f"caller-{next(NUMBERS)}"
    near, away = Steered(redis_url), Cache("redis://127.0.0.1:1/0")
    now = 1_000_000 * SECOND
    shared, alone = Limits(near), Limits(away, lambda: now / SECOND)
    for gap, policies, cost in asked:
        now += gap
        near.now = now
        verdict = await shared.admit(policies, identity, cost)
        assert verdict == await alone.admit(policies, identity, cost)
    await near.close()
    await away.close()


async def test_a_server_whose_clock_goes_back_frees_nothing(redis_url: str) -> None:
    cache = Steered(redis_url)
    limits = Limits(cache)
    verdicts = []
    for seconds in (1_000, 1_001, 910, 1_060, 1_061, 940, 941):
        cache.now = seconds * SECOND
        verdicts.append((await limits.admit([SMALL], "ann")).allowed)
    assert verdicts == [True, True, False, False, True, True, False]
    await cache.close()


@given(st.lists(st.tuples(GAPS, ASKED, COSTS), max_size=80))
async def test_a_refused_call_counts_for_no_policy_and_is_refused_for_a_reason(
    asked: list[tuple[int, tuple[Policy, ...], int]],
) -> None:
    now, cache = 1_000_000 * SECOND, Cache("redis://127.0.0.1:1/0")
    limits = Limits(cache, lambda: now / SECOND)
    admitted: dict[Policy, list[int]] = {SMALL: [], LARGE: []}
    for gap, policies, cost in asked:
        now += gap
        verdict = await limits.admit(policies, "ann", cost)
        for policy in policies if verdict.allowed else ():
            admitted[policy] += [now] * cost
            within = [at for at in admitted[policy] if at > now - policy.window_microseconds]
            assert len(within) <= policy.limit
        # What refuses is full, or was until less than a sub-bucket ago.
        late = {
            policy: policy.window_microseconds + policy.bucket_microseconds for policy in policies
        }
        full = [
            policy
            for policy in policies
            if sum(at > now - late[policy] for at in admitted[policy]) + cost > policy.limit
        ]
        assert verdict.allowed or set(verdict.violated) <= set(full)
        assert verdict.allowed or verdict.violated
    await cache.close()


async def test_a_text_is_kept_and_forgotten(redis_url: str) -> None:
    cache = Cache(redis_url)
    await cache.set("key", "value", seconds=60)
    assert await cache.get("key") == "value"
    await cache.delete("key")
    assert await cache.get("key") is None
    await cache.close()
