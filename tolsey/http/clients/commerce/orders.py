"""Orders pulled page by page: for stores with few of them, and for what a page leaves out."""

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from itertools import chain
from typing import Any

from tolsey.actors.listing.verification.revenue import depends_on_refunds
from tolsey.actors.ports import PlatformUnreachable, QueryTooCostly, Shop
from tolsey.http.clients.commerce import queries, shapes
from tolsey.http.clients.commerce.calls import Calls
from tolsey.runtime.tasks import together
from tolsey.storage.records.selling.revenue import (
    PulledLine,
    PulledOrder,
    PulledRefund,
    PulledTransaction,
)

MOST_PER_PAGE = 250
LINES_PER_PAGE = 100
FIRST_LOOK = 5
"""How many orders are asked for where the first of them will most likely do."""
LOOKS = 60
"""How many pages of old orders are looked through for one that says how old a shop's history is."""
REFUNDS_PER_QUERY = 27
"""So many, at the sizes below, stay under what a single query may cost."""
QUERIES_AT_ONCE = 4
SMALL = {"lines": 3, "movements": 1}
LARGE = {"lines": 80, "movements": 20}
"""How many lines and movements of a refund are asked for among others, and by itself."""
REFUNDED = ("partially_refunded", "refunded")


@dataclass(slots=True)
class ListedOrder:
    """An order without what its refunds were for, and the ids of those refunds."""

    order: PulledOrder
    refunds: Sequence[str] = ()


def belongs(order: PulledOrder, start: datetime, end: datetime) -> bool:
    """Whether an order is a real one of [start, end); the search index alone is not trusted."""
    return not order.test and start <= order.processed_at < end


async def paged_orders(
    calls: Calls, shop: Shop, start: datetime, end: datetime
) -> AsyncGenerator[PulledOrder]:
    """Yield the orders of [start, end), each once."""
    nodes = _nodes(calls, shop, queries.processed_between(start, end))
    batch = RefundBatch(calls, shop)
    async with aclosing(nodes), aclosing(_completed(batch, nodes)) as orders:
        async for order in orders:
            if belongs(order, start, end):
                yield order


async def orders_before(calls: Calls, shop: Shop, start: datetime) -> AsyncGenerator[PulledOrder]:
    """Yield orders from before a moment, the latest first, as many as are looked through."""
    query = queries.processed_before(start)
    nodes = _nodes(calls, shop, query, reverse=True, first=FIRST_LOOK, pages=LOOKS)
    batch = RefundBatch(calls, shop)
    async with aclosing(nodes), aclosing(_completed(batch, nodes)) as orders:
        async for order in orders:
            if not order.test and order.processed_at < start:
                yield order


async def orders_given_back(
    calls: Calls, shop: Shop, start: datetime
) -> AsyncGenerator[PulledOrder]:
    """Yield the orders from before a moment that were refunded, perhaps, since then."""
    for status in REFUNDED:
        nodes = _nodes(calls, shop, queries.given_back_since(start, status), first=FIRST_LOOK)
        # A return is told apart even where its order is worth nothing by now.
        batch = RefundBatch(calls, shop, is_wanted=lambda _: True)
        async with aclosing(nodes), aclosing(_completed(batch, nodes)) as orders:
            async for order in orders:
                if not order.test and order.processed_at < start:
                    yield order


async def _completed(
    batch: "RefundBatch", nodes: AsyncIterator[Mapping[str, Any]]
) -> AsyncGenerator[PulledOrder]:
    """Yield each listed order once, whole."""
    seen: set[str] = set()
    async for node in nodes:
        found = await _whole(batch.calls, batch.shop, node)
        if found.order.order_id in seen:
            continue
        seen.add(found.order.order_id)
        for order in await batch.add(found):
            yield order
    for order in await batch.rest():
        yield order


async def _nodes(
    calls: Calls,
    shop: Shop,
    query: str,
    *,
    reverse: bool = False,
    first: int | None = None,
    pages: int | None = None,
) -> AsyncGenerator[Mapping[str, Any]]:
    """Yield what a search finds; the first page may be smaller, and `pages` ends it in silence."""
    from tolsey.http.clients.commerce.document_costs import largest_page  # noqa: PLC0415 - imports graphql, which is slow

    variables: dict[str, Any] = {"query": query, "after": None, "reverse": reverse}
    most = min(MOST_PER_PAGE, largest_page(queries.ORDERS, variables, calls.limits.page_points))
    size = min(most, first or most)
    cursors: set[str] = set()
    while len(cursors) < (pages or calls.limits.pages):
        try:
            data = await calls.ask(shop, queries.ORDERS, {**variables, "first": size})
        except QueryTooCostly:
            if size == 1:
                raise
            most = size = size // 2
            continue
        page = shapes.page(data.get("orders"), "a page of orders")
        for node in page.nodes:
            yield node
        if page.after is None:
            return
        if page.after in cursors:
            raise shapes.Misshapen("a page that leads back to an earlier one")
        cursors.add(page.after)
        variables["after"] = page.after
        size = most
    if pages is None:
        raise PlatformUnreachable(
            "The shop has more orders than one request can read. Choose a shorter period."
        )


