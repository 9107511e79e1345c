"""What anyone may see of listings and their verified revenue (contract sections 4 and 6)."""

import hashlib
from datetime import timedelta
from typing import Annotated
from urllib.parse import urlsplit

import orjson
from pydantic import Field
from quart import Blueprint, Response, request
from quart_schema import tag_blueprint

from tolsey.actors.listing.ranges import shown_as
from tolsey.actors.listing.verification.transitions import Badge, State
from tolsey.actors.refusals import NotFound
from tolsey.http.answers.base import ListAnswer, Media
from tolsey.http.answers.market.selling import (
    DayAnswer,
    KeysAnswer,
    PublicListingAnswer,
    SignedVerificationAnswer,
)
from tolsey.http.layout.templates import rendered
from tolsey.http.market.searching import MarketQuery, listed
from tolsey.http.selling import badge as badges
from tolsey.http.selling import preview
from tolsey.http.selling.attestation import (
    badge,
    disclosed,
    main_figures,
    primary_proof,
    public_keys,
    signed,
    verification_of,
)
from tolsey.http.selling.listing_views import to_anyone
from tolsey.http.web import limits, policies
from tolsey.http.web.access import public
from tolsey.http.web.api_model import ApiModel
from tolsey.http.web.context import now, service
from tolsey.storage.records.selling.revenue import RevenueSnapshot
from tolsey.storage.selling import listings, market, snapshots
from tolsey.storage.selling.listings import ListingView

LONGEST_HISTORY_DAYS = 365
MAXIMUM_AGE = "public, max-age=300"
NOT_MODIFIED = Media(None, 304)

routes = Blueprint("public_listings", __name__)
tag_blueprint(routes, ["Public listings"])


class BadgeQuery(ApiModel):
    """How the badge is to look."""

    theme: badges.Theme = "light"
    size: badges.Size = "m"


class HistoryQuery(ApiModel):
    """How far back to look."""

    days: Annotated[int, Field(ge=1, le=LONGEST_HISTORY_DAYS)] = LONGEST_HISTORY_DAYS


@routes.after_request
async def open_to_all(response: Response) -> Response:
    """Let pages of other sites read and show what is public anyway."""
    response.headers["Access-Control-Allow-Origin"] = "*"
    response.headers["Cross-Origin-Resource-Policy"] = "cross-origin"
    return response


async def listing_at(slug: str) -> ListingView:
    """Return the listing at an address, or say that there is none to see."""
    view = await listings.find_public(service().database, slug)
    if view is None:
        raise NotFound(
            "This listing doesn't exist, or you don't have access to it. Check the link or the id."
        )
    return view


async def noted(view: ListingView) -> None:
    """Count that somebody saw a listing: once a day, whoever it is."""
    whose = f"{limits.identity()}|{view.listing.id}"
    verdict = await service().limits.admit((policies.LISTING_VIEWS,), whose)
    if verdict.allowed:
        await market.note_view(service().database, view.listing.id)


@routes.get("/api/public/listings")
@public
async def list_public(query_args: MarketQuery) -> ListAnswer[PublicListingAnswer]:
    """Find listings that are on the market or were sold, by words, filters and orders; without a price none is."""
    return await listed(query_args)


@routes.get("/api/public/listings/<slug>")
@public
async def get_public(slug: str) -> PublicListingAnswer:
    """Read a listing."""
    view = await listing_at(slug)
    await noted(view)
    return to_anyone(view, now())


@routes.get("/api/public/listings/<slug>/verification")
@public
async def get_verification(slug: str) -> SignedVerificationAnswer:
    """Read how far the numbers are proven, signed; without a badge there are no numbers."""
    return signed(await listing_at(slug), service().vault, now())


