"""What is sent out: fulfilment orders with what is left of their lines, fulfilments, and their tracking."""

from collections.abc import Mapping
from typing import Any, Final

from tolsey.actors.edit import Edit
from tolsey.http.clients.commerce import shapes
from tolsey.http.clients.commerce.edits.way import (
    Body,
    EditDocument,
    NumberedWay,
    id_of,
    nodes,
    number_of,
    tail,
)
from tolsey.http.clients.commerce.queries import gid

SENT: Final = """
  fulfillmentOrders(first: 5) {
    nodes {
      id status
      assignedLocation { location { id } }
      lineItems(first: 50) {
        nodes { id remainingQuantity lineItem { id } }
        pageInfo { hasNextPage }
      }
    }
    pageInfo { hasNextPage }
  }
  fulfillments(first: 50) { id status trackingInfo(first: 1) { company number url } }
"""
MOST_PARCELS: Final = 50
"""How many fulfilments of an order are read; the platform lists them without pages."""
TRACKED: Final = "id status trackingInfo(first: 2) { company number url }"
LOOK_AT_SENT: Final = f"query LookAtSent($id: ID!) {{ order(id: $id) {{ {SENT} }} }}"
FULFIL: Final = f"""
mutation Fulfil($fulfillment: FulfillmentInput!) {{
  fulfillmentCreate(fulfillment: $fulfillment) {{
    fulfillment {{ id order {{ {SENT} }} }}
    userErrors {{ field message }}
  }}
}}
"""
LOOK_AT_TRACKING: Final = (
    f"query LookAtTracking($id: ID!) {{ fulfillment(id: $id) {{ {TRACKED} }} }}"
)
TRACK: Final = f"""
mutation Track($id: ID!, $tracking: FulfillmentTrackingInput!, $notify: Boolean) {{
  fulfillmentTrackingInfoUpdate(
    fulfillmentId: $id, trackingInfoInput: $tracking, notifyCustomer: $notify
  ) {{
    fulfillment {{ {TRACKED} }}
    userErrors {{ field message }}
  }}
}}
"""
NAMES: Final = ("company", "number", "url")


class FulfilWay(NumberedWay):
    """What is left to send of an order."""

    kind, looks, at = "Order", LOOK_AT_SENT, "order"

    def read(self, value: object) -> dict[str, Any]:
        """Read what is left, and what was sent."""
        return _sent(value)

    def change(self, edit: Edit, key: str) -> EditDocument:
        """Send exactly what was planned: the platform refuses what is no longer left."""
        del key
        change = edit.change or {}
        parts = [
            {
                "fulfillmentOrderId": gid("FulfillmentOrder", int(part)),
                "fulfillmentOrderLineItems": [
                    {"id": gid("FulfillmentOrderLineItem", int(id)), "quantity": units}
                    for id, units in lines.items()
                ],
            }
            for part, lines in change["parts"].items()
        ]
        asked = {"lineItemsByFulfillmentOrder": parts, "notifyCustomer": change["notify"]}
        if tracking := _given(change["tracking"]):
            asked["trackingInfo"] = tracking
        return EditDocument(
            text=FULFIL, variables={"fulfillment": asked}, field="fulfillmentCreate"
        )

    def made(self, edit: Edit, payload: Body) -> dict[str, Any]:
        """Read what is left of the order of the new fulfilment."""
        del edit
        made = shapes.mapping(payload.get("fulfillment"), "a fulfilment")
        return self.read(made.get("order"))


class TrackWay(NumberedWay):
    """How a fulfilment is tracked."""

    kind, looks, at = "Fulfillment", LOOK_AT_TRACKING, "fulfillment"

    def read(self, value: object) -> dict[str, Any]:
        """Read the tracking."""
        found = shapes.mapping(value, "a fulfilment")
        parcels = tail(found.get("trackingInfo"), "the tracking of a fulfilment")
        return {
            "status": found.get("status"),
            "parcels": len(parcels),
            "tracking": _tracking(found),
        }

    def change(self, edit: Edit, key: str) -> EditDocument:
        """Send all of the tracking: the platform keeps nothing of what was there."""
        del key
        change = edit.change or {}
        asked = {
            "id": id_of("Fulfillment", edit),
            "tracking": _given(change["tracking"]),
            "notify": change["notify"],
        }
        return EditDocument(text=TRACK, variables=asked, field="fulfillmentTrackingInfoUpdate")


def _given(tracking: Mapping[str, str | None]) -> dict[str, str]:
    return {name: value for name, value in tracking.items() if value is not None}


def _sent(value: object) -> dict[str, Any]:
    order = shapes.mapping(value, "an order")
    parts, left, is_whole = [], dict[str, int](), _is_whole(order.get("fulfillmentOrders"))
    for part in nodes(order.get("fulfillmentOrders"), "a fulfilment order"):
        where = shapes.mapping(part.get("assignedLocation"), "a location").get("location")
        lines = {}
        is_whole = is_whole and _is_whole(part.get("lineItems"))
        for one in nodes(part.get("lineItems"), "a line to fulfil"):
            line = shapes.mapping(one.get("lineItem"), "a line").get("id")
            of, units = number_of(line, "a line"), shapes.units(one["remainingQuantity"], "units")
            lines[number_of(one.get("id"), "a line to fulfil")] = {"of": of, "left": units}
            left[of] = left.get(of, 0) + units
        parts.append(
            {
                "id": number_of(part.get("id"), "a fulfilment order"),
                "status": part.get("status"),
                "location": where and number_of(where.get("id"), "a location"),
                "lines": lines,
            }
        )
    sent = [
        {"id": number_of(one.get("id"), "a fulfilment"), **_tracking(one)}
        for one in tail(order.get("fulfillments"), "a fulfilment")
    ]
    # One more would not be seen, so nobody could tell whether it was made.
    is_whole = is_whole and len(sent) < MOST_PARCELS
    return {"parts": parts, "left": left, "fulfilments": sent, "is_whole": is_whole}


def _is_whole(connection: object) -> bool:
    page = shapes.mapping(connection, "a page of a list").get("pageInfo")
    return not shapes.mapping(page, "a page of a list").get("hasNextPage")


def _tracking(fulfilment: Body) -> dict[str, str | None]:
    first = next(iter(tail(fulfilment.get("trackingInfo"), "the tracking of a fulfilment")), {})
    return {name: first.get(name) or None for name in NAMES}
