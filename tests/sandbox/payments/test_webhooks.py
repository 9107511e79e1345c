import time

import orjson
import pytest
import stripe

from tests.sandbox.payments.stage import (
    NOW,
    SECRET,
    STRIPE,
    Receiver,
    Shop,
    opened,
)
from tolsey.sandbox.payments.account.webhooks import Webhooks
from tolsey.sandbox.payments.processor import Processor
from tolsey.sandbox.server import listening

pytestmark = STRIPE


async def test_events_are_signed_over_the_raw_bytes(shop: Shop, receiver: Receiver) -> None:
    made = await shop.client.v1.customers.create_async({"name": "Ümit"})
    await shop.processor.webhooks.settled()
    (headers, body), *_ = receiver.got
    event = stripe.Webhook.construct_event(body, headers["stripe-signature"], SECRET)
    assert event.type == "customer.created"
    assert event.data.object["id"] == made.id
    assert event.api_version == stripe.api_version
    assert event.request
    assert event.request.idempotency_key
    with pytest.raises(stripe.SignatureVerificationError):
        stripe.WebhookSignature.verify_header(
            body.decode() + " ", headers["stripe-signature"], SECRET, 300
        )


async def test_every_secret_that_is_valid_signs(shop: Shop, receiver: Receiver) -> None:
    endpoint = next(shop.processor.platform.books.each("webhook_endpoint"))
    shop.processor.set_secrets(endpoint["id"], "whsec_new", SECRET)
    await shop.client.v1.customers.create_async({})
    await shop.processor.webhooks.settled()
    headers, body = receiver.got[0]
    assert headers["stripe-signature"].count("v1=") == 2
    for secret in ("whsec_new", SECRET):
        assert stripe.WebhookSignature.verify_header(
            body.decode(), headers["stripe-signature"], secret, 300
        )


async def test_an_old_signature_can_be_sent(shop: Shop, receiver: Receiver) -> None:
    shop.processor.webhooks.time_offset = -600
    await shop.client.v1.customers.create_async({})
    await shop.processor.webhooks.settled()
    headers, body = receiver.got[0]
    assert int(headers["stripe-signature"][2:].split(",")[0]) <= time.time() - 599
    with pytest.raises(stripe.SignatureVerificationError, match="outside the tolerance"):
        stripe.WebhookSignature.verify_header(
            body.decode(), headers["stripe-signature"], SECRET, 300
        )


async def test_a_delivery_that_fails_is_tried_again(shop: Shop, receiver: Receiver) -> None:
    receiver.answers = [500, 503, 200]
    await shop.client.v1.customers.create_async({})
    await shop.processor.webhooks.settled()
    (delivery,) = shop.processor.webhooks.log
    assert delivery.statuses == [500, 503, 200]
    assert len({body for _, body in receiver.got}) == 1


async def test_what_was_never_accepted_is_found_in_the_list(shop: Shop, receiver: Receiver) -> None:
    receiver.answers = [500] * 9
    lost = await shop.client.v1.customers.create_async({})
    await shop.processor.webhooks.settled()
    await shop.client.v1.customers.create_async({})
    await shop.processor.webhooks.settled()
    events = await shop.client.v1.events.list_async(
        {"delivery_success": False, "types": ["customer.created"]}
    )
    assert [event.data.object["id"] for event in events.data] == [lost.id]


async def test_events_come_twice_and_out_of_order() -> None:
    webhooks = Webhooks(repeats=0.5, reorders=0.5, seed=3)
    processor = Processor(now=NOW, frozen_clock=True, webhooks=webhooks)
    receiver = Receiver()
    async with opened(processor) as shop, listening(receiver) as port:
        processor.open_endpoint(f"http://127.0.0.1:{port}/", SECRET)
        webhooks.pause()
        session = await shop.credits()
        await shop.pay(session.url)
        webhooks.resume()
        await webhooks.settled()
        made = [event["id"] for event in processor.platform.books.each("event")]
    got = [event["id"] for event in receiver.events]
    assert set(got) == set(made)
    assert len(got) > len(made)
    assert list(dict.fromkeys(got)) != made


async def test_recorded_bytes_can_be_sent_as_they_are(shop: Shop, receiver: Receiver) -> None:
    body = b'{"object": "v2.core.event",  "id": "evt_thin"}'
    shop.processor.deliver(body)
    await shop.processor.webhooks.settled()
    headers, got = receiver.got[0]
    assert got == body
    assert stripe.WebhookSignature.verify_header(
        body.decode(), headers["stripe-signature"], SECRET, 300
    )


async def test_an_endpoint_tells_its_secret_once(shop: Shop, receiver: Receiver) -> None:
    made = await shop.client.v1.webhook_endpoints.create_async(
        {"url": receiver.uri, "enabled_events": ["customer.updated"], "connect": False}
    )
    assert made.secret
    again = await shop.client.v1.webhook_endpoints.retrieve_async(made.id)
    assert not hasattr(again, "secret")
    customer = await shop.client.v1.customers.create_async({"name": "A"})
    await shop.client.v1.customers.update_async(customer.id, {"name": "B"})
    await shop.processor.webhooks.settled()
    assert sorted(receiver.types) == ["customer.created", "customer.updated", "customer.updated"]
    updated = orjson.loads(receiver.got[-1][1])
    assert updated["data"]["previous_attributes"] == {"name": "A"}


async def test_an_endpoint_may_speak_an_older_version(shop: Shop, receiver: Receiver) -> None:
    await shop.client.v1.webhook_endpoints.create_async(
        {"url": receiver.uri, "enabled_events": ["*"], "api_version": "2025-03-31.basil"}
    )
    await shop.client.v1.customers.create_async({})
    await shop.processor.webhooks.settled()
    versions = {event["api_version"] for event in receiver.events}
    assert versions == {"2025-03-31.basil", stripe.api_version}
