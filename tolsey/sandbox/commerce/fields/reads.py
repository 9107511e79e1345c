"""The root reads: listings by search, single objects by id, counts."""

from collections.abc import Callable, Mapping
from typing import Any

from tolsey.sandbox.clock import instant
from tolsey.sandbox.commerce.bulk import operations
from tolsey.sandbox.commerce.query.pages import Key, Listing, Page, listed
from tolsey.sandbox.commerce.query.projection import Call
from tolsey.sandbox.commerce.query.refused import access_denied
from tolsey.sandbox.commerce.query.search import Reader, compile_search
from tolsey.sandbox.commerce.shop.orders import Order
from tolsey.sandbox.commerce.shop.products import LOCATION_ID, Product, Variant
from tolsey.sandbox.commerce.shop.state import Shop

MAIN: Mapping[str, Any] = {
    "id": f"gid://shopify/Location/{LOCATION_ID}",
    "legacyResourceId": str(LOCATION_ID),
    "name": "Main",
    "isActive": True,
}


def _status(order_: Order) -> tuple[str, ...]:
    if order_.cancelled_at is not None:
        return ("cancelled", "any")
    return ("closed" if order_.closed_at is not None else "open", "any")


def _financial(order_: Order) -> tuple[str, ...]:
    status = order_.financial_status.lower()
    owed = order_.outstanding > 0
    return (status, "any", "unpaid") if owed else (status, "any")


ORDER_SEARCH: Mapping[str, Reader] = {
    "id": lambda o: o.id,
    "name": lambda o: o.name.removeprefix("#"),
    "created_at": lambda o: o.created_at,
    "processed_at": lambda o: o.processed_at,
    "updated_at": lambda o: o.updated_at,
    "test": lambda o: o.test,
    "status": _status,
    "financial_status": _financial,
    "fulfillment_status": lambda o: o.fulfillment_status,
    "source_name": lambda o: o.source_name,
    "gateway": lambda o: o.gateways,
    "tag": lambda o: o.tags,
    "customer_id": lambda o: o.customer.id if o.customer else None,
}
_ORDER_KEYS: Mapping[str, Callable[[Order], Key]] = {
    "PROCESSED_AT": lambda o: (o.processed_at.timestamp(), o.id),
    "CREATED_AT": lambda o: (o.created_at.timestamp(), o.id),
    "UPDATED_AT": lambda o: (o.updated_at.timestamp(), o.id),
    "ORDER_NUMBER": lambda o: (o.number, o.id),
    "TOTAL_PRICE": lambda o: (o.total, o.id),
    "ID": lambda o: (o.id, o.id),
}
_SIMPLE_SEARCH: Mapping[str, Reader] = {
    "id": lambda x: x.id,
    "created_at": lambda x: x.created_at,
    "updated_at": lambda x: x.updated_at,
    "status": lambda x: getattr(x, "status", None),
    "title": lambda x: getattr(x, "title", None),
    "vendor": lambda x: getattr(x, "vendor", None),
    "tag": lambda x: getattr(x, "tags", ()),
    "published_status": lambda x: "published" if getattr(x, "publications", ()) else "unpublished",
}
_SIMPLE_KEYS: Mapping[str, Callable[[Any], Key]] = {
    "ID": lambda x: (x.id, x.id),
    "TITLE": lambda x: (x.title, x.id),
    "CREATED_AT": lambda x: (x.created_at.timestamp(), x.id),
    "UPDATED_AT": lambda x: (x.updated_at.timestamp(), x.id),
}


def need(call: Call, field: str, scope: str) -> Shop:
    """Give the shop when the app may read the field."""
    shop = call.request.shop
    if not shop.grants(scope):
        raise access_denied(field, scope)
    return shop


def order_listing(call: Call) -> Listing:
    """Search and sort the orders; the last few listings are remembered for their next pages."""
    shop, platform = call.request.shop, call.request.platform
    query, sort = call.args.get("query"), call.args.get("sortKey") or "PROCESSED_AT"
    search = compile_search(query, ORDER_SEARCH)
    call.request.warnings.extend(search.warnings)
    return call.request.endpoint.listings.get(
        (shop.domain, shop.revision, shop.scopes, platform.now().date(), query, sort),
        lambda: Listing.of(
            filter(search.matches, shop.visible_orders(platform.now())),
            _ORDER_KEYS[sort],
        ),
    )


def orders(_root: Any, call: Call) -> Page:
    """Page through the orders."""
    need(call, "orders", "read_orders")
    return order_listing(call).page(call.args)


def order(_root: Any, call: Call) -> Order | None:
    """Find one order."""
    need(call, "order", "read_orders")
    found = find(call, call.args["id"])
    return found if isinstance(found, Order) else None


def orders_count(_root: Any, call: Call) -> dict[str, Any]:
    """Count the orders a search finds."""
    need(call, "ordersCount", "read_orders")
    return _count(len(order_listing(call).items), call)


