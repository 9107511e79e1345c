"""What operators' pages are told while the service moves: server-sent events (rules/operators#what-is-shown)."""

import hashlib
from collections.abc import AsyncGenerator, Iterator
from contextlib import contextmanager
from typing import Annotated, Any, Final

import anyio
import orjson
from pydantic import Field
from quart import Blueprint, Response, request
from quart_schema import tag_blueprint

from tolsey.actors.refusals import Unavailable
from tolsey.http.answers.base import Media
from tolsey.http.web.access import administrator
from tolsey.http.web.api_model import ApiModel
from tolsey.http.web.context import Service, service
from tolsey.runtime.shards.oversight import Oversight
from tolsey.storage.reports.pool import OPERATORS
from tolsey.storage.runtime import dead_letters

routes = Blueprint("admin_live", __name__, url_prefix="/api/admin")
tag_blueprint(routes, ["Operators"])

LOOK_SECONDS: Final = 2.0
LOOKS: Final = 15
"""After so many the browser asks again, and proves anew who it is of."""
MOST_STREAMS: Final = 20
"""So many are told at a time by one process."""
AGAIN: Final = b"retry: 1000\n\n"
BREATH: Final = b":\n\n"
open_streams: Final[list[None]] = []


class LiveQuery(ApiModel):
    """How often the service is looked at before the answer ends."""

    looks: Annotated[int, Field(ge=1, le=LOOKS)] = LOOKS


@routes.get("/live")
@administrator
async def follow(query_args: LiveQuery) -> Annotated[Response, Media("text/event-stream")]:
    """Tell `changed` each time that the figures of the service moved, every two seconds for half a minute at most.

    Its data are the processes, actors, waiting messages and calls, turns that are not on disk, and dead letters by kind.
    """
    if len(open_streams) >= MOST_STREAMS:
        raise Unavailable("Too many follow this process.", code="overloaded", retryAfter=30)
    seen = request.headers.get("Last-Event-ID", "")
    response = Response(
        _events(service(), seen, query_args.looks), content_type="text/event-stream"
    )
    response.headers["Cache-Control"] = "no-store"
    response.headers["X-Accel-Buffering"] = "no"
    response.timeout = None
    return response


async def _events(running: Service, seen: str, looks: int) -> AsyncGenerator[bytes]:
    with _counted():
        yield AGAIN
        for look in range(looks):
            if look:
                await anyio.sleep(LOOK_SECONDS)
            if running.runtime.draining:
                return
            figures = orjson.dumps(await _figures(running), option=orjson.OPT_SORT_KEYS)
            now = hashlib.sha256(figures).hexdigest()[:16]
            yield (
                BREATH
                if now == seen
                else b"id: %b\nevent: changed\ndata: %b\n\n"
                % (
                    now.encode(),
                    figures,
                )
            )
            seen = now


@contextmanager
def _counted() -> Iterator[None]:
    open_streams.append(None)
    try:
        yield
    finally:
        open_streams.pop()


async def _figures(running: Service) -> dict[str, Any]:
    """Look how the service is; what moves without anything happening is not among it."""
    found = await Oversight(running.shard, running.runtime).vitals()
    answered = [one for one in found.values() if one is not None]
    calls = [one["waitingCalls"] for one in answered]
    letters = await dead_letters.by_kind(running.reports.of(OPERATORS), dead_letters.MOST_COUNTED)
    return {
        "processes": {"alive": len(found), "silent": len(found) - len(answered)},
        "actors": sum(one["actors"] for one in answered),
        "waiting": sum(one["lag"]["mailbox"] for one in answered),
        "uncommitted": sum(one["lag"]["uncommitted"] for one in answered),
        "waitingCalls": {
            lane: sum(one.get(lane, 0) for one in calls) for lane in set().union(*calls)
        },
        "deadLetters": letters,
    }
