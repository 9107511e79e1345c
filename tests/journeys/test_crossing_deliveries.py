"""A delivery to a store of another process crosses as it came, and is never lost or doubled by that."""

from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from tests.journeys.conftest import EVENTS, order_body, sign_up, signed
from tests.journeys.neighbours import browsing, settled, shared
from tolsey.http.webhooks.crossing import OPERATION
from tolsey.runtime.mailbox import slot_of
from tolsey.service import Running, running
from tolsey.settings import Settings


@pytest.fixture
async def crossing(brisk: Settings) -> AsyncIterator[tuple[Running, Running]]:
    """Two processes that write the newer form."""
    newer = brisk.model_copy(update={"wire_form": "2"})
    async with (
        running(newer, timers=False, poll_seconds=0.1) as one,
        running(newer, timers=False, poll_seconds=0.1) as other,
    ):
        await shared(one, other)
        yield one, other


class Crossing:
    """A connected store, the process that has it and the one that has not."""

    def __init__(self, pair: tuple[Running, Running], store_id: str) -> None:
        here = slot_of(store_id) in pair[0].service.runtime.epochs
        self.owner, self.other = pair if here else (pair[1], pair[0])

    async def deliver(self, body: bytes, delivery_id: str, **more: Any) -> httpx.Response:
        async with browsing(self.other) as client:
            headers = signed(body, delivery_id=delivery_id, **more)
            return await client.post(EVENTS, content=body, headers=headers)

    async def effects(self) -> list[tuple[str, int]]:
        rows = await self.owner.service.database.fetch(
            "SELECT delivery_id, (SELECT count(*) FROM audit_log a"
            " WHERE a.metadata->>'deliveryId' = delivery_id) AS n"
            " FROM commerce_webhook_events ORDER BY delivery_id"
        )
        return [(row["delivery_id"], row["n"]) for row in rows]


@pytest.fixture
async def store(crossing: tuple[Running, Running]) -> Crossing:
    async with browsing(crossing[0]) as browser:
        seller = await sign_up(browser)
        assert (await seller.connect()).status_code == 200
        await settled(crossing[0])
        return Crossing(crossing, seller.store_id)


async def test_a_delivery_is_decided_where_its_store_lives_without_an_ask(store: Crossing) -> None:
    taken = store.owner.service.runtime.telemetry.counters["bus_served"]
    for _ in range(2):
        answer = await store.deliver(order_body(1), "d1")
        assert answer.status_code == 200
    assert answer.json()["status"] == "duplicate"
    assert await store.effects() == [("d1", 1)]
    assert store.owner.service.runtime.telemetry.counters["bus_served"] == taken


async def test_what_cannot_be_read_is_refused_as_by_the_process_that_has_the_store(
    store: Crossing,
) -> None:
    for body in (b"{", b"[]", b"\xff{}"):
        answer = await store.deliver(body, "broken")
        assert (answer.status_code, answer.json()["code"]) == (400, "malformed_payload")
    forged = await store.deliver(order_body(1), "d1", secret="shpss_of_somebody_else")
    assert forged.status_code == 401
    assert await store.effects() == []


async def test_a_process_that_does_not_take_it_has_it_taken_by_the_one_that_received_it(
    store: Crossing,
) -> None:
    operations = store.owner.service.shard.operations
    took = operations.pop(OPERATION)
    assert (await store.deliver(order_body(1), "d1")).status_code == 200

    async def takes_and_fails(payload: Any) -> bool:
        await took(payload)
        raise RuntimeError("the answer is lost")

    operations[OPERATION] = takes_and_fails
    assert (await store.deliver(order_body(2), "d2")).status_code == 200
    assert await store.effects() == [("d1", 1), ("d2", 1)]
