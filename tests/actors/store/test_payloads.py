"""What is kept of the platform's bodies, and what never is."""

import hashlib
import hmac
import json
import re
from collections.abc import Iterator
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

import orjson
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.golden.cases import BESIDE
from tolsey.actors.bodies import Unreadable
from tolsey.actors.store.deliveries import events
from tolsey.actors.store.deliveries.identity import pseudonym, rehashed
from tolsey.actors.store.deliveries.messages import Delivery, OrderChanged, RefundCreated
from tolsey.actors.store.deliveries.reading import Reading
from tolsey.actors.store.deliveries.topics import REASONS, TOPICS
from tolsey.actors.store.state import StoreState
from tolsey.runtime.codec import decode, encode
from tolsey.storage.records.commerce.connection import Connection, ShopProfile
from tolsey.storage.records.commerce.deliveries import CommerceOrder

SAMPLES = BESIDE / "commerce" / "webhooks"
CATALOGUE = SAMPLES.parent / "topic_catalogue.json"
needs_samples = pytest.mark.skipif(not SAMPLES.is_dir(), reason="the shared data are not here")

NOON = datetime(2026, 7, 1, 12, tzinfo=UTC)
SHOP = "a.myshopify.com"
KEY = b"k" * 32
PERSONAL = re.compile(
    r"(e?mail|phone|first_name|last_name|address\d|zip|shop_owner|city|(?<!_)company|latitude|note)$"
)


def reading(topic: str = "orders/create", identity: bytes | None = KEY) -> Reading:
    return Reading(
        "store_1",
        identity,
        Delivery(id="d1", topic=topic, shop_domain=SHOP, at=NOON, event_id="e1", triggered_at=NOON),
    )


def order_said(**fields: Any) -> OrderChanged:
    body = {"id": 820982911946154508, "currency": "USD", "total_price": "404.95", **fields}
    message = TOPICS["orders/create"].read(body, reading())
    assert isinstance(message, OrderChanged)
    return message


def order(**fields: Any) -> CommerceOrder:
    return order_said(**fields).order


def personal_texts(value: Any, name: str = "") -> Iterator[str]:
    """Walk a body for the texts that say who someone is."""
    if isinstance(value, dict):
        for key, child in value.items():
            people = key in {"billing_address", "shipping_address", "default_address", "customer"}
            if people and isinstance(child, dict) and child.get("name"):
                yield child["name"]
            yield from personal_texts(child, key)
    elif isinstance(value, list):
        for child in value:
            yield from personal_texts(child, name)
    elif isinstance(value, str) and len(value) > 2 and PERSONAL.search(name):
        yield value


def test_the_catalogue_has_24_topics_each_with_its_reason() -> None:
    assert len(TOPICS) == 24
    assert all(len(reason) > 10 and reason.endswith(".") for reason in REASONS.values())
    assert not any(topic.startswith(("checkouts/", "carts/")) for topic in TOPICS)


@needs_samples
def test_the_catalogue_is_the_platforms_and_names_scopes_that_grant_it() -> None:
    published = {row["topic"]: row for row in json.loads(CATALOGUE.read_text())}
    for name, topic in TOPICS.items():
        scopes = published[name]["access_scopes"] or []
        assert (topic.scope is None) == (not scopes), name
        if topic.scope is not None:
            assert topic.scope.removeprefix("read_") in scopes, name


@needs_samples
@pytest.mark.parametrize("topic", TOPICS)
def test_every_documented_body_is_read_and_nobody_in_it_can_be_recognised(topic: str) -> None:
    body = orjson.loads((SAMPLES / f"{topic.replace('/', '__')}.json").read_bytes())
    message = TOPICS[topic].read(body, reading(topic))
    state = StoreState(
        store_id="store_1",
        organization_id="org_1",
        connection=Connection(
            store_id="store_1", shop_domain=SHOP, status="active", connected_at=NOON
        ),
        shop=ShopProfile(
            store_id="store_1", shop_domain=SHOP, facts_at=datetime(2020, 1, 1, tzinfo=UTC)
        ),
    )
    handler = {
        "AppUninstalled": events.app_uninstalled,
        "ScopesChanged": events.scopes_changed,
        "ShopUpdated": events.shop_updated,
        "DomainCreated": events.domain_created,
        "ThemePublished": events.theme_published,
        "BulkFinished": events.bulk_finished,
        "OrderEdited": events.order_edited,
    }.get(type(message).__name__)
    if handler is not None:
        decision = handler(state, message)  # type: ignore[operator]
    else:
        row = next(value for name, value in asdict(message).items() if name != "delivery")  # type: ignore[call-overload]
        decision = events.keep(state, message, row)  # type: ignore[arg-type]

    assert decision.reply == "applied"
    assert decode(type(message).__name__, "store", encode(message)) == message
    kept = encode(message) + repr(decision)
    for text in personal_texts(body):
        assert text not in kept


def test_identifiers_beyond_two_to_the_53_are_exact() -> None:
    assert order().order_id == 820982911946154508


@pytest.mark.parametrize(
    ("currency", "amount", "minor"),
    [
        ("USD", "404.95", 40495),
        ("USD", 89.99, 8999),
        ("JPY", "1200", 1200),
        ("JPY", "1200.0", 1200),
        ("KWD", "1.234", 1234),
        ("USD", "-3.10", -310),
        ("USD", None, None),
        (None, "1.00", None),
    ],
)
def test_money_becomes_minor_units_of_its_currency(
    currency: str | None, amount: Any, minor: int | None
) -> None:
    assert order(currency=currency, total_price=amount).total_minor == minor


