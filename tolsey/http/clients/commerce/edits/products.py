"""Products as they are edited: texts, status, prices and stock."""

from collections.abc import Mapping
from typing import Any, Final

from tolsey.actors.edit import Edit
from tolsey.http.clients.commerce import shapes
from tolsey.http.clients.commerce.edits.way import (
    Body,
    EditDocument,
    EditWay,
    NumberedWay,
    id_of,
    number_of,
    pair,
    tail,
    units,
)
from tolsey.http.clients.commerce.queries import gid

PRODUCT: Final = "id title descriptionHtml handle productType status tags vendor"
LOOK_AT_PRODUCT: Final = f"""
query LookAtProduct($id: ID!) {{ product(id: $id) {{ {PRODUCT} }} }}
"""
CHANGE_PRODUCT: Final = f"""
mutation ChangeProduct($product: ProductUpdateInput!) {{
  productUpdate(product: $product) {{ product {{ {PRODUCT} }} userErrors {{ field message }} }}
}}
"""
LOOK_AT_PRICES: Final = """
query LookAtPrices($id: ID!, $variants: [ID!]!) {
  shop { currencyCode }
  product(id: $id) { id }
  nodes(ids: $variants) { ... on ProductVariant { id price compareAtPrice product { id } } }
}
"""
CHANGE_PRICES: Final = """
mutation ChangePrices($id: ID!, $variants: [ProductVariantsBulkInput!]!) {
  productVariantsBulkUpdate(productId: $id, variants: $variants) {
    productVariants { id price compareAtPrice }
    userErrors { code field message }
  }
}
"""
LOOK_AT_STOCK: Final = """
query LookAtStock($item: ID!, $location: ID!) {
  inventoryItem(id: $item) {
    inventoryLevel(locationId: $location) { quantities(names: ["available"]) { name quantity } }
  }
}
"""
CHANGE_STOCK: Final = """
mutation ChangeStock($input: InventoryAdjustQuantitiesInput!, $key: String!) {
  inventoryAdjustQuantities(input: $input) @idempotent(key: $key) {
    inventoryAdjustmentGroup { id }
    userErrors { code field message }
  }
}
"""
SENT_AS: Final[Mapping[str, str]] = {
    "title": "title",
    "description_html": "descriptionHtml",
    "handle": "handle",
    "product_type": "productType",
    "status": "status",
    "tags": "tags",
    "vendor": "vendor",
}
PRICES: Final[Mapping[str, str]] = {"price": "price", "compare_at_price": "compareAtPrice"}
REASON: Final = "correction"


class ProductWay(NumberedWay):
    """Texts, tags and status."""

    kind, looks, at = "Product", LOOK_AT_PRODUCT, "product"

    def read(self, value: object) -> dict[str, Any]:
        """Read the product."""
        found = shapes.mapping(value, "a product")
        return {
            **{name: found.get(sent) for name, sent in SENT_AS.items()},
            "tags": listed_tags(found.get("tags"), "the tags of a product"),
        }

    def change(self, edit: Edit, key: str) -> EditDocument:
        """Send what is another."""
        del key
        product = {SENT_AS[name]: value for name, value in (edit.change or {}).items()}
        product["id"] = id_of("Product", edit)
        return EditDocument(
            text=CHANGE_PRODUCT, variables={"product": product}, field="productUpdate"
        )


