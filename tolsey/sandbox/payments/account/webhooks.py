"""Webhook deliveries: signed over the raw bytes, retried, repeated and reordered, over real HTTP."""

import asyncio
import hashlib
import hmac
import random
import time
from collections import deque
from dataclasses import dataclass, field

import httpx

RETRIES = 8
TIMEOUT_SECONDS = 5.0


def sign(secrets: list[str], body: bytes, at: int) -> str:
    """Give the `Stripe-Signature` of a body: one `v1` for each secret that is still valid."""
    signed = f"{at}.".encode() + body
    marks = [hmac.new(s.encode(), signed, hashlib.sha256).hexdigest() for s in secrets]
    return ",".join([f"t={at}", *(f"v1={mark}" for mark in marks)])


@dataclass(slots=True)
class Endpoint:
    """An address that takes events, with the secrets that sign for it."""

    id: str
    secrets: list[str] = field(repr=False)


@dataclass(slots=True)
class Delivery:
    """One event to one endpoint; retries and repeats are the same delivery."""

    url: str
    event_id: str
    type: str
    body: bytes = field(repr=False)
    endpoint: Endpoint
    statuses: list[int] = field(default_factory=list)

    @property
    def accepted(self) -> bool:
        """Tell whether the last attempt was answered with 2xx."""
        return bool(self.statuses) and 200 <= self.statuses[-1] < 300  # noqa: PLR2004 - the class of answers


@dataclass(slots=True)
class Webhooks:
    """The queue of deliveries and how unruly it is.

    `repeats` and `reorders` are chances, drawn from a generator with a fixed seed;
    `retry_seconds` is the first wait, doubled for each further one. The signature's time is the
    machine's plus `time_offset`, since a receiver compares it with its own clock.
    """

    retry_seconds: float = 0.0
    repeats: float = 0.0
    reorders: float = 0.0
    seed: int = 1
    time_offset: int = 0
    log: list[Delivery] = field(default_factory=list, repr=False)
    _queue: deque[Delivery] = field(default_factory=deque, repr=False)
    _unsettled: int = 0
    _paused: bool = False
    _changed: asyncio.Event = field(default_factory=asyncio.Event, repr=False)
    _random: random.Random = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)  # noqa: S311 - repeatable trouble, no secret

    def send(self, delivery: Delivery) -> None:
        """Queue a delivery."""
        self.log.append(delivery)
        self._enqueue(delivery)

    def repeat(self, delivery: Delivery) -> None:
        """Send a delivery again with the same event."""
        self._enqueue(delivery)

    def failed(self, event_id: str) -> bool:
        """Tell whether an event is still not accepted by an endpoint."""
        return any(d.event_id == event_id and not d.accepted for d in self.log)

    def pause(self) -> None:
        """Hold deliveries back, as an outage does; what is queued meanwhile can be reordered."""
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
        async with (
            httpx.AsyncClient(timeout=TIMEOUT_SECONDS, trust_env=False) as client,
            asyncio.TaskGroup() as tasks,
        ):
            while True:
                while self._paused or not self._queue:
                    await self._changed.wait()
                delivery = self._next()
                await self._attempt(client, delivery)
                if not delivery.accepted and len(delivery.statuses) <= RETRIES:
                    self._unsettled += 1
                    tasks.create_task(self._retry(delivery))
                elif delivery.accepted and self._random.random() < self.repeats:
                    self._enqueue(delivery)
                self._unsettled -= 1
                self._notify()

    def _next(self) -> Delivery:
        """Take the oldest delivery, or by chance a later one."""
        if len(self._queue) > 1 and self._random.random() < self.reorders:
            self._queue.rotate(-self._random.randrange(1, len(self._queue)))
        return self._queue.popleft()

    async def _attempt(self, client: httpx.AsyncClient, delivery: Delivery) -> None:
        at = int(time.time()) + self.time_offset
        headers = {
            "Content-Type": "application/json; charset=utf-8",
            "User-Agent": "Stripe/1.0 (+https://stripe.com/docs/webhooks)",
            "Stripe-Signature": sign(delivery.endpoint.secrets, delivery.body, at),
        }
        try:
            answer = await client.post(delivery.url, content=delivery.body, headers=headers)
            delivery.statuses.append(answer.status_code)
        except httpx.HTTPError:
            delivery.statuses.append(0)

    async def _retry(self, delivery: Delivery) -> None:
        await asyncio.sleep(self.retry_seconds * 2 ** (len(delivery.statuses) - 1))
        self._enqueue(delivery)
        self._unsettled -= 1

    def _enqueue(self, delivery: Delivery) -> None:
        self._queue.append(delivery)
        self._unsettled += 1
        self._notify()

    def _notify(self) -> None:
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()
