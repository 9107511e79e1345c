import base64
import hashlib
import hmac
import json
from pathlib import Path
from typing import Any

import orjson
import pytest

from tolsey.sandbox.commerce.course import compliance
from tolsey.sandbox.commerce.course.life import Item
from tolsey.sandbox.commerce.course.tour import tour
from tolsey.sandbox.commerce.platform import Platform
from tolsey.sandbox.commerce.shop.state import ShopSpec
from tolsey.sandbox.commerce.webhooks.deliveries import sign

SHOP = "demo.myshopify.com"
TOPICS = [
    "APP_SCOPES_UPDATE",
    "APP_UNINSTALLED",
    "BULK_OPERATIONS_FINISH",
    "CUSTOMERS_CREATE",
    "CUSTOMERS_DELETE",
    "CUSTOMERS_UPDATE",
    "DOMAINS_CREATE",
    "FULFILLMENTS_CREATE",
    "FULFILLMENTS_UPDATE",
    "INVENTORY_LEVELS_UPDATE",
    "ORDERS_CANCELLED",
    "ORDERS_CREATE",
    "ORDERS_DELETE",
    "ORDERS_EDITED",
    "ORDERS_FULFILLED",
    "ORDERS_PAID",
    "ORDERS_PARTIALLY_FULFILLED",
    "ORDERS_UPDATED",
    "PRODUCTS_CREATE",
    "PRODUCTS_DELETE",
    "PRODUCTS_UPDATE",
    "REFUNDS_CREATE",
    "SHOP_UPDATE",
    "THEMES_PUBLISH",
]


async def subscribe_all(app: Any, receiver: Any) -> None:
    for topic in TOPICS:
        assert (await app.subscribe(topic, receiver.uri))["userErrors"] == []


async def test_a_delivery_is_signed_over_its_raw_bytes_and_says_what_it_is(
    app: Any, receiver: Any
) -> None:
    await app.subscribe("ORDERS_CREATE", receiver.uri)
    app.platform.deliver(SHOP, "orders/create", b'{ "id": 820982911946154508 }')
    await app.platform.deliveries.settled()
    [(headers, body)] = receiver.got
    assert body == b'{ "id": 820982911946154508 }'
    expected = hmac.new(b"sandbox-secret", body, hashlib.sha256).digest()
    assert headers["x-shopify-hmac-sha256"] == base64.b64encode(expected).decode()
    assert headers["x-shopify-topic"] == "orders/create"
    assert headers["x-shopify-shop-domain"] == SHOP
    assert headers["x-shopify-api-version"] == "2026-07"
    assert headers["x-shopify-triggered-at"].startswith("2026-08-01T12:00:00")
    assert headers["x-shopify-webhook-id"] != headers["x-shopify-event-id"]


def test_signatures_agree_with_the_published_vectors(published: Path) -> None:
    found = json.loads((published / "signed_vectors.json").read_text())
    assert len(found["vectors"]) > 20
    for vector in found["vectors"]:
        body = (published / Path(*Path(vector["file"]).parts[1:])).read_bytes()
        assert sign(found["secret"], body) == vector["hmac"]


async def test_one_action_makes_several_deliveries_of_one_event(app: Any, receiver: Any) -> None:
    await subscribe_all(app, receiver)
    app.platform.place_order(SHOP)
    await app.platform.deliveries.settled()
    assert sorted(receiver.topics()) == [
        "customers/create",
        "orders/create",
        "orders/paid",
        "orders/updated",
    ]
    assert len({headers["x-shopify-event-id"] for headers, _ in receiver.got}) == 1
    assert len({headers["x-shopify-webhook-id"] for headers, _ in receiver.got}) == 4


async def test_a_failed_delivery_is_retried_with_the_same_payload(app: Any, receiver: Any) -> None:
    await app.subscribe("SHOP_UPDATE", receiver.uri)
    receiver.answers = [500, 503, 404]
    app.platform.update_shop(SHOP)
    await app.platform.deliveries.settled()
    assert app.platform.deliveries.log[0].statuses == [500, 503, 404, 200]
    assert len({body for _, body in receiver.got}) == 1
    assert len({headers["x-shopify-webhook-id"] for headers, _ in receiver.got}) == 1


async def test_eight_failed_retries_remove_the_subscription(app: Any, receiver: Any) -> None:
    await app.subscribe("SHOP_UPDATE", receiver.uri)
    receiver.answer = 500
    app.platform.update_shop(SHOP)
    await app.platform.deliveries.settled()
    assert app.platform.deliveries.log[0].statuses == [500] * 9
    assert app.platform.shop(SHOP).subscriptions == {}
    assert app.platform.deliveries.removed[0].topic == "SHOP_UPDATE"


