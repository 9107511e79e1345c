"""Calls of one tool as agents make them, in two revisions of the protocol, and what the tool answers.

Every agent has a token, a store and an organization of its own; servers that know no stores are
called at one address.
"""

import functools
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final, cast

import orjson

from tolsey.http.mcp import wire
from tolsey.http.mcp.tools.reads.orders import OrderDetail, detail_of
from tolsey.storage.database import Row
from tolsey.storage.reports.orders import OrderParts

AGENTS: Final = 64
ORDERS: Final = 100
"""How many orders each store has: 1, 2 and so on."""
TOKENS: Final = tuple(f"bench-agent-{number:02d}-{'x' * 30}" for number in range(AGENTS))
TOOL: Final = "get_order"
TITLE: Final = "Get an order"
DESCRIPTION: Final = "Reads one order with its refunds and parcels."
MODERN: Final = wire.MODERN
OLDER: Final = wire.HANDSHAKE[0]
REVISIONS: Final = (MODERN, OLDER)
ANSWERED: Final = '"structuredContent":{'
"""What stands in the answer to a call that was carried out, and in no refusal."""

AT: Final = datetime(2026, 11, 20, 10, tzinfo=UTC)
ORDER: Final[Mapping[str, Any]] = {
    "name": "#1001",
    "processed_at": AT,
    "currency": "EUR",
    "total_minor": 129_90,
    "current_total_minor": 99_90,
    "financial_status": "partially_refunded",
    "fulfillment_status": "fulfilled",
    "source_name": "web",
    "customer": f"s1:{'0f' * 32}",
    "test": False,
    "cancelled_at": None,
    "tags": None,
    "parts": None,
    "updated_at": AT,
}
REFUND: Final = {"refund_id": 1, "currency": "EUR", "amount_minor": 30_00, "processed_at": AT}
PARCEL: Final = {
    "fulfillment_id": 1,
    "status": "success",
    "shipment_status": "delivered",
    "tracking_company": "DHL",
    "updated_at": AT,
}


def order(order_id: str) -> OrderDetail:
    """Answer as our own tool does, of rows that need no database."""
    found = cast("Row", {**ORDER, "order_id": order_id})
    return detail_of(OrderParts(found, [REFUND], [PARCEL]))


def requests(path: str, first: int, count: int, *, revision: str) -> Iterator[bytes]:
    """Make calls of all agents in turn; `{}` in the path stands for the number of the agent."""
    said = {
        wire.PROTOCOL_VERSION: MODERN,
        wire.CLIENT_CAPABILITIES: {},
        "io.modelcontextprotocol/clientInfo": {"name": "bench", "version": "1"},
    }
    params = {"name": TOOL, **({"_meta": said} if revision == MODERN else {})}
    named = f"Mcp-Method: tools/call\r\nMcp-Name: {TOOL}\r\n" if revision == MODERN else ""
    for number in range(first, first + count):
        asked = {**params, "arguments": {"order_id": str(number % ORDERS + 1)}}
        call = {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": asked}
        body, agent = orjson.dumps(call), number % AGENTS
        head = (
            f"POST {path.format(agent)} HTTP/1.1\r\nHost: 127.0.0.1\r\n"
            "Accept: application/json, text/event-stream\r\nContent-Type: application/json\r\n"
            f"MCP-Protocol-Version: {revision}\r\n{named}"
            f"Authorization: Bearer {TOKENS[agent]}\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        yield head.encode() + body


BODIES: Final[Mapping[str, Callable[[str, int, int], Iterator[bytes]]]] = {
    revision: functools.partial(requests, revision=revision) for revision in REVISIONS
}
"""The generator's kinds of requests, by revision."""
