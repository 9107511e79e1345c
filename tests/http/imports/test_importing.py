"""What a shop sold before it was connected is there afterwards: once, right, and said since when."""

import asyncio
from datetime import UTC, datetime, timedelta
from random import Random

import anyio
import pytest

from tests.campaigns.sums import wrong_sums
from tests.http.imports.conftest import AT_ONCE, SHOP, SOLD, STORE, Shopkeeper
from tests.seeds import seeds
from tolsey.actors.refusals import Conflict, Forbidden
from tolsey.actors.store.imports.effects import ReadElsewhere
from tolsey.actors.store.imports.messages import (
    BeginImport,
    ImportEnded,
    ImportRun,
    ReadBulkExport,
    StopImport,
)
from tolsey.actors.store.messages import store
from tolsey.runtime.registry import Runtime
from tolsey.sandbox.commerce.shop.history import make_history
from tolsey.sandbox.commerce.shop.state import ALL_SCOPES, ShopSpec
from tolsey.storage.commerce import order_imports
from tolsey.storage.records.commerce.imports import ImportState


async def test_connecting_imports_all_that_was_sold_before(keeper: Shopkeeper) -> None:
    async with keeper.process() as runtime:
        await keeper.connect(runtime)
        done = await keeper.until(ImportState.DONE, ImportState.FAILED)

    assert (done.state, done.orders, done.expected, done.unread) == ("done", SOLD, SOLD, 0)
    await keeper.check(keeper.orders)
    known = await order_imports.known(keeper.database, STORE)
    assert known is not None
    assert known.since is None


async def test_without_read_all_orders_sixty_days_are_imported_and_said(
    keeper: Shopkeeper,
) -> None:
    scopes = [one for one in ALL_SCOPES if one != "read_all_orders"]
    async with keeper.process() as runtime:
        await keeper.connect(runtime, scopes)
        done = await keeper.until(ImportState.DONE, ImportState.FAILED)

    assert done.since is not None
    recent = [one for one in keeper.orders if one.created_at >= done.since]
    assert 0 < len(recent) < SOLD
    await keeper.check(recent)
    known = await order_imports.known(keeper.database, STORE)
    assert known is not None
    assert known.since == done.since
    assert datetime.now(UTC) - done.since - timedelta(days=60) < timedelta(hours=1)


async def test_deliveries_that_come_meanwhile_are_not_undone(keeper: Shopkeeper) -> None:
    """Whatever comes first: a newer order, one of the same second, a deletion, an older one."""
    newer, same, deleted, older = keeper.orders[:4]
    bodies = {one.id: keeper.body(one) for one in (newer, same, older)}
    bodies[newer.id] |= {"updated_at": "2027-01-01T00:00:00Z", "name": "#newer"}
    bodies[same.id] |= {"name": "#same"}
    bodies[older.id] |= {"updated_at": "2020-01-01T00:00:00Z", "name": "#older"}

    async def names() -> dict[int, str]:
        rows = await keeper.database.fetch("SELECT order_id, name FROM commerce_orders")
        return {row["order_id"]: row["name"] for row in rows}

    async def tell(runtime: Runtime) -> None:
        for body in bodies.values():
            await keeper.deliver(runtime, "orders/updated", body)
        await keeper.deliver(runtime, "orders/delete", {"id": deleted.id})

    expected = {newer.id: "#newer", same.id: "#same", deleted.id: None, older.id: older.name}
    async with keeper.process() as runtime:
        await keeper.connect(runtime, scopes=("read_products",))
        await tell(runtime)
        await keeper.allow(runtime)
        await keeper.until(ImportState.DONE)
        assert (await names()).items() >= expected.items()
        await tell(runtime)

    found = await names()
    assert found.items() >= expected.items()
    assert len(found) == SOLD
    assert await wrong_sums(keeper.database) == []


async def test_a_customer_who_was_deleted_does_not_come_back(keeper: Shopkeeper) -> None:
    order = next(one for one in keeper.orders if one.customer is not None)
    assert order.customer is not None
    gone = order.customer.id
    async with keeper.process() as runtime:
        await keeper.connect(runtime, scopes=("read_products",))
        await keeper.deliver(runtime, "customers/delete", {"id": gone})
        await keeper.allow(runtime)
        await keeper.until(ImportState.DONE)

    of_the_customer = [one.id for one in keeper.orders if one.customer and one.customer.id == gone]
    rows = await keeper.database.fetch(
        "SELECT o.order_id, customer_hash, metadata, session_id FROM commerce_orders o"
        " LEFT JOIN attribution_touches USING (store_id, order_id) WHERE customer_hash IS NULL"
    )
    assert {row["order_id"] for row in rows} == set(of_the_customer)
    assert {(row["metadata"], row["session_id"]) for row in rows} == {("{}", None)}
    assert await wrong_sums(keeper.database) == []


async def test_a_person_stops_an_import_and_lets_it_go_on_where_it_was(
    keeper: Shopkeeper,
) -> None:
    async with keeper.process(read_seconds=0.0) as runtime:
        stopped = await keeper.stopped_after(runtime, parts=3)
        assert (stopped.state, stopped.orders) == (ImportState.STOPPED, 3 * AT_ONCE)
        going = await keeper.begin(runtime)
        assert (going.orders, going.bulk_export) == (stopped.orders, stopped.bulk_export)
        done = await keeper.until(ImportState.DONE)
        with pytest.raises(Conflict):
            await runtime.ask(store(STORE), StopImport(user_id="usr_1", at=datetime.now(UTC)))

    assert (done.orders, done.exports) == (SOLD, 1)
    await keeper.check(keeper.orders)


