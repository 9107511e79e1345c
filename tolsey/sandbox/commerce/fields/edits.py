"""The mutations that change products, stock and orders, and the deliveries that follow."""

from collections.abc import Mapping
from typing import Any

from tolsey.sandbox.clock import instant
from tolsey.sandbox.commerce.query.projection import Call
from tolsey.sandbox.commerce.query.refused import FieldRefused, access_denied
from tolsey.sandbox.commerce.shop.products import LOCATION_ID, Product, Variant
from tolsey.sandbox.commerce.shop.state import Shop

LONGEST_TITLE = 255
HIGHEST = 2_000_000_000
REASONS = frozenset(
    {
        "correction",
        "cycle_count_available",
        "damaged",
        "movement_created",
        "movement_updated",
        "movement_received",
        "movement_canceled",
        "other",
        "promotion",
        "quality_control",
        "received",
        "reservation_created",
        "reservation_deleted",
        "reservation_updated",
        "restock",
        "safety_stock",
        "shrinkage",
    }
)
PRODUCT_FIELDS: Mapping[str, str] = {
    "title": "title",
    "descriptionHtml": "description_html",
    "handle": "handle",
    "productType": "product_type",
    "status": "status",
    "vendor": "vendor",
}


def update_product(_root: Any, call: Call) -> dict[str, Any]:
    """Change what is given of a product: `products/update`."""
    shop = _may(call, "productUpdate", "write_products")
    asked = call.args.get("product") or {}
    product = shop.products.get(_number(asked.get("id") or ""))
    if product is None:
        return {"product": None, "userErrors": [_error(["id"], "Product does not exist")]}
    problem = _wrong(asked)
    if problem is not None:
        return {"product": None, "userErrors": [problem]}
    for name, attribute in PRODUCT_FIELDS.items():
        if asked.get(name) is not None:
            setattr(product, attribute, asked[name])
    if asked.get("tags") is not None:
        product.tags = _tags(asked["tags"])
    call.request.platform.save_product(shop.domain, product)
    return {"product": product, "userErrors": []}


def update_order(_root: Any, call: Call) -> dict[str, Any]:
    """Overwrite an order's note or tags: `orders/updated`."""
    shop = _may(call, "orderUpdate", "write_orders")
    asked = call.args["input"]
    order = shop.orders.get(_number(asked["id"]))
    if order is None:
        return {"order": None, "userErrors": [_error(["id"], "Order does not exist")]}
    if "note" in asked:
        order.note = asked["note"]
    if asked.get("tags") is not None:
        order.tags = _tags(asked["tags"])
    call.request.platform.update_order(shop.domain, order.id)
    return {"order": order, "userErrors": []}


def add_tags(_root: Any, call: Call) -> dict[str, Any]:
    """Add tags to an order or a product; those it has already change nothing."""
    kind = call.args["id"].removeprefix("gid://shopify/").split("/", 1)[0]
    scope = "write_products" if kind == "Product" else "write_orders"
    shop, number = _may(call, "tagsAdd", scope), _number(call.args["id"])
    if kind == "Order" and number in shop.orders:
        order = shop.orders[number]
        tags = _tags([*order.tags, *call.args["tags"]])
        call.request.platform.update_order(shop.domain, number, tags=tags)
        return {"node": order, "userErrors": []}
    if kind == "Product" and number in shop.products:
        product = shop.products[number]
        product.tags = _tags([*product.tags, *call.args["tags"]])
        call.request.platform.save_product(shop.domain, product)
        return {"node": product, "userErrors": []}
    return {"node": None, "userErrors": [_error(["id"], f"{kind} does not exist")]}


def adjust_quantities(_root: Any, call: Call) -> dict[str, Any]:
    """Change what is available of items: `inventory_levels/update`; once for each key."""
    shop, asked = _may(call, "inventoryAdjustQuantities", "write_inventory"), call.args["input"]
    key = call.idempotency_key
    if key is None or not key.strip():
        raise FieldRefused(
            "The @idempotent directive is required for this mutation but was not provided.",
            "BAD_REQUEST",
        )
    if key in shop.idempotent:
        before, answer = shop.idempotent[key]
        if before == asked:
            return answer
        message = "The same idempotency key cannot be used with different operation parameters."
        return _unadjusted(["idempotent"], message, "IDEMPOTENCY_KEY_PARAMETER_MISMATCH")
    answer = _adjusted(shop, call, asked)
    shop.idempotent[key] = (asked, answer)
    return answer


