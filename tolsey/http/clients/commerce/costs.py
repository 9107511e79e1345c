"""What a shop's bucket of points has left, as far as the platform's answers tell.

The platform's own figures always win over what we count (`document_costs`).
"""

from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Final

from tolsey.actors.bodies import lenient

MOST_QUERY_POINTS: Final = 1_000.0
"""A query of more points is refused by the platform, on every plan."""
MOST_SHOPS = 10_000
ROUNDING_POINTS = 0.01
LONGEST_FILL_SECONDS = 600.0
"""The platform's buckets fill in 20 seconds; a figure that is far from this is not believed."""


@dataclass(frozen=True, slots=True)
class Cost:
    """What the platform says a request cost, and what is left in the bucket after it."""

    requested: float
    maximum: float
    available: float
    restore_rate: float

    @property
    def wait_seconds(self) -> float:
        """How long until the bucket holds what was requested."""
        return max(0.0, (self.requested - self.available) / self.restore_rate)


@dataclass(frozen=True, slots=True, eq=False)
class Reservation:
    """Points that a request which is under way may cost."""

    points: float
    at: float


@dataclass(slots=True)
class Bucket:
    """A shop's points as far as we know them: nothing is known before the first answer.

    Whatever the platform answers, no caller waits longer than the bucket takes to fill.
    """

    maximum: float | None = None
    available: float = 0.0
    restore_rate: float = 1.0
    at: float = 0.0
    under_way: set[Reservation] = field(default_factory=set)
    learned: dict[tuple[str, float], float] = field(default_factory=dict)

    def price(self, document: str, counted: float) -> float:
        """Return the points to reserve: what the platform counted last time, else what we counted."""
        return min(self.learned.get((document, counted), counted), MOST_QUERY_POINTS)

    def wait_seconds(self, points: float, now: float) -> float:
        """How long until these points can be spent; 0 while the bucket is unknown."""
        if self.maximum is None:
            return 0.0
        missing = min(points, self.maximum) - self._level(now)
        return missing / self.restore_rate if missing > ROUNDING_POINTS else 0.0

    def spend(self, points: float, now: float) -> Reservation:
        """Reserve points for a request that is about to leave."""
        reservation = Reservation(points, now)
        self.under_way.add(reservation)
        self._set(self._level(now) - points, now)
        return reservation

    def settle(
        self, reservation: Reservation, cost: Cost | None, now: float, *, is_lost: bool = False
    ) -> None:
        """End a reservation: the platform's figures replace ours, and without any its points are returned.

        A lost answer may have cost them, so they come back only as the bucket fills.
        """
        held = self._points_under_way(now)
        self.under_way.discard(reservation)
        if cost is not None:
            self.maximum = cost.maximum
            self.restore_rate = cost.restore_rate
            self._set(cost.available - self._points_under_way(now), now)
        elif not is_lost:
            self._set(self._level(now) + held - self._points_under_way(now), now)

    def learn(self, document: str, counted: float, cost: Cost) -> None:
        """Remember what the platform counts for a document where we count as much as this time."""
        self.learned[document, counted] = cost.requested
        while len(self.learned) > 100:  # noqa: PLR2004 - more than we have documents and sizes
            self.learned.pop(next(iter(self.learned)))

    def _points_under_way(self, now: float) -> float:
        """Add up what is reserved: of no request for longer than the bucket takes to fill."""
        fill_seconds = (self.maximum or 0.0) / self.restore_rate
        return sum(one.points for one in self.under_way if now - one.at < fill_seconds)

    def _level(self, now: float) -> float:
        grown = self.available + max(0.0, now - self.at) * self.restore_rate
        return grown if self.maximum is None else min(self.maximum, grown)

    def _set(self, level: float, now: float) -> None:
        self.available = max(0.0, level)
        self.at = now


class Buckets:
    """The buckets of the shops used last; an idle shop's bucket is full again, so it may go."""

    def __init__(self) -> None:
        self._buckets: OrderedDict[str, Bucket] = OrderedDict()

    def of(self, shop_domain: str) -> Bucket:
        """Find the shop's bucket, or start an unknown one."""
        bucket = self._buckets.setdefault(shop_domain, Bucket())
        self._buckets.move_to_end(shop_domain)
        while len(self._buckets) > MOST_SHOPS:
            self._buckets.popitem(last=False)
        return bucket


def read_cost(extensions: object) -> Cost | None:
    """Read the `cost` extension of an answer; None when it is absent or makes no sense."""
    cost = lenient(lenient(extensions).get("cost"))
    status = lenient(cost.get("throttleStatus"))
    if not status:
        return None
    requested = read_points(cost.get("requestedQueryCost"))
    maximum = read_points(status.get("maximumAvailable"))
    available = read_points(status.get("currentlyAvailable"), lowest=-1e9)
    rate = read_points(status.get("restoreRate"))
    if requested is None or available is None or not maximum or not rate:
        return None
    if maximum / rate > LONGEST_FILL_SECONDS:
        return None
    return Cost(requested, maximum, max(0.0, available), rate)


def read_points(value: object, lowest: float = 0.0) -> float | None:
    """Read a count of points; None when it makes no sense."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if lowest <= value <= 1e9 else None  # noqa: PLR2004 - also drops NaN
