"""Products, opening stock, collections, and what of them buyers see."""

from typing import Any, Final

from tolsey.actors.edit import Edit
from tolsey.http.clients.commerce import shapes
from tolsey.http.clients.commerce.edits.things.thing import ThingWay, global_id, texts
from tolsey.http.clients.commerce.edits.way import Body, nodes, number_of, tail

PRODUCT: Final = """
id title descriptionHtml productType vendor status tags
variants(first: 25) { nodes { id price sku inventoryItem { id } } }
"""
FIND_PRODUCT: Final = f"""
query FindProduct($handle: String!) {{
  productByIdentifier(identifier: {{handle: $handle}}) {{ {PRODUCT} }}
}}
"""
SET_PRODUCT: Final = f"""
mutation SetProduct($identifier: ProductSetIdentifiers!, $input: ProductSetInput!) {{
  productSet(identifier: $identifier, input: $input, synchronous: true) {{
    product {{ {PRODUCT} }} userErrors {{ code field message }}
  }}
}}
"""
LEVEL: Final = 'id quantities(names: ["available"]) { quantity }'
FIND_STOCK: Final = f"""
query FindStock($item: ID!, $location: ID!) {{
  inventoryItem(id: $item) {{ inventoryLevel(locationId: $location) {{ {LEVEL} }} }}
}}
"""
ACTIVATE_STOCK: Final = f"""
mutation ActivateStock($item: ID!, $location: ID!, $available: Int!, $key: String!) {{
  inventoryActivate(inventoryItemId: $item, locationId: $location, available: $available)
    @idempotent(key: $key) {{
    inventoryLevel {{ {LEVEL} }} userErrors {{ field message }}
  }}
}}
"""
SET_STOCK: Final = """
mutation SetStock($input: InventorySetQuantitiesInput!, $key: String!) {
  inventorySetQuantities(input: $input) @idempotent(key: $key) {
    inventoryAdjustmentGroup { id } userErrors { code field message }
  }
}
"""
COLLECTION: Final = "id handle title descriptionHtml"
FIND_COLLECTION: Final = f"""
query FindCollection($handle: String!) {{
  collectionByIdentifier(identifier: {{handle: $handle}}) {{ {COLLECTION} }}
}}
"""
NEW_COLLECTION: Final = f"""
mutation NewCollection($collection: CollectionCreateInput!) {{
  collectionCreate(collection: $collection) {{
    collection {{ {COLLECTION} }} userErrors {{ field message }}
  }}
}}
"""
SEEN: Final = """
... on Product { id publishedOnPublication(publicationId: $publication) }
... on Collection { id publishedOnPublication(publicationId: $publication) }
"""
FIND_PUBLISHED: Final = f"""
query FindPublished($id: ID!, $publication: ID!) {{ node(id: $id) {{ {SEEN} }} }}
"""
PUBLISH: Final = f"""
mutation Publish($id: ID!, $publication: ID!) {{
  publishablePublish(id: $id, input: [{{publicationId: $publication}}]) {{
    publishable {{ {SEEN} }} userErrors {{ field message }}
  }}
}}
"""
ONLY_OPTION: Final = {"name": "Title", "values": ["Default Title"]}
"""What the platform calls the option of a product that comes in one form."""


class NewProductWay(ThingWay):
    """A product by its handle."""

    looks, makes, sets, at = FIND_PRODUCT, SET_PRODUCT, SET_PRODUCT, "product"
    fields = ("title", "descriptionHtml", "productType", "vendor", "status", "tags")

    def asked(self, edit: Edit) -> Body:
        """Name the handle."""
        return {"handle": edit.ids[0]}

    def node(self, edit: Edit, data: Body) -> Any:
        """Take the product."""
        del edit
        return data.get("productByIdentifier")

    def sent(self, edit: Edit, change: Body, key: str) -> Body:
        """Send all of it; its status only when it is new, since later it is the merchant's."""
        del key
        extra, handle = change["extra"], edit.ids[0]
        options = extra["options"] or [ONLY_OPTION]
        sent = {
            **texts(change, "title", "descriptionHtml", "productType", "vendor", "tags"),
            "handle": handle,
            "productOptions": [
                {"name": one["name"], "values": [{"name": value} for value in one["values"]]}
                for one in options
            ],
            "variants": [_variant(one, options) for one in extra["variants"]],
        }
        if change["id"] is None:
            sent |= {"status": change["status"], "files": extra["files"]}
        return {"identifier": {"handle": handle}, "input": sent}

    def read(self, node: Body) -> dict[str, Any]:
        """Read the product with the ids and prices of its variants."""
        variants = nodes(node.get("variants"), "variants")
        return {
            **ThingWay.read(self, node),
            "tags": sorted(node["tags"]),
            "prices": [one.get("price") for one in variants],
            "variants": [
                {
                    "id": number_of(one.get("id"), "a variant"),
                    "item": number_of(_item(one), "an item"),
                }
                for one in variants
            ],
        }


