"""What sellers do: listings, and the proof of their revenue (contract sections 4 and 6)."""

from typing import Annotated, Any

from pydantic import Field
from quart import Blueprint, Response
from quart_schema import tag_blueprint, validate_querystring, validate_request

from tolsey.actors.listing.effects import is_development, seal_secret
from tolsey.actors.listing.messages import (
    CreateListing,
    EditListing,
    PauseListing,
    PublishListing,
    RefreshRevenue,
    RemoveListing,
    RemoveRevenueSource,
    RevenueSourceAccepted,
    SubmitListing,
    WithdrawListing,
    listing,
)
from tolsey.actors.listing.source import SourceInUse
from tolsey.actors.ports import GrantRefused, PlatformDenied, PlatformUnreachable, Shop, ShopFacts
from tolsey.actors.refusals import Forbidden, NotBuilt, NotFound, Refusal, Unprocessable
from tolsey.actors.shops import normalise_shop_domain
from tolsey.http import limits
from tolsey.http.access import RANKS, Role, caller, member_of, session, store_of
from tolsey.http.attestation import SOURCE, verification_view
from tolsey.http.context import ask, new_id, now, service
from tolsey.http.idempotency import idempotent
from tolsey.http.listing_views import owner_view
from tolsey.http.paging import PageQuery, page
from tolsey.http.routes.listing_bodies import (
    CommerceCredentials,
    ListingChanges,
    NewListing,
    PaymentsKey,
)
from tolsey.runtime.errors import TurnFailed
from tolsey.storage import accounts, administrators, listings
from tolsey.storage.limits import Policy
from tolsey.storage.listings import ListingView

REFRESHES = Policy("revenue-refresh", 20, 3_600)
CONNECTIONS = Policy("revenue-connect", 30, 3_600)
LISTING_CREATION = Policy("listing-creation", 60, 3_600)

routes = Blueprint("sell", __name__, url_prefix="/api/sell/listings")
tag_blueprint(routes, ["Selling"])


class ListingsQuery(PageQuery):
    """Which listings are wanted."""

    organization_id: Annotated[str, Field(max_length=128)] | None = None


class CommerceUnreachable(Refusal):
    """The commerce platform gave no usable answer."""

    status = 502
    code = "commerce_unreachable"


async def listing_of(listing_id: str, at_least: Role = "member") -> ListingView:
    """Return a listing of an organization the caller belongs to; else 404, 403 below the role."""
    view = await listings.find(service().database, listing_id)
    if view is None:
        raise NotFound("There is no such listing.")
    role = await accounts.role_in(
        service().database, caller().user_id, view.listing.organization_id
    )
    if role is None:
        raise NotFound("There is no such listing.")
    if RANKS[role] < RANKS[at_least]:
        raise Forbidden(f"Only a role of {at_least} or more may do this.", required=at_least)
    return view


async def is_administrator() -> bool:
    """Whether the caller is at least admin in the administrators' organization."""
    running = service()
    organization_id = await administrators.organization_id(
        running.database, running.settings.admin_organization_id
    )
    role = organization_id and await accounts.role_in(
        running.database, caller().user_id, organization_id
    )
    return bool(role) and RANKS[str(role)] >= RANKS["admin"]


async def shown(listing_id: str) -> dict[str, Any]:
    """Read a listing back for its seller."""
    view = await listings.find(service().database, listing_id)
    if view is None:
        raise NotFound("There is no such listing.")
    return owner_view(view, now())


async def proof(listing_id: str) -> dict[str, Any]:
    """Read a listing's verification back for its seller."""
    view = await listings.find(service().database, listing_id)
    if view is None:
        raise NotFound("There is no such listing.")
    return {"verification": verification_view(view, now(), owner=True)}


@routes.get("")
@session
@validate_querystring(ListingsQuery)
async def list_listings(query_args: ListingsQuery) -> dict[str, Any]:
    """List the listings of the caller's organizations, or of one of them."""
    if query_args.organization_id is not None:
        await member_of(query_args.organization_id)
    found = await listings.page_of_user(
        service().database,
        caller().user_id,
        query_args.organization_id,
        query_args.after or None,
        query_args.limit + 1,
    )
    at = now()
    return page(
        found,
        query_args.limit,
        key=lambda view: view.listing.id,
        view=lambda view: owner_view(view, at),
    )


@routes.post("")
@session
@validate_request(NewListing)
@limits.limited(LISTING_CREATION)
@idempotent
async def create_listing(data: NewListing) -> tuple[dict[str, Any], int]:
    """Start a draft."""
    await member_of(data.organization_id, at_least="admin")
    if data.store_id is not None:
        store = await store_of(data.store_id)
        if store.organization_id != data.organization_id:
            raise NotFound("There is no such store.")
    listing_id = new_id("listing")
    message = CreateListing(
        data.organization_id, data.store_id, data.fields(), caller().user_id, now()
    )
    await ask(listing(listing_id), message)
    return await shown(listing_id), 201


@routes.get("/<listing_id>")
@session
async def get_listing(listing_id: str) -> dict[str, Any]:
    """Read a listing."""
    return owner_view(await listing_of(listing_id), now())


