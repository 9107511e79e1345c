"""Which faults happen when: drawn from the seed before the run, so that the seed tells all of it."""

import random
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

NODES = 3
"""How many processes there are at the beginning."""
PLACES = 5
"""How many there are at most: the others join later."""
SKEW_SECONDS = 3600.0
HASTE, PACE, AGAIN = (0.5, 1.1), (0.7, 2.0), 0.3
"""Leases between two faults: until each kind was there, from then on, and when there was no place."""

STOPS = ("kill", "strangle", "pause", "skew", "leave")
"""What takes a process away."""
LINKS = ("cut_redis", "cut_postgres", "hold_redis", "hold_postgres", "partition", "delay")
"""What befalls the network of one process."""
GROUND = ("redis_restart", "redis_flush", "postgres_restart")
"""What befalls everyone."""
PLANNED = ("move", "leave", "join")
"""What an operator does: nobody should notice."""
KINDS = (*STOPS, *LINKS, *GROUND, "move", "join")

OFTEN = ("kill", "kill", "pause", "pause", "partition", "partition", "move")
"""Drawn more often than the others: where safety is won or lost."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that goes wrong, or is done on purpose, and for how long."""

    at: float
    kind: str
    node: int | None = None
    """The process it happens to, by its place."""
    seconds: float = 0.0
    flows: tuple[str, ...] = ()
    """Which way is held up."""
    loses: bool = False
    """Whether what was held up is lost, or arrives late."""
    delay_seconds: float = 0.0
    skew_seconds: float = 0.0
    account: int = 0
    """Whose slot moves."""


def schedule(seed: int, seconds: float, lease_seconds: float) -> list[Fault]:
    """Draw the faults of a run: each kind once in some order, then whatever comes up."""
    return list(_Draw(seed, seconds, lease_seconds).faults())


@dataclass
class _Draw:
    seed: int
    seconds: float
    lease_seconds: float
    members: set[int] = field(default_factory=lambda: set(range(NODES)))
    troubled: dict[int, float] = field(default_factory=dict)
    """Until when a process has trouble of its own."""

    def faults(self) -> Iterator[Fault]:
        self.luck = random.Random(f"faults {self.seed}")  # noqa: S311 - a campaign's luck, not a secret
        owed, seen = list(KINDS), set[str]()
        self.luck.shuffle(owed)
        at = 0.5 * self.lease_seconds
        while at < self.seconds - 2 * self.lease_seconds:
            kind = owed.pop() if owed else self.luck.choice((*KINDS, *OFTEN))
            fault = self._fault(at, kind)
            if fault is not None:
                seen.add(kind)
                yield fault
            elif kind not in seen:
                owed.insert(0, kind)
            leases = self.luck.uniform(*(HASTE if owed else PACE)) if fault else AGAIN
            at = round(at + self.lease_seconds * leases, 3)

    def _fault(self, at: float, kind: str) -> Fault | None:
        """Draw one fault; none when there is no process that it may happen to."""
        long = round(self.lease_seconds * self.luck.uniform(1.2, 2.0), 3)
        if kind in GROUND:
            return Fault(at, kind)
        if kind == "join":
            return self._join(at)
        free = sorted(n for n in self.members if self.troubled.get(n, 0.0) <= at)
        if kind == "move" and free:
            return Fault(at, kind, self.luck.choice(free), account=self.luck.randrange(1000))
        if len(free) < 2 or (kind == "leave" and len(self.members) < NODES):
            return None  # one process is always left alone
        node = self.luck.choice(free)
        if kind == "leave":
            self.members.discard(node)
            self.troubled[node] = at + 2 * self.lease_seconds
            return Fault(at, kind, node)
        self.troubled[node] = at + long + self.lease_seconds
        return self._details(Fault(at, kind, node, long))

    def _details(self, fault: Fault) -> Fault:
        luck = self.luck
        match fault.kind:
            case "skew":
                seconds = luck.choice((0.0, fault.seconds))
                skew = luck.choice((-SKEW_SECONDS, SKEW_SECONDS))
                return replace(fault, seconds=seconds, skew_seconds=skew)
            case "partition":
                return replace(fault, flows=("up", "down"), loses=luck.random() < 0.5)
            case "delay":
                return replace(fault, delay_seconds=round(luck.uniform(0.02, 0.15), 3))
            case "hold_redis" | "hold_postgres":
                flows = luck.choice((("up", "down"), ("up",), ("down",)))
                return replace(fault, flows=flows, loses=luck.random() < 0.5)
            case _:
                return fault

    def _join(self, at: float) -> Fault | None:
        away = [n for n in range(PLACES) if n not in self.members]
        away = [n for n in away if self.troubled.get(n, 0.0) <= at]
        if not away or len(self.members) > NODES:
            return None
        self.members.add(away[0])
        self.troubled[away[0]] = at + self.lease_seconds
        return Fault(at, "join", away[0])