async def test_an_export_that_the_platform_loses_is_made_anew_a_few_times(
    keeper: Shopkeeper,
) -> None:
    keeper.platform.faults.fail_bulk(times=2)
    async with keeper.process() as runtime:
        await keeper.connect(runtime)
        done = await keeper.until(ImportState.DONE, ImportState.FAILED)
        assert (done.state, done.exports) == ("done", 3)
        await keeper.check(keeper.orders)

        keeper.platform.faults.fail_bulk(times=3)
        await keeper.begin(runtime)
        failed = await keeper.until(ImportState.FAILED)
        assert failed.code == "export_failed"
        known = await order_imports.known(keeper.database, STORE)
        assert known is not None
        assert known.since is None  # what the import before knew is known still


async def test_a_shop_that_lets_nobody_in_any_more_ends_the_import_and_says_why(
    keeper: Shopkeeper,
) -> None:
    async with keeper.process(read_seconds=0.0) as runtime:
        await keeper.stopped_after(runtime, parts=2)
        keeper.platform.uninstall(SHOP)
        await keeper.begin(runtime)
        failed = await keeper.until(ImportState.FAILED)

    assert (failed.code, failed.orders) == ("token_unavailable", 2 * AT_ONCE)


@pytest.mark.parametrize("seed", seeds(4))
async def test_an_import_whose_download_breaks_off_anywhere_ends_complete_and_without_doubles(
    keeper: Shopkeeper, seed: int
) -> None:
    draw = Random(seed)  # noqa: S311 - repeatable, no secret
    for _ in range(6):
        keeper.platform.faults.cut(draw.randrange(10_000, 60_000), on="bulk")
    async with keeper.process() as runtime:
        await keeper.connect(runtime)
        done = await keeper.until(ImportState.DONE, ImportState.FAILED)

    assert keeper.platform.faults.happened > 0
    assert (done.state, done.orders, done.exports) == ("done", SOLD, 1)
    await keeper.check(keeper.orders)


async def test_two_calls_that_read_one_export_at_once_write_each_order_once(
    keeper: Shopkeeper,
) -> None:
    """As where a process that lost its lease does not know it yet."""
    async with keeper.process(read_seconds=0.0) as runtime:
        standing = await keeper.stopped_after(runtime, parts=1)
        going = await keeper.begin(runtime)
        assert going.run == standing.run + 1
        run = ImportRun(going.begun_at, going.run)
        calls = keeper.calls(runtime, read_seconds=60.0)
        others = (calls.read(ReadBulkExport(store_id=STORE, run=run)) for _ in range(3))
        told = await asyncio.gather(*others, return_exceptions=True)
        done = await keeper.until(ImportState.DONE)

    assert all(one is None or isinstance(one, (ReadElsewhere, ImportEnded)) for one in told)
    assert done.orders == SOLD
    await keeper.check(keeper.orders)


async def test_the_next_process_goes_on_where_the_one_before_was(keeper: Shopkeeper) -> None:
    reached, processes = 0, 0
    is_done = False
    while not is_done:
        processes += 1
        async with keeper.process(read_seconds=0.0) as runtime:
            if processes == 1:
                await keeper.connect(runtime)
            with anyio.fail_after(60):
                while (standing := await keeper.standing()).orders <= reached:
                    await anyio.sleep(0.01)
                    if standing.state is ImportState.DONE:
                        break
        standing = await keeper.standing()
        assert standing.exports == 1
        reached, is_done = standing.orders, standing.state is ImportState.DONE

    assert processes > 1
    assert reached == SOLD
    await keeper.check(keeper.orders)


async def test_another_shop_is_not_imported_as_the_one_before(keeper: Shopkeeper) -> None:
    other = "rainmonster.myshopify.com"
    keeper.platform.add_shop(ShopSpec(domain=other, orders=make_history(seed=9, orders=8)))
    async with keeper.process(read_seconds=0.0) as runtime:
        before = await keeper.stopped_after(runtime, parts=2)
        await keeper.connect(runtime, shop=other)
        done = await keeper.until(ImportState.DONE)
        assert (done.shop_domain, done.orders) == (other, 8)

    rows = await keeper.database.fetch(
        "SELECT store_id, count(*) AS n FROM commerce_orders GROUP BY 1 ORDER BY 1"
    )
    assert [tuple(row) for row in rows] == [(STORE, before.orders), (f"{STORE}@{other}", 8)]


async def test_an_app_that_may_not_read_orders_imports_none_and_says_which_scope_it_lacks(
    keeper: Shopkeeper,
) -> None:
    async with keeper.process() as runtime:
        await keeper.connect(runtime, scopes=("read_products",))
        known = await order_imports.known(keeper.database, STORE)
        assert known is not None
        assert known.order_import is None
        assert known.since is not None
        with pytest.raises(Forbidden, match="read_orders"):
            await runtime.ask(store(STORE), BeginImport(user_id="usr_1", at=datetime.now(UTC)))


async def test_a_scope_that_is_granted_later_brings_the_orders_that_it_lets_read(
    keeper: Shopkeeper,
) -> None:
    some = [one for one in ALL_SCOPES if one != "read_all_orders"]
    async with keeper.process() as runtime:
        await keeper.connect(runtime, some)
        first = await keeper.until(ImportState.DONE)
        keeper.platform.shop(SHOP).scopes = ALL_SCOPES
        at = datetime.now(UTC).isoformat()
        body = {"previous": some, "current": [*ALL_SCOPES], "updated_at": at}
        await keeper.deliver(runtime, "app/scopes_update", body)
        with anyio.fail_after(60):
            while (done := await keeper.until(ImportState.DONE)).begun_at == first.begun_at:
                await anyio.sleep(0.02)

    assert (first.since is None, done.since, done.orders) == (False, None, SOLD)
    await keeper.check(keeper.orders)
