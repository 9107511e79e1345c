"""Other people's services, for both releases the same: a platform of shops, a payment processor, a model."""

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

import httpx

from tests.campaigns.nemesis.campaign import platform_of_shops
from tests.campaigns.nemesis.clients import BUYERS
from tests.http.payments.market import Market, catalogue
from tolsey.http.clients.payments.client import make_client
from tolsey.http.clients.payments.processor import StripePayments
from tolsey.sandbox.commerce.platform import Platform
from tolsey.sandbox.commerce.shop.state import ALL_SCOPES, WRITE_SCOPES
from tolsey.sandbox.model import KEY, NAME, Model
from tolsey.sandbox.payments.account.webhooks import Webhooks
from tolsey.sandbox.payments.processor import SECRET_KEY, Processor

WEBHOOK_SECRET = "whsec_releases"
PAYMENTS_PATH = "/api/webhooks/payments"
REPEATS, REORDERS, RETRY_SECONDS = 0.1, 0.1, 0.5
SENDERS = 6


@dataclass(frozen=True)
class Outside:
    """What the services ask, and are told by."""

    platform: Platform
    market: Market
    model: Model

    @property
    def environment(self) -> dict[str, str]:
        """Name the stand-ins as an operator names the real ones."""
        return {
            "COMMERCE_URL_TEMPLATE": self.platform.url_template,
            "PAYMENTS_SECRET_KEY": SECRET_KEY,
            "PAYMENTS_WEBHOOK_SECRET": WEBHOOK_SECRET,
            "PAYMENTS_API_BASE": self.market.processor.url,
            **self.market.prices,
            "LLM_BASE_URL": self.model.url,
            "LLM_API_KEY": KEY,
            "LLM_MODEL": NAME,
        }

    def tell(self, ports: Sequence[int]) -> None:
        """Have the processor tell each service of every event: whoever hears first applies it."""
        for port in ports:
            address = f"http://127.0.0.1:{port}{PAYMENTS_PATH}"
            self.market.processor.open_endpoint(address, WEBHOOK_SECRET)


@asynccontextmanager
async def outside(seed: int) -> AsyncIterator[Outside]:
    """Run the stand-ins."""
    webhooks = Webhooks(
        retry_seconds=RETRY_SECONDS,
        repeats=REPEATS,
        reorders=REORDERS,
        seed=seed,
        workers=SENDERS,
    )
    processor, model = Processor(webhooks=webhooks, seed=str(seed)), Model()
    async with AsyncExitStack() as stack:
        platform = await stack.enter_async_context(platform_of_shops())
        for n in range(BUYERS):
            platform.shop(f"shop-{n}.myshopify.com").scopes = (*ALL_SCOPES, *WRITE_SCOPES)
        await stack.enter_async_context(model.serve())
        url = await stack.enter_async_context(processor.serve())
        # A connection that is kept may end as it is used again, and nobody pays twice to find out.
        each_its_own = httpx.Limits(max_keepalive_connections=0)
        browser = await stack.enter_async_context(
            httpx.AsyncClient(trust_env=False, timeout=30, limits=each_its_own)
        )
        client = make_client(SECRET_KEY, url, timeout_seconds=60)
        stack.push_async_callback(client.close)
        prices = await catalogue(client)
        payments = StripePayments(SECRET_KEY, prices, url)
        stack.push_async_callback(payments.close)
        yield Outside(platform, Market(processor, payments, client, browser, prices), model)
