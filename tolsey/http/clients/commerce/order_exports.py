"""A shop's orders exported in bulk and read from any place, as they would have been delivered.

Nothing is kept on disk, and memory holds one order: an export is grouped, so that an order's lines follow
it at once.
"""

import re
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from datetime import datetime
from typing import Any, Final

from tolsey.actors.ports import BulkExport, PlatformDenied, PlatformUnreachable, Shop
from tolsey.http.clients.commerce import bulk, queries, shapes
from tolsey.http.clients.commerce.bodies import TransientFault, opened
from tolsey.http.clients.commerce.calls import Calls
from tolsey.http.clients.commerce.webhook_shapes import exported_order
from tolsey.http.clients.decoding import decoded

OK: Final = 200
PARTIAL_CONTENT: Final = 206
BUSY_SECONDS: Final = 30.0
CONTENT_RANGE: Final = re.compile(r"bytes (\d{1,18})-")


async def start(calls: Calls, shop: Shop, since: datetime | None) -> str:
    """Begin an export of the orders made since a moment, or of all."""
    document = queries.exported_orders(since, shop.scopes)
    try:
        return await bulk.start_export(calls, shop, document, grouped=True)
    except bulk.ExportBusy as busy:
        raise PlatformUnreachable(str(busy), BUSY_SECONDS) from busy


async def look(calls: Calls, shop: Shop, bulk_export: str) -> BulkExport:
    """Say how far an export is; one that ended without a result is lost, as is one nobody knows."""
    data = await calls.ask(shop, queries.BULK_STATUS, {"id": bulk_export})
    if data.get("bulkOperation") is None:
        return BulkExport(is_whole=False, is_lost=True)
    state = shapes.mapping(data.get("bulkOperation"), "the state of an export")
    if state.get("errorCode") == "ACCESS_DENIED":
        raise PlatformDenied(
            403, "The export requires a scope the app lacks. Add the scope to the app."
        )
    status, url = state.get("status"), state.get("url")
    orders = shapes.units(state.get("rootObjectCount"), "the count of an export")
    is_whole = status == "COMPLETED"
    if is_whole and orders and url is None:
        raise shapes.Misshapen("an export without a file")
    return BulkExport(
        is_whole=is_whole,
        is_lost=not is_whole and status not in bulk.RUNNING,
        orders=orders,
        url=None if url is None else shapes.text(url, "the address of an export"),
        size=shapes.units(state.get("fileSize") or 0, "the size of an export"),
    )


async def read(
    calls: Calls, export: BulkExport, start: int
) -> AsyncGenerator[tuple[int, dict[str, Any]]]:
    """Yield the orders behind a place of a whole export, each with the place behind it."""
    if export.url is None or start >= export.size:
        return
    if not calls.address.may_download(export.url):
        raise PlatformUnreachable(
            "Shopify's export is at a URL that isn't allowed. Contact support."
        )
    order: Mapping[str, Any] | None = None
    lines: list[Mapping[str, Any]] = []
    end = start
    try:
        async with aclosing(_lines(calls, export.url, start)) as found:
            async for place, line in found:
                parent = line.get("__parentId")
                if parent is None:
                    if order is not None:
                        yield end, _order(order, lines)
                    order, lines = line, []
                elif order is None or parent != order.get("id"):
                    raise shapes.Misshapen("the order of the lines of an export")
                else:
                    lines.append(line)
                end = place
    except TransientFault as fault:
        raise PlatformUnreachable(fault.reason, fault.wait_seconds) from fault
    # An answer may end early without a word: what is whole has the size that was announced.
    if end != export.size:
        raise PlatformUnreachable("The download of Shopify's export was interrupted. Try again.")
    if order is not None:
        yield end, _order(order, lines)


def _order(order: Mapping[str, Any], lines: list[Mapping[str, Any]]) -> dict[str, Any]:
    """Write an order as it is delivered; one that is not as documented is empty, and none waits for it."""
    try:
        return exported_order(order, lines)
    except shapes.Misshapen:
        return {}


async def _lines(
    calls: Calls, url: str, start: int
) -> AsyncGenerator[tuple[int, Mapping[str, Any]]]:
    """Give each line behind a place with the place behind it."""
    begun, place = b"", start
    async with aclosing(_pieces(calls, url, start)) as pieces:
        async for piece in pieces:
            *whole, begun = (begun + piece).split(b"\n")
            if len(begun) > calls.limits.bulk_line_bytes:
                raise shapes.Misshapen("a line of an export that does not end")
            for line in whole:
                place += len(line) + 1
                if line:
                    yield place, bulk.parsed_line(line)
    if begun:
        yield place + len(begun), bulk.parsed_line(begun)


async def _pieces(calls: Calls, url: str, start: int) -> AsyncGenerator[bytes]:
    """Give a file from a place on, also where the other side gives it from the beginning only."""
    # The file's host is not the platform's API: no token goes there. A place is one in the plain file.
    headers = {"Accept-Encoding": "gzip"}
    if start:
        headers = {"Accept-Encoding": "identity", "Range": f"bytes={start}-"}
    request = calls.http.build_request("GET", url, headers=headers)
    # Who reads decides for how long; how long nothing may arrive is the client's own bound.
    async with opened(calls.http, request, seconds=None) as response:
        skipped = start
        if response.status_code == PARTIAL_CONTENT:
            found = CONTENT_RANGE.match(response.headers.get("content-range", ""))
            if found is None or int(found[1]) != start:
                raise TransientFault(
                    "Shopify's export returned the wrong byte range. Try again in a minute."
                )
            skipped = 0
        elif response.status_code != OK:
            raise TransientFault(
                f"The download of Shopify's export failed with status {response.status_code}. Try again later."
            )
        async for piece in decoded(response):
            if skipped >= len(piece):
                skipped -= len(piece)
                continue
            yield piece[skipped:] if skipped else piece
            skipped = 0
