"""The leaky bucket of points that pays for what an app asks of a shop."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(slots=True)
class Bucket:
    """Points an app may spend in a shop: refilled at `restore_rate` a second up to `maximum`."""

    maximum: float
    restore_rate: float
    refilled_at: datetime
    available: float = -1.0

    def __post_init__(self) -> None:
        if self.available < 0:
            self.available = self.maximum

    def refill(self, now: datetime) -> None:
        """Add what has been restored since the last look."""
        elapsed = max(0.0, (now - self.refilled_at).total_seconds())
        self.available = min(self.maximum, self.available + elapsed * self.restore_rate)
        self.refilled_at = now

    def take(self, points: int, now: datetime) -> bool:
        """Spend points when there are enough; otherwise leave the bucket as it was."""
        self.refill(now)
        if points > self.available:
            return False
        self.available -= points
        return True

    def give_back(self, points: int) -> None:
        """Return what was asked for but not used."""
        self.available = min(self.maximum, self.available + max(0, points))

    def drain(self, now: datetime, leave: float = 0.0) -> None:
        """Spend everything but `leave` points, as another client of the same app would."""
        self.refill(now)
        self.available = leave

    def status(self) -> dict[str, float | int]:
        """Describe the bucket as `throttleStatus` does."""
        return {
            "maximumAvailable": self.maximum,
            "currentlyAvailable": int(self.available),
            "restoreRate": self.restore_rate,
        }
