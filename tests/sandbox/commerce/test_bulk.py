import threading
from typing import Any

import anyio
import anyio.to_thread
import httpx
import orjson
import pytest

from tolsey.sandbox.commerce.bulk import operations
from tolsey.sandbox.commerce.bulk.file import write
from tolsey.sandbox.commerce.platform import Platform
from tolsey.sandbox.commerce.shop.bulk import BulkOperation

SHOP = "demo.myshopify.com"
START = """
mutation Start($query: String!, $group: Boolean!) {
  bulkOperationRunQuery(query: $query, groupObjects: $group) {
    bulkOperation { id status } userErrors { code message } } }
"""
POLL = """
query Poll($id: ID!) { bulkOperation(id: $id) {
  status errorCode url objectCount rootObjectCount fileSize completedAt } }
"""
ORDERS = "{ orders { edges { node { id test lineItems { edges { node { id quantity } } } } } } }"


async def start(app: Any, query: str = ORDERS, *, group: bool = False) -> Any:
    return (await app.ask(START, query=query, group=group))["bulkOperationRunQuery"]


async def finished(app: Any, started: Any) -> Any:
    with anyio.fail_after(60):
        while True:
            found = (await app.ask(POLL, id=started["bulkOperation"]["id"]))["bulkOperation"]
            if found["status"] not in {"CREATED", "RUNNING"}:
                return found


async def lines(app: Any, url: str) -> list[Any]:
    answer = await app.client.get(url)
    assert answer.headers["content-type"] == "application/jsonl"
    return [orjson.loads(line) for line in answer.content.splitlines()]


async def test_a_result_holds_every_order_and_its_lines_by_parent(app: Any) -> None:
    started = await start(app)
    assert started["bulkOperation"]["status"] == "CREATED"
    result = await finished(app, started)
    read = await lines(app, result["url"])
    orders = app.platform.shop(SHOP).orders
    roots = [line for line in read if "__parentId" not in line]
    assert len(roots) == len(orders) == int(result["rootObjectCount"])
    assert (
        len(read)
        == int(result["objectCount"])
        == len(orders) + sum(len(o.lines) for o in orders.values())
    )
    assert {r["id"] for r in roots} >= {r["__parentId"] for r in read if "__parentId" in r}
    assert set(roots[0]) == {"id", "test"}


@pytest.mark.parametrize("group", [False, True])
async def test_children_follow_their_parent_only_when_grouped(app: Any, *, group: bool) -> None:
    read = await lines(app, (await finished(app, await start(app, group=group)))["url"])
    nearest = None
    adjacent = True
    for line in read:
        if "__parentId" not in line:
            nearest = line["id"]
        else:
            adjacent = adjacent and line["__parentId"] == nearest
    assert adjacent is group


async def test_an_operation_runs_for_as_many_looks_as_configured(app: Any) -> None:
    app.platform.bulk_polls = 3
    started = await start(app)
    for _ in range(3):
        data = await app.ask(POLL, id=started["bulkOperation"]["id"])
        assert data["bulkOperation"]["status"] == "RUNNING"
    assert (await finished(app, started))["status"] == "COMPLETED"


async def test_a_shop_runs_one_operation_at_a_time(app: Any) -> None:
    await start(app)
    second = await start(app)
    assert second["bulkOperation"] is None
    assert second["userErrors"][0]["code"] == "OPERATION_IN_PROGRESS"


@pytest.mark.parametrize(
    "query",
    [
        "{ shop { id } }",
        "{ orders { edges { node { lineItems { edges { node { id } } } } } } }",
        "{ orders { edges { node { id refunds { refundLineItems { edges { node { id } } } } } } } }",
        "{ " + " ".join(f"{alias}: orders {{ nodes {{ id }} }}" for alias in "abcdef") + " }",
        "{ orders { nodes { id",
        "{ orders { nodes { colour } } }",
        "mutation { bulkOperationCancel(id: 1) { bulkOperation { id } } }",
    ],
)
async def test_a_query_beyond_the_limits_is_a_user_error(app: Any, query: str) -> None:
    started = await start(app, query)
    assert started["bulkOperation"] is None
    assert started["userErrors"][0]["code"] == "INVALID"


async def test_nothing_found_is_completed_without_a_file(app: Any) -> None:
    query = '{ orders(query: "id:1") { nodes { id } } }'
    result = await finished(app, await start(app, query))
    assert (result["status"], result["url"], result["objectCount"]) == ("COMPLETED", None, "0")


async def test_an_operation_fails_with_the_code_asked_for(app: Any) -> None:
    app.platform.faults.fail_bulk("TIMEOUT")
    result = await finished(app, await start(app))
    assert (result["status"], result["errorCode"]) == ("FAILED", "TIMEOUT")


async def test_a_missing_scope_fails_the_operation(app: Any) -> None:
    app.platform.set_scopes(SHOP, "read_products")
    result = await finished(app, await start(app))
    assert (result["status"], result["errorCode"]) == ("FAILED", "ACCESS_DENIED")


async def test_a_cancelled_operation_makes_room_for_the_next(app: Any) -> None:
    started = await start(app)
    cancel = "mutation($id: ID!) { bulkOperationCancel(id: $id) { bulkOperation { status } } }"
    data = await app.ask(cancel, id=started["bulkOperation"]["id"])
    assert data["bulkOperationCancel"]["bulkOperation"]["status"] == "CANCELED"
    assert (await start(app))["userErrors"] == []


async def test_the_end_is_delivered_to_subscribers(app: Any, receiver: Any) -> None:
    platform: Platform = app.platform
    platform.bulk_polls = 0
    await app.subscribe("BULK_OPERATIONS_FINISH", receiver.uri)
    started = await start(app)
    await finished(app, started)
    await platform.deliveries.settled()
    body = orjson.loads(receiver.got[0][1])
    assert body["admin_graphql_api_id"] == started["bulkOperation"]["id"]
    assert (body["status"], body["type"], body["error_code"]) == ("completed", "query", None)


async def test_a_download_can_be_cut_and_tried_again(app: Any) -> None:
    url = (await finished(app, await start(app)))["url"]
    app.platform.faults.reset(on="bulk")
    with pytest.raises(httpx.RemoteProtocolError):
        await app.client.get(url)
    assert (await app.client.get(url)).status_code == 200
    assert (await app.client.get(url[:-10] + "0.jsonl")).status_code == 403


async def test_a_platform_that_ends_while_a_result_is_written_leaves_no_file_open(
    app: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    entered, held, written = (threading.Event() for _ in range(3))

    def slow(operation: BulkOperation, *args: Any) -> None:
        entered.set()
        held.wait(60)
        try:
            write(operation, *args)
        finally:
            written.set()

    monkeypatch.setattr(operations, "write", slow)
    started = await start(app)
    number = int(started["bulkOperation"]["id"].rsplit("/", 1)[-1])
    operation = app.platform.shop(SHOP).bulk_operations[number]
    assert await anyio.to_thread.run_sync(entered.wait, 60)
    file = operation.file
    assert file is not None
    await app.platform._stop()
    held.set()
    assert await anyio.to_thread.run_sync(written.wait, 60)
    assert file.closed
    assert operation.file is None
