"""What a launch does with the catalogue: whole products, their first stock, channels, and what an order would cost."""

from collections.abc import Mapping
from typing import Any

from tolsey.sandbox.commerce.fields.edits import stocked_variant, tags_of
from tolsey.sandbox.commerce.fields.mutations import Wrong, mutation, number
from tolsey.sandbox.commerce.fields.reads import find, inventory_level, need
from tolsey.sandbox.commerce.query.projection import Call, Getter
from tolsey.sandbox.commerce.shop.content import Collection
from tolsey.sandbox.commerce.shop.files import StoredFile
from tolsey.sandbox.commerce.shop.money import Money, minor
from tolsey.sandbox.commerce.shop.products import LOCATION_ID, Product, Variant
from tolsey.sandbox.commerce.shop.state import Shop

TAX_RATE = 0.1
"""What a shop charges at home, as the platform's own rates would say."""


def by_identifier(_root: Any, call: Call) -> Product | None:
    """Find a product by its handle or id."""
    shop, asked = need(call, "productByIdentifier", "read_products"), call.args["identifier"]
    if asked.get("handle") is not None:
        return _of_handle(shop, asked["handle"])
    return shop.products.get(number(asked.get("id") or ""))


def _of_handle(shop: Shop, handle: str) -> Product | None:
    return next((one for one in shop.products.values() if one.handle == handle), None)


@mutation("productSet", "write_products")
def set_product(shop: Shop, call: Call) -> dict[str, Any]:
    """Make a product, or make the one of this handle as it is given: variants that are not named are gone."""
    asked, now = call.args["input"], call.request.platform.now()
    handle = (call.args.get("identifier") or {}).get("handle") or asked["handle"]
    title = (asked.get("title") or "").strip()
    if not title:
        raise Wrong(["input", "title"], "Title can't be blank", "INVALID_INPUT")
    product = _of_handle(shop, handle) or Product(next(shop.ids), title, handle, now, now)
    product.title = title
    product.description_html = asked.get("descriptionHtml", product.description_html)
    product.product_type = asked.get("productType", product.product_type)
    product.vendor = asked.get("vendor", product.vendor)
    product.status = asked.get("status", product.status)
    product.tags = tags_of(asked.get("tags", product.tags))
    product.variants = _variants(shop, product, asked)
    for one in asked.get("files") or ():
        file = StoredFile(next(shop.ids), one["originalSource"], one.get("alt") or "", b"", "READY")
        shop.setup.files[file.id] = product.media = file
    call.request.platform.save_product(shop.domain, product)
    return {"product": product}


def _variants(shop: Shop, product: Product, asked: Mapping[str, Any]) -> list[Variant]:
    held = {one.title: one for one in product.variants}
    found = []
    for place, one in enumerate(asked.get("variants") or ()):
        title = " / ".join(value["name"] for value in one["optionValues"])
        price = minor(one["price"], shop.spec.currency)
        if price < 0:
            where = ["input", "variants", str(place), "price"]
            raise Wrong(where, "Price must be greater than or equal to 0", "INVALID_VARIANT")
        item = one.get("inventoryItem") or {}
        new = Variant(next(shop.ids), next(shop.ids), title, "", price, is_stocked=False)
        variant = held.get(title, new)
        variant.price, variant.product = price, product
        variant.sku = item.get("sku") or variant.sku
        variant.tracked = item.get("tracked", variant.tracked)
        found.append(variant)
    return found


@mutation("inventoryActivate", "write_inventory", is_keyed=True)
def activate(shop: Shop, call: Call) -> dict[str, Any]:
    """Stock an item at the location, with what is available from the start."""
    asked = call.args
    variant = stocked_variant(shop, asked["inventoryItemId"])
    if variant is None or number(asked["locationId"]) != LOCATION_ID:
        raise Wrong(["inventoryItemId"], "The product couldn't be stocked at the location.")
    if variant.is_stocked and asked.get("available") is not None:
        message = "Not allowed to set available quantity when the item is already active."
        raise Wrong(["available"], message)
    variant.is_stocked = True
    call.request.platform.set_stock(shop.domain, variant, asked.get("available") or 0)
    level = inventory_level(variant, Call({"locationId": asked["locationId"]}, call.request))
    return {"inventoryLevel": level}