@routes.get("/api/public/listings/<slug>/badge.svg")
@public
async def get_badge(
    slug: str, query_args: BadgeQuery
) -> Annotated[Response, Media("image/svg+xml"), NOT_MODIFIED]:
    """Draw the badge as it stands now; 404 when there is none to show."""
    shown = _shown(await listing_at(slug))
    if shown.badge is Badge.NONE:
        raise NotFound(
            "This listing isn't verified. Its verification page appears once a revenue source"
            " is verified."
        )
    drawn = badges.BadgePicture(shown=shown, theme=query_args.theme, size=query_args.size)
    return _cached(rendered(drawn), "image/svg+xml; charset=utf-8")


@routes.get("/api/public/listings/<slug>/og.png")
@public
async def get_preview(slug: str) -> Annotated[Response, Media("image/png"), NOT_MODIFIED]:
    """Draw what other sites show beside a link to a listing; 404 when there is no badge to show."""
    view = await listing_at(slug)
    shown = _shown(view)
    if shown.badge is Badge.NONE:
        raise NotFound(
            "This listing isn't verified. Its verification page appears once a revenue source"
            " is verified."
        )
    host = urlsplit(service().settings.base_url).netloc
    drawn = await preview.picture_of(preview.of(view.listing.title, shown, host))
    return _cached(drawn, "image/png")


@routes.get("/api/public/listings/<slug>/embed")
@public
async def get_embed(slug: str) -> Annotated[Response, Media("text/html"), NOT_MODIFIED]:
    """Write the page that other sites may frame."""
    view = await listing_at(slug)
    address = f"{service().settings.base_url}/listings/{slug}/check"
    written = badges.EmbedPage(title=view.listing.title, address=address, shown=_shown(view))
    response = _cached(rendered(written), "text/html; charset=utf-8")
    response.headers["Content-Security-Policy"] = badges.EMBED_POLICY
    return response


@routes.get("/api/public/listings/<slug>/history")
@public
async def get_history(slug: str, query_args: HistoryQuery) -> ListAnswer[DayAnswer]:
    """List the last verified numbers of each day.

    Nothing while an administrator looks into them, nor before a good sync once they were rejected.
    """
    view = await listing_at(slug)
    record = primary_proof(view, now()).verification
    is_hidden = record.verified_at is None or record.state is State.SUSPENDED
    if record.shop_domain is None or is_hidden:
        return ListAnswer(items=[], next_cursor=None)
    visibility = shown_as(view.listing.visibility)
    since = now() - timedelta(days=query_args.days)
    found = await snapshots.history(service().database, view.listing.id, record.shop_domain, since)
    days = [disclosed(_day(snapshot), visibility) for snapshot in found]
    return ListAnswer(items=days, next_cursor=None)


@routes.get("/.well-known/verification-keys.json")
@public
async def get_keys() -> Annotated[
    Response, Media("application/json", shape=KeysAnswer), NOT_MODIFIED
]:
    """List the keys that verifications are signed with."""
    return _cached(public_keys(service().vault).model_dump_json(), "application/json")


def _shown(view: ListingView) -> badges.Shown:
    at = now()
    return badges.Shown(badge(view, at), verification_of(view, at), at)


def _day(snapshot: RevenueSnapshot) -> DayAnswer:
    currency, figures = main_figures(snapshot)
    return DayAnswer(
        date=snapshot.window_end.date(),
        source=snapshot.source,
        definition=snapshot.definition,
        currency=currency,
        mrr=figures["mrr"],
        revenue30d=figures["revenue30d"],
        annualised=figures["annualised"],
        window_start=snapshot.window_start,
        window_end=snapshot.window_end,
        synced_at=snapshot.window_end,
        flags=orjson.loads(snapshot.flags),
    )


def _cached(written: str | bytes, content_type: str) -> Response:
    """Answer with a body that may be kept for five minutes and asked for again by its ETag."""
    body = written.encode() if isinstance(written, str) else written
    tag = hashlib.sha256(body).hexdigest()[:32]
    known = request.if_none_match.contains_weak(tag)
    response = Response(
        b"" if known else body, status=304 if known else 200, content_type=content_type
    )
    response.set_etag(tag)
    response.headers["Cache-Control"] = MAXIMUM_AGE
    return response
