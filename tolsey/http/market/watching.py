"""Watching listings on the market."""

from quart import Blueprint
from quart_schema import tag_blueprint

from tolsey.actors.refusals import NotFound
from tolsey.http.answers.base import ListAnswer, NoBody, NoContent, list_of
from tolsey.http.answers.market.selling import PublicListingAnswer
from tolsey.http.selling.listing_views import to_anyone
from tolsey.http.web.access import caller, session
from tolsey.http.web.context import now, service
from tolsey.http.web.paging import PageQuery
from tolsey.storage.records.selling.listing import PUBLIC_STATUSES
from tolsey.storage.selling import listings, market

routes = Blueprint("watching", __name__, url_prefix="/api/marketplace")
tag_blueprint(routes, ["Public listings"])


@routes.get("/watched")
@session
async def list_watched(query_args: PageQuery) -> ListAnswer[PublicListingAnswer]:
    """List the listings on the market that the caller watches, newest first."""
    at = now()
    found = await market.watched_by(
        service().database, caller().user_id, query_args.after or None, query_args.limit + 1
    )
    return list_of(
        found,
        query_args.limit,
        key=lambda view: view.listing.id,
        answer=lambda view: to_anyone(view, at),
    )


@routes.post("/listings/<listing_id>/watch")
@session
async def watch_listing(listing_id: str) -> tuple[NoBody, NoContent]:
    """Watch a listing; its seller learns how many do, and not who."""
    view = await listings.find(service().database, listing_id)
    if view is None or view.listing.status not in PUBLIC_STATUSES:
        raise NotFound(
            "This listing doesn't exist, or you don't have access to it. Check the link or the id."
        )
    await market.watch(service().database, listing_id, caller().user_id, now())
    return "", 204


@routes.delete("/listings/<listing_id>/watch")
@session
async def unwatch_listing(listing_id: str) -> tuple[NoBody, NoContent]:
    """Watch a listing no longer."""
    if not await market.unwatch(service().database, listing_id, caller().user_id):
        raise NotFound("This listing isn't on your watchlist. Check the id.")
    return "", 204
