from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import httpx
import orjson
import pytest
import stripe

from tolsey.sandbox.payments.processor import SECRET_KEY, Processor

stripe.enable_telemetry = False
# The package hands a form's bytes to httpx in a way that httpx wants written otherwise.
STRIPE = pytest.mark.filterwarnings("ignore:Use 'content=:DeprecationWarning")
NOW = datetime(2026, 11, 1, 12, tzinfo=UTC)
SECRET = "whsec_test"


@dataclass
class Receiver:
    """An address that keeps every delivery and answers as it is told."""

    uri: str = ""
    got: list[tuple[dict[str, str], bytes]] = field(default_factory=list)
    answers: list[int] = field(default_factory=list)

    @property
    def events(self) -> list[dict[str, Any]]:
        return [orjson.loads(body) for _, body in self.got]

    @property
    def types(self) -> list[str]:
        return [event["type"] for event in self.events]

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return
        body, more = b"", True
        while more:
            event = await receive()
            body += event.get("body", b"")
            more = event.get("more_body", False)
        headers = {name.decode(): value.decode() for name, value in scope["headers"]}
        self.got.append((headers, body))
        status = self.answers.pop(0) if self.answers else 200
        await send({"type": "http.response.start", "status": status, "headers": []})
        await send({"type": "http.response.body", "body": b""})


@dataclass
class Shop:
    """The platform's client beside a browser."""

    processor: Processor
    client: stripe.StripeClient
    browser: httpx.AsyncClient

    async def price(self, name: str = "Pro", amount: int = 7_900, interval: str = "month") -> str:
        product = await self.client.v1.products.create_async({"name": name})
        price = await self.client.v1.prices.create_async(
            {
                "product": product.id,
                "currency": "usd",
                "unit_amount": amount,
                "recurring": {"interval": interval},
                "tax_behavior": "exclusive",
                "nickname": name,
            }
        )
        return price.id

    async def session(self, **more: Any) -> Any:
        given: Any = {"success_url": "https://shop.test/ok?id={CHECKOUT_SESSION_ID}", **more}
        return await self.client.v1.checkout.sessions.create_async(given)

    async def credits(self, cents: int = 5_000, **more: Any) -> Any:
        line = {
            "quantity": 1,
            "price_data": {
                "currency": "usd",
                "unit_amount": cents,
                "tax_behavior": "exclusive",
                "product_data": {"name": "Credits"},
            },
        }
        metadata = {"kind": "credits", "credits_cents": str(cents)}
        more = {"payment_intent_data": {"metadata": metadata}, "metadata": metadata, **more}
        return await self.session(mode="payment", line_items=[line], **more)

    async def pay(self, url: str, action: str = "pay", **form: str) -> httpx.Response:
        return await self.browser.post(url, data={"action": action, **form})

    async def subscribe(self, price: str, **form: str) -> Any:
        session = await self.session(
            mode="subscription",
            line_items=[{"price": price, "quantity": 1}],
            subscription_data={"metadata": {"org_id": "org_1"}},
        )
        paid = await self.pay(session.url, **form)
        assert paid.status_code == 303, paid.text
        done = await self.client.v1.checkout.sessions.retrieve_async(session.id)
        return await self.client.v1.subscriptions.retrieve_async(done.subscription)  # type: ignore[arg-type]

    def types(self) -> list[str]:
        return [event["type"] for event in self.processor.platform.books.each("event")]

    def last(self, type_: str) -> dict[str, Any]:
        found = [e for e in self.processor.platform.books.each("event") if e["type"] == type_]
        obj: dict[str, Any] = found[-1]["data"]["object"]
        return obj


def client_of(url: str, key: str = SECRET_KEY, retries: int = 2) -> stripe.StripeClient:
    return stripe.StripeClient(
        key,
        base_addresses={"api": url},
        http_client=stripe.HTTPXClient(timeout=10),
        max_network_retries=retries,
    )


async def close(client: stripe.StripeClient) -> None:
    sending: Any = client._requestor._client
    await sending.close_async()


@asynccontextmanager
async def opened(processor: Processor) -> AsyncIterator[Shop]:
    async with processor.serve() as url, httpx.AsyncClient() as browser:
        client = client_of(url)
        try:
            yield Shop(processor, client, browser)
        finally:
            await close(client)


Opener = Callable[[str], AbstractAsyncContextManager[stripe.StripeClient]]


def error_of(error: stripe.StripeError) -> dict[str, Any]:
    body: Any = error.json_body
    found: dict[str, Any] = body["error"]
    return found


def in_order(wanted: Iterable[str], types: list[str]) -> bool:
    rest = iter(types)
    return all(type_ in rest for type_ in wanted)
