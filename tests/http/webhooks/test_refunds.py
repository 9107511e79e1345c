"""What was given back on an order, however the platform tells of it."""

import asyncio
from typing import Any

import pytest

from tests.http.webhooks.merchant import NOON, Merchant
from tests.http.webhooks.test_receiver import ACCEPTED, order
from tolsey.storage.database import Database


def refund(number: int, amount: str, status: str = "success") -> dict[str, Any]:
    moved = {"kind": "refund", "status": status, "amount": amount, "currency": "USD"}
    return {
        "id": number,
        "order_id": 7,
        "processed_at": NOON.isoformat(),
        "transactions": [moved],
    }


async def refunded(database: Database) -> list[tuple[int, int, int]]:
    """List what was given back: refund, order and amount."""
    rows = await database.fetch(
        "SELECT refund_id, order_id, amount_minor FROM commerce_refunds ORDER BY refund_id"
    )
    return [tuple(row) for row in rows]


async def test_what_was_given_back_before_we_listened_comes_with_its_order(
    merchant: Merchant, database: Database
) -> None:
    await merchant.connect()
    body = order(refunds=[refund(1, "129.00"), refund(2, "1.50")])
    await merchant.deliver("orders/updated", body)

    assert await refunded(database) == [(1, 7, 12_900), (2, 7, 150)]


@pytest.mark.parametrize("turn", range(3))
async def test_a_refund_is_the_same_in_whatever_order_it_is_told(
    merchant: Merchant, database: Database, turn: int
) -> None:
    """The platform tells of it when it is made, while its money is still on the way, and later."""
    await merchant.connect()
    told: list[tuple[str, dict[str, Any]]] = [
        ("refunds/create", refund(1, "129.00", "pending")),
        ("orders/updated", order(refunds=[refund(1, "129.00")])),
        ("refunds/create", refund(1, "129.00")),
    ]
    for topic, body in [*told[turn:], *told[:turn], *told]:
        assert (await merchant.deliver(topic, body)).json == ACCEPTED
    await asyncio.gather(*(merchant.deliver(topic, body) for topic, body in told))

    assert await refunded(database) == [(1, 7, 12_900)]
