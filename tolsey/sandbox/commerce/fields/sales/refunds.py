"""The refund that the platform suggests, and the one that is made."""

from collections.abc import Mapping
from typing import Any

from tolsey.sandbox.commerce.course.life import worth
from tolsey.sandbox.commerce.fields.mutations import Wrong, mutation, number
from tolsey.sandbox.commerce.query.projection import Call
from tolsey.sandbox.commerce.shop.money import minor
from tolsey.sandbox.commerce.shop.orders import Order, Transaction
from tolsey.sandbox.commerce.shop.state import Shop

PAID = frozenset({"SALE", "CAPTURE"})


def suggested(order: Order, call: Call) -> dict[str, Any]:
    """Say what would be paid back for lines and shipping, and through which payments."""
    args, everything = call.args, bool(call.args.get("suggestFullRefund"))
    given = {
        number(one["lineItemId"]): one["quantity"] for one in args.get("refundLineItems") or []
    }
    held = {line.id: line.current_quantity for line in order.lines}
    units = held if everything else {id: min(given.get(id, 0), there) for id, there in held.items()}
    goods = [worth(order, line, units.get(line.id, 0)) for line in order.lines]
    shipping = order.current_shipping if everything else 0
    if args.get("shippingAmount") is not None:
        shipping = minor(args["shippingAmount"], order.currency)
    most = order.received - order.refunded
    wanted = most if everything else sum(map(sum, goods)) + shipping
    amount = max(0, min(most, wanted))
    through, left = [], amount
    for paid, refundable in _payments(order):
        part = min(left, refundable)
        left -= part
        through.append(
            {
                "kind": "SUGGESTED_REFUND",
                "gateway": paid.gateway,
                "amountSet": order.money(part),
                "maximumRefundableSet": order.money(refundable),
                "parentTransaction": paid,
            }
        )
    return {
        "amountSet": order.money(amount),
        "maximumRefundableSet": order.money(most),
        "shipping": {"amountSet": order.money(shipping)},
        "suggestedTransactions": through,
    }


@mutation("refundCreate", "write_orders", is_keyed=True)
def create(shop: Shop, call: Call) -> dict[str, Any]:
    """Pay back and take units back: `refunds/create`, `orders/updated`; once for each key."""
    asked = call.args["input"]
    order = shop.orders.get(number(asked["orderId"]))
    if order is None:
        raise Wrong(["orderId"], "Order does not exist")
    units = _lines(order, asked.get("refundLineItems") or [], ["refundLineItems"])
    refundable = {paid.id: most for paid, most in _payments(order)}
    amount = 0
    for one in asked.get("transactions") or []:
        part, parent = minor(one["amount"], order.currency), number(one.get("parentId") or "")
        if one["kind"] != "REFUND" or part > refundable.get(parent, 0):
            message = "Refund amount cannot be greater than the refundable amount of a payment."
            raise Wrong(["transactions"], message)
        amount += part
    shipping = (asked.get("shipping") or {}).get("amount")
    refund = call.request.platform.refund_order(
        shop.domain,
        order.id,
        amount=amount,
        returned=units,
        note=asked.get("note"),
        shipping=0 if shipping is None else minor(shipping, order.currency),
    )
    return {"refund": (order, refund), "order": order}


def _lines(order: Order, given: list[Mapping[str, Any]], where: list[str]) -> dict[int, int]:
    """Read how many units of which lines come back: never more than are there."""
    left = {line.id: line.current_quantity for line in order.lines}
    units = {}
    for one in given:
        id = number(one["lineItemId"])
        if not 0 < one["quantity"] <= left.get(id, 0):
            raise Wrong(where, "Quantity cannot refund more items than were purchased")
        units[id] = one["quantity"]
    return units


def _payments(order: Order) -> list[tuple[Transaction, int]]:
    """List what was paid, and how much of each payment was not given back."""
    made = [one for one in order.transactions if one.status == "SUCCESS"]
    return [
        (paid, most)
        for paid in made
        if paid.kind in PAID
        and (
            most := paid.amount
            - sum(one.amount for one in made if one.kind == "REFUND" and one.parent_id == paid.id)
        )
    ]
