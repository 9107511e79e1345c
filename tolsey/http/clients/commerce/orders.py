"""Orders pulled page by page: for stores with few of them, and for what a page leaves out."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from datetime import datetime
from typing import Any

from tolsey.actors.ports import PlatformUnreachable, Shop
from tolsey.http.clients.commerce import queries, shapes
from tolsey.http.clients.commerce.answers import QueryTooCostly
from tolsey.http.clients.commerce.calls import Calls
from tolsey.http.clients.commerce.costs import largest_page
from tolsey.storage.records.selling.revenue import PulledLine, PulledOrder, PulledTransaction

MOST_PER_PAGE = 250
LINES_PER_PAGE = 100


def belongs(order: PulledOrder, start: datetime, end: datetime) -> bool:
    """Whether an order is a real one of [start, end); the search index alone is not trusted."""
    return not order.test and start <= order.processed_at < end


async def paged_orders(
    calls: Calls, shop: Shop, start: datetime, end: datetime
) -> AsyncGenerator[PulledOrder]:
    """Yield the orders of [start, end), each once."""
    seen: set[str] = set()
    query = queries.processed_between(start, end)
    async with aclosing(_nodes(calls, shop, query)) as nodes:
        async for node in nodes:
            order = await _complete(calls, shop, node)
            if belongs(order, start, end) and order.order_id not in seen:
                seen.add(order.order_id)
                yield order


async def _nodes(calls: Calls, shop: Shop, query: str) -> AsyncGenerator[Mapping[str, Any]]:
    variables: dict[str, Any] = {"query": query, "after": None}
    size = min(MOST_PER_PAGE, largest_page(queries.ORDERS, variables, calls.limits.page_points))
    cursors: set[str] = set()
    while len(cursors) < calls.limits.pages:
        try:
            data = await calls.ask(shop, queries.ORDERS, {**variables, "first": size})
        except QueryTooCostly:
            if size == 1:
                raise
            size //= 2
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
    raise PlatformUnreachable("The shop has more pages of orders than are followed.")


async def _complete(calls: Calls, shop: Shop, node: Mapping[str, Any]) -> PulledOrder:
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
    return shapes.order(node, lines, movements)


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
