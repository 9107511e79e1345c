"""The service beside the payment processor's stand-in, which tells it what happens."""

import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any, cast

import httpx
import pytest

from tests.http.people import Clock, Person, SignUp, settings_of
from tests.timing import until
from tests.waiting_events import waiting_events
from tolsey.http.web.edge import Edge
from tolsey.http.webhooks.table import PAYMENTS_PATH
from tolsey.sandbox.payments.processor import SECRET_KEY, Processor
from tolsey.sandbox.server import listening
from tolsey.service import Running, running

ACCOUNT = "/api/payouts/account"
CONNECT_SECRET = "whsec_connect"


@dataclass
class Bank:
    """The processor, the service that it tells, and a browser on the processor's pages."""

    processor: Processor
    live: Running
    browser: httpx.AsyncClient

    def made(self, kind: str) -> list[dict[str, Any]]:
        return list(self.processor.platform.books.each(kind))

    async def told(self) -> None:
        """Wait until the service has applied everything that the processor told."""
        await self.processor.webhooks.settled()
        database = self.live.service.database

        async def is_done() -> bool:
            return not await waiting_events(database)

        await until(is_done)

    async def audited(self, like: str) -> list[tuple[str, str]]:
        rows = await self.live.service.database.fetch(
            "SELECT event, actor FROM audit_log WHERE event LIKE $1 ORDER BY id", like
        )
        return [tuple(row) for row in rows]


@pytest.fixture
async def processor(clock: Clock) -> AsyncIterator[Processor]:
    opened = Processor(now=clock(), frozen_clock=True)
    # A signature's time is the machine's, which is not ours.
    opened.webhooks.time_offset = int(clock().timestamp() - time.time())
    async with opened.serve():
        yield opened


@pytest.fixture
async def bank(
    database_url: str, redis_url: str, clock: Clock, processor: Processor
) -> AsyncIterator[Bank]:
    settings = settings_of(
        database_url=database_url,
        redis_url=redis_url,
        payments_secret_key=SECRET_KEY,
        payments_webhook_secret=f"whsec_platform,{CONNECT_SECRET}",
        payments_api_base=processor.url,
    )
    async with (
        running(settings, clock=clock, timers=False) as live,
        listening(cast("Any", live.app)) as port,
        httpx.AsyncClient(trust_env=False) as browser,
    ):
        address = f"http://127.0.0.1:{port}{PAYMENTS_PATH}"
        processor.open_endpoint(address, CONNECT_SECRET, connect=True)
        yield Bank(processor, live, browser)


@pytest.fixture
def edge(bank: Bank) -> Edge:
    assert isinstance(bank.live.app, Edge)
    return bank.live.app


@pytest.fixture
async def ann(sign_up: SignUp) -> Person:
    return await sign_up("ann@example.com")


async def begun(person: Person) -> dict[str, Any]:
    answer = await person.browser.post(ACCOUNT)
    assert answer.status_code == 201, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def read(person: Person) -> dict[str, Any]:
    answer = await person.browser.get(ACCOUNT)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found
