"""What a page that shows a launch is told when it moves: server-sent events."""

from collections.abc import AsyncGenerator
from typing import Final

import anyio
from quart import Blueprint, Response, request

from tolsey.http.layout.answers import answer_with_pages
from tolsey.http.web.access import page, store_of
from tolsey.http.web.context import service
from tolsey.storage.commerce import launches
from tolsey.storage.database import Database

routes = Blueprint("launch_events", __name__)
answer_with_pages(routes)

LOOK_SECONDS: Final = 2.0
LOOKS: Final = 15
"""After so many looks the browser asks again, and proves anew who it is of."""
AGAIN: Final = b"retry: 1000\n\n"
BREATH: Final = b":\n\n"


@routes.get("/stores/<store_id>/launch/events")
@page
async def follow_launch(store_id: str) -> Response:
    """Tell `changed` each time that something of the launch moved, for half a minute."""
    await store_of(store_id)
    # A browser that comes back says what it was told last; at first the page says what it shows.
    seen = request.headers.get("Last-Event-ID") or request.args.get("seen", "")
    events = _events(service().database, store_id, seen)
    response = Response(events, content_type="text/event-stream")
    response.headers["Cache-Control"] = "no-store"
    response.headers["X-Accel-Buffering"] = "no"
    response.timeout = None
    return response


async def _events(database: Database, store_id: str, seen: str) -> AsyncGenerator[bytes]:
    yield AGAIN
    for _ in range(LOOKS):
        now = await launches.version(database, store_id)
        yield BREATH if now == seen else f"id: {now}\nevent: changed\ndata: {{}}\n\n".encode()
        seen = now
        await anyio.sleep(LOOK_SECONDS)
