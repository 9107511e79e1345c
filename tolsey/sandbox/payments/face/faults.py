"""Trouble on demand: what the processor does wrong to the next requests."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import orjson

Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]
Application = Callable[[dict[str, Any], Receive, Send], Awaitable[None]]


@dataclass(slots=True)
class Fault:
    """One wrong answer to a request whose path starts with `path`."""

    kind: str  # "answer", "lost", "reset", "hold"
    path: str
    status: int = 500
    body: bytes = b""
    headers: tuple[tuple[bytes, bytes], ...] = ()
    released: asyncio.Event | None = None


@dataclass(slots=True)
class Faults:
    """The faults still to happen, in their order."""

    waiting: deque[Fault] = field(default_factory=deque)
    happened: int = 0

    def rate_limit(
        self, times: int = 1, path: str = "/v1", *, retry: bool = False, after: int | None = None
    ) -> None:
        """Answer 429; headers may tell the client to try again, and `after` how many seconds."""
        error = {
            "message": "Request rate limit exceeded. Learn more about rate limits"
            " https://stripe.com/docs/rate-limits.",
            "type": "invalid_request_error",
            "code": "rate_limit",
        }
        said = {b"stripe-should-retry": b"true"} if retry else {}
        if after is not None:
            said[b"retry-after"] = str(after).encode()
        self._answer(429, error, times, path, tuple(said.items()))

    def status(self, status: int = 500, times: int = 1, path: str = "/v1") -> None:
        """Answer with an error of the processor's own, without doing what was asked."""
        error = {"message": "An unknown error occurred.", "type": "api_error"}
        self._answer(status, error, times, path)

    def lose_answer(self, times: int = 1, path: str = "/v1") -> None:
        """Do what was asked and cut the connection before the answer."""
        self._add(times, Fault("lost", path))

    def reset(self, times: int = 1, path: str = "/v1") -> None:
        """Cut the connection without doing what was asked."""
        self._add(times, Fault("reset", path))

    def hold(self, path: str = "/v1") -> asyncio.Event:
        """Answer the next request only after the returned event was set."""
        released = asyncio.Event()
        self._add(1, Fault("hold", path, released=released))
        return released

    def clear(self) -> None:
        """Behave again."""
        self.waiting.clear()

    def take(self, path: str) -> Fault | None:
        """Give the fault that is due for a request, once."""
        found = next((fault for fault in self.waiting if path.startswith(fault.path)), None)
        if found is not None:
            self.waiting.remove(found)
            self.happened += 1
        return found

    def _answer(
        self,
        status: int,
        error: dict[str, Any],
        times: int,
        path: str,
        headers: tuple[tuple[bytes, bytes], ...] = (),
    ) -> None:
        every = ((b"content-type", b"application/json"), *headers)
        self._add(times, Fault("answer", path, status, orjson.dumps({"error": error}), every))

    def _add(self, times: int, fault: Fault) -> None:
        self.waiting.extend([fault] * times)


class Faulty:
    """An ASGI application that misbehaves first when the faults say so."""

    def __init__(self, faults: Faults, app: Application) -> None:
        self._faults = faults
        self._app = app

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        """Answer one request, or let a fault answer it."""
        fault = self._faults.take(scope["path"]) if scope["type"] == "http" else None
        if fault is None:
            await self._app(scope, receive, send)
        elif fault.released is not None:
            await fault.released.wait()
            await self._app(scope, receive, send)
        elif fault.kind == "answer":
            await _start(send, fault.status, fault.headers, len(fault.body))
            await send({"type": "http.response.body", "body": fault.body})
        else:
            if fault.kind == "lost":
                await self._app(scope, receive, _nowhere)
            # More is promised than comes: the connection closes in the middle of the answer.
            await _start(send, 200, (), 1_000_000)
            await send({"type": "http.response.body", "body": b"{", "more_body": True})


async def _nowhere(_: dict[str, Any]) -> None:
    """Take an answer that nobody shall see."""


async def _start(
    send: Send, status: int, headers: tuple[tuple[bytes, bytes], ...], size: int
) -> None:
    length = (b"content-length", str(size).encode())
    await send({"type": "http.response.start", "status": status, "headers": [*headers, length]})
