"""Webhook deliveries of events, signed over the raw bytes."""

import hashlib
import hmac
import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from tolsey.sandbox import deliveries


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


@dataclass(slots=True, kw_only=True)
class Delivery(deliveries.Delivery):
    """One event to one endpoint."""

    event_id: str
    type: str
    endpoint: Endpoint


@dataclass(slots=True)
class Webhooks(deliveries.Outgoing[Delivery]):
    """The deliveries of all accounts.

    `retry_seconds` is the first wait. The signature's time is the machine's plus `time_offset`,
    since a receiver compares it with its own clock.
    """

    retry_seconds: float = 0.0
    time_offset: int = 0

    @property
    def first_wait_seconds(self) -> float:
        """The wait that was chosen."""
        return self.retry_seconds

    def failed(self, event_id: str) -> bool:
        """Tell whether an event is still not accepted by an endpoint."""
        return any(d.event_id == event_id and not d.accepted for d in self.log)

    def headers(self, delivery: Delivery) -> Mapping[str, str]:
        """Sign the delivery anew, as each attempt has its own time."""
        at = int(time.time()) + self.time_offset
        return {
            "Content-Type": "application/json; charset=utf-8",
            "User-Agent": "Stripe/1.0 (+https://stripe.com/docs/webhooks)",
            "Stripe-Signature": sign(delivery.endpoint.secrets, delivery.body, at),
        }
