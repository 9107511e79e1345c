"""Discount codes: what stands under one, and making it."""

from datetime import datetime
from typing import Any

from tolsey.sandbox.clock import instant
from tolsey.sandbox.commerce.fields.mutations import Wrong, mutation
from tolsey.sandbox.commerce.fields.reads import need
from tolsey.sandbox.commerce.query.projection import Call, Getter
from tolsey.sandbox.commerce.shop.discounts import Discount
from tolsey.sandbox.commerce.shop.state import Shop


def by_code(_root: Any, call: Call) -> Discount | None:
    """Find a discount, whatever the case of its code."""
    shop = need(call, "codeDiscountNodeByCode", "read_discounts")
    return shop.discounts.get(call.args["code"].lower())


@mutation("discountCodeBasicCreate", "write_discounts")
def create(shop: Shop, call: Call) -> dict[str, Any]:
    """Make a code, which is nobody's yet."""
    asked = call.args["basicCodeDiscount"]
    code = asked.get("code") or ""
    if not code.strip():
        raise Wrong(["basicCodeDiscount", "code"], "Code can't be blank", "BLANK")
    if code.lower() in shop.discounts:
        message = "Code must be unique. Please try a different code."
        raise Wrong(["basicCodeDiscount", "code"], message, "TAKEN")
    starts_at = datetime.fromisoformat(asked["startsAt"])
    made = Discount(next(shop.ids), code, asked.get("title") or code, starts_at, asked)
    shop.discounts[code.lower()] = made
    return {"codeDiscountNode": made}


def _status(discount: Discount, call: Call) -> str:
    return "SCHEDULED" if discount.starts_at > call.request.platform.now() else "ACTIVE"


NODE: dict[str, Getter] = {
    "id": lambda d, _: f"gid://shopify/DiscountCodeNode/{d.id}",
    "codeDiscount": lambda d, _: d,
}
BASIC: dict[str, Getter] = {
    "title": lambda d, _: d.title,
    "status": _status,
    "startsAt": lambda d, _: instant(d.starts_at),
}
