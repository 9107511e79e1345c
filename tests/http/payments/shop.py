"""The whole service beside the processor's stand-in, which tells it of what happens over HTTP."""

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, cast

import httpx

from tests.http.payments.market import Market
from tests.http.people import Clock, Person, settings_of
from tests.timing import until
from tolsey.http.webhooks.table import PAYMENTS_PATH
from tolsey.sandbox.payments.processor import SECRET_KEY
from tolsey.sandbox.server import listening
from tolsey.service import Running, running

WEBHOOK_SECRET = "whsec_test"


@dataclass
class Shop:
    """What a person does, with the processor's page in between."""

    market: Market
    running: Running
    clock: Clock

    @property
    def service(self) -> Any:
        return self.running.service

    async def settled(self) -> None:
        """Wait until all that happened at the processor is told and applied."""
        await self.market.processor.webhooks.settled()

        async def is_done() -> bool:
            return not await self.service.database.fetch(
                "SELECT FROM payment_events WHERE state = 'new'"
            )

        await until(is_done)

    async def advance(self, **by: float) -> None:
        gone = timedelta(**by)
        self.clock.advance(gone)
        self.market.processor.webhooks.time_offset += int(gone.total_seconds())
        self.market.processor.advance(gone.total_seconds())
        await self.settled()

    async def post(self, who: Person, path: str, **body: Any) -> httpx.Response:
        headers = {"Idempotency-Key": key} if (key := body.pop("key", None)) else {}
        body = {"organizationId": who.organization_id, **body}
        return await who.browser.post(f"/api{path}", json=body, headers=headers)

    async def buy(self, who: Person, plan: str = "pro", cadence: str = "monthly") -> None:
        page = await self.post(who, "/payments/checkout", plan=plan, cadence=cadence)
        assert page.status_code == 200, page.text
        await self.market.pay(page.json()["url"])
        await self.settled()
        assert (await self.plan(who))["plan"] == plan

    async def change(self, who: Person, plan: str, cadence: str = "monthly") -> httpx.Response:
        return await self.post(who, "/payments/change", plan=plan, cadence=cadence)

    async def plan(self, who: Person) -> Any:
        query = {"organizationId": who.organization_id}
        answer = await who.browser.get("/api/payments/subscription", params=query)
        assert answer.status_code == 200, answer.text
        return answer.json()

    async def credits(self, who: Person) -> Any:
        query = {"organizationId": who.organization_id}
        return (await who.browser.get("/api/credits", params=query)).json()

    async def audited(self, event: str) -> list[dict[str, Any]]:
        rows = await self.service.database.fetch(
            "SELECT actor, organization_id, metadata::text AS metadata FROM audit_log"
            " WHERE event = $1 ORDER BY id",
            event,
        )
        return [dict(row) for row in rows]

    def charged(self) -> list[int]:
        """List what was collected, in cents."""
        return [one["amount"] for one in self.market.made("charge") if one["paid"]]


@asynccontextmanager
async def served(
    market: Market, clock: Clock, database_url: str, redis_url: str, **given: Any
) -> AsyncIterator[Shop]:
    options: dict[str, Any] = {
        "payments_secret_key": SECRET_KEY,
        "payments_webhook_secret": WEBHOOK_SECRET,
        "payments_api_base": market.processor.url,
        **{name.lower(): id for name, id in market.prices.items()},
        **given,
    }
    settings = settings_of(database_url=database_url, redis_url=redis_url, **options)
    async with (
        running(settings, clock=clock, timers=False) as started,
        listening(cast("Any", started.app)) as port,
    ):
        address = f"http://127.0.0.1:{port}{PAYMENTS_PATH}"
        # A signature's time is the machine's, which is not ours.
        market.processor.webhooks.time_offset = int(clock().timestamp() - time.time())
        market.processor.open_endpoint(address, WEBHOOK_SECRET)
        yield Shop(market, started, clock)
