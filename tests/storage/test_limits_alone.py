"""The rules of limits without Redis: shares of a process, what a refusal says, and what Redis answers."""

from collections.abc import Sequence
from typing import Any, cast

import pytest

from tolsey.storage import limits as module
from tolsey.storage.cache import Cache, CacheUnavailable
from tolsey.storage.limits import ADMIT, Limits, Policy, PolicyStanding, Verdict, Window, spoken
from tolsey.storage.limits import whole_seconds as whole

pytestmark = pytest.mark.anyio

MINUTE, DAY = Policy("minute", 5, 60), Policy("day", 8, 86_400)


class Answering:
    """A cache that answers what a test says, and remembers what it was asked."""

    def __init__(self, *answers: list[int] | None, is_resting: bool = False) -> None:
        self.answers = list(answers)
        self.is_resting = is_resting
        self.asked: list[tuple[Any, Sequence[str], Sequence[Any]]] = []

    async def run(self, script: Any, keys: Sequence[str], values: Sequence[Any]) -> Any:
        self.asked.append((script, keys, values))
        answer = self.answers.pop(0)
        if answer is None:
            raise CacheUnavailable("away")
        return answer


def limits_of(cache: Answering, seconds: list[float], sharers: int | None = None) -> Limits:
    told = {} if sharers is None else {"sharers": lambda: sharers}
    return Limits(cast("Cache", cache), lambda: seconds[0], **told)


def standing(policy: Policy, remaining: int, wait: float = 60.0) -> PolicyStanding:
    return PolicyStanding(policy, remaining, wait)


def test_a_window_is_thirty_buckets_and_a_day_is_forty_eight() -> None:
    for seconds, width in ((60, 2_000_000), (86_399, 2_879_966_666), (86_400, 1_800_000_000)):
        policy = Policy("any", 1, seconds)
        assert (policy.window_microseconds, policy.bucket_microseconds) == (
            seconds * 1_000_000,
            width,
        )


async def test_redis_counts_all_policies_of_a_caller_at_once() -> None:
    cache = Answering([1, 3, 60_000_000, 9, 500_000], [0, 5, 7, 2, -1])
    limits = limits_of(cache, [0.0])
    admitted = await limits.admit([MINUTE, DAY], "ann", 2)
    assert admitted == Verdict(
        allowed=True, standings=(standing(MINUTE, 2), standing(DAY, 0, 0.5)), cost=2
    )
    assert cache.asked == [
        (
            ADMIT,
            ["window:{ann}:minute", "window:{ann}:day"],
            [5, 60_000_000, 2_000_000, 8, 86_400_000_000, 1_800_000_000, 2],
        )
    ]
    refused = await limits.admit([MINUTE, DAY], "ann")
    assert refused == Verdict(
        allowed=False, standings=(standing(MINUTE, 0, 0.000007), standing(DAY, 6, 0.0)), cost=1
    )
    assert cache.asked[1][2][-1] == 1


async def test_what_is_in_windows_is_told_without_counting_a_call() -> None:
    cache = Answering([0, 3, 60_000_000, 4, 1], None)
    limits = limits_of(cache, [0.0])
    assert await limits.used([MINUTE, DAY], "ann") == (3, 4)
    assert cache.asked[0] == (
        ADMIT,
        ["window:{ann}:minute", "window:{ann}:day"],
        [0, 60_000_000, 2_000_000, 0, 86_400_000_000, 1_800_000_000, 1],
    )
    assert await limits.used([MINUTE], "ann") == (0,)
    assert await limits.used([], "ann") == ()
    assert len(cache.asked) == 2


async def test_nothing_limits_a_call_without_a_policy() -> None:
    cache = Answering()
    assert await limits_of(cache, [0.0]).admit([], "ann", 3) == Verdict(
        allowed=True, standings=(), cost=3
    )


async def test_while_redis_rests_this_process_counts_for_itself() -> None:
    seconds, cache = [100.0], Answering(is_resting=True)
    limits = limits_of(cache, seconds)
    first = await limits.admit([MINUTE, DAY], "ann", 3)
    assert first == Verdict(
        allowed=True, standings=(standing(MINUTE, 2), standing(DAY, 5, 86_400.0)), cost=3
    )
    seconds[0] = 110.5
    refused = await limits.admit([MINUTE, DAY], "ann", 3)
    assert refused == Verdict(
        allowed=False, standings=(standing(MINUTE, 2, 49.5), standing(DAY, 5, 86_389.5)), cost=3
    )
    assert (await limits.admit([MINUTE, DAY], "bob", 5)).allowed
    assert (await limits.admit([MINUTE], "ann", 2)).allowed
    assert await limits.used([MINUTE, DAY], "ann") == (5, 3)
    seconds[0] = 160.0
    assert await limits.used([MINUTE], "ann") == (2,)
    assert not (await limits.admit([MINUTE], "ann", 4)).allowed
    assert cache.asked == []


