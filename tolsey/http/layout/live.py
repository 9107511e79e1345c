"""What a page is told when what it shows moved: server-sent events, by which it reads itself anew."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Final

import anyio
from quart import Response, request

LOOK_SECONDS: Final = 2.0
LOOKS: Final = 15
"""After so many looks the browser asks again, and proves anew who it is of."""
AGAIN: Final = b"retry: 1000\n\n"
BREATH: Final = b":\n\n"


def followed(version: Callable[[], Awaitable[str]]) -> Response:
    """Tell `changed` each time that a version is another, for half a minute.

    A browser that comes back says what it was told last; at first the page says what it shows, as `seen`.
    """
    seen = request.headers.get("Last-Event-ID") or request.args.get("seen", "")
    response = Response(_events(version, seen), content_type="text/event-stream")
    response.headers["Cache-Control"] = "no-store"
    response.headers["X-Accel-Buffering"] = "no"
    response.timeout = None
    return response


async def _events(version: Callable[[], Awaitable[str]], seen: str) -> AsyncGenerator[bytes]:
    yield AGAIN
    for _ in range(LOOKS):
        now = await version()
        yield BREATH if now == seen else f"id: {now}\nevent: changed\ndata: {{}}\n\n".encode()
        seen = now
        await anyio.sleep(LOOK_SECONDS)
