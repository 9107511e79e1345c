"""What agents had changed is looked up and undone by who asked for it, as everything else that takes calls."""

from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from tests.http.people import Clock, settings_of
from tests.journeys.neighbours import browsing
from tests.mcp.tools.conftest import ANN, BOB
from tests.mcp.tools.shop import PRODUCT, Counter, answered, opened
from tests.mcp.tools.two_stores import Owner, TwoStores, settle
from tolsey.sandbox.commerce.platform import Platform
from tolsey.service import Running, running
from tolsey.storage.people import tokens

pytestmark = pytest.mark.anyio


@pytest.fixture
async def live(
    database_url: str, redis_url: str, platform: Platform, clock: Clock
) -> AsyncIterator[Running]:
    settings = settings_of(
        database_url=database_url, redis_url=redis_url, commerce_url_template=platform.url_template
    )
    async with running(settings, clock=clock, timers=False, poll_seconds=0.1) as started:
        yield started


@pytest.fixture
async def counter(live: Running, platform: Platform, clock: Clock) -> Counter:
    service = live.service
    ann = await settle(service, "ann", ANN, clock.now)
    return await opened(
        TwoStores(service, ann, await settle(service, "bob", BOB, clock.now)), platform
    )


async def read(live: Running, who: Owner, operation_id: str) -> httpx.Response:
    """Look an operation up as somebody."""
    async with live.service.database.transaction() as tx:
        token = await tokens.begin(tx, who.user_id, live.service.clock())
    async with browsing(live) as browser:
        browser.cookies.set("session", token)
        return await browser.get(f"/api/operations/{operation_id}")


async def told(live: Running, counter: Counter, operation_id: str) -> dict[str, Any]:
    answer = await read(live, counter.two_stores.ann, operation_id)
    assert answer.status_code == 200, answer.text
    operation: dict[str, Any] = answer.json()["operation"]
    assert operation["id"] == operation_id
    return operation


async def test_a_change_of_stock_is_looked_up_and_undone(live: Running, counter: Counter) -> None:
    made = await counter.adjust("key-00001", -3)
    operation = await told(live, counter, made["operation_id"])
    assert (operation["kind"], operation["state"]) == ("adjust_inventory", "done")
    assert operation["result"]["before"] == {"available": 10}
    assert operation["result"]["after"] == {"available": 7}
    stranger = await read(live, counter.two_stores.bob, made["operation_id"])
    assert (stranger.status_code, stranger.json()["code"]) == (404, "not_found")
    undo = operation["result"]["undo"]
    await counter.adjust("key-00002", -1)  # what came since stays
    back = answered(
        await counter.agent.call(undo["tool"], idempotency_key="key-undo1", **undo["arguments"])
    )
    assert (back["status"], counter.variant.available) == ("applied", 9)


async def test_a_status_is_undone_and_an_added_tag_is_not(live: Running, counter: Counter) -> None:
    wanted = {"product_id": str(PRODUCT), "status": "DRAFT"}
    made = answered(
        await counter.agent.call("set_product_status", idempotency_key="key-00001", **wanted)
    )
    undo = (await told(live, counter, made["operation_id"]))["result"]["undo"]
    asked = {"product_id": str(PRODUCT), "status": "ACTIVE", "expected_version": made["version"]}
    assert undo == {"tool": "set_product_status", "arguments": asked}
    counter.product.title = "Somebody's"
    late = answered(await counter.agent.call(undo["tool"], idempotency_key="key-undo1", **asked))
    assert (late["status"], late["code"]) == ("rejected", "version_changed")
    counter.product.title = "Blue shirt"
    back = answered(await counter.agent.call(undo["tool"], idempotency_key="key-undo2", **asked))
    assert (back["status"], counter.product.status) == ("applied", "ACTIVE")
    tagged = answered(
        await counter.agent.call(
            "tag_order",
            idempotency_key="key-00002",
            order_id=str(counter.order.id),
            tags=["gift"],
        )
    )
    result = (await told(live, counter, tagged["operation_id"]))["result"]
    assert (result["after"], "undo" in result) == ({"tags": ["gift"]}, False)


async def test_a_change_that_is_not_made_says_why_and_what_goes_on_says_so(
    live: Running, counter: Counter
) -> None:
    refused = await counter.adjust("key-00001", -3, compare_quantity=4)
    operation = await told(live, counter, refused["operation_id"])
    assert (operation["state"], operation["error"]["code"]) == ("refused", "quantity_changed")
    counter.platform.faults.reset(on="mutation")
    wanted = {"product_id": str(PRODUCT), "status": "DRAFT"}
    made = answered(
        await counter.agent.call("set_product_status", idempotency_key="key-00002", **wanted)
    )
    operation = await told(live, counter, made["operation_id"])
    assert (operation["state"], operation["finishedAt"]) == ("running", None)
    await counter.two_stores.database.execute(
        "UPDATE agent_operations SET finished_at = finished_at - interval '8 days' WHERE operation_id = $1",
        refused["operation_id"],
    )
    gone = await read(live, counter.two_stores.ann, refused["operation_id"])
    assert gone.status_code == 404
