"""Discount codes: what stands under a code, and a new one."""

from typing import Any, Final

from tolsey.actors.edit import Edit
from tolsey.http.clients.commerce import shapes
from tolsey.http.clients.commerce.edits.way import (
    Body,
    EditDocument,
    EditWay,
    number_of,
    units,
)

DISCOUNT: Final = (
    "id codeDiscount { __typename ... on DiscountCodeBasic { title status startsAt } }"
)
LOOK_AT_DISCOUNT: Final = f"""
query LookAtDiscount($code: String!) {{
  shop {{ currencyCode }}
  codeDiscountNodeByCode(code: $code) {{ {DISCOUNT} }}
}}
"""
CREATE_DISCOUNT: Final = f"""
mutation CreateDiscount($discount: DiscountCodeBasicInput!) {{
  discountCodeBasicCreate(basicCodeDiscount: $discount) {{
    codeDiscountNode {{ {DISCOUNT} }}
    userErrors {{ code field message }}
  }}
}}
"""


class DiscountWay(EditWay):
    """What stands under a code."""

    def look(self, edit: Edit) -> EditDocument:
        """Ask for the code."""
        return EditDocument(text=LOOK_AT_DISCOUNT, variables={"code": edit.ids[0]})

    def found(self, edit: Edit, data: Body) -> dict[str, Any]:
        """Read what stands there; a code of no discount is one, too."""
        del edit
        shop = shapes.mapping(data.get("shop"), "a shop")
        return {
            "currency": shapes.text(shop.get("currencyCode"), "the currency of a shop"),
            "discount": _discount(data.get("codeDiscountNodeByCode")),
        }

    def change(self, edit: Edit, key: str) -> EditDocument:
        """Send the new code, for everybody and everything."""
        del key
        change = edit.change or {}
        amount = change["amount"]
        value: dict[str, Any] = {"percentage": (change["percentage"] or 0) / 100}
        if amount is not None:
            value = {"discountAmount": {"amount": units(amount), "appliesOnEachItem": False}}
        asked = {
            "code": edit.ids[0],
            "title": change["title"],
            "startsAt": change["starts_at"],
            "usageLimit": change["usage_limit"],
            "appliesOncePerCustomer": change["once"],
            "context": {"all": "ALL"},
            "customerGets": {"items": {"all": True}, "value": value},
        }
        if change["minimum"] is not None:
            least = {"greaterThanOrEqualToSubtotal": units(change["minimum"])}
            asked["minimumRequirement"] = {"subtotal": least}
        sent = {"discount": asked}
        return EditDocument(text=CREATE_DISCOUNT, variables=sent, field="discountCodeBasicCreate")

    def made(self, edit: Edit, payload: Body) -> dict[str, Any]:
        """Read what was made."""
        del edit
        made = shapes.mapping(payload.get("codeDiscountNode"), "a discount")
        return {"discount": _discount(made)}


def _discount(value: object) -> dict[str, Any] | None:
    if value is None:
        return None
    found = shapes.mapping(value, "a discount")
    said = shapes.mapping(found.get("codeDiscount"), "a discount")
    return {
        "id": number_of(found.get("id"), "a discount"),
        # Of another kind than amounts off nothing more is read.
        "title": said.get("title"),
        "status": said.get("status"),
        "starts_at": said.get("startsAt"),
    }