@pytest.mark.parametrize(
    "fields",
    [
        {"id": None},
        {"id": "820982911946154508"},
        {"id": 2**63},
        {"id": True},
        {"id": 1.5},
        {"total_price": "example string"},
        {"total_price": "NaN"},
        {"total_price": "1E+999999999"},
        {"total_price": []},
        {"currency": "usd"},
        {"currency": 5},
        {"updated_at": "2021-12-31T19:00:00"},
        {"updated_at": "0001-01-01T00:00:00+14:00"},
        {"updated_at": "yesterday"},
        {"test": "yes"},
        {"customer": []},
        {"customer": {"email": 5}},
        {"customer": {"id": "x"}},
        {"note_attributes": {"name": "x"}},
        {"note_attributes": ["x"]},
        {"tags": ["a"]},
    ],
    ids=str,
)
def test_a_field_that_is_not_as_documented_is_named(fields: dict[str, Any]) -> None:
    with pytest.raises(Unreadable):
        order(**fields)


def test_the_empty_body_that_the_platform_once_documented_is_unreadable() -> None:
    with pytest.raises(Unreadable):
        TOPICS["inventory_levels/update"].read({}, reading())


def test_nul_characters_become_replacement_characters() -> None:
    kept = order(name="#1\0", note_attributes=[{"name": "gift\0", "value": 7}], tags="a\0")

    assert kept.name == "#1\ufffd"
    assert json.loads(kept.metadata) == {
        "tags": "a\ufffd",
        "noteAttributes": [{"name": "gift\ufffd", "value": "7"}],
    }


def test_free_text_stays_out_of_the_audit_row() -> None:
    body = {"id": 1, "tags": "call Bob", "note_attributes": [{"name": "door", "value": "1234"}]}
    message = TOPICS["orders/create"].read(body, reading())

    assert isinstance(message, OrderChanged)
    assert "Bob" not in message.audit
    assert "1234" not in message.audit


def test_a_buyer_is_known_by_the_account_then_the_checkout_then_the_id() -> None:
    both = order(customer={"id": 7, "email": " John@Example.com"}, email="jon@example.com")
    guest = order(customer=None, email="jon@example.com")
    unnamed = order(customer={"id": 7, "email": None}, email=None)

    assert both.customer_hash == pseudonym(KEY, "john@example.com", 7)
    assert guest.customer_hash == pseudonym(KEY, "jon@example.com", None)
    assert unnamed.customer_hash == pseudonym(KEY, None, 7)
    assert order(customer=None).customer_hash is None
    assert len({both.customer_hash, guest.customer_hash, unnamed.customer_hash}) == 3


def test_the_same_buyer_has_another_name_in_another_store() -> None:
    one, other = pseudonym(b"a" * 32, "x@example.com", 1), pseudonym(b"b" * 32, "x@example.com", 1)

    assert one is not None
    assert other is not None
    assert re.fullmatch("s1:[0-9a-f]{64}", one)
    assert one != other


def test_an_older_digest_leads_to_the_name_that_the_address_has() -> None:
    digest = hashlib.sha256(b"x@example.com").hexdigest()
    keyed = hmac.new(KEY, f"customer:v1:{digest}".encode(), "sha256").hexdigest()

    assert rehashed(KEY, digest) == f"s1:{keyed}" == pseudonym(KEY, " X@Example.com", 1)


def test_a_store_without_its_key_names_nobody() -> None:
    body = {"id": 5, "email": "x@example.com"}
    message = TOPICS["customers/create"].read(body, reading("customers/create", None))

    assert message.customer.email_hash is None  # type: ignore[attr-defined]


def test_a_refund_is_what_its_successful_transactions_gave_back() -> None:
    def row(amount: str, status: str = "success", kind: str = "refund") -> dict[str, str]:
        return {"amount": amount, "status": status, "kind": kind, "currency": "EUR"}

    body = {
        "id": 1,
        "order_id": 2,
        "transactions": [row("75.00"), row("10.00"), row("5.00", "failure"), row("1", kind="void")],
    }
    message = TOPICS["refunds/create"].read(body, reading("refunds/create"))

    assert isinstance(message, RefundCreated)
    assert (message.refund.currency, message.refund.amount_minor) == ("EUR", 8500)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64) | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=10,
)
FIELDS = [
    "id", "updated_at", "created_at", "currency", "total_price", "customer", "email", "tags",
    "note_attributes", "order_id", "order_edit", "transactions", "refund_line_items",
    "total_duties_set", "variants", "variant_gids", "inventory_item_id", "location_id",
    "available", "current", "host", "admin_graphql_api_id", "completed_at", "test", "name",
]  # fmt: skip


@given(topic=st.sampled_from(list(TOPICS)), body=st.dictionaries(st.sampled_from(FIELDS), JSON))
@example(topic="app/uninstalled", body={"id": 2**64})
def test_any_body_is_read_or_refused_by_name(topic: str, body: dict[str, Any]) -> None:
    try:
        message = TOPICS[topic].read({"id": 1, **body}, reading(topic))
    except Unreadable:
        pass
    else:
        assert "\0" not in repr(message)
