"""What a page that shows a launch is told when it moves."""

from functools import partial

from quart import Blueprint, Response

from tolsey.http.layout.answers import answer_with_pages
from tolsey.http.layout.live import followed
from tolsey.http.web.access import page, store_of
from tolsey.http.web.context import service
from tolsey.storage.commerce import launches

routes = Blueprint("launch_events", __name__)
answer_with_pages(routes)


@routes.get("/stores/<store_id>/launch/events")
@page
async def follow_launch(store_id: str) -> Response:
    """Tell `changed` each time that something of the launch moved, for half a minute."""
    await store_of(store_id)
    return followed(partial(launches.version, service().database, store_id))
