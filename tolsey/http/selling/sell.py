"""What sellers do: listings, and the proof of their revenue (contract sections 4 and 6)."""

from typing import Literal

from quart import Blueprint
from quart_schema import tag_blueprint

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
from tolsey.actors.listing.verification import revenue
from tolsey.actors.listing.verification.source import SourceInUse
from tolsey.actors.ports import ApiVersionTooOld
from tolsey.actors.refusals import NotFound, Unprocessable
from tolsey.http.answers.base import Accepted, Created, ListAnswer, NoBody, NoContent
from tolsey.http.answers.market.selling import ListingAnswer, OpenedProofAnswer, ProofAnswer
from tolsey.http.billing.payout_accounts import require_seller_account
from tolsey.http.selling.attestation import opening_of, signed, verification_of
from tolsey.http.selling.bodies import ListingChanges, NewListing
from tolsey.http.selling.listing_views import existing, page_to_seller, shown, shown_to_seller
from tolsey.http.selling.merchant_apps import MerchantApp, tried
from tolsey.http.selling.restricted_keys import PaymentsKey, ending, opened_account
from tolsey.http.web import limits, policies
from tolsey.http.web.access import (
    caller,
    is_administrator,
    listing_of,
    member_of,
    session,
    store_of,
)
from tolsey.http.web.api_model import ApiModel
from tolsey.http.web.context import ask, new_id, now, service
from tolsey.http.web.paging import OrganizationQuery
from tolsey.http.web.repeats.idempotency import idempotent
from tolsey.runtime.errors import TurnFailed
from tolsey.storage.records.selling.listing import COMMERCE, PAYMENTS
from tolsey.storage.selling import listings

routes = Blueprint("sell", __name__, url_prefix="/api/sell/listings")
tag_blueprint(routes, ["Selling"])


class SourceQuery(ApiModel):
    """Which source is meant; all of them unless it is named."""

    source: Literal["commerce", "payments"] | None = None


async def proof(listing_id: str) -> ProofAnswer:
    """Read a listing's verification back for its seller."""
    return ProofAnswer(verification=verification_of(await existing(listing_id), now(), owner=True))


@routes.get("")
@session
async def list_listings(query_args: OrganizationQuery) -> ListAnswer[ListingAnswer]:
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
    return await page_to_seller(found, query_args.limit)


@routes.post("")
@session
@limits.limited(policies.LISTING_CREATION)
@idempotent
async def create_listing(data: NewListing) -> tuple[ListingAnswer, Created]:
    """Start a draft."""
    await member_of(data.organization_id, at_least="admin")
    if data.store_id is not None:
        store = await store_of(data.store_id)
        if store.organization_id != data.organization_id:
            raise NotFound(
                "This store doesn't exist, or you don't have access to it. Check the link or"
                " the id."
            )
    listing_id = new_id("listing")
    message = CreateListing(
        organization_id=data.organization_id,
        store_id=data.store_id,
        fields=data.fields(),
        by=caller().user_id,
        at=now(),
    )
    await ask(listing(listing_id), message)
    return await shown(listing_id), 201


@routes.get("/<listing_id>")
@session
async def get_listing(listing_id: str) -> ListingAnswer:
    """Read a listing."""
    return await shown_to_seller(await listing_of(listing_id))


@routes.patch("/<listing_id>")
@session
async def edit_listing(listing_id: str, data: ListingChanges) -> ListingAnswer:
    """Change what is given."""
    view = await listing_of(listing_id, "admin")
    currency = data.asking_price.currency if data.asking_price else view.listing.currency
    if data.min_offer is not None and currency not in (None, data.min_offer.currency):
        raise Unprocessable(
            "minOffer and askingPrice have different currencies. Use the same currency for both.",
            code="invalid_request",
            errors=[{"field": "minOffer.currency", "message": f"must be {currency}"}],
        )
    await ask(listing(listing_id), EditListing(data.fields(), data.given(), now()))
    return await shown(listing_id)


@routes.delete("/<listing_id>")
@session
async def delete_listing(listing_id: str) -> tuple[NoBody, NoContent]:
    """Withdraw a listing and make it disappear."""
    await listing_of(listing_id, "admin")
    await ask(listing(listing_id), RemoveListing(now(), caller().user_id))
    return "", 204


@routes.post("/<listing_id>/submit")
@session
async def submit_listing(listing_id: str) -> ListingAnswer:
    """Hand a listing in for review."""
    view = await listing_of(listing_id, "admin")
    await require_seller_account(view.listing.organization_id)
    await ask(listing(listing_id), SubmitListing(now()))
    return await shown(listing_id)


@routes.post("/<listing_id>/publish")
@session
async def publish_listing(listing_id: str) -> ListingAnswer:
    """Show a listing to buyers; an administrator's call approves it."""
    administers = await is_administrator()
    view = await (existing(listing_id) if administers else listing_of(listing_id, "admin"))
    await require_seller_account(view.listing.organization_id)
    message = PublishListing(
        at=now(),
        by=caller().user_id,
        automatic=service().settings.listing_review == "automatic",
        administrator=administers,
    )
    await ask(listing(listing_id), message)
    return await shown(listing_id)


