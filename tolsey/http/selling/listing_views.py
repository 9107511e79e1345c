"""Listings as answers show them: to their seller, and to anyone."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

import orjson

from tolsey.actors.listing import lifecycle
from tolsey.actors.listing.verification import transitions
from tolsey.actors.refusals import NotFound
from tolsey.http.answers.base import ListAnswer, list_of
from tolsey.http.answers.market.selling import (
    DefinitionChangeAnswer,
    ListingAnswer,
    MultiplesAnswer,
    PrivateAnswer,
    PublicListingAnswer,
    SelfReportedAnswer,
    SourceAnswer,
    UnprovenAnswer,
    VerificationAnswer,
)
from tolsey.http.answers.money.credits import money
from tolsey.http.selling.attestation import verification_of
from tolsey.http.web.context import now, service
from tolsey.storage.records.selling.listing import (
    COMMERCE,
    PAYMENTS,
    ListingRecord,
    VerificationRecord,
)
from tolsey.storage.records.selling.revenue import RevenueSnapshot
from tolsey.storage.selling import listings, market
from tolsey.storage.selling.listings import ListingView
from tolsey.storage.selling.market import Attention

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
        raise NotFound(
            "This listing doesn't exist, or you don't have access to it. Check the link or the id."
        )
    return view


async def shown(listing_id: str) -> ListingAnswer:
    """Read a listing as its seller sees it; 404 as in `existing`."""
    return await shown_to_seller(await existing(listing_id))


async def shown_to_seller(view: ListingView) -> ListingAnswer:
    """Show a listing to its seller, with how many look at it."""
    found = await market.attention_of(service().database, [view.listing.id])
    return to_seller(view, now(), found[view.listing.id])


async def page_to_seller(found: Sequence[ListingView], limit: int) -> ListAnswer[ListingAnswer]:
    """Show a page of what was found as `shown_to_seller` does."""
    at = now()
    attention = await market.attention_of(service().database, [view.listing.id for view in found])
    return list_of(
        found,
        limit,
        key=lambda view: view.listing.id,
        answer=lambda view: to_seller(view, at, attention[view.listing.id]),
    )


def private_of(listing: ListingRecord) -> PrivateAnswer:
    """Show what only buyers under an NDA are shown."""
    return PrivateAnswer.model_validate(orjson.loads(listing.private), by_alias=True, by_name=False)


def to_seller(view: ListingView, at: datetime, attention: Attention) -> ListingAnswer:
    """Show a listing to its seller, with what they may do next."""
    listing = view.listing
    return ListingAnswer.read(
        listing,
        **_seller_stated(listing),
        private=private_of(listing),
        required_documents=orjson.loads(listing.required_documents),
        watchers=attention.watchers,
        views=attention.views,
        min_offer=money(listing.min_offer, listing.currency),
        allowed=lifecycle.allowed(listing.status),
        verification=verification_of(view, at, owner=True),
        connections=[
            _source(transitions.settle(proof.verification, at), proof.snapshot, at)
            for proof in view.proofs
            if proof.verification.shop_domain
        ],
    )


def _source(
    record: VerificationRecord, snapshot: RevenueSnapshot | None, at: datetime
) -> SourceAnswer:
    """Show a source with what did not count in its last good sync, and why."""
    return SourceAnswer.read(
        record,
        source=record.provider,
        account=record.shop_domain or "",
        state=record.state.value,
        badge=transitions.badge_of(record, at).value,
        is_syncing=transitions.is_syncing(record, at),
        last_good_sync_at=record.last_ok_at,
        not_counted=orjson.loads(snapshot.skipped) if snapshot else {},
        unproven_payments=[
            UnprovenAnswer(**each) for each in (orjson.loads(snapshot.unproven) if snapshot else ())
        ],
        definition_change=_definition_change(record),
    )


def _definition_change(record: VerificationRecord) -> DefinitionChangeAnswer | None:
    """Say what the last change of the definition did to a source's numbers, and why."""
    if record.redefined is None:
        return None
    kept = orjson.loads(record.redefined)
    return DefinitionChangeAnswer(
        from_=kept["from"],
        to=kept["to"],
        at=datetime.fromisoformat(kept["at"]),
        before=kept["before"],
        after=kept["after"],
        why=WHY_RV2[record.provider],
    )


def to_anyone(view: ListingView, at: datetime) -> PublicListingAnswer:
    """Show a listing to anyone; an anonymous one does not say where the business is."""
    listing = view.listing
    proof = verification_of(view, at)
    return PublicListingAnswer.read(
        listing,
        **_seller_stated(listing),
        domain=None if listing.anonymous else listing.domain,
        multiples=_multiples(listing, proof),
        verification=proof,
    )


def _seller_stated(listing: ListingRecord) -> dict[str, Any]:
    """Give what the seller says to everyone and is kept in another form."""
    return {
        "status": listing.status.value,
        "asking_price": money(listing.asking_price, listing.currency),
        "included_assets": orjson.loads(listing.included_assets),
        "excluded_assets": orjson.loads(listing.excluded_assets),
        "self_reported": SelfReportedAnswer.model_validate(
            {"label": "self-reported", **orjson.loads(listing.self_reported)},
            by_alias=True,
            by_name=False,
        ),
    }


def _multiples(listing: ListingRecord, proof: VerificationAnswer) -> MultiplesAnswer:
    """Compare the price with a year's verified revenue and with the profit the seller reports."""
    profit = orjson.loads(listing.self_reported).get("ttmProfit") or {}
    price, currency = listing.asking_price, listing.currency
    return MultiplesAnswer(
        annualised_revenue=_ratio(price, currency, proof.annualised, proof.currency),
        self_reported_profit=_ratio(price, currency, profit.get("amount"), profit.get("currency")),
    )


def _ratio(
    price: int | None, currency: str | None, base: int | None, base_currency: str | None
) -> float | None:
    if price is None or base is None or base <= 0 or currency != base_currency:
        return None
    return round(price / base, 2)
