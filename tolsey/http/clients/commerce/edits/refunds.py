"""Refunds: what the platform suggests, and the one that is made under a key that it honours."""

from typing import Any, Final

from tolsey.actors.edit import Edit
from tolsey.http.clients.commerce import shapes
from tolsey.http.clients.commerce.edits.way import (
    Body,
    EditDocument,
    EditWay,
    id_of,
    nodes,
    number_of,
    pair,
    tail,
    units,
)
from tolsey.http.clients.commerce.queries import gid

REFUNDABLE: Final = """
  presentmentCurrencyCode
  totalRefundedSet { presentmentMoney { amount } }
  refunds(first: 50) { id }
  lineItems(first: 100) { nodes { id refundableQuantity } }
  suggestedRefund(refundLineItems: $lines, shippingAmount: $shipping, suggestFullRefund: $whole) {
    amountSet { presentmentMoney { amount } }
    maximumRefundableSet { presentmentMoney { amount } }
    suggestedTransactions {
      gateway
      maximumRefundableSet { presentmentMoney { amount } }
      parentTransaction { id }
    }
  }
"""
ASKED: Final = "$lines: [RefundLineItemInput!], $shipping: Money, $whole: Boolean"
LOOK_AT_REFUNDABLE: Final = f"""
query LookAtRefundable($id: ID!, {ASKED}) {{ order(id: $id) {{ {REFUNDABLE} }} }}
"""
REFUND: Final = f"""
mutation Refund($input: RefundInput!, $key: String!, {ASKED}) {{
  refundCreate(input: $input) @idempotent(key: $key) {{
    refund {{ id }}
    order {{ {REFUNDABLE} }}
    userErrors {{ field message }}
  }}
}}
"""


class RefundWay(EditWay):
    """What can be given back of an order."""

    def look(self, edit: Edit) -> EditDocument:
        """Ask for the platform's own suggestion, and for what was given back."""
        return EditDocument(
            text=LOOK_AT_REFUNDABLE, variables={"id": id_of("Order", edit), **_asked(edit)}
        )

    def found(self, edit: Edit, data: Body) -> dict[str, Any] | None:
        """Read the suggestion."""
        del edit
        return None if data.get("order") is None else _refundable(data["order"])

    def change(self, edit: Edit, key: str) -> EditDocument:
        """Send the amounts that were planned, each through the payment that it came by."""
        change, order = edit.change or {}, id_of("Order", edit)
        amount = change["amount"]
        asked: dict[str, Any] = {
            "orderId": order,
            "currency": amount["currency"],
            "notify": change["notify"],
            "refundLineItems": _lines(edit),
            "transactions": [
                {
                    "orderId": order,
                    "kind": "REFUND",
                    "gateway": one["gateway"],
                    "parentId": gid("OrderTransaction", int(one["parent"])),
                    "amount": units({**amount, "amount": one["most"]}),
                }
                for one in change["payments"]
            ],
        }
        if change["shipping"] is not None:
            asked["shipping"] = {"amount": units(change["shipping"])}
        if change["note"] is not None:
            asked["note"] = change["note"]
        if not change["is_suggested"]:
            asked["discrepancyReason"] = "OTHER"
        sent = {"input": asked, "key": key, **_asked(edit)}
        return EditDocument(text=REFUND, variables=sent, field="refundCreate")

    def made(self, edit: Edit, payload: Body) -> dict[str, Any]:
        """Read what was given back by now."""
        del edit
        shapes.mapping(payload.get("refund"), "a refund")
        return _refundable(payload.get("order"))


def _asked(edit: Edit) -> dict[str, Any]:
    """Say what a suggestion is wanted for; for an amount alone, for all that is left."""
    wanted = edit.wanted
    shipping = wanted["shipping"]
    return {
        "lines": _lines(edit),
        "shipping": None if shipping is None else units(shipping),
        "whole": not wanted["lines"] and shipping is None,
    }


def _lines(edit: Edit) -> list[dict[str, Any]]:
    wanted = edit.wanted
    back = {"restockType": "NO_RESTOCK"}
    if wanted["location"] is not None:
        location = gid("Location", int(wanted["location"]))
        back = {"restockType": "RETURN", "locationId": location}
    return [
        {"lineItemId": gid("LineItem", int(line)), "quantity": quantity, **back}
        for line, quantity in wanted["lines"].items()
    ]


def _refundable(value: object) -> dict[str, Any]:
    order = shapes.mapping(value, "an order")
    currency = shapes.text(order.get("presentmentCurrencyCode"), "the currency of an order")
    suggested = shapes.mapping(order.get("suggestedRefund"), "a suggested refund")
    lines = nodes(order.get("lineItems"), "a line")
    payments = []
    for one in tail(suggested.get("suggestedTransactions"), "a payment"):
        parent = shapes.mapping(one.get("parentTransaction"), "a payment").get("id")
        payments.append(
            {
                "gateway": shapes.text(one.get("gateway"), "a gateway"),
                "parent": number_of(parent, "a payment"),
                "most": _minor(one.get("maximumRefundableSet"), currency),
            }
        )
    refunds = tail(order.get("refunds"), "a refund")
    return {
        "currency": currency,
        "refunded": _minor(order.get("totalRefundedSet"), currency),
        "refundable": _minor(suggested.get("maximumRefundableSet"), currency),
        "suggested": _minor(suggested.get("amountSet"), currency),
        "payments": payments,
        "refunds": [number_of(one.get("id"), "a refund") for one in refunds],
        "lines": {
            number_of(one.get("id"), "a line"): shapes.units(one["refundableQuantity"], "units")
            for one in lines
        },
    }


def _minor(bag: object, currency: str) -> int:
    """Take an amount in minor units of the buyer's currency, which is what goes back."""
    money = shapes.mapping(shapes.mapping(bag, "money").get("presentmentMoney"), "money")
    minor: int = pair(money.get("amount"), currency, "money")["amount"]
    return minor
