"""Listings as answers show them: to their seller, and to anyone."""

from datetime import datetime
from typing import Any, Final

import orjson

from tolsey.actors.listing import lifecycle, verification
from tolsey.actors.refusals import NotFound
from tolsey.http.context import now, service
from tolsey.http.selling.attestation import verification_view
from tolsey.http.views import timestamp
from tolsey.storage.records.selling.listing import (
    COMMERCE,
    PAYMENTS,
    ListingRecord,
    VerificationRecord,
)
from tolsey.storage.records.selling.revenue import RevenueSnapshot
from tolsey.storage.selling import listings
from tolsey.storage.selling.listings import ListingView

WHY_RV2: Final = {
    COMMERCE: (
        "Since rv2 an order counts only when its payment is proven: the platform's own processor"
        " asked a fee for it, or a buyer paid an outside processor in the platform's checkout."
        " Gift cards, store credit, orders that apps write, disputed orders, tips, duties and"
        " refunds under way do not count any more. Returned units are taken off once, not twice."
        " A shop's history begins with the first order that counts."
    ),
    PAYMENTS: "The rules for payment processors are the same in rv1 and rv2; only the name is new.",
}


async def existing(listing_id: str) -> ListingView:
    """Read a listing, whatever its status; 404 when it is deleted or never was."""
    view = await listings.find(service().database, listing_id)
    if view is None:
        raise NotFound("There is no such listing.")
    return view


async def shown(listing_id: str) -> dict[str, Any]:
    """Read a listing as its seller sees it; 404 as in `existing`."""
    return owner_view(await existing(listing_id), now())


def money(amount: int | None, currency: str | None) -> dict[str, Any] | None:
    """Show an amount of minor units with its currency."""
    return None if amount is None else {"amount": amount, "currency": currency}


def owner_view(view: ListingView, at: datetime) -> dict[str, Any]:
    """Show a listing to its seller, with what they may do next."""
    listing = view.listing
    return {
        **_told(listing),
        "id": listing.id,
        "organizationId": listing.organization_id,
        "storeId": listing.store_id,
        "statusReason": listing.status_reason,
        "domain": listing.domain,
        "minOffer": money(listing.min_offer, listing.currency),
        "autoApproveAccess": listing.auto_approve_access,
        "createdAt": timestamp(listing.created_at),
        "publishedAt": timestamp(listing.published_at),
        "allowed": lifecycle.allowed(listing.status),
        "verification": verification_view(view, at, owner=True),
        "connections": [
            _connection(verification.settle(proof.verification, at), proof.snapshot, at)
            for proof in view.proofs
            if proof.verification.shop_domain
        ],
    }


def _connection(
    record: VerificationRecord, snapshot: RevenueSnapshot | None, at: datetime
) -> dict[str, Any]:
    """Show a source to the seller: `account` is the shop, or the account at the processor.

    What did not count in its last good sync is told with the reasons, and what a new definition
    made of its numbers.
    """
    return {
        "source": record.provider,
        "account": record.shop_domain,
        "state": record.state.value,
        "badge": verification.badge_of(record, at).value,
        "isSyncing": verification.is_syncing(record, at),
        "lastGoodSyncAt": timestamp(record.last_ok_at),
        "missingPermission": record.missing_permission,
        "lastError": record.last_error,
        "suspendedFor": record.suspended_for,
        "notCounted": orjson.loads(snapshot.skipped) if snapshot else {},
        "unprovenPayments": orjson.loads(snapshot.unproven) if snapshot else [],
        "definitionChange": _definition_change(record),
    }


def _definition_change(record: VerificationRecord) -> dict[str, Any] | None:
    """Say what the last change of the definition did to a source's numbers, and why."""
    if record.redefined is None:
        return None
    return {**orjson.loads(record.redefined), "why": WHY_RV2[record.provider]}


def public_view(view: ListingView, at: datetime) -> dict[str, Any]:
    """Show a listing to anyone; an anonymous one does not say where the business is."""
    listing = view.listing
    proof = verification_view(view, at)
    return {
        **_told(listing),
        "id": listing.id,
        "domain": None if listing.anonymous else listing.domain,
        "publishedAt": timestamp(listing.published_at),
        "multiples": _multiples(listing, proof),
        "verification": proof,
    }


def _told(listing: ListingRecord) -> dict[str, Any]:
    """Show what the seller says to everyone."""
    return {
        "slug": listing.slug,
        "status": listing.status.value,
        "title": listing.title,
        "teaser": listing.teaser,
        "anonymous": listing.anonymous,
        "category": listing.category,
        "businessModel": listing.business_model,
        "foundedAt": listing.founded_at.isoformat() if listing.founded_at else None,
        "country": listing.country,
        "askingPrice": money(listing.asking_price, listing.currency),
        "reasonForSale": listing.reason_for_sale,
        "includedAssets": orjson.loads(listing.included_assets),
        "excludedAssets": orjson.loads(listing.excluded_assets),
        "financingOffered": listing.financing_offered,
        "selfReported": {"label": "self-reported", **orjson.loads(listing.self_reported)},
    }


def _multiples(listing: ListingRecord, proof: dict[str, Any]) -> dict[str, Any]:
    """Compare the price with a year's verified revenue and with the profit the seller reports."""
    profit = orjson.loads(listing.self_reported).get("ttmProfit") or {}
    price, currency = listing.asking_price, listing.currency
    return {
        "annualisedRevenue": _ratio(price, currency, proof["annualised"], proof["currency"]),
        "selfReportedProfit": _ratio(price, currency, profit.get("amount"), profit.get("currency")),
    }


def _ratio(
    price: int | None, currency: str | None, base: int | None, base_currency: str | None
) -> float | None:
    if price is None or base is None or base <= 0 or currency != base_currency:
        return None
    return round(price / base, 2)
