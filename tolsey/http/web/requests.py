"""What requests were answered with: counted for `/metrics`, and a line of the log for each."""

import time
from collections import Counter, defaultdict
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import structlog

from tolsey.runtime.telemetry import Durations

if TYPE_CHECKING:  # it takes a library that is loaded only where traces are wanted
    from tolsey.tracing import Tracing

ROUTE: Final = "tolsey.route"
"""Where the rule that a request matched is left in its ASGI scope."""
REQUEST_ID: Final = "tolsey.request_id"
"""Where the outermost layer leaves the request's id in the ASGI scope."""
CALLER_SPAN: Final = "tolsey.caller_span"
"""Where the span is left that a caller's `traceparent` named."""
OUTCOME: Final = "tolsey.outcome"
"""Where a receiver leaves what became of a delivery."""

SECONDS: Final = (0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0)
"""OpenTelemetry, "Semantic conventions for HTTP metrics": the boundaries it advises."""
METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
QUIET: Final = frozenset({"/api/health", "/metrics"})
"""What machines ask every few seconds is no news unless it fails."""
FAILED: Final = 400
TOO_MANY: Final = 429
OF_AGENTS: Final = ("/api/mcp/", "//mcp.")
"""How the routes of stores' endpoints begin, on the main address and on the sub-address."""
SHOWN_PARTS: Final = 3

log = structlog.get_logger()


class LastHour:
    """Counts what happened within an hour, by the minute."""

    def __init__(self) -> None:
        self._minutes = Counter[int]()

    def add(self, seconds: float) -> None:
        """Count one at a moment of any clock that goes forward."""
        self._minutes[int(seconds // 60)] += 1

    def count(self, seconds: float) -> int:
        """Tell how many there were within the hour that ends at a moment."""
        first = int(seconds // 60) - 59
        for minute in [one for one in self._minutes if one < first]:
            del self._minutes[minute]
        return self._minutes.total()


class RequestTally:
    """Counts the requests of one process; every label is one of a list that we wrote."""

    def __init__(self) -> None:
        self.answered: defaultdict[tuple[str, str, int], Durations] = defaultdict(
            lambda: Durations(SECONDS)
        )
        """By method, route and status; 0 stands for no answer, the client went away."""
        self.deliveries: Counter[tuple[str, str]] = Counter()
        """Deliveries to receivers by route and outcome: what they were taken as, or why refused."""
        self.active = 0
        self.tracing: Tracing | None = None
        """Where each request is told of as the root of a trace; None: nowhere."""
        self._agents_refused = LastHour()

    async def agents_refused(self, _: Any = None) -> int:
        """Tell how often agents were refused for calling too often, in the last hour."""
        return self._agents_refused.count(time.monotonic())

    def note(self, scope: Mapping[str, Any], status: int, seconds: float) -> None:
        """Count a request that was answered, and log it."""
        method = scope["method"] if scope["method"] in METHODS else "_OTHER"
        route = scope.get(ROUTE, "")
        self.answered[method, route, status].add(seconds)
        if self.tracing is not None:
            self.tracing.answered(
                name=f"{method} {route}".rstrip(),
                request_id=scope[REQUEST_ID],
                status=status,
                seconds=seconds,
                caller=scope.get(CALLER_SPAN),
            )
        if status == TOO_MANY and route.startswith(OF_AGENTS):
            self._agents_refused.add(time.monotonic())
        said: dict[str, Any] = {}
        if OUTCOME in scope:
            said["outcome"] = scope[OUTCOME]
            self.deliveries[route, scope[OUTCOME]] += 1
        write = log.debug if route in QUIET and status < FAILED else log.info
        write(
            "request",
            method=method,
            path=_shown(scope["path"], route),
            status=status,
            milliseconds=round(seconds * 1000, 1),
            **said,
        )


def _shown(path: str, route: str) -> str:
    """Give the path of a request as far as a log may hold it: a token in it opens something."""
    if "token" in route:
        return route
    return path if route else "/".join(path.split("/")[:SHOWN_PARTS])
