"""Rate limits: a strict sliding window of sub-buckets, the same in Redis and in the process.

Calls of one sub-bucket (a thirtieth of a minute) share one line, the time of the last of them and
their number, and all of them count for as long as that last one is in the window. So no window ever
holds more calls than its limit, wherever it begins, at a few hundred bytes whatever the limit is;
the price is that a busy caller is admitted up to one sub-bucket late.
"""

import math
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

import structlog

from tolsey.storage.cache import Cache, CacheUnavailable, Script

LOCAL_IDENTITIES = 20_000
"""How many windows a process remembers while Redis is away; the oldest is forgotten first."""
SECOND = 1_000_000
DAY_SECONDS = 86_400

log = structlog.get_logger()

ADMIT = Script("""
local clock = redis.call('TIME')
local time = clock[1] * 1000000 + clock[2]
local cost = tonumber(ARGV[3 * #KEYS + 1])
local lines, counts, admitted = {}, {}, 1
for i, key in ipairs(KEYS) do
  local limit, window = tonumber(ARGV[3 * i - 2]), tonumber(ARGV[3 * i - 1])
  local text, count = redis.call('GET', key) or '', 0
  if text ~= '' then
    count = struct.unpack('>I4', text)
    local last = struct.unpack('>I8', text, #text - 11)
    local now, from = math.max(time, last), 5
    while from < #text do
      local at, calls = struct.unpack('>I8I4', text, from)
      if at + window > now then break end
      count, from = count - calls, from + 12
    end
    text = string.sub(text, from)
  end
  lines[i], counts[i] = text, count
  if count + cost > limit then admitted = 0 end
end
local answer = {admitted}
for i, key in ipairs(KEYS) do
  local limit, window, width = tonumber(ARGV[3 * i - 2]), tonumber(ARGV[3 * i - 1]), tonumber(ARGV[3 * i])
  local text, count = lines[i], counts[i]
  if admitted == 1 then
    local now, calls = time, cost
    if text ~= '' then
      local last, before = struct.unpack('>I8I4', text, #text - 11)
      now = math.max(time, last)
      if math.floor(last / width) == math.floor(now / width) then
        text, calls = string.sub(text, 1, -13), before + cost
      end
    end
    text, count = text .. struct.pack('>I8I4', now, calls), count + cost
    redis.call('SET', key, struct.pack('>I4', count) .. text, 'PX', math.ceil(window / 1000) + 1)
  end
  local wait, freed, from = window, 0, 1
  local wanted = admitted == 1 and 1 or math.max(count + cost - limit, 1)
  while from < #text and freed < wanted do
    local at, calls = struct.unpack('>I8I4', text, from)
    wait, freed, from = at + window - time, freed + calls, from + 12
  end
  answer[#answer + 1] = count
  answer[#answer + 1] = wait
end
return answer
""")
"""All policies are checked before any counts, at one time of one clock: that of the server.

What is asked for costs as many calls as it has: all of them count, or none does.

A window is a text: the number of its calls, then for each sub-bucket, oldest first, the time of its
last call in microseconds and how many it had. A clock that goes back stands still until it is past.
"""


