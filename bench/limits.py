"""Checks a second, and the worst burst admitted in any true window, against the `limits` package.

The job is that of an MCP call: a limit for the minute and one for the day, counted together, and
where the caller stands with both, for the headers. Ours is one round trip, which callers of the same
moment share. The peer's is a hit for each limit and a reading of each window; a call that the second
limit refuses has then already counted against the first. Askers have an identity each; no check of
the speed part is refused.

The burst part lets callers do their worst against one limit, in real time on the real Redis: each
rests, then calls as fast as it is answered across a border of windows. A call counts as inside a
window only when it was both sent and answered in it, so every burst shown did happen.
"""

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from time import perf_counter, time

from limits import (
    RateLimitItem,
    RateLimitItemPerDay,
    RateLimitItemPerMinute,
    RateLimitItemPerSecond,
)
from limits.aio.storage import MemoryStorage, RedisStorage, Storage
from limits.aio.strategies import (
    FixedWindowRateLimiter,
    MovingWindowRateLimiter,
    RateLimiter,
    SlidingWindowCounterRateLimiter,
)

from bench import measure
from tolsey.storage.cache import Cache
from tolsey.storage.limits import DAY_SECONDS, Limits, Policy

ASKERS = 64
A_MINUTE, A_DAY = 5_000, 1_000_000
BURST_LIMIT = 50
PHASES = (0.0, 0.25, 0.5, 0.75, 0.9, 0.97)
NOWHERE = "redis://127.0.0.1:1/0"
OURS = "tolsey, strict sub-buckets"
PEERS: dict[str, type[RateLimiter]] = {
    "limits, fixed window": FixedWindowRateLimiter,
    "limits, sliding counter": SlidingWindowCounterRateLimiter,
    "limits, moving window": MovingWindowRateLimiter,
}

Check = Callable[[str], Awaitable[bool]]
"""Counts a call of someone; False when it is refused."""

numbers = itertools.count()


def ours(limits: Limits, *policies: Policy) -> Check:
    async def check(identity: str) -> bool:
        return (await limits.admit(policies, identity)).allowed

    return check


def peer(limiter: RateLimiter, items: Sequence[RateLimitItem], *, headers: bool) -> Check:
    async def check(identity: str) -> bool:
        for item in items:
            if not await limiter.hit(item, identity):
                return False
        if headers:
            for item in items:
                await limiter.get_window_stats(item, identity)
        return True

    return check


async def speed(check: Check, checks: int) -> float:
    """Answer checks a second of all askers at once, under identities not used before."""
    number = next(numbers)

    async def ask(n: int) -> None:
        identity = f"round-{number}-{n}"
        for _ in range(checks // ASKERS):
            assert await check(identity)

    started = perf_counter()
    await asyncio.gather(*(ask(n) for n in range(ASKERS)))
    return checks // ASKERS * ASKERS / (perf_counter() - started)


async def attack(check: Check, phase: float, window: float) -> list[tuple[float, float]]:
    """Call once as a window begins, rest for a part of it, then call without rest; answer when."""
    identity = f"attack-{next(numbers)}"
    await asyncio.sleep(window - time() % window)
    began = perf_counter()
    admitted = []
    await check(identity)
    await asyncio.sleep(max(0.0, phase * window - (perf_counter() - began)))
    while perf_counter() - began < 2.2 * window:
        sent = perf_counter()
        if await check(identity):
            admitted.append((sent, perf_counter()))
        else:
            await asyncio.sleep(0.001)
    return admitted


async def worst_burst(check: Check, window: float) -> int:
    """Answer the most calls that were surely admitted within one window, wherever it begins."""
    worst = 0
    for admitted in await asyncio.gather(*(attack(check, phase, window) for phase in PHASES)):
        for first, (sent, _) in enumerate(admitted):
            inside = sum(answered <= sent + window for _, answered in admitted[first:])
            worst = max(worst, inside)
    return worst


def peers_storage(redis_url: str) -> RedisStorage:
    # On the client that we use too; of its keys, those of other runs are never in the way.
    prefix = "async+redis+" if redis_url.startswith("unix:") else "async+"
    return RedisStorage(prefix + redis_url, implementation="redispy", key_prefix=f"b{time()}")


async def compare(
    mine: Limits, storage: Storage, *, checks: int, rounds: int
) -> list[list[object]]:
    """Let ours and the peer's strategies do both jobs; answer rows of checks a second."""
    minute, day = Policy("minute", A_MINUTE, 60), Policy("day", A_DAY, DAY_SECONDS)
    items = [RateLimitItemPerMinute(A_MINUTE), RateLimitItemPerDay(A_DAY)]
    whole = {OURS: partial(speed, ours(mine, minute, day), checks)}
    bare = {OURS: partial(speed, ours(mine, minute), checks)}
    for name, strategy in PEERS.items():
        limiter = strategy(storage)
        whole[name] = partial(speed, peer(limiter, items, headers=True), checks)
        bare[name] = partial(speed, peer(limiter, items[:1], headers=False), checks)
    both = await measure.alternate(whole, rounds)
    one = await measure.alternate(bare, rounds)
    return [[name, both[name], both[OURS] / both[name], one[name]] for name in whole]


async def bursts(near: Limits, storage: Storage, window: int) -> list[list[object]]:
    item = RateLimitItemPerSecond(BURST_LIMIT, window)
    checks = {OURS: ours(near, Policy("burst", BURST_LIMIT, window))}
    for name, strategy in PEERS.items():
        checks[name] = peer(strategy(storage), [item], headers=False)
    rows: list[list[object]] = []
    for name, check in checks.items():
        measure.say(f"worst burst of {name}")
        worst = await worst_burst(check, window)
        rows.append([name, worst, worst / BURST_LIMIT])
    return rows


async def main(redis_url: str, *, quick: bool) -> None:
    cache, nowhere = Cache(redis_url), Cache(NOWHERE)
    near, away = Limits(cache), Limits(nowhere)
    storage = peers_storage(redis_url)
    rounds = 1 if quick else 5
    checks = 2_000 if quick else 10_000
    columns = ("contestant", "minute and day, told", "tolsey is x", "one limit, not told")
    rows = await compare(near, storage, checks=checks, rounds=rounds)
    measure.table(f"Checks a second on Redis, {ASKERS} askers", columns, rows)
    rows = await compare(away, MemoryStorage(), checks=checks, rounds=rounds)
    measure.table("Checks a second in the process (ours: Redis is away)", columns, rows)
    window = 1 if quick else 2
    rows = await bursts(near, storage, window)
    measure.table(
        f"Worst burst in any true window, limit {BURST_LIMIT} in {window} s",
        ("contestant", "calls", "x the limit"),
        rows,
    )
    await cache.close()
    await nowhere.close()


if __name__ == "__main__":
    given = measure.arguments(__doc__).parse_args()
    measure.machine(given.loop)
    with measure.servers() as (_, url):
        assert url, "REDIS_URL is not set"
        measure.run(partial(main, url, quick=given.quick), given.loop)
