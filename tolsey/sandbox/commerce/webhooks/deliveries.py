"""Webhook deliveries of shops: to whom, under which headers, and signed with which secret."""

import base64
import hashlib
import hmac
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, ClassVar

import orjson

from tolsey.sandbox import deliveries
from tolsey.sandbox.commerce.shop.state import Shop
from tolsey.sandbox.commerce.shop.subscriptions import Subscription, enum_of

# Eight waits that double and together last the documented four hours.
_FIRST_WAIT_SECONDS = 4 * 3600 / (2**deliveries.RETRIES - 1)


def sign(secret: str, body: bytes) -> str:
    """Sign raw bytes as the platform does: base64 of HMAC-SHA256 under the app's secret."""
    return base64.b64encode(hmac.new(secret.encode(), body, hashlib.sha256).digest()).decode()


@dataclass(slots=True, kw_only=True)
class Delivery(deliveries.Delivery):
    """One message about a shop to one address."""

    shop: Shop = field(repr=False)
    topic: str
    headers: dict[str, str] = field(repr=False)
    subscription: Subscription | None = None

    @property
    def webhook_id(self) -> str:
        """The id a receiver deduplicates by."""
        return self.headers["X-Shopify-Webhook-Id"]

    @property
    def event_id(self) -> str:
        """The id all deliveries of one merchant action share."""
        return self.headers["X-Shopify-Event-Id"]


@dataclass(slots=True)
class Deliveries(deliveries.Outgoing[Delivery]):
    """The deliveries of all shops; `retry_scale` shortens the four hours of retries."""

    connect_timeout_seconds: ClassVar[float] = 1.0

    workers: int = 4
    retry_scale: float = 0.0
    prefix: str = "X-Shopify-"
    removed: list[Subscription] = field(default_factory=list)

    @property
    def first_wait_seconds(self) -> float:
        """The documented wait, shortened."""
        return _FIRST_WAIT_SECONDS * self.retry_scale

    def publish(
        self,
        shop: Shop,
        topic: str,
        body: Mapping[str, Any] | bytes,
        *,
        event_id: str | None,
        at: datetime,
    ) -> int:
        """Queue one delivery for each subscription to the topic."""
        raw = body if isinstance(body, bytes) else orjson.dumps(body)
        found = [s for s in shop.subscriptions.values() if s.topic == enum_of(topic)]
        event = event_id or str(uuid.uuid4())
        for subscription in found:
            self.tell(shop, topic, subscription.uri, raw, event_id=event, at=at, to=subscription)
        return len(found)

    def tell(
        self,
        shop: Shop,
        topic: str,
        uri: str,
        body: bytes,
        *,
        at: datetime,
        event_id: str | None = None,
        secret: str | None = None,
        to: Subscription | None = None,
    ) -> Delivery:
        """Queue a delivery to any address, as compliance topics are sent without a subscription."""
        headers = {
            "Content-Type": "application/json",
            "X-Shopify-Topic": topic,
            "X-Shopify-Hmac-Sha256": sign(secret or shop.signing_secret, body),
            "X-Shopify-Shop-Domain": shop.domain,
            "X-Shopify-API-Version": to.api_version if to else "2026-07",
            "X-Shopify-Webhook-Id": str(uuid.uuid4()),
            "X-Shopify-Event-Id": event_id or str(uuid.uuid4()),
            "X-Shopify-Triggered-At": at.strftime("%Y-%m-%dT%H:%M:%S.%f000Z"),
        }
        if to is not None and to.name:
            headers["X-Shopify-Name"] = to.name
        delivery = Delivery(
            url=uri, body=body, shop=shop, topic=topic, headers=headers, subscription=to
        )
        self.send(delivery)
        return delivery

    def headers(self, delivery: Delivery) -> Mapping[str, str]:
        """Give the delivery's headers under the family's prefix."""
        return {
            name.replace("X-Shopify-", self.prefix): value
            for name, value in delivery.headers.items()
        }

    def given_up(self, delivery: Delivery) -> None:
        """After eight failed retries the platform removes the subscription."""
        found = delivery.subscription
        if found is not None and delivery.shop.subscriptions.pop(found.id, None) is not None:
            self.removed.append(found)
