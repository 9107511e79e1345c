"""What is wrong with a store is said in words, with what to do; what is well says nothing."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import orjson
import pytest

from tolsey.http.layout.standings import Want, by_urgency
from tolsey.http.selling.proofs import wanted_by_listing
from tolsey.http.stores.health import connection_of, wanted_by_store, webhooks_of
from tolsey.storage.commerce.connections import StoreParts
from tolsey.storage.commerce.stores import StoreRow
from tolsey.storage.records.commerce.connection import (
    DISCONNECTED,
    Connection,
    ConnectionStatus,
    ShopProfile,
)
from tolsey.storage.records.selling.listing import (
    COMMERCE,
    PAYMENTS,
    ListingRecord,
    ListingStatus,
    VerificationRecord,
)
from tolsey.storage.records.selling.listing import VerificationState as State
from tolsey.storage.selling.listings import ListingView, ProofView

AT = datetime(2026, 11, 22, 12, tzinfo=UTC)
STORE = StoreRow(id="store_1", organization_id="org_1", name="Ferncroft Kettles", created_at=AT)
CONNECTION = Connection(
    store_id="store_1",
    shop_domain="kettles.myshopify.com",
    status=ConnectionStatus.ACTIVE,
    connected_at=AT,
)
SHOP = ShopProfile(store_id="store_1", shop_domain="kettles.myshopify.com", facts_at=AT)
LISTING = ListingRecord(
    id="listing_1",
    organization_id="org_1",
    slug="kettles",
    title="Kettles",
    status=ListingStatus.ACTIVE,
    created_by="usr_1",
    created_at=AT,
    seller_active_at=AT,
)
GOOD = VerificationRecord(
    listing_id="listing_1",
    provider=COMMERCE,
    state=State.VERIFIED,
    since=AT,
    shop_domain="kettles.myshopify.com",
    accepted_at=AT,
    last_ok_at=AT,
    verified_at=AT,
)
NONE = VerificationRecord(listing_id="listing_1", provider=PAYMENTS)


def parts(connection: Connection | None = CONNECTION, **topics: str) -> StoreParts:
    answered = orjson.dumps({name.replace("_", "/", 1): became for name, became in topics.items()})
    return StoreParts(
        organization_id="org_1",
        connection=connection,
        shop=replace(SHOP, subscriptions=answered.decode()),
    )


def listed(record: VerificationRecord, **changed: object) -> ListingView:
    listing = replace(LISTING, **changed)  # type: ignore[arg-type]  # fields of the record
    return ListingView(listing, (ProofView(record), ProofView(NONE)))


@pytest.mark.parametrize(
    ("connection", "word", "tone", "said"),
    [
        (None, "Not connected", "you", "Connect Ferncroft Kettles to its shop"),
        (
            replace(CONNECTION, status=ConnectionStatus.REVOKED, uninstalled_at=AT),
            "App removed",
            "bad",
            "The app was removed from kettles.myshopify.com",
        ),
        (
            replace(CONNECTION, status=DISCONNECTED),
            "Disconnected",
            "you",
            "kettles.myshopify.com is disconnected",
        ),
        (
            replace(CONNECTION, refused_at=AT),
            "Token refused",
            "bad",
            "kettles.myshopify.com refuses a new access token",
        ),
    ],
)
def test_a_connection_that_is_no_use_is_said_with_where_it_is_mended(
    connection: Connection | None, word: str, tone: str, said: str
) -> None:
    found = parts(connection)
    (want,) = wanted_by_store(STORE, found)
    assert connection_of(found).word == word
    assert (want.tone, want.title, want.address) == (tone, said, "/stores/store_1/connect")
    assert webhooks_of(found).word == "Nothing is delivered"


def test_topics_that_are_not_delivered_are_named_with_the_permissions_they_need() -> None:
    found = parts(orders_paid="missing_scope", products_update="missing_scope", shop_update="ok")
    (want,) = wanted_by_store(STORE, found)
    assert webhooks_of(found).word == "2 topics are missing"
    assert "orders/paid, products/update" in want.title
    assert "read_orders, read_products." in want.advice


def test_a_store_that_works_wants_nothing() -> None:
    found = parts(orders_paid="ok", shop_update="created")
    assert list(wanted_by_store(STORE, found)) == []
    assert (connection_of(found).word, webhooks_of(found).word) == ("Works", "All 2 topics")
    assert webhooks_of(parts()).word == "Being set up"
    assert list(wanted_by_listing(listed(GOOD), AT)) == []


@pytest.mark.parametrize(
    ("changed", "tone", "advice"),
    [
        ({"state": State.TOKEN_UNAVAILABLE}, "bad", "Give the present one."),
        (
            {"state": State.NEEDS_PERMISSION, "missing_permission": "read_orders"},
            "bad",
            "Grant read_orders, then give the key anew.",
        ),
        ({"state": State.FAILED}, "bad", "Give the key anew"),
        ({"state": State.SUSPENDED, "suspended_for": "development_store"}, "bad", "trial plan"),
        ({"last_ok_at": AT - timedelta(hours=25)}, "warn", "We try again every hour"),
    ],
)
def test_a_proof_that_ended_is_said_with_what_brings_it_back(
    changed: dict[str, object], tone: str, advice: str
) -> None:
    record = replace(GOOD, **changed)  # type: ignore[arg-type]  # fields of the record
    (want,) = wanted_by_listing(listed(record), AT)
    assert want.tone == tone
    assert advice in want.advice
    assert want.address == "/selling/listing_1"


def test_a_listing_wants_a_proof_first_and_then_to_be_seen() -> None:
    bare = replace(NONE, provider=COMMERCE)
    (want,) = wanted_by_listing(listed(bare, status=ListingStatus.DRAFT), AT)
    assert want.title == "Prove the revenue of Kettles"
    (want,) = wanted_by_listing(listed(GOOD, status=ListingStatus.DRAFT), AT)
    assert want.title == "Show Kettles to the public"
    assert list(wanted_by_listing(listed(bare, status=ListingStatus.WITHDRAWN), AT)) == []


def test_what_is_broken_stands_before_what_one_may_do() -> None:
    wants = [
        Want(tone=tone, title=tone, advice="", subject="")
        for tone in ("wait", "you", "bad", "warn")
    ]
    assert [one.title for one in by_urgency(wants)] == ["bad", "warn", "you", "wait"]