class PriceWay(EditWay):
    """Prices of variants of a product, which the platform changes all together or not at all."""

    def look(self, edit: Edit) -> EditDocument:
        """Ask for the variants whose prices are wanted."""
        variants = [gid("ProductVariant", int(one)) for one in edit.wanted["prices"]]
        asked = {"id": id_of("Product", edit), "variants": variants}
        return EditDocument(text=LOOK_AT_PRICES, variables=asked)

    def found(self, edit: Edit, data: Body) -> dict[str, Any] | None:
        """Read the prices of those that are the product's."""
        if data.get("product") is None:
            return None
        shop = shapes.mapping(data.get("shop"), "a shop")
        currency = shapes.text(shop.get("currencyCode"), "the currency of a shop")
        # None where there is none, and empty where the id is of something else
        variants = [one for one in data.get("nodes") or () if one]
        own = {"id": id_of("Product", edit)}
        return _prices([one for one in variants if one.get("product") == own], currency)

    def change(self, edit: Edit, key: str) -> EditDocument:
        """Send the new prices; None takes a compare-at price away."""
        del key
        variants = [
            {
                "id": gid("ProductVariant", int(variant)),
                **{PRICES[name]: one and units(one) for name, one in prices.items()},
            }
            for variant, prices in (edit.change or {})["prices"].items()
        ]
        asked = {"id": id_of("Product", edit), "variants": variants}
        return EditDocument(text=CHANGE_PRICES, variables=asked, field="productVariantsBulkUpdate")

    def made(self, edit: Edit, payload: Body) -> dict[str, Any]:
        """Read the prices, in the currency that they were planned in."""
        currency = (edit.change or {})["currency"]
        return _prices(tail(payload.get("productVariants"), "a variant"), currency)


class StockWay(EditWay):
    """What is available of an item at a location."""

    def look(self, edit: Edit) -> EditDocument:
        """Ask for the level."""
        item, location = (int(one) for one in edit.ids)
        asked = {"item": gid("InventoryItem", item), "location": gid("Location", location)}
        return EditDocument(text=LOOK_AT_STOCK, variables=asked)

    def found(self, edit: Edit, data: Body) -> dict[str, Any] | None:
        """Read what is available; None where the item is not stocked."""
        del edit
        item = data.get("inventoryItem")
        level = None if item is None else shapes.mapping(item, "a stock item").get("inventoryLevel")
        if level is None:
            return None
        quantities = shapes.mapping(level, "a stock level").get("quantities")
        for one in quantities if isinstance(quantities, list) else ():
            quantity = shapes.mapping(one, "a quantity").get("quantity")
            # below zero is a quantity too: a shop may sell what it has not
            if isinstance(quantity, int) and not isinstance(quantity, bool):
                return {"available": quantity}
        raise shapes.Misshapen("a quantity")

    def change(self, edit: Edit, key: str) -> EditDocument:
        """Send by how much it moves, and from what."""
        change = edit.change or {}
        moved = {
            "delta": change["delta"],
            "changeFromQuantity": change["from"],
            "inventoryItemId": id_of("InventoryItem", edit),
            "locationId": gid("Location", int(edit.ids[1])),
        }
        asked = {
            "name": "available",
            "reason": REASON,
            "referenceDocumentUri": f"gid://tolsey/Operation/{key.partition(':')[0]}",
            "changes": [moved],
        }
        sent = {"input": asked, "key": key}
        return EditDocument(text=CHANGE_STOCK, variables=sent, field="inventoryAdjustQuantities")

    def made(self, edit: Edit, payload: Body) -> dict[str, Any]:
        """Say what it is now: it was what the change expected, or the platform had refused."""
        shapes.mapping(payload.get("inventoryAdjustmentGroup"), "an adjustment")
        change = edit.change or {}
        return {"available": change["from"] + change["delta"]}


def listed_tags(value: object, what: str) -> list[str]:
    """Take tags, in an order that does not depend on the platform's."""
    if not isinstance(value, list):
        raise shapes.Misshapen(what)
    return sorted(str(one) for one in value)


def _prices(variants: list[Body], currency: str) -> dict[str, Any]:
    prices = {}
    for one in variants:
        price = pair(one.get("price"), currency, "a price")
        compared = one.get("compareAtPrice")
        before = None if compared is None else pair(compared, currency, "a compare-at price")
        prices[number_of(one.get("id"), "a variant")] = {
            "price": price,
            # The platform shows nothing for one of nothing, and some shops keep it.
            "compare_at_price": before if before and before["amount"] else None,
        }
    return {"currency": currency, "prices": prices}