async def _whole(calls: Calls, shop: Shop, node: Mapping[str, Any]) -> ListedOrder:
    """Fetch what one page did not hold of an order."""
    first = shapes.page(node.get("lineItems"), "the lines of an order")
    lines = [shapes.line(each) for each in first.nodes]
    movements = shapes.transactions(node.get("transactions"))
    order_id = shapes.text(node.get("id"), "the id of an order")
    if first.after is not None:
        lines += await _more_lines(calls, shop, order_id, first.after)
    # this list has no cursor: a full one may have been cut
    if len(movements) >= queries.TRANSACTIONS_PER_ORDER:
        movements = await _all_transactions(calls, shop, order_id)
    return ListedOrder(shapes.order(node, lines, movements), shapes.refund_ids(node))


@dataclass(slots=True)
class RefundBatch:
    """Orders that wait until enough refunds are to be read to ask for them in a few full queries."""

    calls: Calls
    shop: Shop
    is_wanted: Callable[[PulledOrder], bool] = depends_on_refunds
    waiting: list[ListedOrder] = field(default_factory=list)
    refunds: int = 0

    async def add(self, found: ListedOrder) -> Sequence[PulledOrder]:
        """Take an order and give those that are whole now."""
        if not found.refunds or not self.is_wanted(found.order):
            return (found.order,)
        self.waiting.append(found)
        self.refunds += len(found.refunds)
        is_full = self.refunds >= REFUNDS_PER_QUERY * QUERIES_AT_ONCE
        return await self.rest() if is_full else ()

    async def rest(self) -> Sequence[PulledOrder]:
        """Read the refunds of those that wait, and give them."""
        found, self.waiting, self.refunds = self.waiting, [], 0
        wanted = [refund for each in found for refund in each.refunds]
        parts = (
            wanted[at : at + REFUNDS_PER_QUERY] for at in range(0, len(wanted), REFUNDS_PER_QUERY)
        )
        reads = [partial(_refunds, self.calls, self.shop, part) for part in parts]
        refunds = chain.from_iterable(await together(reads))
        return [_with_refunds(each, refunds) for each in found]


def _with_refunds(found: ListedOrder, refunds: Iterator[PulledRefund]) -> PulledOrder:
    return replace(found.order, refunds=tuple(next(refunds) for _ in found.refunds))


async def _refunds(calls: Calls, shop: Shop, ids: Sequence[str]) -> list[PulledRefund]:
    """Read refunds with what they were for; one with many lines is read once more by itself."""
    found = []
    for value, refund_id in zip(await _nodes_of(calls, shop, ids, SMALL), ids, strict=True):
        pages = _pages_of(value)
        if any(page.after is not None for page in pages):
            pages = await _large_refund(calls, shop, refund_id)
        found.append(shapes.refund(value, *(page.nodes for page in pages)))
    return found


async def _large_refund(calls: Calls, shop: Shop, refund_id: str) -> list[shapes.ConnectionPage]:
    sizes: dict[str, Any] = dict(LARGE)
    lines: list[Mapping[str, Any]] = []
    for _ in range(calls.limits.line_pages):
        (value,) = await _nodes_of(calls, shop, [refund_id], sizes)
        movements, page, shipping = _pages_of(value)
        if movements.after is not None or shipping.after is not None:
            raise shapes.Misshapen("a refund of more movements than an order has")
        lines += page.nodes
        if page.after is None:
            return [movements, shapes.ConnectionPage(lines, None), shipping]
        sizes["after"] = page.after
    raise shapes.Misshapen("a refund with no last line")


async def _nodes_of(
    calls: Calls, shop: Shop, ids: Sequence[str], sizes: Mapping[str, Any]
) -> list[Mapping[str, Any]]:
    """Read the refunds of these ids, in their order."""
    data = await calls.ask(shop, queries.REFUNDS, {"ids": list(ids), **sizes})
    found = shapes.objects(data.get("nodes"), "refunds that were listed")
    if [each.get("id") for each in found] != list(ids):
        raise shapes.Misshapen("refunds that were listed")
    return found


def _pages_of(value: Mapping[str, Any]) -> list[shapes.ConnectionPage]:
    names = ("transactions", "refundLineItems", "refundShippingLines")
    return [shapes.page(value.get(name), f"{name} of a refund") for name in names]


async def _more_lines(calls: Calls, shop: Shop, order_id: str, after: str) -> Sequence[PulledLine]:
    lines: list[PulledLine] = []
    cursor: str | None = after
    for _ in range(calls.limits.line_pages):
        variables = {"id": order_id, "first": LINES_PER_PAGE, "after": cursor}
        data = await calls.ask(shop, queries.ORDER_LINES, variables)
        order = shapes.mapping(data.get("order"), "an order that was listed")
        page = shapes.page(order.get("lineItems"), "the lines of an order")
        lines += [shapes.line(each) for each in page.nodes]
        cursor = page.after
        if cursor is None:
            return lines
    raise shapes.Misshapen("an order with no last line")


async def _all_transactions(
    calls: Calls, shop: Shop, order_id: str
) -> tuple[PulledTransaction, ...]:
    data = await calls.ask(shop, queries.ORDER_TRANSACTIONS, {"id": order_id})
    order = shapes.mapping(data.get("order"), "an order that was listed")
    return shapes.transactions(order.get("transactions"))