def _item(variant: Body) -> object:
    return shapes.mapping(variant.get("inventoryItem"), "an item").get("id")


def _variant(wanted: Body, options: list[dict[str, Any]]) -> dict[str, Any]:
    values = wanted["values"] or ONLY_OPTION["values"]
    item: dict[str, Any] = {"tracked": wanted["tracked"]}
    if wanted["cost"] is not None:
        item["cost"] = wanted["cost"]
    return {
        "optionValues": [
            {"optionName": one["name"], "name": value}
            for one, value in zip(options, values, strict=True)
        ],
        "price": wanted["price"],
        "inventoryItem": {**item, "sku": wanted["sku"]} if wanted["sku"] else item,
    }


class OpeningStockWay(ThingWay):
    """What is available of an item at a location."""

    looks, makes, sets, at = FIND_STOCK, ACTIVATE_STOCK, SET_STOCK, "inventoryLevel"
    fields = ()

    def asked(self, edit: Edit) -> Body:
        """Name the item and the location."""
        item, location = edit.ids
        return {
            "item": global_id("InventoryItem", item),
            "location": global_id("Location", location),
        }

    def node(self, edit: Edit, data: Body) -> Any:
        """Take the level; None where the item is not stocked at the location, or is gone."""
        del edit
        return (data.get("inventoryItem") or {}).get("inventoryLevel")

    def sent(self, edit: Edit, change: Body, key: str) -> Body:
        """Send how many there are, and where there is a level already how many there were."""
        at = self.asked(edit)
        if change["id"] is None:
            return {**at, "available": change["available"], "key": key}
        row = {
            "inventoryItemId": at["item"],
            "locationId": at["location"],
            "quantity": change["available"],
            "changeFromQuantity": change["extra"]["from"],
        }
        asked = {"name": "available", "reason": "correction", "quantities": [row]}
        return {"input": asked, "key": key}

    def made(self, edit: Edit, payload: Body) -> dict[str, Any]:
        """Read the new level, or say what was set."""
        if payload.get(self.at) is not None:
            return {"found": self.read(shapes.mapping(payload[self.at], "a stock level"))}
        change = edit.change or {}
        return {"found": {"id": change["id"], "available": change["available"]}}

    def read(self, node: Body) -> dict[str, Any]:
        """Read what is available."""
        (one,) = tail(node.get("quantities"), "quantities")
        return {"id": node.get("id"), "available": one.get("quantity")}


class NewCollectionWay(ThingWay):
    """A collection by its handle."""

    looks, makes, at = FIND_COLLECTION, NEW_COLLECTION, "collection"
    fields = ("title", "descriptionHtml")

    def asked(self, edit: Edit) -> Body:
        """Name the handle."""
        return {"handle": edit.ids[0]}

    def node(self, edit: Edit, data: Body) -> Any:
        """Take the collection."""
        del edit
        return data.get("collectionByIdentifier")

    def sent(self, edit: Edit, change: Body, key: str) -> Body:
        """Send its texts and the condition that products fulfil."""
        del key
        name, value = change["extra"]["condition"]
        relation = {"productTag": "TAGGED_WITH", "productType": "EQUALS"}[name]
        condition = {name: {"matchType": "ANY", "relation": relation, "values": [value]}}
        source = {
            "title": change["title"],
            "targetType": "PRODUCTS",
            "inclusion": {"matchType": "ALL", "conditions": [condition]},
        }
        asked = {
            **texts(change, "title", "descriptionHtml"),
            "handle": edit.ids[0],
            "sources": [{"source": source}],
        }
        return {"collection": asked}


class PublishedWay(ThingWay):
    """A product or collection in a sales channel."""

    looks, sets, at = FIND_PUBLISHED, PUBLISH, "publishable"
    fields = ("publishedOnPublication",)

    def asked(self, edit: Edit) -> Body:
        """Name the thing and the channel."""
        kind, number, publication = edit.ids
        return {
            "id": global_id(kind, number),
            "publication": global_id("Publication", publication),
        }

    def node(self, edit: Edit, data: Body) -> Any:
        """Take the thing."""
        del edit
        return data.get("node")

    def sent(self, edit: Edit, change: Body, key: str) -> Body:
        """Name them again."""
        del change, key
        return self.asked(edit)
