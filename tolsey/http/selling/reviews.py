"""What administrators decide about listings and their numbers; every verdict is audited."""

from quart import Blueprint
from quart_schema import tag_blueprint

from tolsey.actors.listing.messages import ReviewListing, ReviewVerification, listing
from tolsey.http.answers.base import ListAnswer
from tolsey.http.answers.market.selling import ListingAnswer
from tolsey.http.selling.badge import RED_FLAGS
from tolsey.http.selling.listing_views import existing, page_to_seller, shown
from tolsey.http.web.access import administrator, caller
from tolsey.http.web.api_model import Reason
from tolsey.http.web.context import ask, now, service
from tolsey.http.web.paging import PageQuery
from tolsey.storage.reports.pool import OPERATORS
from tolsey.storage.selling import listings

VERDICTS = {"flag": "fraud.flag", "clear": "admin.clear", "reject": "admin.reject"}

routes = Blueprint("listing_reviews", __name__, url_prefix="/api/admin/listings")
tag_blueprint(routes, ["Operators"])


@routes.get("/flagged")
@administrator
async def list_flagged(query_args: PageQuery) -> ListAnswer[ListingAnswer]:
    """List the listings whose numbers look odd: the review queue of revenue verification."""
    found = await listings.page_flagged(
        service().reports.of(OPERATORS),
        tuple(RED_FLAGS),
        query_args.after or None,
        query_args.limit + 1,
    )
    return await page_to_seller(found, query_args.limit)


@routes.post("/<listing_id>/<any(approve, reject, suspend, reinstate):verdict>")
@administrator
async def review_listing(listing_id: str, verdict: str, data: Reason) -> ListingAnswer:
    """Approve, reject, suspend or reinstate a listing."""
    await existing(listing_id)
    message = ReviewListing(verdict=verdict, reason=data.reason, by=caller().user_id, at=now())
    await ask(listing(listing_id), message)
    return await shown(listing_id)


@routes.post("/<listing_id>/verification/<any(flag, clear, reject):verdict>")
@administrator
async def review_verification(listing_id: str, verdict: str, data: Reason) -> ListingAnswer:
    """Suspend numbers that look wrong, clear them, or reject them."""
    await existing(listing_id)
    message = ReviewVerification(
        verdict=VERDICTS[verdict], reason=data.reason, by=caller().user_id, at=now()
    )
    await ask(listing(listing_id), message)
    return await shown(listing_id)
