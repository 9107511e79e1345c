"""Listings for the tests of what is decided about them."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from tolsey.actors.listing.messages import RevenueSourceAccepted, SyncReport, SyncSucceeded
from tolsey.actors.listing.state import ListingState, Proof, blank
from tolsey.storage.records.selling.listing import (
    PAYMENTS,
    ListingFields,
    ListingRecord,
    ListingStatus,
    RevenueSource,
    VerificationRecord,
    VerificationState,
)
from tolsey.storage.records.selling.revenue import CurrencyFigures, Measure

NOON = datetime(2026, 7, 1, 12, tzinfo=UTC)
HOUR, DAY = timedelta(hours=1), timedelta(days=1)
ID = "listing_0198c0d2a8f37c41b1c4d7a2e5f60913"
SHOP = "corner.myshopify.com"
ACCOUNT = "acct_1Corner"
FIELDS = ListingFields(title="Corner shop", asking_price=5_000_000, currency="USD")
BLANK = blank(ID)
FIGURES = CurrencyFigures(currency="USD", revenue30d=10_000, mrr=0, annualised=120_000, orders=3)


def drafted(status: ListingStatus = ListingStatus.DRAFT, **changed: Any) -> ListingState:
    listing = ListingRecord(
        title="Corner shop",
        asking_price=5_000_000,
        currency="USD",
        id=ID,
        organization_id="org_1",
        slug="corner-shop-e5f60913",
        status=status,
        created_by="usr_1",
        created_at=NOON,
        seller_active_at=NOON,
    )
    return replace(BLANK, listing=replace(listing, **changed))


def source() -> RevenueSource:
    return RevenueSource(
        listing_id=ID,
        organization_id="org_1",
        provider="commerce",
        shop_domain=SHOP,
        client_id="client",
        sealed_secret="v1.k.sealed",
        connected_by="usr_1",
        connected_at=NOON,
    )


def machine(state: VerificationState, **changed: Any) -> VerificationRecord:
    record = VerificationRecord(
        listing_id=ID,
        state=state,
        since=NOON,
        generation=1,
        shop_domain=SHOP,
        accepted_at=NOON - DAY,
        last_ok_at=NOON,
        verified_at=NOON,
    )
    return replace(record, **changed)


def connected(state: VerificationState, **changed: Any) -> ListingState:
    active = drafted(ListingStatus.ACTIVE)
    return active.proven(Proof(machine(state, **changed), source()))


def also_paid(state: ListingState, paid: VerificationState, **changed: Any) -> ListingState:
    """Let the processor stand beside whatever else proves the listing."""
    record = machine(paid, shop_domain=ACCOUNT, provider=PAYMENTS, **changed)
    return state.proven(Proof(record, replace(source(), provider=PAYMENTS, shop_domain=ACCOUNT)))


def credentials(at: datetime = NOON, shop_domain: str = SHOP) -> RevenueSourceAccepted:
    return RevenueSourceAccepted(
        organization_id="org_1",
        provider="commerce",
        shop_domain=shop_domain,
        client_id="client",
        sealed_secret="v1.k.sealed",
        by="usr_1",
        at=at,
    )


def report(at: datetime, generation: int = 1) -> SyncReport:
    measure = Measure(figures=(FIGURES,), orders=3)
    return SyncReport(
        generation=generation,
        shop_domain=SHOP,
        shop_currency="USD",
        primary_domain="corner.example",
        window_start=at - 30 * DAY,
        window_end=at,
        measure=measure,
    )


def succeeded(at: datetime, generation: int = 1) -> SyncSucceeded:
    return SyncSucceeded(report(at, generation), at)