async def test_an_address_nobody_answers_counts_as_failed(app: Any) -> None:
    await app.subscribe("SHOP_UPDATE", "http://127.0.0.1:9/hooks")
    app.platform.update_shop(SHOP)
    await app.platform.deliveries.settled()
    assert app.platform.deliveries.log[0].statuses == [0] * 9


async def test_a_repeat_has_the_same_webhook_id(app: Any, receiver: Any) -> None:
    await app.subscribe("SHOP_UPDATE", receiver.uri)
    app.platform.update_shop(SHOP)
    await app.platform.deliveries.settled()
    app.platform.deliveries.repeat(app.platform.deliveries.log[0])
    await app.platform.deliveries.settled()
    ids = [headers["x-shopify-webhook-id"] for headers, _ in receiver.got]
    assert len(ids) == 2
    assert len(set(ids)) == 1


async def test_unruly_deliveries_repeat_and_lose_their_order_but_none_is_lost(
    app: Any, receiver: Any
) -> None:
    deliveries = app.platform.deliveries
    deliveries.repeats, deliveries.reorders = 0.3, 0.5
    await app.subscribe("ORDERS_DELETE", receiver.uri)
    deliveries.pause()
    for number in range(60):
        app.platform.deliver(SHOP, "orders/delete", {"id": number})
    assert receiver.got == []
    deliveries.resume()
    await deliveries.settled()
    numbers = [orjson.loads(body)["id"] for _, body in receiver.got]
    assert set(numbers) == set(range(60))
    assert len(numbers) > 60
    assert numbers != sorted(numbers)


async def test_uninstalling_is_delivered_although_the_token_is_dead(
    app: Any, receiver: Any
) -> None:
    await app.subscribe("APP_UNINSTALLED", receiver.uri)
    app.platform.uninstall(SHOP)
    await app.platform.deliveries.settled()
    assert receiver.topics() == ["app/uninstalled"]
    assert orjson.loads(receiver.got[0][1])["myshopify_domain"] == SHOP


async def test_a_working_day_causes_every_topic_of_the_catalogue(app: Any, receiver: Any) -> None:
    await subscribe_all(app, receiver)
    tour(app.platform, SHOP)
    app.platform.uninstall(SHOP)
    await app.platform.deliveries.settled()
    assert {t.upper().replace("/", "_") for t in receiver.topics()} == set(TOPICS)


async def test_bodies_carry_the_names_of_the_published_samples(
    app: Any, receiver: Any, published: Path
) -> None:
    await subscribe_all(app, receiver)
    tour(app.platform, SHOP)
    await app.platform.deliveries.settled()
    unknown = []
    for headers, body in receiver.got:
        topic = headers["x-shopify-topic"]
        file = published / "webhooks" / f"{topic.replace('/', '__')}.json"
        sample = orjson.loads(file.read_bytes())
        ours = orjson.loads(body)
        unknown += [f"{topic}.{name}" for name in ours.keys() ^ sample.keys()]
        for nested in ("line_items", "refund_line_items", "variants"):
            if ours.get(nested) and sample.get(nested):
                names = ours[nested][0].keys() - sample[nested][0].keys()
                unknown += [f"{topic}.{nested}.{name}" for name in names]
    assert not unknown, str(sorted(set(unknown)))


async def test_privacy_requests_are_signed_by_the_platform_apps_secret(
    app: Any, receiver: Any
) -> None:
    order = app.platform.place_order(SHOP, [Item()])
    secret, uri = "platform-app-secret", receiver.uri
    compliance.request_data(app.platform, SHOP, order.customer.id, uri=uri, secret=secret)
    compliance.redact_customer(app.platform, SHOP, order.customer.id, uri=uri, secret=secret)
    compliance.redact_shop(app.platform, SHOP, uri=uri, secret=secret)
    await app.platform.deliveries.settled()
    bodies = {h["x-shopify-topic"]: (h, body) for h, body in receiver.got}
    for headers, body in bodies.values():
        assert headers["x-shopify-hmac-sha256"] == sign(secret, body)
    assert orjson.loads(bodies["customers/redact"][1])["orders_to_redact"] == [order.id]
    assert set(orjson.loads(bodies["shop/redact"][1])) == {"shop_id", "shop_domain"}


async def test_shops_never_share_ids() -> None:
    platform = Platform()
    one = platform.add_shop(ShopSpec(domain="one.myshopify.com"))
    two = platform.add_shop(ShopSpec(domain="two.myshopify.com"))
    assert one.id != two.id
    assert next(one.ids) != next(two.ids)
    with pytest.raises(ValueError, match="open already"):
        platform.add_shop(ShopSpec(domain="two.myshopify.com"))
