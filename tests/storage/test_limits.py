from collections.abc import AsyncIterator

import pytest

from tolsey.storage.cache import Cache, CacheUnavailable
from tolsey.storage.limits import Limits, Policy

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


async def test_a_call_that_one_policy_refuses_counts_for_none(limits: Limits) -> None:
    for _ in range(5):
        verdict = await limits.admit([SMALL, LARGE], "ann")
    assert not verdict.allowed
    assert verdict.policy == SMALL
    verdict = await limits.admit([LARGE], "ann")
    assert verdict.allowed
    assert verdict.remaining == 0


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


async def test_a_text_is_kept_and_forgotten(redis_url: str) -> None:
    cache = Cache(redis_url)
    await cache.set("key", "value", seconds=60)
    assert await cache.get("key") == "value"
    await cache.delete("key")
    assert await cache.get("key") is None
    await cache.close()