@routes.patch("/<listing_id>")
@session
@validate_request(ListingChanges)
async def edit_listing(listing_id: str, data: ListingChanges) -> dict[str, Any]:
    """Change what is given."""
    view = await listing_of(listing_id, "admin")
    currency = data.asking_price.currency if data.asking_price else view.listing.currency
    if data.min_offer is not None and currency not in (None, data.min_offer.currency):
        raise Unprocessable(
            "minOffer must be in the currency of askingPrice.",
            code="invalid_request",
            errors=[{"field": "minOffer.currency", "message": f"must be {currency}"}],
        )
    await ask(listing(listing_id), EditListing(data.fields(), data.given(), now()))
    return await shown(listing_id)


@routes.delete("/<listing_id>")
@session
async def delete_listing(listing_id: str) -> Response:
    """Withdraw a listing and make it disappear."""
    await listing_of(listing_id, "admin")
    await ask(listing(listing_id), RemoveListing(now(), caller().user_id))
    return Response(b"", status=204)


@routes.post("/<listing_id>/submit")
@session
async def submit_listing(listing_id: str) -> dict[str, Any]:
    """Hand a listing in for review."""
    await listing_of(listing_id, "admin")
    await ask(listing(listing_id), SubmitListing(now()))
    return await shown(listing_id)


@routes.post("/<listing_id>/publish")
@session
async def publish_listing(listing_id: str) -> dict[str, Any]:
    """Show a listing to buyers; an administrator's call approves it."""
    administers = await is_administrator()
    if not administers:
        await listing_of(listing_id, "admin")
    message = PublishListing(
        now(),
        caller().user_id,
        automatic=service().settings.listing_review == "automatic",
        administrator=administers,
    )
    await ask(listing(listing_id), message)
    return await shown(listing_id)


@routes.post("/<listing_id>/pause")
@session
async def pause_listing(listing_id: str) -> dict[str, Any]:
    """Take no new buyers for now."""
    await listing_of(listing_id, "admin")
    await ask(listing(listing_id), PauseListing(now()))
    return await shown(listing_id)


@routes.post("/<listing_id>/withdraw")
@session
async def withdraw_listing(listing_id: str) -> dict[str, Any]:
    """Give up selling; credentials are erased."""
    await listing_of(listing_id, "admin")
    await ask(listing(listing_id), WithdrawListing(now(), caller().user_id))
    return await shown(listing_id)


@routes.post("/<listing_id>/verify/commerce")
@session
@validate_request(CommerceCredentials)
@limits.limited(CONNECTIONS)
async def verify_commerce(listing_id: str, data: CommerceCredentials) -> dict[str, Any]:
    """Try the credentials, keep them sealed when they work, and start reading the shop."""
    view = await listing_of(listing_id, "admin")
    try:
        shop_domain = normalise_shop_domain(data.shop_domain)
    except ValueError as error:
        raise Unprocessable(
            str(error),
            code="invalid_request",
            errors=[{"field": "shopDomain", "message": str(error)}],
        ) from error
    facts = await _tried(shop_domain, data)
    await _free(listing_id, shop_domain)
    if is_development(facts):
        raise Unprocessable(
            "This is a development or trial store; its orders prove nothing.",
            code="development_store",
        )
    message = RevenueSourceAccepted(
        organization_id=view.listing.organization_id,
        provider=SOURCE,
        shop_domain=shop_domain,
        client_id=data.client_id,
        sealed_secret=seal_secret(service().vault, listing_id, data.client_secret),
        by=caller().user_id,
        at=now(),
    )
    try:
        await ask(listing(listing_id), message)
    except TurnFailed:
        # Two listings took the same shop at once: the unique row let one of them.
        await _free(listing_id, shop_domain)
        raise
    return await proof(listing_id)


async def _tried(shop_domain: str, data: CommerceCredentials) -> ShopFacts:
    """Mint a token and read the shop with it; nothing is kept."""
    platform = service().commerce
    try:
        grant = await platform.exchange(shop_domain, data.client_id, data.client_secret)
        return await platform.connect_probe(Shop(shop_domain, grant.access_token))
    except GrantRefused as error:
        raise Unprocessable(
            error.message, code="commerce_rejected", platformCode=error.code
        ) from error
    except PlatformDenied as error:
        raise Unprocessable(error.message, code="commerce_rejected") from error
    except PlatformUnreachable as error:
        raise CommerceUnreachable(
            "The commerce platform is out of reach.", retryAfter=30
        ) from error


async def _free(listing_id: str, shop_domain: str) -> None:
    """Refuse a shop that backs another listing."""
    holder = await listings.listing_using(service().database, SOURCE, shop_domain)
    if holder not in (None, listing_id):
        raise SourceInUse


@routes.post("/<listing_id>/verify/payments")
@session
@validate_request(PaymentsKey)
async def verify_payments(listing_id: str, data: PaymentsKey) -> dict[str, Any]:
    """Verify by a payment processor: named by the contract, not there yet."""
    del data
    await listing_of(listing_id, "admin")
    raise NotBuilt("Verification by the payment processor is not built yet.")


@routes.post("/<listing_id>/verify/refresh")
@session
@limits.limited(REFRESHES)
async def refresh(listing_id: str) -> tuple[dict[str, Any], int]:
    """Read the shop now."""
    await listing_of(listing_id)
    await ask(listing(listing_id), RefreshRevenue(now()))
    return await proof(listing_id), 202


@routes.delete("/<listing_id>/verify")
@session
async def remove_verification(listing_id: str) -> dict[str, Any]:
    """Forget the credentials; dated numbers stay in the history."""
    await listing_of(listing_id, "admin")
    await ask(listing(listing_id), RemoveRevenueSource(now(), caller().user_id))
    return await proof(listing_id)
