"""The processor's stand-in with our catalogue in it, and a buyer's browser."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import httpx

from tolsey.actors.organization import plans
from tolsey.actors.organization.billing.messages import PricedOffer, list_priced_offers
from tolsey.actors.organization.plans import Cadence
from tolsey.http.clients.payments.client import ProcessorClient, make_client
from tolsey.http.clients.payments.processor import StripePayments
from tolsey.sandbox.payments.processor import SECRET_KEY, Processor


@dataclass
class Market:
    processor: Processor
    payments: StripePayments
    client: ProcessorClient
    """The same key, for what a test looks at or sets up behind the port's back."""
    browser: httpx.AsyncClient
    prices: Mapping[str, str]

    def price(self, plan: str, cadence: str = "monthly") -> str:
        return self.prices[plans.BY_CODE[plan].prices[Cadence(cadence)].setting]

    @property
    def offers(self) -> tuple[PricedOffer, ...]:
        return list_priced_offers({setting: (id,) for setting, id in self.prices.items()})

    async def pay(self, url: str, action: str = "pay", **form: str) -> httpx.Response:
        answer = await self.browser.post(url, data={"action": action, "terms": "yes", **form})
        assert answer.status_code in {200, 303}, answer.text
        return answer

    async def session(self, id: str) -> Any:
        return await self.client.v1.checkout.sessions.retrieve_async(
            id, {"expand": ["payment_intent", "line_items"]}
        )

    def made(self, kind: str) -> list[dict[str, Any]]:
        """List what there is of a kind at the processor, in the order it was made."""
        return list(self.processor.platform.books.each(kind))


async def catalogue(client: ProcessorClient) -> dict[str, str]:
    """Make the six prices, as an operator does once."""
    prices = {}
    for plan in plans.CATALOGUE:
        if not plan.is_sold:
            continue
        product = await client.v1.products.create_async({"name": plan.name})
        for cadence, price in plan.prices.items():
            made = await client.v1.prices.create_async(
                {
                    "product": product.id,
                    "currency": "usd",
                    "unit_amount": price.cents,
                    "recurring": {"interval": "year" if cadence is Cadence.YEARLY else "month"},
                    "tax_behavior": "exclusive",
                    "nickname": f"{plan.name} {cadence}",
                }
            )
            prices[price.setting] = made.id
    return prices


@asynccontextmanager
async def opened(at: datetime) -> AsyncIterator[Market]:
    processor = Processor(now=at, frozen_clock=True)
    async with processor.serve() as url, httpx.AsyncClient(trust_env=False) as browser:
        client = make_client(SECRET_KEY, url, timeout_seconds=60)
        prices = await catalogue(client)
        payments = StripePayments(SECRET_KEY, prices, url)
        try:
            yield Market(processor, payments, client, browser, prices)
        finally:
            await payments.close()
            await client.close()
