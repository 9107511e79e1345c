"""What is changed in a shop, and read as it is now: one document for each way round.

Valid for Admin API 2026-07. Beside the platform's answers nothing is taken for granted: a change whose
answer cannot be read may have been made.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from tolsey.actors.bodies import lenient
from tolsey.actors.ports import EditRefused, PlatformUnreachable, Shop
from tolsey.http.clients.commerce import shapes
from tolsey.http.clients.commerce.answers import GraphqlAnswer, plain
from tolsey.http.clients.commerce.calls import Calls
from tolsey.http.clients.commerce.queries import gid

PRODUCT: Final = "id title descriptionHtml handle productType status tags vendor"
LOOK_AT_PRODUCT: Final = f"""
query LookAtProduct($id: ID!) {{ product(id: $id) {{ {PRODUCT} }} }}
"""
LOOK_AT_STOCK: Final = """
query LookAtStock($item: ID!, $location: ID!) {
  inventoryItem(id: $item) {
    inventoryLevel(locationId: $location) { quantities(names: ["available"]) { name quantity } }
  }
}
"""
LOOK_AT_NOTE: Final = "query LookAtNote($id: ID!) { order(id: $id) { note } }"
LOOK_AT_TAGS: Final = "query LookAtTags($id: ID!) { order(id: $id) { tags } }"
CHANGE_PRODUCT: Final = f"""
mutation ChangeProduct($product: ProductUpdateInput!) {{
  productUpdate(product: $product) {{ product {{ {PRODUCT} }} userErrors {{ field message }} }}
}}
"""
CHANGE_STOCK: Final = """
mutation ChangeStock($input: InventoryAdjustQuantitiesInput!, $key: String!) {
  inventoryAdjustQuantities(input: $input) @idempotent(key: $key) {
    inventoryAdjustmentGroup { id }
    userErrors { code field message }
  }
}
"""
CHANGE_NOTE: Final = """
mutation ChangeNote($input: OrderInput!) {
  orderUpdate(input: $input) { order { note } userErrors { field message } }
}
"""
ADD_TAGS: Final = """
mutation AddTags($id: ID!, $tags: [String!]!) {
  tagsAdd(id: $id, tags: $tags) { node { ... on Order { tags } } userErrors { field message } }
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
STALE: Final = "CHANGE_FROM_QUANTITY_STALE"
UNDER_WAY: Final = "IDEMPOTENCY_CONCURRENT_REQUEST"
"""The same key is being worked on: what became of it is not known yet."""
REASON: Final = "correction"
DENIED: Final = "ACCESS_DENIED"


async def look(calls: Calls, shop: Shop, kind: str, ids: Sequence[str]) -> dict[str, Any] | None:
    """Read a thing as it is now; None when the shop has none."""
    match kind:
        case "product":
            variables = {"id": gid("Product", int(ids[0]))}
            found = (await calls.ask(shop, LOOK_AT_PRODUCT, variables)).get("product")
            return None if found is None else _product(found)
        case "stock":
            return await _stock(calls, shop, ids)
        case _:
            document = LOOK_AT_NOTE if kind == "note" else LOOK_AT_TAGS
            variables = {"id": gid("Order", int(ids[0]))}
            found = (await calls.ask(shop, document, variables)).get("order")
            return None if found is None else _order(kind, found)


async def change(
    calls: Calls, shop: Shop, kind: str, ids: Sequence[str], wanted: Mapping[str, Any], *, key: str
) -> dict[str, Any]:
    """Make a change and answer what the thing is then; sent once, whatever becomes of it."""
    sent = _sent(kind, ids, wanted, key)
    answer = await calls.ask_partly(shop, sent.document, sent.variables, repeatable=False)
    payload = _payload(answer, sent.field)
    match kind:
        case "product":
            return _product(payload.get("product"))
        case "stock":
            # It was what the change expected, or the platform had refused.
            shapes.mapping(payload.get("inventoryAdjustmentGroup"), "an adjustment")
            return {"available": wanted["from"] + wanted["delta"]}
        case _:
            return _order(kind, payload.get("order" if kind == "note" else "node"))


@dataclass(frozen=True, slots=True)
class Sent:
    """A mutation as it is sent."""

    field: str
    document: str
    variables: Mapping[str, Any]


def _sent(kind: str, ids: Sequence[str], wanted: Mapping[str, Any], key: str) -> Sent:
    number = int(ids[0])
    match kind:
        case "product":
            product = {SENT_AS[name]: value for name, value in wanted.items()}
            product["id"] = gid("Product", number)
            return Sent("productUpdate", CHANGE_PRODUCT, {"product": product})
        case "stock":
            moved = {
                "delta": wanted["delta"],
                "changeFromQuantity": wanted["from"],
                "inventoryItemId": gid("InventoryItem", number),
                "locationId": gid("Location", int(ids[1])),
            }
            asked = {
                "name": "available",
                "reason": REASON,
                "referenceDocumentUri": f"gid://tolsey/Operation/{key.partition(':')[0]}",
                "changes": [moved],
            }
            return Sent("inventoryAdjustQuantities", CHANGE_STOCK, {"input": asked, "key": key})
        case "note":
            asked = {"id": gid("Order", number), "note": wanted["note"]}
            return Sent("orderUpdate", CHANGE_NOTE, {"input": asked})
        case _:
            variables = {"id": gid("Order", number), "tags": list(wanted["tags"])}
            return Sent("tagsAdd", ADD_TAGS, variables)


def _payload(answer: GraphqlAnswer, field: str) -> Mapping[str, Any]:
    """Take what a mutation answered, or raise what the platform says against it."""
    payload = answer.data.get(field)
    if not isinstance(payload, dict):
        for fault in answer.faults:
            if fault.code == DENIED:
                raise fault.denied(403)
            if not fault.path:
                raise fault.denied(400)
        raise PlatformUnreachable("The platform did not say what became of this.")
    errors = payload.get("userErrors")
    for error in errors if isinstance(errors, list) else ():
        said = lenient(error)
        if said.get("code") == UNDER_WAY:
            raise PlatformUnreachable("The platform is still at work on the same change.")
        message = plain(str(said.get("message") or "The platform refuses this."))
        raise EditRefused(message, stale=said.get("code") == STALE)
    return payload


async def _stock(calls: Calls, shop: Shop, ids: Sequence[str]) -> dict[str, Any] | None:
    variables = {
        "item": gid("InventoryItem", int(ids[0])),
        "location": gid("Location", int(ids[1])),
    }
    item = (await calls.ask(shop, LOOK_AT_STOCK, variables)).get("inventoryItem")
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


def _product(value: object) -> dict[str, Any]:
    found = shapes.mapping(value, "a product")
    return {
        **{name: found.get(sent) for name, sent in SENT_AS.items()},
        "tags": _listed(found.get("tags"), "the tags of a product"),
    }


def _order(kind: str, value: object) -> dict[str, Any]:
    found = shapes.mapping(value, "an order")
    if kind == "note":
        return {"note": found.get("note") or ""}
    return {"tags": _listed(found.get("tags"), "the tags of an order")}


def _listed(value: object, what: str) -> list[str]:
    """Take tags, in an order that does not depend on the platform's."""
    if not isinstance(value, list):
        raise shapes.Misshapen(what)
    return sorted(str(one) for one in value)