def _adjusted(shop: Shop, call: Call, asked: Mapping[str, Any]) -> dict[str, Any]:
    if asked["name"] != "available":
        message = "The specified quantity name is invalid."
        return _unadjusted(["input", "name"], message, "INVALID_QUANTITY_NAME")
    if asked["reason"] not in REASONS:
        return _unadjusted(
            ["input", "reason"], "The specified reason is invalid.", "INVALID_REASON"
        )
    found: list[tuple[Variant, int]] = []
    for place, change in enumerate(asked["changes"]):
        variant = _variant(shop, change["inventoryItemId"])
        problem = _unfit(variant, change, ["input", "changes", str(place)])
        if problem is not None or variant is None:
            return problem or {}
        found.append((variant, change["delta"]))
    platform = call.request.platform
    for variant, delta in found:
        platform.set_stock(shop.domain, variant, variant.available + delta)
    group = {
        "id": f"gid://shopify/InventoryAdjustmentGroup/{next(shop.ids)}",
        "createdAt": instant(platform.now()),
        "reason": asked["reason"],
        "referenceDocumentUri": asked.get("referenceDocumentUri"),
        "changes": [
            {
                "name": "available",
                "delta": delta,
                "item": variant,
                "quantityAfterChange": variant.available,
            }
            for variant, delta in found
        ],
    }
    return {"inventoryAdjustmentGroup": group, "userErrors": []}


def _unfit(
    variant: Variant | None, change: Mapping[str, Any], where: list[str]
) -> dict[str, Any] | None:
    """Say why a change of stock is refused, if it is."""
    if variant is None:
        message = "The specified inventory item could not be found."
        return _unadjusted([*where, "inventoryItemId"], message, "INVALID_INVENTORY_ITEM")
    if _number(change["locationId"]) != LOCATION_ID:
        message = "The specified location could not be found."
        return _unadjusted([*where, "locationId"], message, "INVALID_LOCATION")
    if "changeFromQuantity" not in change:
        raise FieldRefused("changeFromQuantity must be given, even as null.", "BAD_REQUEST")
    expected = change["changeFromQuantity"]
    if expected is not None and expected != variant.available:
        message = "The changeFromQuantity argument no longer matches the persisted quantity."
        return _unadjusted([*where, "changeFromQuantity"], message, "CHANGE_FROM_QUANTITY_STALE")
    if variant.available + change["delta"] > HIGHEST:
        message = "The quantity can't be higher than 2,000,000,000."
        return _unadjusted([*where, "delta"], message, "INVALID_QUANTITY_TOO_HIGH")
    if variant.available + change["delta"] < -HIGHEST:
        message = "The quantity can't be lower than -2,000,000,000."
        return _unadjusted([*where, "delta"], message, "INVALID_QUANTITY_TOO_LOW")
    return None


def _unadjusted(where: list[str], message: str, code: str) -> dict[str, Any]:
    error = {**_error(where, message), "code": code}
    return {"inventoryAdjustmentGroup": None, "userErrors": [error]}


def _wrong(asked: Mapping[str, Any]) -> dict[str, Any] | None:
    title = asked.get("title")
    if title is not None and not title.strip():
        return _error(["title"], "Title can't be blank")
    if title is not None and len(title) > LONGEST_TITLE:
        return _error(["title"], f"Title is too long (maximum is {LONGEST_TITLE} characters)")
    return None


def _may(call: Call, field: str, scope: str) -> Shop:
    """Give the shop when the app may write; reading alone is not enough."""
    shop = call.request.shop
    if scope not in shop.scopes:
        raise access_denied(field, scope)
    return shop


def _variant(shop: Shop, gid: str) -> Variant | None:
    wanted = _number(gid)
    products: list[Product] = list(shop.products.values())
    return next((v for p in products for v in p.variants if v.inventory_item_id == wanted), None)


def _tags(tags: list[str]) -> tuple[str, ...]:
    """Keep each tag once whatever its case, in the order of the alphabet."""
    kept: dict[str, str] = {}
    for tag in tags:
        if tag.strip():
            kept.setdefault(tag.strip().lower(), tag.strip())
    return tuple(sorted(kept.values(), key=str.lower))


def _error(where: list[str], message: str) -> dict[str, Any]:
    return {"field": where, "message": message}


def _number(gid: str) -> int:
    tail = gid.rsplit("/", 1)[-1]
    return int(tail) if tail.isdigit() else -1
