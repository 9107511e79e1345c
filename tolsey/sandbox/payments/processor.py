"""The stand-in of the payment processor: its accounts, served over HTTP."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime

from tolsey.sandbox.payments.account import endpoints
from tolsey.sandbox.payments.account.books import Obj
from tolsey.sandbox.payments.account.webhooks import Delivery, Webhooks
from tolsey.sandbox.payments.course.accounts import PLATFORM, SECRET_KEY, Accounts
from tolsey.sandbox.payments.face.app import build_app
from tolsey.sandbox.payments.face.faults import Faults, Faulty
from tolsey.sandbox.server import listening

__all__ = ["PLATFORM", "SECRET_KEY", "Processor"]


class Processor(Accounts):
    """A payment processor on loopback, with faults to play and addresses that it tells."""

    def __init__(
        self,
        *,
        now: datetime | None = None,
        frozen_clock: bool = False,
        webhooks: Webhooks | None = None,
        seed: str = "",
    ) -> None:
        super().__init__(now=now, frozen_clock=frozen_clock, webhooks=webhooks, seed=seed)
        self.faults = Faults()

    def open_endpoint(
        self, url: str, *secrets: str, events: tuple[str, ...] = ("*",), connect: bool = False
    ) -> Obj:
        """Send the platform's events to an address, signed with all of these secrets."""
        known = list(secrets) or None
        return endpoints.open_endpoint(
            self.platform, url, list(events), connect=connect, secrets=known
        )

    def set_secrets(self, endpoint: str, *secrets: str) -> None:
        """Sign an endpoint's deliveries with other secrets from now on."""
        self.platform.endpoints[endpoint].secrets = list(secrets)

    def deliver(self, body: bytes, *, type_: str = "", event_id: str = "") -> None:
        """Send any bytes, signed, to every endpoint: a recorded event, or one that is wrong."""
        for endpoint in self.platform.books.each("webhook_endpoint"):
            known = self.platform.endpoints[endpoint["id"]]
            sent = Delivery(
                url=endpoint["url"], body=body, event_id=event_id, type=type_, endpoint=known
            )
            self.webhooks.send(sent)

    @asynccontextmanager
    async def serve(self, port: int = 0) -> AsyncIterator[str]:
        """Serve on loopback and give the base address."""
        app = Faulty(self.faults, build_app(self))  # type: ignore[arg-type] # Quart is an ASGI app
        async with listening(app, port) as chosen:
            self.url = f"http://127.0.0.1:{chosen}"
            for merchant in self.merchants.values():
                merchant.url = self.url
            sending = asyncio.create_task(self.webhooks.run())
            try:
                yield self.url
            finally:
                sending.cancel()
                outcome = (await asyncio.gather(sending, return_exceptions=True))[0]
                if isinstance(outcome, Exception):
                    self.failures.append(outcome)
                if self.failures:
                    raise ExceptionGroup("the sandbox failed", self.failures)
