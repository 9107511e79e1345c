"""A change is made once whichever process is asked, and whichever dies in the middle of it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta
from typing import Any

import orjson
import pytest

from tests.http.people import Clock, settings_of
from tests.journeys.neighbours import shared
from tests.mcp.tools.conftest import ANN, BOB
from tests.mcp.tools.shop import (
    ITEM,
    PRODUCT,
    Counter,
    answered,
    looked_at_until_over,
    opened,
)
from tests.mcp.tools.two_stores import Owner, TwoStores, refused, settle
from tests.timing import beat_often, until
from tolsey.actors.edit import Edit
from tolsey.actors.store.editing.messages import CarryOut
from tolsey.actors.store.messages import store
from tolsey.runtime.decision import Perform
from tolsey.runtime.outbox.rows import row_of
from tolsey.runtime.turns.mailbox import slot_of
from tolsey.sandbox.commerce.platform import Platform
from tolsey.sandbox.commerce.shop.products import LOCATION_ID
from tolsey.service import Running, running
from tolsey.settings import Settings
from tolsey.storage.commerce import agent_operations
from tolsey.storage.database import Database
from tolsey.storage.runtime import outbox

pytestmark = pytest.mark.anyio


@pytest.fixture
def settings(database_url: str, redis_url: str, platform: Platform) -> Settings:
    return settings_of(
        database_url=database_url,
        redis_url=redis_url,
        commerce_url_template=platform.url_template,
    )


@asynccontextmanager
async def process(settings: Settings, clock: Clock) -> AsyncIterator[Running]:
    async with running(settings, clock=clock, timers=False, poll_seconds=0.1) as started:
        yield started


async def two_stores_of(process: Running, clock: Clock) -> TwoStores:
    """Settle the owners, or find them there."""
    service = process.service
    if not await service.database.fetch("SELECT 1 FROM users"):
        ann = await settle(service, "ann", ANN, clock.now)
        return TwoStores(service, ann, await settle(service, "bob", BOB, clock.now))
    ann, bob = (
        Owner(name, f"usr_{name}", f"org_{name}", f"store_{name}", base, clock.now)
        for name, base in (("ann", ANN), ("bob", BOB))
    )
    return TwoStores(service, ann, bob)


async def moved(counter: Counter, process: Running, clock: Clock) -> Counter:
    """Ask another process from now on."""
    two_stores = await two_stores_of(process, clock)
    return Counter(
        two_stores, counter.platform, await two_stores.agent(two_stores.ann), counter.order
    )


async def sent(database: Database, platform: Platform, times: int) -> None:
    """Wait until a change is on its way for so many times, and the platform holds its answer back."""
    await until(lambda: platform.faults.happened >= times)
    rows = await database.fetch("SELECT state FROM agent_operations WHERE finished_at IS NULL")
    assert [row["state"] for row in rows] == ["sent"]


async def test_what_was_answered_survives_a_restart(
    settings: Settings, platform: Platform, clock: Clock
) -> None:
    async with process(settings, clock) as before:
        counter = await opened(await two_stores_of(before, clock), platform)
        first = await counter.adjust("key-00001", -3)
    async with process(settings, clock) as after:
        counter = await moved(counter, after, clock)
        assert await counter.adjust("key-00001", -3) == {**first, "status": "replayed"}
        assert "idempotency_key_reused" in refused(await counter.adjusting("key-00001", -4))
    assert (counter.variant.available, platform.admin.mutations) == (7, 1)


async def died_while_changing(
    before: Running, counter: Counter, tool: str, *, times: int = 1, **wanted: Any
) -> None:
    """Let a change be sent so many times, and its process die before it heard what became of the last."""
    platform = counter.platform
    platform.faults.hold(on="mutation")
    changing = asyncio.create_task(counter.agent.call(tool, idempotency_key="key-00001", **wanted))
    await sent(before.service.database, platform, times)
    changing.cancel()
    await asyncio.wait({changing})
    # Left like this the process takes its unfinished call with it.
    for task in asyncio.all_tasks():
        if "Dispatcher._call" in repr(task):
            task.cancel()


@pytest.mark.parametrize("was_made", [True, False])
async def test_stock_that_was_sent_before_a_crash_moves_once_and_its_item_is_free_at_once(
    settings: Settings, platform: Platform, clock: Clock, *, was_made: bool
) -> None:
    async with process(settings, clock) as before:
        counter = await opened(await two_stores_of(before, clock), platform)
        if was_made:
            platform.faults.lose()
        wanted = {"inventory_item_id": str(ITEM), "location_id": str(LOCATION_ID), "delta": -3}
        # The lost answer is asked for again under the same key; that is when the first was made.
        times = 2 if was_made else 1
        await died_while_changing(before, counter, "adjust_inventory", times=times, **wanted)
    assert counter.variant.available == (7 if was_made else 10)
    platform.faults.clear()  # the lost answer may have been the last that the dead process asked for
    async with process(settings, clock) as after:
        counter = await moved(counter, after, clock)
        told = await counter.adjust("key-00001", -3)
        assert (told["status"], told["after"]) in [
            ("applied", {"available": 7}),
            ("replayed", {"available": 7}),
        ]
        assert (await counter.adjust("key-00002", -1))["after"] == {"available": 6}
    assert counter.variant.available == 6


@pytest.mark.parametrize("was_made", [True, False])
async def test_a_change_without_a_key_that_was_sent_before_a_crash_is_looked_up(
    settings: Settings, platform: Platform, clock: Clock, *, was_made: bool
) -> None:
    wanted: dict[str, Any] = {"product_id": str(PRODUCT), "status": "DRAFT"}
    async with process(settings, clock) as before:
        counter = await opened(await two_stores_of(before, clock), platform)
        await died_while_changing(before, counter, "set_product_status", **wanted)
    if was_made:
        counter.product.status = "DRAFT"
    async with process(settings, clock) as after:
        counter = await moved(counter, after, clock)
        asked = await counter.agent.call(
            "set_product_status", idempotency_key="key-00001", **wanted
        )
        over = await looked_at_until_over(counter, answered(asked)["operation_id"])
    assert over["state"] == ("applied" if was_made else "rejected")
    assert platform.admin.mutations == 0


@pytest.mark.parametrize(("was_made", "state"), [(True, "applied"), (False, "rejected")])
async def test_what_a_process_of_the_release_before_had_sent_is_found_out_and_not_sent_again(
    settings: Settings, platform: Platform, clock: Clock, *, was_made: bool, state: str
) -> None:
    async with process(settings, clock) as before:
        counter = await opened(await two_stores_of(before, clock), platform)
        service, store_id = before.service, counter.two_stores.ann.store_id
        written = orjson.loads(
            Edit(kind="product", ids=(str(PRODUCT),), wanted={"status": "DRAFT"}).written()
        )
        del written["change"]
        sealed = agent_operations.seal_intent(
            service.vault, store_id, "op_before", orjson.dumps(written).decode()
        )
        await service.database.execute(
            """
            INSERT INTO agent_operations (store_id, operation_id, user_id, client_id, tool, subject,
                digest, state, created_at, intent, before, sends)
            VALUES ($1, 'op_before', 'usr_ann', 'client_1', 'set_product_status', 'product/77', 'd',
                'sent', now(), $2, '{"status": "ACTIVE"}', 1)
            """,
            store_id,
            sealed,
        )
        later = clock.now + timedelta(hours=1)  # left to the next process
        call = Perform(
            CarryOut(store_id=store_id, operation_id="op_before"),
            key="carry-out:op_before",
            due_at=later,
        )
        row = row_of(call, store(store_id), "", form="1")
        async with service.database.transaction() as tx:
            await outbox.put(tx, [row])
    if was_made:
        counter.product.status = "DRAFT"
    async with process(settings, clock) as after:
        counter = await moved(counter, after, clock)
        over = await looked_at_until_over(counter, "op_before")
    assert (over["state"], platform.admin.mutations) == (state, 0)


async def test_any_process_changes_the_same_shop_and_none_is_lost(
    settings: Settings, platform: Platform, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    beat_often(monkeypatch)
    async with AsyncExitStack() as stack:
        pair = [await stack.enter_async_context(process(settings, clock)) for _ in range(2)]
        await shared(*pair)
        one = await opened(await two_stores_of(pair[0], clock), platform)
        other = await moved(one, pair[1], clock)
        owners = [
            slot_of(one.two_stores.ann.store_id) in p.service.runtime.slots.epochs for p in pair
        ]
        assert sorted(owners) == [False, True]
        told = await asyncio.gather(
            *(
                counter.adjust(f"key-{n:05}-{who}", n)
                for n in range(1, 6)
                for who, counter in enumerate((one, other))
            )
        )
        assert {each["status"] for each in told} == {"applied"}
        assert one.variant.available == 10 + 2 * sum(range(1, 6))
        same = await asyncio.gather(*(c.adjust("key-same", -1) for c in (one, other, one, other)))
        assert {each["after"]["available"] for each in same} == {39}
        assert platform.admin.mutations == 11
        for counter in (one, other):
            reused = await counter.adjusting("key-same", -2)
            assert "idempotency_key_reused" in refused(reused)
