"""Bulk operations: a query run in the background into a file of JSON lines."""

import tempfile
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import anyio.to_thread
from graphql import GraphQLError

from tolsey.sandbox.clock import instant
from tolsey.sandbox.commerce.bulk.file import write
from tolsey.sandbox.commerce.bulk.plan import BulkRefused, Emitter, Planner
from tolsey.sandbox.commerce.course.shops import Shops
from tolsey.sandbox.commerce.query.projection import Call, Request
from tolsey.sandbox.commerce.query.refused import FieldRefused
from tolsey.sandbox.commerce.shop.bulk import BulkOperation
from tolsey.sandbox.commerce.shop.state import Shop

_UNWATCHED = timedelta(seconds=2)
_UNFINISHED = ("CREATED", "RUNNING", "CANCELING")


def run_query(_root: Any, call: Call) -> dict[str, Any]:
    """Start a bulk query; a shop runs one at a time."""
    platform, shop = call.request.platform, call.request.shop
    for begun in shop.bulk_operations.values():
        # An export ends whether anybody looks at it or not.
        is_left = platform.now() - begun.created_at > _UNWATCHED
        if begun.status in _UNFINISHED and begun.written and is_left:
            _complete(platform, shop, begun)
    running = next((b for b in shop.bulk_operations.values() if b.status in _UNFINISHED), None)
    if running is not None:
        return _refused(
            "OPERATION_IN_PROGRESS",
            "A bulk query operation for this app and shop is already in progress: "
            f"gid://shopify/BulkOperation/{running.id}.",
        )
    endpoint = call.request.endpoint
    request = Request(platform, shop, endpoint)
    try:
        document = endpoint.read(call.args["query"], {}, None)
        emitters = Planner(document, request, endpoint.compiler(document, request)).plan()
    except (GraphQLError, BulkRefused) as error:
        return _refused("INVALID", f"Invalid bulk query: {error}")
    operation = BulkOperation(
        id=next(shop.ids),
        query=call.args["query"],
        created_at=platform.now(),
        group_objects=call.args["groupObjects"],
        polls_left=platform.bulk_polls,
    )
    shop.bulk_operations[operation.id] = operation
    platform.background(produce, platform, shop, operation, emitters)
    return {"bulkOperation": operation, "userErrors": []}


def cancel(_root: Any, call: Call) -> dict[str, Any]:
    """Stop a bulk query."""
    found = call.request.shop.bulk_operations.get(_number(call.args["id"]))
    if found is None:
        error = {"field": ["id"], "message": "Bulk operation does not exist"}
        return {"bulkOperation": None, "userErrors": [error]}
    if found.status not in _UNFINISHED:
        message = "A bulk operation cannot be canceled when it is " + found.status.lower()
        return {"bulkOperation": found, "userErrors": [{"field": ["id"], "message": message}]}
    _finish(call.request.platform, call.request.shop, found, "CANCELED", None)
    return {"bulkOperation": found, "userErrors": []}


def poll(call: Call, gid: str) -> BulkOperation | None:
    """Look at an operation; it stays RUNNING for the configured number of looks."""
    found = call.request.shop.bulk_operations.get(_number(gid))
    return None if found is None else _looked_at(call, found)


def current(call: Call) -> BulkOperation | None:
    """Look at the newest operation."""
    newest = max(call.request.shop.bulk_operations.values(), key=lambda b: b.id, default=None)
    return None if newest is None else _looked_at(call, newest)


def _looked_at(call: Call, operation: BulkOperation) -> BulkOperation:
    if operation.status in {"CREATED", "RUNNING"}:
        operation.status = "RUNNING"
        if operation.polls_left > 0:
            operation.polls_left -= 1
        elif operation.written:
            _complete(call.request.platform, call.request.shop, operation)
    return operation


async def produce(
    platform: Shops, shop: Shop, operation: BulkOperation, emitters: Sequence[Emitter]
) -> None:
    """Write the result file in a thread and settle the operation."""
    failure = platform.faults.take_bulk_failure()
    if failure is None:
        # Opened here: the thread outlives a platform that ends meanwhile, and nobody would close it.
        operation.file = tempfile.TemporaryFile()  # noqa: SIM115 - it lives as long as the operation
        try:
            await anyio.to_thread.run_sync(write, operation, operation.file, emitters)
        except FieldRefused:
            failure = "ACCESS_DENIED"
    if operation.status not in _UNFINISHED:
        return
    if failure is not None:
        _finish(platform, shop, operation, "FAILED", failure)
        return
    operation.written = True
    if operation.polls_left <= 0:
        _complete(platform, shop, operation)


def _complete(platform: Shops, shop: Shop, operation: BulkOperation) -> None:
    if operation.object_count:
        operation.url = f"{platform.url}/{shop.domain}/bulk/{operation.id}/{operation.key}.jsonl"
    _finish(platform, shop, operation, "COMPLETED", None)


def _finish(
    platform: Shops, shop: Shop, operation: BulkOperation, status: str, error: str | None
) -> None:
    operation.status, operation.error_code = status, error
    operation.completed_at = platform.now()
    body = {
        "admin_graphql_api_id": f"gid://shopify/BulkOperation/{operation.id}",
        "completed_at": instant(operation.completed_at),
        "created_at": instant(operation.created_at),
        "error_code": error and error.lower(),
        "status": status.lower(),
        "type": "query",
    }
    platform.deliver(shop.domain, "bulk_operations/finish", body)


def _refused(code: str, message: str) -> dict[str, Any]:
    error = {"field": None, "message": message, "code": code}
    return {"bulkOperation": None, "userErrors": [error]}


def _number(gid: str) -> int:
    tail = gid.rsplit("/", 1)[-1]
    return int(tail) if tail.isdigit() else -1
