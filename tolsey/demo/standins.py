"""The stand-ins of other people's services, and the settings that point the service at them."""

import secrets
import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import astuple, dataclass
from typing import Any

from tolsey.demo.catalogue import make_prices, open_endpoints
from tolsey.demo.trade import Trade
from tolsey.http.clients.payments.client import make_client
from tolsey.sandbox.closing import EscrowDesk, SigningDesk
from tolsey.sandbox.commerce.platform import Platform
from tolsey.sandbox.commerce.shop.history import make_history
from tolsey.sandbox.commerce.shop.state import ALL_SCOPES, WRITE_SCOPES, ShopSpec
from tolsey.sandbox.model import EMBEDDER, Model
from tolsey.sandbox.payments.account.webhooks import Webhooks
from tolsey.sandbox.payments.processor import SECRET_KEY, Processor

PAYMENTS_PATH = "/api/webhooks/payments"
REPEATS, REORDERS, RETRY_SECONDS = 0.2, 0.2, 0.5
"""How unruly the processor is: some events come twice or after later ones, as real ones do."""


@dataclass(frozen=True)
class Ports:
    """Where everything listens on this machine."""

    service: int = 8000
    platform: int = 8001
    payments: int = 8002
    model: int = 8003

    def taken(self) -> list[int]:
        """List those on which another program listens."""
        return [port for port in astuple(self) if not _is_free(port)]

    @property
    def base(self) -> str:
        """Give the service's address."""
        return f"http://127.0.0.1:{self.service}"


def _is_free(port: int) -> bool:
    try:
        socket.create_server(("127.0.0.1", port)).close()
    except OSError:
        return False
    return True


@dataclass(frozen=True)
class StandIns:
    """The services that stand in for others, running; `settings` are for `settings.read`."""

    trade: Trade
    spare: Trade
    """One whose shop nobody has connected yet: for whoever tries the steps by hand."""
    processor: Processor
    model: Model
    settings: dict[str, Any]


@asynccontextmanager
async def standing_in(ports: Ports, orders: int) -> AsyncIterator[StandIns]:
    """Run a shop with its history, a payment processor with its prices, and a model.

    A data folder outlives a run: each has a shop of its own, and other ids at the processor.
    """
    run = secrets.token_hex(8)
    platform, model = Platform(), Model()
    shop = platform.add_shop(_shop(f"demo-{run[:6]}.myshopify.com", "The Demo Shop", orders))
    spare_shop = platform.add_shop(_shop(f"yours-{run[:6]}.myshopify.com", "Your Shop", orders))
    webhooks = Webhooks(retry_seconds=RETRY_SECONDS, repeats=REPEATS, reorders=REORDERS)
    processor = Processor(webhooks=webhooks, seed=run)
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(platform.serve(port=ports.platform))
        await stack.enter_async_context(model.serve(ports.model))
        payments_url = await stack.enter_async_context(processor.serve(ports.payments))
        closing = await _closing(stack, ports.base)
        yield StandIns(
            Trade(platform, processor, shop),
            Trade(platform, processor, spare_shop),
            processor,
            model,
            {
                "commerce_url_template": platform.url_template,
                **model.settings,
                "embedding_model": EMBEDDER,
                **closing,
                **await _payments(payments_url, ports.base + PAYMENTS_PATH),
            },
        )


async def _closing(stack: AsyncExitStack, base: str) -> dict[str, str]:
    """Run the providers that deals are closed with; answers the `ESIGN_*` and `ESCROW_*` settings."""
    key, signing_key = secrets.token_hex(16), secrets.token_hex(16)
    signing, escrow = SigningDesk(key, signing_key.encode()), EscrowDesk("sandbox", key)
    for desk, name in ((signing, "esign"), (escrow, "escrow")):
        desk.events_url = f"{base}/api/webhooks/{name}"
        desk.deliveries.repeats, desk.deliveries.reorders = REPEATS, REORDERS
    return {
        "esign_webhook_secret": signing_key,
        "esign_api_url": await stack.enter_async_context(signing.serve()),
        "esign_api_key": key,
        "escrow_api_url": await stack.enter_async_context(escrow.serve()),
        "escrow_api_login": "sandbox",
        "escrow_api_key": key,
    }


async def _payments(url: str, events_url: str) -> dict[str, str]:
    """Set the platform's account at the processor up; answers the `PAYMENTS_*` settings."""
    client = make_client(SECRET_KEY, url)
    try:
        prices = await make_prices(client)
        known = await open_endpoints(client, events_url)
    finally:
        await client.close()
    return {
        "payments_secret_key": SECRET_KEY,
        "payments_webhook_secret": ",".join(known),
        "payments_api_base": url,
        **{name.lower(): id for name, id in prices.items()},
    }


def _shop(domain: str, name: str, orders: int) -> ShopSpec:
    return ShopSpec(
        domain=domain,
        client_id=f"client-{domain.partition('.')[0]}",
        client_secret=f"shpss_{secrets.token_hex(16)}",
        name=name,
        scopes=(*ALL_SCOPES, *WRITE_SCOPES),
        orders=make_history(seed=7, days=60, orders=orders),
    )