@routes.post("/<listing_id>/pause")
@session
async def pause_listing(listing_id: str) -> ListingAnswer:
    """Take no new buyers for now."""
    await listing_of(listing_id, "admin")
    await ask(listing(listing_id), PauseListing(now()))
    return await shown(listing_id)


@routes.post("/<listing_id>/withdraw")
@session
async def withdraw_listing(listing_id: str) -> ListingAnswer:
    """Give up selling; credentials are erased."""
    await listing_of(listing_id, "admin")
    await ask(listing(listing_id), WithdrawListing(now(), caller().user_id))
    return await shown(listing_id)


@routes.post("/<listing_id>/verify/commerce")
@session
@limits.limited(policies.REVENUE_CONNECT)
async def verify_commerce(listing_id: str, data: MerchantApp) -> ProofAnswer:
    """Try the credentials, keep them sealed when they work, and start reading the shop."""
    view = await listing_of(listing_id, "admin")
    try:
        service().commerce.check_version()
    except ApiVersionTooOld as error:
        raise Unprocessable(error.message, code="api_version_too_old") from error
    _, facts = await tried(data.shop_domain, data.client_id, data.client_secret)
    # The shop's own name for itself: under two names it would back two listings.
    shop_domain = facts.shop_domain
    await _free(listing_id, COMMERCE, shop_domain)
    if revenue.is_development(facts):
        raise Unprocessable(
            "Revenue of a development or trial store can't be verified. Connect a store on a"
            " paid plan.",
            code="development_store",
        )
    message = RevenueSourceAccepted(
        organization_id=view.listing.organization_id,
        provider=COMMERCE,
        shop_domain=shop_domain,
        client_id=data.client_id,
        sealed_secret=listings.seal_secret(
            service().vault, listing_id, COMMERCE, data.client_secret
        ),
        by=caller().user_id,
        at=now(),
    )
    return await _accepted(listing_id, message)


@routes.post("/<listing_id>/verify/payments")
@session
@limits.limited(policies.REVENUE_CONNECT)
async def verify_payments(listing_id: str, data: PaymentsKey) -> ProofAnswer:
    """Try the restricted key, keep it sealed when it works, and start reading the account."""
    view = await listing_of(listing_id, "admin")
    account = await opened_account(data.restricted_key)
    await _free(listing_id, PAYMENTS, account.account_id)
    message = RevenueSourceAccepted(
        organization_id=view.listing.organization_id,
        provider=PAYMENTS,
        shop_domain=account.account_id,
        client_id=ending(data.restricted_key),
        sealed_secret=listings.seal_secret(
            service().vault, listing_id, PAYMENTS, data.restricted_key
        ),
        by=caller().user_id,
        at=now(),
    )
    return await _accepted(listing_id, message)


async def _accepted(listing_id: str, message: RevenueSourceAccepted) -> ProofAnswer:
    try:
        await ask(listing(listing_id), message)
    except TurnFailed:
        # Two listings took the same source at once: the unique row let one of them.
        await _free(listing_id, message.provider, message.shop_domain)
        raise
    return await proof(listing_id)


async def _free(listing_id: str, provider: str, shop_domain: str) -> None:
    """Refuse a shop or an account that backs another listing."""
    holder = await listings.listing_using(service().database, provider, shop_domain)
    if holder not in (None, listing_id):
        raise SourceInUse


@routes.get("/<listing_id>/verification/opening")
@session
async def get_opening(listing_id: str) -> OpenedProofAnswer:
    """Read the signed verification with the metrics it is bound to, for a buyer to be shown them."""
    view, vault, at = await listing_of(listing_id), service().vault, now()
    opening = opening_of(view, vault, at)
    if opening is None:
        raise NotFound(
            "This listing isn't verified. Its verification page appears once a revenue source"
            " is verified."
        )
    return OpenedProofAnswer(document=signed(view, vault, at), opening=opening)


@routes.post("/<listing_id>/verify/refresh")
@session
@limits.limited(policies.REVENUE_REFRESH)
async def refresh(listing_id: str) -> tuple[ProofAnswer, Accepted]:
    """Read every source now."""
    await listing_of(listing_id)
    await ask(listing(listing_id), RefreshRevenue(now()))
    return await proof(listing_id), 202


@routes.delete("/<listing_id>/verify")
@session
async def remove_verification(listing_id: str, query_args: SourceQuery) -> ProofAnswer:
    """Forget the credentials of one source, or of all; dated numbers stay in the history."""
    await listing_of(listing_id, "admin")
    message = RemoveRevenueSource(now(), caller().user_id, query_args.source)
    await ask(listing(listing_id), message)
    return await proof(listing_id)
