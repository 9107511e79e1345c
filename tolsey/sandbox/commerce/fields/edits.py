"""The mutations that change products, stock and orders, and the deliveries that follow."""

from collections.abc import Mapping
from typing import Any

from tolsey.sandbox.clock import instant
from tolsey.sandbox.commerce.fields.mutations import Wrong, mutation, number
from tolsey.sandbox.commerce.query.projection import Call
from tolsey.sandbox.commerce.query.refused import FieldRefused
from tolsey.sandbox.commerce.shop.money import minor
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
VARIANT_PRICES: Mapping[str, str] = {"price": "price", "compareAtPrice": "compare_at_price"}


@mutation("productUpdate", "write_products")
def update_product(shop: Shop, call: Call) -> dict[str, Any]:
    """Change what is given of a product: `products/update`."""
    asked = call.args.get("product") or {}
    product = _product(shop, asked.get("id") or "", ["id"])
    title = asked.get("title")
    if title is not None and not title.strip():
        raise Wrong(["title"], "Title can't be blank")
    if title is not None and len(title) > LONGEST_TITLE:
        raise Wrong(["title"], f"Title is too long (maximum is {LONGEST_TITLE} characters)")
    for name, attribute in PRODUCT_FIELDS.items():
        if asked.get(name) is not None:
            setattr(product, attribute, asked[name])
    product.seo |= {name: text for name, text in (asked.get("seo") or {}).items() if text}
    if asked.get("tags") is not None:
        product.tags = tags_of(asked["tags"])
    call.request.platform.save_product(shop.domain, product)
    return {"product": product}


@mutation("productVariantsBulkUpdate", "write_products")
def update_variants(shop: Shop, call: Call) -> dict[str, Any]:
    """Change prices of variants of a product, all or none: `products/update`."""
    product = _product(shop, call.args["productId"], ["productId"])
    own, currency = {one.id: one for one in product.variants}, shop.spec.currency
    found: list[tuple[Variant, dict[str, int | None]]] = []
    for place, asked in enumerate(call.args["variants"]):
        where = ["variants", str(place)]
        variant = own.get(number(asked.get("id") or ""))
        if variant is None:
            message = "Product variant does not exist"
            raise Wrong([*where, "id"], message, "PRODUCT_VARIANT_DOES_NOT_EXIST")
        # A compare-at price of null is none; a price is never taken away.
        prices = {
            attribute: None if asked[name] is None else minor(asked[name], currency)
            for name, attribute in VARIANT_PRICES.items()
            if name in asked
        }
        if any(one is not None and one < 0 for one in prices.values()):
            raise Wrong([*where, "price"], "Price must be positive", "NEGATIVE_PRICE_VALUE")
        found.append((variant, prices))
    for variant, prices in found:
        for attribute, value in prices.items():
            if value is not None or attribute != "price":
                setattr(variant, attribute, value)
    call.request.platform.save_product(shop.domain, product)
    return {"product": product, "productVariants": [variant for variant, _ in found]}


@mutation("orderUpdate", "write_orders")
def update_order(shop: Shop, call: Call) -> dict[str, Any]:
    """Overwrite an order's note or tags: `orders/updated`."""
    asked = call.args["input"]
    order = shop.orders.get(number(asked["id"]))
    if order is None:
        raise Wrong(["id"], "Order does not exist")
    if "note" in asked:
        order.note = asked["note"]
    if asked.get("tags") is not None:
        order.tags = tags_of(asked["tags"])
    call.request.platform.update_order(shop.domain, order.id)
    return {"order": order}


def _kind(call: Call) -> str:
    """Name what is tagged."""
    kind: str = call.args["id"].removeprefix("gid://shopify/").split("/", 1)[0]
    return kind


@mutation("tagsAdd", lambda c: "write_products" if _kind(c) == "Product" else "write_orders")
def add_tags(shop: Shop, call: Call) -> dict[str, Any]:
    """Add tags to an order or a product; those it has already change nothing."""
    kind, id = _kind(call), number(call.args["id"])
    if kind == "Order" and id in shop.orders:
        order = shop.orders[id]
        tags = tags_of([*order.tags, *call.args["tags"]])
        call.request.platform.update_order(shop.domain, id, tags=tags)
        return {"node": order}
    if kind == "Product" and id in shop.products:
        product = shop.products[id]
        product.tags = tags_of([*product.tags, *call.args["tags"]])
        call.request.platform.save_product(shop.domain, product)
        return {"node": product}
    raise Wrong(["id"], f"{kind} does not exist")


@mutation("inventoryAdjustQuantities", "write_inventory", is_keyed=True)
def adjust_quantities(shop: Shop, call: Call) -> dict[str, Any]:
    """Change what is available of items: `inventory_levels/update`; once for each key."""
    asked = call.args["input"]
    if asked["name"] != "available":
        message = "The specified quantity name is invalid."
        raise Wrong(["input", "name"], message, "INVALID_QUANTITY_NAME")
    if asked["reason"] not in REASONS:
        raise Wrong(["input", "reason"], "The specified reason is invalid.", "INVALID_REASON")
    found = [
        (_stocked(shop, change, ["input", "changes", str(place)]), change["delta"])
        for place, change in enumerate(asked["changes"])
    ]
    platform = call.request.platform
    for variant, delta in found:
        platform.set_stock(shop.domain, variant, variant.available + delta)
    return {
        "inventoryAdjustmentGroup": {
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
    }


def _stocked(shop: Shop, change: Mapping[str, Any], where: list[str]) -> Variant:
    """Find the variant whose stock a change may move."""
    variant = stocked_variant(shop, change["inventoryItemId"])
    if variant is None:
        message = "The specified inventory item could not be found."
        raise Wrong([*where, "inventoryItemId"], message, "INVALID_INVENTORY_ITEM")
    if number(change["locationId"]) != LOCATION_ID:
        message = "The specified location could not be found."
        raise Wrong([*where, "locationId"], message, "INVALID_LOCATION")
    if "changeFromQuantity" not in change:
        raise FieldRefused("changeFromQuantity must be given, even as null.", "BAD_REQUEST")
    expected = change["changeFromQuantity"]
    if expected is not None and expected != variant.available:
        message = "The changeFromQuantity argument no longer matches the persisted quantity."
        raise Wrong([*where, "changeFromQuantity"], message, "CHANGE_FROM_QUANTITY_STALE")
    if variant.available + change["delta"] > HIGHEST:
        message = "The quantity can't be higher than 2,000,000,000."
        raise Wrong([*where, "delta"], message, "INVALID_QUANTITY_TOO_HIGH")
    if variant.available + change["delta"] < -HIGHEST:
        message = "The quantity can't be lower than -2,000,000,000."
        raise Wrong([*where, "delta"], message, "INVALID_QUANTITY_TOO_LOW")
    return variant


def _product(shop: Shop, gid: str, where: list[str]) -> Product:
    product = shop.products.get(number(gid))
    if product is None:
        raise Wrong(where, "Product does not exist", "PRODUCT_DOES_NOT_EXIST")
    return product


def stocked_variant(shop: Shop, gid: str) -> Variant | None:
    """Find a variant by its inventory item."""
    wanted = number(gid)
    products: list[Product] = list(shop.products.values())
    return next((v for p in products for v in p.variants if v.inventory_item_id == wanted), None)


def tags_of(tags: list[str]) -> tuple[str, ...]:
    """Keep each tag once whatever its case, in the order of the alphabet."""
    kept: dict[str, str] = {}
    for tag in tags:
        if tag.strip():
            kept.setdefault(tag.strip().lower(), tag.strip())
    return tuple(sorted(kept.values(), key=str.lower))
