"""Orders exported in bulk: for stores with many of them.

The platform promises that a parent comes before its children, not that they follow at once. So
the file is kept on disk first, with the place of every order's last line; then it is read again
and an order is given out when that place is reached. A download that breaks off starts again
without anything having been given out, and memory holds the orders that are still open only.
"""

import re
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import anyio
import orjson

from tolsey.actors.ports import PlatformDenied, PlatformUnreachable, Shop
from tolsey.http.clients.commerce import queries, shapes
from tolsey.http.clients.commerce.answers import plain
from tolsey.http.clients.commerce.bodies import TransientFault, opened
from tolsey.http.clients.commerce.calls import CallBudget, Calls
from tolsey.http.clients.commerce.orders import ListedOrder, RefundBatch, belongs
from tolsey.http.clients.decoding import PIECE, decoded
from tolsey.storage.records.selling.revenue import PulledOrder

IN_MEMORY_BYTES = 4 * 1024 * 1024
RUNNING = frozenset({"CREATED", "RUNNING", "CANCELING"})
BUSY = frozenset({"OPERATION_IN_PROGRESS", "LIMIT_REACHED"})
ORDER = re.compile(rb'"(__parentId|id)"\s*:\s*"gid://shopify/Order/(\d{1,20})"')
POLLS_GROW = 1.25
OK, GONE_OR_FORBIDDEN, SERVER_ERROR = 200, 400, 500

File = anyio.SpooledTemporaryFile[bytes]


@dataclass(slots=True)
class LastLines:
    """The line on which each order is complete, by the order's number."""

    last: dict[int, int] = field(default_factory=dict)

    def note(self, number: int, line: bytes) -> None:
        """Note one line of the file; a child without its parent is not believed."""
        order, is_child = _order_of(line)
        if is_child is not (order in self.last):
            raise shapes.Misshapen("the order of the lines of an export")
        self.last[order] = number


def _order_of(line: bytes) -> tuple[int, bool]:
    """Say which order a line belongs to, and whether as a child of it.

    Found without reading the line as JSON: a quote inside a text is escaped, so these words are a
    key and its value. What is read whole later must say the same.
    """
    named = ORDER.findall(line)
    if len(named) == 1:
        ((key, order),) = named
        return int(order), key != b"id"
    value = parsed_line(line)
    parent = value.get("__parentId")
    number = shapes.number_of(parent if parent is not None else value.get("id"), "Order")
    return number, parent is not None


async def bulk_orders(
    calls: Calls, shop: Shop, start: datetime, end: datetime
) -> AsyncGenerator[PulledOrder]:
    """Yield the orders of [start, end), each once."""
    operation = await _start(calls, shop, queries.processed_between(start, end))
    done = await _finished(calls, shop, operation)
    url = done.get("url")
    roots = shapes.units(done.get("rootObjectCount"), "the count of an export")
    if url is None:
        if roots:
            raise shapes.Misshapen("an export without a file")
        return
    size = shapes.units(done.get("fileSize") or 0, "the size of an export")
    if size > calls.limits.bulk_file_bytes:
        raise PlatformUnreachable(
            "The export from Shopify is larger than this service can read. Contact support."
        )
    async with anyio.SpooledTemporaryFile(max_size=IN_MEMORY_BYTES) as file:
        places = await _download(calls, shapes.text(url, "the address of an export"), file)
        if len(places.last) < roots:
            raise shapes.Misshapen("an export that is shorter than announced")
        await file.seek(0)
        batch = RefundBatch(calls, shop)
        async with aclosing(_read(file, places, calls.limits.bulk_line_bytes)) as orders:
            async for found in orders:
                if belongs(found.order, start, end):
                    for order in await batch.add(found):
                        yield order
        for order in await batch.rest():
            yield order


class ExportBusy(Exception):  # noqa: N818 - the platform's answer
    """The shop makes another export, and takes no more now."""


async def start_export(calls: Calls, shop: Shop, document: str, *, grouped: bool) -> str:
    """Start an export and give its id; ExportBusy while others of the shop are running.

    Grouped, each object's children follow it at once, which takes the platform longer.
    """
    data = await calls.ask(shop, queries.RUN_BULK, {"query": document, "grouped": grouped})
    payload = shapes.mapping(data.get("bulkOperationRunQuery"), "the start of an export")
    errors = payload.get("userErrors")
    if not isinstance(errors, list):
        raise shapes.Misshapen("the start of an export")
    if not errors:
        operation = shapes.mapping(payload.get("bulkOperation"), "the start of an export")
        return shapes.text(operation.get("id"), "the id of an export")
    error = shapes.mapping(errors[0], "the refusal of an export")
    message = plain(
        str(error.get("message") or "Shopify rejected the export. Check the app's scopes.")
    )
    if error.get("code") not in BUSY and "already in progress" not in message:
        raise PlatformDenied(400, message)
    raise ExportBusy(message)


async def _start(calls: Calls, shop: Shop, query: str) -> str:
    """Start an export, waiting while another one of the shop is running."""
    waits = _waits(calls)
    while True:
        try:
            return await start_export(calls, shop, queries.bulk_orders(query), grouped=False)
        except ExportBusy as busy:
            await _wait(calls, waits, str(busy))