@mutation("inventorySetQuantities", "write_inventory", is_keyed=True)
def set_quantities(shop: Shop, call: Call) -> dict[str, Any]:
    """Set what is available of items that are stocked."""
    asked = call.args["input"]
    found = list[tuple[Variant, int]]()
    for place, row in enumerate(asked["quantities"]):
        where = ["input", "quantities", str(place)]
        variant = stocked_variant(shop, row["inventoryItemId"])
        if variant is None or not variant.is_stocked:
            message = "The specified inventory item is not stocked at the location."
            raise Wrong([*where, "locationId"], message, "ITEM_NOT_STOCKED_AT_LOCATION")
        expected = row.get("changeFromQuantity")
        if expected is not None and expected != variant.available:
            message = "The changeFromQuantity value does not match the persisted quantity."
            raise Wrong([*where, "changeFromQuantity"], message, "CHANGE_FROM_QUANTITY_STALE")
        found.append((variant, row["quantity"]))
    for variant, quantity in found:
        call.request.platform.set_stock(shop.domain, variant, quantity)
    id = f"gid://shopify/InventoryAdjustmentGroup/{next(shop.ids)}"
    return {"inventoryAdjustmentGroup": {"id": id, "reason": asked["reason"]}}


@mutation("publishablePublish", "write_publications")
def publish(shop: Shop, call: Call) -> dict[str, Any]:
    """Put a product or collection into sales channels."""
    thing = find(call, call.args["id"])
    if not isinstance(thing, Product | Collection):
        raise Wrong(["id"], "Resource does not exist")
    known = {number(one["id"]) for one in shop.setup.publications}
    for one in call.args["input"]:
        channel = number(one.get("publicationId") or "")
        if channel not in known:
            raise Wrong(["input"], "Publication does not exist")
        thing.publications.add(channel)
    if isinstance(thing, Product):
        thing.published_at = thing.published_at or call.request.platform.now()
    else:
        thing.channels = len(thing.publications)
    return {"publishable": thing}


@mutation("draftOrderCalculate", "write_draft_orders")
def calculate(shop: Shop, call: Call) -> dict[str, Any]:
    """Say what an order to an address would cost, with the rates of its zone and the taxes at home."""
    asked, currency = call.args["input"], shop.spec.currency
    variants = {v.id: v for p in shop.products.values() for v in p.variants}
    total = 0
    for line in asked.get("lineItems") or ():
        variant = variants.get(number(line.get("variantId") or ""))
        if variant is None:
            raise Wrong(["lineItems"], "Product with ID is no longer available.")
        total += variant.price * line["quantity"]
    country = (asked.get("shippingAddress") or {}).get("countryCode")
    rates = [
        {"handle": one["id"], "title": one["name"], "price": _price(one["rate"])}
        for zone in shop.setup.zones
        if country in zone["codes"]
        for one in zone["methods"]
        if one["active"]
    ]
    is_home = country == shop.spec.country and shop.setup.charges_tax
    taxes = [{"title": "Sales tax", "rate": TAX_RATE}] if is_home else []
    tax = round(total * TAX_RATE) if taxes else 0
    calculated = {
        "availableShippingRates": rates,
        "taxLines": taxes,
        "totalTaxSet": Money(tax, currency),
        "totalPriceSet": Money(total + tax, currency),
    }
    return {"calculatedDraftOrder": calculated}


def _price(rate: Mapping[str, Any]) -> Money:
    return Money(minor(rate["amount"], rate["currencyCode"]), rate["currencyCode"])


def is_published(thing: Product | Collection, call: Call) -> bool:
    """Tell whether something is in a sales channel."""
    return number(call.args["publicationId"]) in thing.publications


MUTATIONS: dict[str, Getter] = {
    "draftOrderCalculate": calculate,
    "inventoryActivate": activate,
    "inventorySetQuantities": set_quantities,
    "productSet": set_product,
    "publishablePublish": publish,
}
