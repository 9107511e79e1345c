"""One account of the processor: its books, its keys, its events and where they are sent."""

import copy
from dataclasses import dataclass, field
from typing import Any

import orjson
import stripe

from tolsey.sandbox.clock import Clock
from tolsey.sandbox.payments.account.books import Books, Obj
from tolsey.sandbox.payments.account.keys import Key
from tolsey.sandbox.payments.account.shapes import completed
from tolsey.sandbox.payments.account.webhooks import Delivery, Endpoint, Webhooks

API_VERSION: str = stripe.api_version or ""
"""The version the installed package speaks."""


@dataclass(slots=True)
class Stored:
    """The answer to a request under an idempotency key."""

    fingerprint: tuple[str, str, str]
    status: int
    body: bytes
    at: int


@dataclass(slots=True)
class Request:
    """The request that is being answered, named in the events it causes."""

    id: str | None = None
    idempotency_key: str | None = None


@dataclass(slots=True)
class Merchant:
    """An account with what a test may set on it.

    `seed` makes the ids others than those of another run; `tax_basis_points` is what automatic tax
    adds to exclusive prices; `cards` tells how each payment method behaves; `retry_days` are the
    waits between attempts on an unpaid invoice.
    """

    id: str
    clock: Clock = field(repr=False)
    webhooks: Webhooks = field(repr=False)
    url: str = ""
    platform: bool = False
    seed: str = ""
    tax_basis_points: int = 0
    retry_days: tuple[int, ...] = (3, 5, 7)
    books: Books = field(init=False, repr=False)
    keys: dict[str, Key] = field(default_factory=dict, repr=False)
    endpoints: dict[str, Endpoint] = field(default_factory=dict, repr=False)
    stored: dict[tuple[str, str], Stored] = field(default_factory=dict, repr=False)
    request: Request = field(default_factory=Request, repr=False)
    cards: dict[str, str] = field(default_factory=dict, repr=False)
    lines: dict[str, list[Obj]] = field(default_factory=dict, repr=False)
    waiting_lines: dict[str, list[Obj]] = field(default_factory=dict, repr=False)
    asked: dict[str, Obj] = field(default_factory=dict, repr=False)
    currency_options: dict[str, Obj] = field(default_factory=dict, repr=False)
    """The amounts of each price in other currencies than its own; an answer shows them only expanded."""

    def __post_init__(self) -> None:
        self.books = Books(self.id + self.seed)

    def now(self) -> int:
        """Tell the processor's time in Unix seconds."""
        return int(self.clock.now().timestamp())

    def new(self, kind: str, prefix: str, **fields: Any) -> Obj:
        """Make an object with what all have, and keep it."""
        return self.books.add(self.make(kind, prefix, **fields))

    def make(self, kind: str, prefix: str, **fields: Any) -> Obj:
        """Make an object without keeping it."""
        head = {"id": self.books.new_id(prefix), "object": kind, "created": self.now()}
        return completed({**head, "livemode": False, **fields})

    def emit(
        self, type_: str, obj: Obj, previous: Obj | None = None, *, account: str | None = None
    ) -> Obj:
        """Record an event with the object as it is now, and send it to the endpoints for it."""
        data: Obj = {"object": copy.deepcopy(obj)}
        if previous is not None:
            data["previous_attributes"] = previous
        asked = {"id": self.request.id, "idempotency_key": self.request.idempotency_key}
        event = self.make(
            "event", "evt", api_version=API_VERSION, type=type_, data=data, request=asked
        )
        if account is not None:
            event["account"] = account
        takers = [
            e for e in self.books.each("webhook_endpoint") if _takes(e, type_, account is not None)
        ]
        event["pending_webhooks"] = len(takers)
        self.books.add(event)
        for taker in takers:
            version = taker["api_version"] or API_VERSION
            body = orjson.dumps({**event, "api_version": version})
            endpoint = self.endpoints[taker["id"]]
            sent = Delivery(
                url=taker["url"], body=body, event_id=event["id"], type=type_, endpoint=endpoint
            )
            self.webhooks.send(sent)
        return event

    def change(self, type_: str, obj: Obj, **fields: Any) -> None:
        """Set fields and emit the event with what they were before, if any of them differs."""
        previous = {name: obj.get(name) for name, value in fields.items() if obj.get(name) != value}
        obj.update(fields)
        if previous:
            self.emit(type_, obj, copy.deepcopy(previous))


def _takes(endpoint: Obj, type_: str, connect: bool) -> bool:
    asked = endpoint["enabled_events"]
    return (
        endpoint["status"] == "enabled"
        and endpoint["connect"] == connect
        and ("*" in asked or type_ in asked)
    )