async def _finished(calls: Calls, shop: Shop, operation: str) -> Mapping[str, Any]:
    """Give the export once it is complete."""
    waits = _waits(calls)
    while True:
        data = await calls.ask(shop, queries.BULK_STATUS, {"id": operation})
        state = shapes.mapping(data.get("bulkOperation"), "the state of an export")
        status = state.get("status")
        if status == "COMPLETED":
            return state
        if state.get("errorCode") == "ACCESS_DENIED":
            raise PlatformDenied(
                403, "The export requires a scope the app lacks. Add the scope to the app."
            )
        if status not in RUNNING:
            raise PlatformUnreachable(
                f"Shopify's export ended with the status {plain(str(status))}. Start it again."
            )
        await _wait(calls, waits, "The export at Shopify is taking too long. Try again later.")


def _waits(calls: Calls) -> Iterator[float]:
    """Give growing waits until the polls or the time allowed are used up."""
    limits = calls.limits
    ends_at = calls.pace.now() + limits.bulk_deadline_seconds
    wait = limits.bulk_poll_seconds
    for _ in range(limits.bulk_polls):
        if calls.pace.now() + wait >= ends_at:
            return
        yield wait
        wait = min(limits.bulk_longest_poll_seconds, wait * POLLS_GROW)


async def _wait(calls: Calls, waits: Iterator[float], reason: str) -> None:
    wait = next(waits, None)
    if wait is None:
        raise PlatformUnreachable(reason, calls.limits.bulk_longest_poll_seconds)
    await calls.pace.sleep(wait)


async def _download(calls: Calls, url: str, file: File) -> LastLines:
    """Keep the export in `file` and give its places, starting over when it breaks off."""
    if not calls.address.may_download(url):
        raise PlatformUnreachable(
            "Shopify's export is at a URL that isn't allowed. Contact support."
        )
    limits = calls.limits
    patience = CallBudget(
        calls.pace,
        limits,
        attempts=limits.bulk_download_attempts,
        seconds=limits.bulk_download_seconds,
    )
    while True:
        await file.seek(0)
        await file.truncate()
        try:
            return await _fetch(calls, url, file, patience.seconds_left)
        except TransientFault as fault:
            await patience.after(fault)


async def _fetch(calls: Calls, url: str, file: File, seconds: float) -> LastLines:
    places, lines, size = LastLines(), Lines(calls.limits.bulk_line_bytes), 0
    number = 0
    # the file's host is not the platform's API: no token goes there
    request = calls.http.build_request("GET", url, headers={"Accept-Encoding": "gzip"})
    async with opened(calls.http, request, seconds=seconds) as response:
        if response.status_code != OK:
            raise _download_fault(response.status_code)
        async for piece in decoded(response):
            size += len(piece)
            if size > calls.limits.bulk_file_bytes:
                raise PlatformUnreachable(
                    "The export from Shopify is larger than this service can read. Contact support."
                )
            await file.write(piece)
            for line in lines.feed(piece):
                places.note(number, line)
                number += 1
        for line in lines.rest():
            places.note(number, line)
    return places


def _download_fault(status: int) -> Exception:
    if GONE_OR_FORBIDDEN <= status < SERVER_ERROR:
        return PlatformUnreachable(
            f"The download of Shopify's export failed with status {status}. Try again later."
        )
    return TransientFault(
        f"The download of Shopify's export failed with status {status}. Try again later."
    )


async def _read(file: File, places: LastLines, line_bytes: int) -> AsyncGenerator[ListedOrder]:
    """Give every order when its last line has been read."""
    lines, number = Lines(line_bytes), 0
    open_orders: dict[int, shapes.OpenOrder] = {}
    while True:
        piece = await file.read(PIECE)
        for line in lines.feed(piece) if piece else lines.rest():
            order = _placed(open_orders, parsed_line(line))
            last = places.last.get(order)
            if last is None:
                raise shapes.Misshapen("the order of the lines of an export")
            if last == number:
                yield _closed(open_orders.pop(order))
            number += 1
        if not piece:
            return


def _closed(order: shapes.OpenOrder) -> ListedOrder:
    """Give an order with every line that arrived, and the refunds that no export says more of."""
    return ListedOrder(order.closed(), shapes.refund_ids(order.value))


def _placed(open_orders: dict[int, shapes.OpenOrder], value: Mapping[str, Any]) -> int:
    """Put a line where it belongs and give its order's number."""
    parent = value.get("__parentId")
    if parent is None:
        order = shapes.number_of(value.get("id"), "Order")
        open_orders[order] = shapes.OpenOrder(value)
        return order
    order = shapes.number_of(parent, "Order")
    known = open_orders.get(order)
    if known is None:
        raise shapes.Misshapen("the order of the lines of an export")
    known.lines.append(shapes.line(value))
    return order


class Lines:
    """Splits pieces of a file into lines of bounded length; empty ones are left out."""

    def __init__(self, longest: int) -> None:
        self._longest = longest
        self._begun = b""

    def feed(self, piece: bytes) -> Iterator[bytes]:
        """Give the lines that this piece completes."""
        *whole, self._begun = (self._begun + piece).split(b"\n")
        if len(self._begun) > self._longest:
            raise shapes.Misshapen("a line of an export that does not end")
        for line in whole:
            if line.strip():
                yield line

    def rest(self) -> Iterator[bytes]:
        """Give the last line when nothing ended it."""
        if self._begun.strip():
            yield self._begun
        self._begun = b""


def parsed_line(line: bytes) -> Mapping[str, Any]:
    """Read a line of an export; raises Misshapen for what is no object."""
    try:
        value = orjson.loads(line)
    except ValueError as error:
        raise shapes.Misshapen("a line of an export") from error
    return shapes.mapping(value, "a line of an export")