@dataclass(frozen=True, slots=True)
class Policy:
    """At most `limit` calls in any `window_seconds`."""

    name: str
    limit: int
    window_seconds: int
    window_microseconds: int = field(init=False, repr=False, compare=False)
    bucket_microseconds: int = field(init=False, repr=False, compare=False)
    """How long a sub-bucket is: a 30th of the window, from a day on a 48th (half an hour)."""

    def __post_init__(self) -> None:
        length = self.window_seconds * SECOND
        buckets = 48 if self.window_seconds >= DAY_SECONDS else 30
        object.__setattr__(self, "window_microseconds", length)
        object.__setattr__(self, "bucket_microseconds", length // buckets)


@dataclass(frozen=True, slots=True)
class PolicyStanding:
    """How many calls a policy has left for someone, and in how many seconds there are more."""

    policy: Policy
    remaining: int
    wait_seconds: float


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether so many calls are admitted, and where their caller stands with every policy."""

    allowed: bool
    standings: tuple[PolicyStanding, ...]
    cost: int = 1

    @property
    def violated(self) -> tuple[Policy, ...]:
        """The policies that refuse the calls; none when they are admitted."""
        if self.allowed:
            return ()
        return tuple(one.policy for one in self.standings if one.remaining < self.cost)

    @property
    def policy(self) -> Policy:
        """The policy that is nearest to refusing."""
        return self._tightest.policy

    @property
    def remaining(self) -> int:
        """How many calls are left before a policy refuses."""
        return self._tightest.remaining

    @property
    def retry_after(self) -> float:
        """Seconds until the calls are admitted when they are not, else until one more is free."""
        return self._tightest.wait_seconds

    @property
    def sentence(self) -> str:
        """What to tell whoever is refused: the limit, and when to come back."""
        policy = self.policy
        return f"The limit of {policy.limit} requests in {spoken(policy.window_seconds)} is reached. Try again in {spoken(whole_seconds(self.retry_after))}."

    @property
    def _tightest(self) -> PolicyStanding:
        # Of those that refuse, the one that does so longest, whatever each has left.
        enough = 0 if self.allowed else self.cost - 1
        return min(self.standings, key=lambda one: (max(one.remaining, enough), -one.wait_seconds))


class Window:
    """The calls of someone in a window; times are whole microseconds of any one clock."""

    __slots__ = ("_buckets", "count")

    def __init__(self) -> None:
        self.count = 0
        self._buckets: deque[tuple[int, int]] = deque()

    def forget(self, now: int, length: int) -> None:
        """Drop the sub-buckets whose last call has left the window."""
        buckets = self._buckets
        if not buckets:
            return
        now = max(now, buckets[-1][0])
        while buckets and buckets[0][0] + length <= now:
            self.count -= buckets.popleft()[1]

    def add(self, now: int, width: int, cost: int = 1) -> None:
        """Count calls; a clock that goes back stands still until it is past."""
        buckets, calls = self._buckets, cost
        if buckets:
            last, before = buckets[-1]
            now = max(now, last)
            if last // width == now // width:
                calls += before
                buckets.pop()
        buckets.append((now, calls))
        self.count += cost

    def wait(self, now: int, length: int, limit: int, cost: int = 1) -> int:
        """Tell in how long calls fit under the limit, or when they do, until one more is free."""
        wait, freed = length, 0
        wanted = max(self.count + cost - limit, 1)
        for last, calls in self._buckets:
            if freed >= wanted:
                break
            wait, freed = last + length - now, freed + calls
        return wait


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
        self._local: OrderedDict[tuple[str, str], Window] = OrderedDict()
        self._is_away = False

    async def admit(self, policies: Sequence[Policy], identity: str, cost: int = 1) -> Verdict:
        """Count calls of someone against policies, if all of them admit them all."""
        if not policies:
            return Verdict(allowed=True, standings=(), cost=cost)
        if self._cache.is_resting:
            return self._admit_locally(policies, identity, cost)
        keys = _keys(policies, identity)
        bounds = [
            bound
            for policy in policies
            for bound in (policy.limit, policy.window_microseconds, policy.bucket_microseconds)
        ]
        try:
            answer = await self._cache.run(ADMIT, keys, [*bounds, cost])
        except CacheUnavailable as error:
            if not self._is_away:
                log.warning("limits.cache_away", reason=str(error))
            self._is_away = True
            return self._admit_locally(policies, identity, cost)
        self._is_away = False
        standings = tuple(
            PolicyStanding(policy, max(policy.limit - int(count), 0), max(int(wait), 0) / SECOND)
            for policy, count, wait in zip(policies, answer[1::2], answer[2::2], strict=True)
        )
        return Verdict(bool(answer[0]), standings, cost)

    async def used(self, policies: Sequence[Policy], identity: str) -> tuple[int, ...]:
        """Tell how many calls of someone are in each window, without counting one."""
        if policies and not self._cache.is_resting:
            keys = _keys(policies, identity)
            # A limit of 0 admits nothing, so nothing is written.
            bounds = [
                bound
                for policy in policies
                for bound in (0, policy.window_microseconds, policy.bucket_microseconds)
            ]
            with suppress(CacheUnavailable):
                answer = await self._cache.run(ADMIT, keys, [*bounds, 1])
                return tuple(int(count) for count in answer[1::2])
        now = round(self._clock() * SECOND)
        return tuple(self._window(policy, identity, now).count for policy in policies)

    def _admit_locally(self, policies: Sequence[Policy], identity: str, cost: int) -> Verdict:
        now = round(self._clock() * SECOND)
        sharers = max(1, self._sharers())
        held = [
            (policy, max(1, policy.limit // sharers), self._window(policy, identity, now))
            for policy in policies
        ]
        allowed = all(window.count + cost <= share for _, share, window in held)
        if allowed:
            for policy, _, window in held:
                window.add(now, policy.bucket_microseconds, cost)
        wanted = 1 if allowed else cost
        standings = tuple(
            PolicyStanding(
                policy,
                max(share - window.count, 0),
                max(window.wait(now, policy.window_microseconds, share, wanted), 0) / SECOND,
            )
            for policy, share, window in held
        )
        return Verdict(allowed, standings, cost)

    def _window(self, policy: Policy, identity: str, now: int) -> Window:
        key, local = (policy.name, identity), self._local
        window = local.get(key)
        if window is None:
            window = local[key] = Window()
            if len(local) > LOCAL_IDENTITIES:
                local.popitem(last=False)
        else:
            local.move_to_end(key)
            window.forget(now, policy.window_microseconds)
        return window


def _keys(policies: Sequence[Policy], identity: str) -> list[str]:
    """Name windows; the braces put all of a caller's into one slot of a Redis cluster."""
    return [f"window:{{{identity}}}:{policy.name}" for policy in policies]


def spoken(seconds: int) -> str:
    """Say a time in the largest unit that it fills, rounded up: `45 seconds`, `an hour`, `15 minutes`."""
    for unit, length in (("day", 86_400), ("hour", 3_600), ("minute", 60)):
        if seconds >= length:
            count = math.ceil(seconds / length)
            one = "an hour" if unit == "hour" else f"a {unit}"
            return one if count == 1 else f"{count} {unit}s"
    return "a second" if seconds == 1 else f"{seconds} seconds"


def whole_seconds(seconds: float) -> int:
    """Round a wait up, so that whoever waits that long is admitted."""
    return max(1, math.ceil(seconds))
