"""A stand-in's time: it runs with the machine's clock and can be moved forward by hand."""

import time
from datetime import UTC, datetime, timedelta


class Clock:
    """Tells a stand-in what time it is.

    A `frozen` clock stands still until it is advanced, which makes expiry and rate limits exact.
    """

    def __init__(self, start: datetime | None = None, *, frozen: bool = False) -> None:
        self._start = start or datetime.now(UTC)
        self._frozen = frozen
        self._began = time.monotonic()
        self._ahead = timedelta()

    def now(self) -> datetime:
        """Tell the moment in UTC."""
        running = 0.0 if self._frozen else time.monotonic() - self._began
        return self._start + self._ahead + timedelta(seconds=running)

    def advance(self, seconds: float) -> None:
        """Move the clock forward; it never goes back."""
        if seconds < 0:
            raise ValueError("a clock only goes forward")
        self._ahead += timedelta(seconds=seconds)


def instant(moment: datetime) -> str:
    """Write a moment as GraphQL answers do: UTC, whole seconds, `Z`."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
