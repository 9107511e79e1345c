"""What a page is told when what it shows moved: server-sent events, by which it reads itself anew."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Final

import anyio
from quart import Response, request

from tolsey.http.web.context import service
from tolsey.runtime.registry import Runtime

LOOK_SECONDS: Final = 2.0
LOOKS: Final = 15
"""After so many looks the browser asks again, and proves anew who it is of."""
AGAIN: Final = b"retry: 1000\n\n"
BREATH: Final = b":\n\n"

Look = Callable[[], Awaitable[tuple[str, bytes]]]
"""Answers the version of what is shown, and what `changed` tells with it."""


def followed(version: Callable[[], Awaitable[str]]) -> Response:
    """Tell `changed` each time that a version is another, for half a minute.

    A browser that comes back says what it was told last; at first the page says what it shows, as `seen`.
    """

    async def look() -> tuple[str, bytes]:
        return await version(), b"{}"

    return answered(events(look))


def answered(told: AsyncGenerator[bytes]) -> Response:
    """Answer with events as they come."""
    response = Response(told, content_type="text/event-stream")
    response.headers["Cache-Control"] = "no-store"
    response.headers["X-Accel-Buffering"] = "no"
    response.timeout = None
    return response


def events(look: Look, looks: int = LOOKS) -> AsyncGenerator[bytes]:
    """Look so many times, and tell each time that the version is another than the browser was told of."""
    seen = request.headers.get("Last-Event-ID") or request.args.get("seen", "")
    return _events(service().runtime, look, looks, seen)


async def _events(runtime: Runtime, look: Look, looks: int, seen: str) -> AsyncGenerator[bytes]:
    yield AGAIN
    for number in range(looks):
        if number:
            await anyio.sleep(LOOK_SECONDS)
        if runtime.draining:  # the next process is asked in a second
            return
        now, data = await look()
        yield (
            BREATH
            if now == seen
            else b"id: %b\nevent: changed\ndata: %b\n\n"
            % (
                now.encode(),
                data,
            )
        )
        seen = now
