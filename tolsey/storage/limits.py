"""Rate limits: a strict sliding window that counts each admitted call for as long as it lasts."""

import math
import secrets
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import structlog

from tolsey.storage.cache import Cache, CacheUnavailable, Script

LOCAL_IDENTITIES = 20_000
"""How many windows a process remembers while Redis is away; the oldest is forgotten first."""

log = structlog.get_logger()

ADMIT = Script("""
local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]
local counts, waits, admitted = {}, {}, 1
for i, key in ipairs(KEYS) do
  local limit, window = tonumber(ARGV[2 * i]), tonumber(ARGV[2 * i + 1])
  redis.call('ZREMRANGEBYSCORE', key, '-inf', now - window)
  local count = redis.call('ZCARD', key)
  local oldest = redis.call('ZRANGE', key, math.max(count - limit, 0), math.max(count - limit, 0), 'WITHSCORES')
  counts[i] = count
  waits[i] = oldest[2] and (oldest[2] + window - now) or window
  if count >= limit then admitted = 0 end
end
local answer = {admitted}
for i, key in ipairs(KEYS) do
  if admitted == 1 then
    redis.call('ZADD', key, now, ARGV[1])
    redis.call('PEXPIRE', key, math.ceil(tonumber(ARGV[2 * i + 1]) / 1000))
    counts[i] = counts[i] + 1
  end
  answer[#answer + 1] = counts[i]
  answer[#answer + 1] = waits[i]
end
return answer
""")
"""All policies are checked before any counts, at one time of one clock: that of the server."""


@dataclass(frozen=True, slots=True)
class Policy:
    """At most `limit` calls in any `window_seconds`."""

    name: str
    limit: int
    window_seconds: int


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a call is admitted, told for the policy that is nearest to refusing."""

    allowed: bool
    policy: Policy
    remaining: int
    retry_after: float
    """Seconds until the next call is admitted when this one is not, else until one more is free."""


def _alone() -> int:
    return 1


class Limits:
    """Windows in Redis; while it is away, windows of this process alone.

    Each of `sharers` processes then admits its share of a limit, at least one call of each window.
    """

    def __init__(
        self,
        cache: Cache,
        clock: Callable[[], float] = time.monotonic,
        *,
        sharers: Callable[[], int] = _alone,
    ) -> None:
        self._cache = cache
        self._clock = clock
        self._sharers = sharers
        self._local: OrderedDict[tuple[str, str], deque[float]] = OrderedDict()
        self._is_away = False

    async def admit(self, policies: Sequence[Policy], identity: str) -> Verdict:
        """Count a call of someone against policies, if all of them admit it."""
        # The braces put all keys of a caller into one slot of a Redis cluster.
        keys = [f"limit:{{{identity}}}:{policy.name}" for policy in policies]
        bounds = [
            bound
            for policy in policies
            for bound in (policy.limit, policy.window_seconds * 1_000_000)
        ]
        try:
            answer = await self._cache.run(ADMIT, keys, [secrets.token_hex(8), *bounds])
        except CacheUnavailable as error:
            if not self._is_away:
                log.warning("limits.cache_away", reason=str(error))
            self._is_away = True
            return self._admit_locally(policies, identity)
        self._is_away = False
        counts = [int(count) for count in answer[1::2]]
        waits = [float(wait) / 1_000_000 for wait in answer[2::2]]
        limits = [policy.limit for policy in policies]
        return _verdict(bool(answer[0]), policies, counts, waits, limits)

    def _admit_locally(self, policies: Sequence[Policy], identity: str) -> Verdict:
        now = self._clock()
        sharers = max(1, self._sharers())
        shares = [max(1, policy.limit // sharers) for policy in policies]
        windows = [self._window(policy, identity, now) for policy in policies]
        waits = [
            window[max(len(window) - share, 0)] + policy.window_seconds - now
            if window
            else float(policy.window_seconds)
            for policy, share, window in zip(policies, shares, windows, strict=True)
        ]
        allowed = all(len(window) < share for share, window in zip(shares, windows, strict=True))
        if allowed:
            for window in windows:
                window.append(now)
        return _verdict(allowed, policies, [len(window) for window in windows], waits, shares)

    def _window(self, policy: Policy, identity: str, now: float) -> deque[float]:
        window = self._local.setdefault((policy.name, identity), deque())
        self._local.move_to_end((policy.name, identity))
        while len(self._local) > LOCAL_IDENTITIES:
            self._local.popitem(last=False)
        while window and window[0] <= now - policy.window_seconds:
            window.popleft()
        return window


def _verdict(
    allowed: bool,
    policies: Sequence[Policy],
    counts: Sequence[int],
    waits: Sequence[float],
    limits: Sequence[int],
) -> Verdict:
    """Tell about the policy with the longest wait among those that refuse, or the least left."""
    remaining = [max(limit - count, 0) for limit, count in zip(limits, counts, strict=True)]
    tightest = min(range(len(policies)), key=lambda i: (remaining[i], -waits[i]))
    return Verdict(allowed, policies[tightest], remaining[tightest], max(waits[tightest], 0.0))


def whole_seconds(seconds: float) -> int:
    """Round a wait up, so that whoever waits that long is admitted."""
    return max(1, math.ceil(seconds))