async def test_a_wait_is_until_one_more_call_fits_or_all_that_were_refused() -> None:
    seconds = [100.0]
    limits = limits_of(Answering(is_resting=True), seconds)
    await limits.admit([MINUTE], "ann")
    seconds[0] = 110.5
    for cost, allowed, wait in (
        (3, True, 49.5),
        (3, False, 60.0),
        (2, False, 49.5),
        (1, True, 49.5),
    ):
        verdict = await limits.admit([MINUTE], "ann", cost)
        assert (verdict.allowed, verdict.retry_after) == (allowed, wait), cost


@pytest.mark.parametrize(("sharers", "share"), [(None, 5), (0, 5), (1, 5), (2, 2), (5, 1), (99, 1)])
async def test_each_process_admits_its_share_and_at_least_one(
    sharers: int | None, share: int
) -> None:
    limits = limits_of(Answering(is_resting=True), [0.0], sharers)
    verdicts = [await limits.admit([MINUTE], "ann") for _ in range(share + 1)]
    assert [one.allowed for one in verdicts] == [True] * share + [False]
    assert [one.remaining for one in verdicts] == [*range(share - 1, -1, -1), 0]


async def test_a_redis_that_goes_away_is_told_of_once_for_each_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told: list[tuple[str, dict[str, Any]]] = []

    class Log:
        def warning(self, event: str, **fields: Any) -> None:
            told.append((event, fields))

    monkeypatch.setattr(module, "log", Log())
    away = ("limits.cache_away", {"reason": str(CacheUnavailable("away"))})
    limits = limits_of(Answering(None, None, [1, 1, 60_000_000], None), [0.0])
    for name, allowed, expected in (
        ("ann", True, [away]),
        ("bob", True, [away]),
        ("bob", True, [away]),
        ("ann", False, [away, away]),
    ):
        assert (await limits.admit([MINUTE], name, 3)).allowed is allowed
        assert told == expected


async def test_the_caller_that_was_seen_least_lately_is_forgotten_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "LOCAL_IDENTITIES", 2)
    limits = limits_of(Answering(is_resting=True), [0.0])
    for name in ("ann", "bob", "ann", "cid"):
        await limits.admit([MINUTE], name)
    assert await limits.used([MINUTE], "ann") == (2,)
    assert await limits.used([MINUTE], "cid") == (1,)
    assert await limits.used([MINUTE], "bob") == (0,)


def test_of_those_that_refuse_the_one_that_does_so_longest_is_told() -> None:
    long, short = standing(DAY, 1, 90.0), standing(MINUTE, 0, 20.0)
    both = Verdict(allowed=False, standings=(short, long), cost=2)
    assert (both.violated, both.policy, both.remaining, both.retry_after) == (
        (MINUTE, DAY),
        DAY,
        1,
        90.0,
    )
    one = Verdict(allowed=False, standings=(standing(MINUTE, 2, 99.0), long), cost=2)
    assert (one.violated, one.policy) == ((DAY,), DAY)
    admitted = Verdict(allowed=True, standings=(long, short), cost=2)
    assert (admitted.violated, admitted.policy, admitted.retry_after) == ((), MINUTE, 20.0)
    assert both.sentence == "The limit of 8 requests in a day is reached. Try again in 2 minutes."


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (1, "a second"),
        (2, "2 seconds"),
        (59, "59 seconds"),
        (60, "a minute"),
        (61, "2 minutes"),
        (3_599, "60 minutes"),
        (3_600, "an hour"),
        (3_601, "2 hours"),
        (86_399, "24 hours"),
        (86_400, "a day"),
        (86_401, "2 days"),
    ],
)
def test_a_time_is_said_in_the_largest_unit_that_it_fills(seconds: int, said: str) -> None:
    assert spoken(seconds) == said


def test_a_wait_is_rounded_up_to_a_second_at_least() -> None:
    assert [whole(seconds) for seconds in (0.0, 0.2, 1.0, 1.1, 60.0)] == [1, 1, 1, 2, 60]


def test_a_window_counts_by_buckets_and_tells_when_calls_fit() -> None:
    window = Window()
    window.forget(10, 100)
    window.add(10, 20)
    window.add(19, 20, 2)
    window.add(20, 20, 3)
    assert window.count == 6
    # Three calls share the line of the last of them: all leave a hundred after it.
    assert [window.wait(30, 100, 6, cost) for cost in (1, 3, 4, 6, 7)] == [89, 89, 90, 90, 90]
    assert [window.wait(30, 100, limit) for limit in (9, 4, 3)] == [89, 89, 90]
    window.forget(118, 100)
    assert window.count == 6
    window.forget(119, 100)
    assert window.count == 3
    window.add(15, 20)
    assert (window.count, window.wait(20, 100, 4)) == (4, 100)
    window.forget(120, 100)
    assert (window.count, Window().wait(5, 100, 1)) == (0, 100)


def test_a_window_whose_clock_went_back_forgets_by_its_last_call() -> None:
    window = Window()
    window.add(10, 20)
    window.add(200, 20)
    assert window.wait(200, 300, 9) == 110
    window.forget(50, 100)
    assert window.count == 1