def products(_root: Any, call: Call) -> Page:
    """Page through the products."""
    shop = need(call, "products", "read_products")
    return _listing(shop.products, call).page(call.args)


def product(_root: Any, call: Call) -> Product | None:
    """Find one product."""
    need(call, "product", "read_products")
    found = find(call, call.args["id"])
    return found if isinstance(found, Product) else None


def products_count(_root: Any, call: Call) -> dict[str, Any]:
    """Count the products a search finds."""
    shop = need(call, "productsCount", "read_products")
    return _count(len(_listing(shop.products, call).items), call)


def customers(_root: Any, call: Call) -> Page:
    """Page through the customers."""
    shop = need(call, "customers", "read_customers")
    return _listing(shop.customers, call).page(call.args)


def webhook_subscriptions(_root: Any, call: Call) -> Page:
    """Page through the app's subscriptions."""
    asked = call.args
    found = [
        s
        for s in call.request.shop.subscriptions.values()
        if s.topic in (asked.get("topics") or [s.topic])
        and s.uri == (asked.get("uri") or s.uri)
        and s.format == (asked.get("format") or s.format)
    ]
    return Listing.of(found, _SIMPLE_KEYS[asked.get("sortKey") or "CREATED_AT"]).page(asked)


def webhook_subscriptions_count(_root: Any, call: Call) -> dict[str, Any]:
    """Count the app's subscriptions."""
    return _count(len(call.request.shop.subscriptions), call)


def inventory_item(_root: Any, call: Call) -> Variant | None:
    """Find the stock record of a variant."""
    shop = need(call, "inventoryItem", "read_inventory")
    wanted = _number(call.args["id"])
    variants = (v for p in shop.products.values() for v in p.variants)
    return next((v for v in variants if v.inventory_item_id == wanted), None)


def inventory_levels(variant: Variant, call: Call) -> Page:
    """Give the stock at the shop's one location."""
    return listed([_level(variant)] if variant.is_stocked else []).page(call.args)


def inventory_level(variant: Variant, call: Call) -> dict[str, Any] | None:
    """Give the stock at a location, or nothing where it is not stocked."""
    is_here = variant.is_stocked and _number(call.args["locationId"]) == LOCATION_ID
    return _level(variant) if is_here else None


def _level(variant: Variant) -> dict[str, Any]:
    gid = f"gid://shopify/InventoryLevel/{variant.inventory_item_id}"
    return {"id": gid, "location": MAIN, "variant": variant}


def quantities(level: dict[str, Any], call: Call) -> list[dict[str, Any]]:
    """Give the named quantities of a stock level."""
    variant: Variant = level["variant"]
    moved = instant(variant.product.updated_at) if variant.product else None
    return [
        {
            "id": f"gid://shopify/InventoryQuantity/{variant.inventory_item_id}?name={name}",
            "name": name,
            "quantity": 0 if name == "committed" else variant.available,
            "updatedAt": moved,
        }
        for name in call.args["names"]
    ]


def find(call: Call, gid: str) -> Any:
    """Find any object by its global id, or nothing."""
    shop, number = call.request.shop, _number(gid)
    kind = gid.removeprefix("gid://shopify/").split("/", 1)[0]
    if kind == "Order":
        found = shop.orders.get(number)
        visible = found is not None and found.created_at >= shop.oldest_readable(
            call.request.platform.now()
        )
        return found if visible and shop.grants("read_orders") else None
    if kind == "BulkOperation":
        return operations.poll(call, gid)
    if kind == "Refund":
        return shop.refunds.get(number) if shop.grants("read_orders") else None
    places: Mapping[str, Mapping[int, Any]] = {
        "Customer": shop.customers,
        "Product": shop.products,
        "ProductVariant": {v.id: v for p in shop.products.values() for v in p.variants},
        "WebhookSubscription": shop.subscriptions,
        "Shop": {shop.id: shop},
        "Collection": shop.collections,
        "Page": shop.pages,
        "MediaImage": shop.setup.files,
    }
    return places.get(kind, {}).get(number)


def _listing(items: Mapping[int, Any], call: Call) -> Listing:
    search = compile_search(call.args.get("query"), _SIMPLE_SEARCH)
    key = _SIMPLE_KEYS[call.args.get("sortKey") or "ID"]
    return Listing.of(filter(search.matches, items.values()), key)


def _count(number: int, call: Call) -> dict[str, Any]:
    limit = call.args.get("limit")
    if limit is not None and number > limit:
        return {"count": limit, "precision": "AT_LEAST"}
    return {"count": number, "precision": "EXACT"}


def _number(gid: str) -> int:
    tail = gid.rsplit("/", 1)[-1].split("?", 1)[0]
    return int(tail) if tail.isdigit() else -1
