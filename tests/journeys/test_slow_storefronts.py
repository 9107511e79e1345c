"""A thousand storefronts that answer nothing are to be scanned at once: no renewal of a token waits for them."""

from collections.abc import AsyncIterator
from statistics import median
from time import perf_counter
from typing import Any

import anyio
import pytest

from tests.journeys.conftest import Seller
from tests.timing import until
from tolsey.actors.store.connection.messages import UseToken
from tolsey.actors.store.messages import store
from tolsey.actors.storefront.messages import RequestScan, storefront
from tolsey.runtime.outbox.lanes import PLACES, Lane
from tolsey.sandbox.commerce.platform import Platform
from tolsey.sandbox.server import Receive, Send, listening
from tolsey.service import Running
from tolsey.settings import Settings

STOREFRONTS, RENEWALS = 1_000, 20


async def silent(scope: dict[str, Any], receive: Receive, send: Send) -> None:
    """Take every request and answer none."""
    del send
    while scope["type"] == "http" and (await receive())["type"] != "http.disconnect":
        pass


@pytest.fixture
async def web() -> AsyncIterator[str]:
    async with listening(silent) as port:
        yield f"http://127.0.0.1:{port}"


@pytest.fixture
def settings(settings: Settings, web: str) -> Settings:
    return settings.model_copy(update={"storefront_url": web, "scan_pace_seconds": 0.0})


async def renewed(live: Running, seller: Seller, platform: Platform) -> float:
    """Renew the store's token again and again, each dead before; answers how long one took, in milliseconds."""
    runtime, clock, took = live.service.runtime, live.service.clock, list[float]()
    token = await runtime.ask(store(seller.store_id), UseToken(clock()))
    for _ in range(RENEWALS):
        granted, began = platform.grants, perf_counter()
        with anyio.fail_after(60):
            token = await runtime.ask(store(seller.store_id), UseToken(clock(), token.access_token))
        took.append(perf_counter() - began)
        assert platform.grants == granted + 1
    return 1_000 * median(took)


async def test_a_thousand_slow_storefronts_delay_no_renewal_of_a_token(
    live: Running, seller: Seller, platform: Platform, capsys: pytest.CaptureFixture[str]
) -> None:
    assert (await seller.connect()).status_code == 200
    alone = await renewed(live, seller, platform)
    runtime = live.service.runtime
    scanning: Lane = dict(runtime.admin.lanes)["scan"]

    async def wanted(n: int) -> None:
        wish = RequestScan(
            id=f"scan_{n}", mode="full", is_kept=True, source="test", at=live.service.clock()
        )
        await runtime.ask(storefront(f"shop{n}.example"), wish)

    async with anyio.create_task_group() as tasks:
        for n in range(STOREFRONTS):
            tasks.start_soon(wanted, n)
    await until(lambda: scanning.working >= PLACES["scan"])
    beside = await renewed(live, seller, platform)
    # Each place is held for the ten seconds of a request: the lane is full all the while.
    assert scanning.working == PLACES["scan"]
    assert scanning.waiting > STOREFRONTS // 2
    with capsys.disabled():
        print(  # noqa: T201 - what the test is for
            f"\na renewal takes {alone:.1f} ms, and {beside:.1f} ms beside"
            f" {scanning.working} scans that hang and {scanning.waiting} that wait"
        )
