"""Webhook deliveries: signed, retried, repeated and reordered, over real HTTP."""

import base64
import hashlib
import hmac
import math
import random
import uuid
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import anyio
import httpx
import orjson

from tolsey.sandbox.commerce.shop.state import Shop
from tolsey.sandbox.commerce.shop.subscriptions import Subscription, enum_of

RETRIES = 8
CONNECT_TIMEOUT_SECONDS = 1.0
TIMEOUT_SECONDS = 5.0
# Eight waits that double and together last the documented four hours.
_FIRST_WAIT_SECONDS = 4 * 3600 / (2**RETRIES - 1)


def sign(secret: str, body: bytes) -> str:
    """Sign raw bytes as the platform does: base64 of HMAC-SHA256 under the app's secret."""
    return base64.b64encode(hmac.new(secret.encode(), body, hashlib.sha256).digest()).decode()


@dataclass(slots=True)
class Delivery:
    """One message to one address; retries and repeats are the same delivery."""

    shop: Shop = field(repr=False)
    topic: str
    uri: str
    headers: dict[str, str] = field(repr=False)
    body: bytes = field(repr=False)
    subscription: Subscription | None = None
    statuses: list[int] = field(default_factory=list)

    @property
    def webhook_id(self) -> str:
        """The id a receiver deduplicates by."""
        return self.headers["X-Shopify-Webhook-Id"]

    @property
    def event_id(self) -> str:
        """The id all deliveries of one merchant action share."""
        return self.headers["X-Shopify-Event-Id"]


@dataclass(slots=True)
class Deliveries:
    """The queue of deliveries and how unruly it is.

    `retry_scale` shortens the four hours of retries; `repeats` and `reorders` are chances, drawn
    from a generator with a fixed seed. One worker keeps the order that `reorders` leaves.
    """

    retry_scale: float = 0.0
    repeats: float = 0.0
    reorders: float = 0.0
    seed: int = 1
    workers: int = 4
    prefix: str = "X-Shopify-"
    log: list[Delivery] = field(default_factory=list, repr=False)
    removed: list[Subscription] = field(default_factory=list)
    _queue: deque[Delivery] = field(default_factory=deque, repr=False)
    _unsettled: int = 0
    _paused: bool = False
    _changed: anyio.Event = field(default_factory=anyio.Event, repr=False)
    _random: random.Random = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)  # noqa: S311 - repeatable trouble, no secret

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
            self.send(shop, topic, subscription.uri, raw, event_id=event, at=at, to=subscription)
        return len(found)

    def send(
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
        delivery = Delivery(shop, topic, uri, headers, body, to)
        self.log.append(delivery)
        self._enqueue(delivery)
        return delivery

    def repeat(self, delivery: Delivery) -> None:
        """Send a delivery again under the same ids."""
        self._enqueue(delivery)

    def pause(self) -> None:
        """Hold deliveries back, as an outage of the platform does."""
        self._paused = True

    def resume(self) -> None:
        """Send what was held back."""
        self._paused = False
        self._notify()

    async def settled(self) -> None:
        """Wait until every delivery was accepted or given up."""
        while self._unsettled:
            await self._changed.wait()

    async def run(self) -> None:
        """Send what is queued until cancelled."""
        timeout = httpx.Timeout(TIMEOUT_SECONDS, connect=CONNECT_TIMEOUT_SECONDS)
        async with (
            httpx.AsyncClient(timeout=timeout, trust_env=False) as client,
            anyio.create_task_group() as tasks,
        ):
            for _ in range(self.workers):
                tasks.start_soon(self._work, client, tasks)

    async def _work(self, client: httpx.AsyncClient, tasks: anyio.abc.TaskGroup) -> None:
        while True:
            while self._paused or not self._queue:
                await self._changed.wait()
            delivery = self._next()
            accepted = await self._attempt(client, delivery)
            if not accepted and len(delivery.statuses) <= RETRIES:
                self._unsettled += 1
                tasks.start_soon(self._retry, delivery)
            elif not accepted:
                self._give_up(delivery)
            elif self._random.random() < self.repeats:
                self._enqueue(delivery)
            self._unsettled -= 1
            self._notify()

    def _next(self) -> Delivery:
        """Take the oldest delivery, or by chance a later one."""
        if len(self._queue) > 1 and self._random.random() < self.reorders:
            self._queue.rotate(-self._random.randrange(1, len(self._queue)))
        return self._queue.popleft()

    async def _attempt(self, client: httpx.AsyncClient, delivery: Delivery) -> bool:
        headers = {
            name.replace("X-Shopify-", self.prefix): value
            for name, value in delivery.headers.items()
        }
        try:
            with anyio.fail_after(TIMEOUT_SECONDS):
                answer = await client.post(delivery.uri, content=delivery.body, headers=headers)
            status = answer.status_code
        except (httpx.HTTPError, TimeoutError):
            status = 0
        delivery.statuses.append(status)
        return 200 <= status < 300  # noqa: PLR2004 - the class of successful answers

    async def _retry(self, delivery: Delivery) -> None:
        wait = _FIRST_WAIT_SECONDS * math.pow(2, len(delivery.statuses) - 1)
        await anyio.sleep(wait * self.retry_scale)
        self._enqueue(delivery)
        self._unsettled -= 1

    def _give_up(self, delivery: Delivery) -> None:
        """After eight failed retries the platform removes the subscription."""
        found = delivery.subscription
        if found is not None and delivery.shop.subscriptions.pop(found.id, None) is not None:
            self.removed.append(found)

    def _enqueue(self, delivery: Delivery) -> None:
        self._queue.append(delivery)
        self._unsettled += 1
        self._notify()

    def _notify(self) -> None:
        changed, self._changed = self._changed, anyio.Event()
        changed.set()
