"""What operators' pages are told while the service moves: server-sent events (rules/operators#what-is-shown)."""

import hashlib
from collections.abc import AsyncGenerator
from functools import partial
from typing import Annotated, Any, Final

import orjson
from pydantic import Field
from quart import Blueprint, Response
from quart_schema import tag_blueprint

from tolsey.actors.refusals import Unavailable
from tolsey.http.answers.base import Media
from tolsey.http.layout.live import LOOKS, answered, events
from tolsey.http.web.access import administrator
from tolsey.http.web.api_model import ApiModel
from tolsey.http.web.context import Service, service
from tolsey.runtime.shards.oversight import Oversight
from tolsey.storage.reports.pool import OPERATORS
from tolsey.storage.runtime import dead_letters

routes = Blueprint("admin_live", __name__, url_prefix="/api/admin")
tag_blueprint(routes, ["Operators"])

MOST_STREAMS: Final = 20
"""So many are told at a time by one process."""
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
        raise Unavailable(
            "Too many clients are following this process. Try again in a minute.",
            code="overloaded",
            retryAfter=30,
        )
    return answered(_counted(events(partial(_look, service()), query_args.looks)))


async def _counted(told: AsyncGenerator[bytes]) -> AsyncGenerator[bytes]:
    open_streams.append(None)
    try:
        async for event in told:
            yield event
    finally:
        open_streams.pop()


async def _look(running: Service) -> tuple[str, bytes]:
    figures = orjson.dumps(await _figures(running), option=orjson.OPT_SORT_KEYS)
    return hashlib.sha256(figures).hexdigest()[:16], figures


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
