"""Trouble on demand: what the platform does wrong to the next requests."""

from collections import deque
from dataclasses import dataclass, field

import anyio


@dataclass(slots=True)
class Fault:
    """One wrong answer: a status with a body, a cut connection, or a wait before the right one."""

    kind: str  # "answer", "reset", "lost", "slow", "hold", "cut"
    status: int = 500
    body: bytes = b""
    headers: tuple[tuple[bytes, bytes], ...] = ()
    seconds: float = 0.0
    released: anyio.Event | None = None
    after: int = 0


@dataclass(slots=True)
class Faults:
    """The faults still to happen, for each of `graphql`, `token` and `bulk`.

    `mutation` stands for those GraphQL requests that change something.
    """

    waiting: dict[str, deque[Fault]] = field(default_factory=dict)
    bulk_failures: deque[str] = field(default_factory=deque)
    happened: int = 0

    def rate_limit(self, times: int = 1, retry_after: str = "0.05", on: str = "graphql") -> None:
        """Answer 429 with a fractional `Retry-After`, as the platform does."""
        self._add(
            on,
            times,
            _answer(429, b'{"errors":"Exceeded 2 calls per second for api client."}', retry_after),
        )

    def status(
        self,
        status: int,
        times: int = 1,
        on: str = "graphql",
        body: bytes = b'{"errors":"Internal Server Error"}',
    ) -> None:
        """Answer with an error status such as 500 or 503."""
        self._add(on, times, _answer(status, body))

    def reset(self, times: int = 1, on: str = "graphql") -> None:
        """Cut the connection in the middle of an answer."""
        self._add(on, times, Fault("reset"))

    def cut(self, after: int, times: int = 1, on: str = "bulk") -> None:
        """Give the right answer, and cut the connection behind so many bytes of its body."""
        self._add(on, times, Fault("cut", after=after))

    def lose(self, times: int = 1, on: str = "mutation") -> None:
        """Do what is asked and cut the connection in the middle of the answer."""
        self._add(on, times, Fault("lost"))

    def garbage(self, times: int = 1, on: str = "graphql") -> None:
        """Answer 200 with something that is not JSON."""
        self._add(on, times, _answer(200, b"<html><body>Something went wrong</body></html>"))

    def slow(self, seconds: float, times: int = 1, on: str = "graphql") -> None:
        """Answer rightly, but only after some time."""
        self._add(on, times, Fault("slow", seconds=seconds))

    def hold(self, on: str = "graphql") -> anyio.Event:
        """Answer the next request only after the returned event was set."""
        event = anyio.Event()
        self._add(on, 1, Fault("hold", released=event))
        return event

    def fail_bulk(self, error_code: str = "INTERNAL_SERVER_ERROR", times: int = 1) -> None:
        """Let the next bulk operations end as FAILED with this error code."""
        self.bulk_failures.extend([error_code] * times)

    def take_bulk_failure(self) -> str | None:
        """Give the error code the next bulk operation ends with, if it shall fail."""
        return self.bulk_failures.popleft() if self.bulk_failures else None

    def clear(self) -> None:
        """Behave again."""
        self.waiting.clear()
        self.bulk_failures.clear()

    def take(self, on: str) -> Fault | None:
        """Give the fault that is due, once."""
        queue = self.waiting.get(on)
        if not queue:
            return None
        self.happened += 1
        return queue.popleft()

    def _add(self, on: str, times: int, fault: Fault) -> None:
        self.waiting.setdefault(on, deque()).extend([fault] * times)


def _answer(status: int, body: bytes, retry_after: str | None = None) -> Fault:
    headers: tuple[tuple[bytes, bytes], ...] = ((b"content-type", b"application/json"),)
    if retry_after is not None:
        headers += ((b"retry-after", retry_after.encode()),)
    return Fault("answer", status=status, body=body, headers=headers)
