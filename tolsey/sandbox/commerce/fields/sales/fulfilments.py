"""Fulfilment orders, fulfilments and their tracking: what is read of them, and what changes them.

An order has one fulfilment order, at the shop's one location.
"""

from typing import Any

from tolsey.sandbox.clock import instant
from tolsey.sandbox.commerce.fields.leaves import legacy
from tolsey.sandbox.commerce.fields.mutations import Wrong, mutation, number
from tolsey.sandbox.commerce.fields.reads import MAIN, need
from tolsey.sandbox.commerce.query.pages import Page, listed
from tolsey.sandbox.commerce.query.projection import Call, Getter
from tolsey.sandbox.commerce.shop.orders import Fulfilment, Line, Order
from tolsey.sandbox.commerce.shop.state import Shop

READ = "read_merchant_managed_fulfillment_orders"
WRITE = "write_merchant_managed_fulfillment_orders"
TRACKING = ("company", "number", "url")


def fulfillment_orders(order: Order, call: Call) -> Page:
    """Give the one fulfilment order of an order."""
    need(call, "fulfillmentOrders", READ)
    return listed([order]).page(call.args)


def fulfillments(order: Order, call: Call) -> list[tuple[Order, Fulfilment]]:
    """Give what was sent, oldest first."""
    return [(order, one) for one in order.fulfilments][: call.args.get("first")]


def fulfillment(_root: Any, call: Call) -> tuple[Order, Fulfilment] | None:
    """Find a fulfilment."""
    shop = need(call, "fulfillment", "read_orders")
    return _found(shop, call.args["id"])


@mutation("fulfillmentCreate", WRITE)
def create(shop: Shop, call: Call) -> dict[str, Any]:
    """Send lines of one order: `fulfillments/create` and the order's new state."""
    asked = call.args["fulfillment"]
    lines: dict[int, int] = {}
    order = None
    for part in asked["lineItemsByFulfillmentOrder"]:
        order = shop.orders.get(number(part["fulfillmentOrderId"]))
        if order is None or order.cancelled_at is not None:
            raise Wrong(["fulfillment"], "Fulfillment order does not exist.")
        left = {line.id: order.unsent(line) for line in order.lines}
        given = part.get("fulfillmentOrderLineItems") or [
            {"id": str(id), "quantity": units} for id, units in left.items()
        ]
        for one in given:
            id = number(one["id"])
            if not 0 < one["quantity"] <= left.get(id, 0):
                message = "Invalid fulfillment order line item quantity requested."
                raise Wrong(["fulfillment"], message)
            lines[id] = one["quantity"]
    if order is None:
        raise Wrong(["fulfillment"], "Nothing is to be fulfilled.")
    tracking = {name: (asked.get("trackingInfo") or {}).get(name) for name in TRACKING}
    told = bool(asked.get("notifyCustomer"))
    made = call.request.platform.send_lines(shop.domain, order.id, lines, tracking, told=told)
    return {"fulfillment": (order, made)}


@mutation("fulfillmentTrackingInfoUpdate", WRITE)
def track(shop: Shop, call: Call) -> dict[str, Any]:
    """Say how a parcel is tracked from now on: `fulfillments/update`."""
    found = _found(shop, call.args["fulfillmentId"])
    if found is None:
        raise Wrong(["fulfillmentId"], "Fulfillment does not exist.")
    order, sent = found
    for name in TRACKING:
        setattr(sent, name, call.args["trackingInfoInput"].get(name))
    sent.told += bool(call.args.get("notifyCustomer"))
    call.request.platform.track_parcel(shop.domain, order.id)
    return {"fulfillment": found}


def _found(shop: Shop, gid: str) -> tuple[Order, Fulfilment] | None:
    wanted = number(gid)
    pairs = ((order, sent) for order in shop.orders.values() for sent in order.fulfilments)
    return next((pair for pair in pairs if pair[1].id == wanted), None)


def _status(order: Order, _: Call) -> str:
    if order.cancelled_at is not None:
        return "CANCELLED"
    if not any(order.unsent(line) for line in order.lines):
        return "CLOSED"
    return "IN_PROGRESS" if order.fulfilments else "OPEN"


def _lines(order: Order, call: Call) -> Page:
    return listed([(order, line) for line in order.lines]).page(call.args)


def _tracking(pair: tuple[Order, Fulfilment], _: Call) -> list[dict[str, str | None]]:
    told = {name: getattr(pair[1], name) for name in TRACKING}
    return [told] if any(told.values()) else []


FULFILLMENT_ORDER: dict[str, Getter] = {
    "id": lambda o, _: f"gid://shopify/FulfillmentOrder/{o.id}",
    "status": _status,
    "assignedLocation": lambda _o, _: {"location": MAIN, "name": MAIN["name"]},
    "lineItems": _lines,
    "createdAt": lambda o, _: instant(o.created_at),
}


def _line(pair: tuple[Order, Line]) -> int:
    order, line = pair
    return order.unsent(line)


FULFILLMENT_ORDER_LINE: dict[str, Getter] = {
    "id": lambda p, _: f"gid://shopify/FulfillmentOrderLineItem/{p[1].id}",
    "remainingQuantity": lambda p, _: _line(p),
    "totalQuantity": lambda p, _: p[1].quantity,
    "lineItem": lambda p, _: p,
}
FULFILLMENT: dict[str, Getter] = {
    "id": lambda p, _: f"gid://shopify/Fulfillment/{p[1].id}",
    "legacyResourceId": lambda p, _: legacy(p[1], _),
    "status": lambda _p, _: "SUCCESS",
    "createdAt": lambda p, _: instant(p[1].created_at),
    "order": lambda p, _: p[0],
    "trackingInfo": _tracking,
}
