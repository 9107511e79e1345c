"""What every field of the schema reads, type by type.

Types that are missing here are plain mappings, and their fields are the keys.
"""

from collections.abc import Mapping
from typing import Any

from tolsey.sandbox.clock import instant
from tolsey.sandbox.commerce.bulk import operations
from tolsey.sandbox.commerce.fields import catalogue, content, edits, setup, things
from tolsey.sandbox.commerce.fields.leaves import gid, legacy, when
from tolsey.sandbox.commerce.fields.reads import (
    customers,
    find,
    inventory_item,
    inventory_level,
    inventory_levels,
    order,
    orders,
    orders_count,
    product,
    products,
    products_count,
    quantities,
    webhook_subscriptions,
    webhook_subscriptions_count,
)
from tolsey.sandbox.commerce.fields.sales import discounts, fulfilments, refunds, subscriptions
from tolsey.sandbox.commerce.fields.sales.orders import (
    LINE,
    ORDER,
    REFUND,
    REFUND_LINE,
    REFUND_SHIPPING,
    TRANSACTION,
)
from tolsey.sandbox.commerce.fields.shop import SHOP, installation, version, versions
from tolsey.sandbox.commerce.query.pages import listed
from tolsey.sandbox.commerce.query.projection import Call, Getter
from tolsey.sandbox.commerce.shop.bulk import BulkOperation
from tolsey.sandbox.commerce.shop.content import Collection, ContentPage
from tolsey.sandbox.commerce.shop.discounts import Discount
from tolsey.sandbox.commerce.shop.files import StoredFile, ThemeText
from tolsey.sandbox.commerce.shop.money import Money, decimal
from tolsey.sandbox.commerce.shop.orders import Customer, Order, Transaction
from tolsey.sandbox.commerce.shop.products import Product, Variant
from tolsey.sandbox.commerce.shop.setup import AppCatalog
from tolsey.sandbox.commerce.shop.state import Shop
from tolsey.sandbox.commerce.shop.subscriptions import Subscription


def _email(customer: Customer, _: Call) -> dict[str, str] | None:
    if customer.email is None:
        return None
    return {"emailAddress": customer.email, "marketingState": "NOT_SUBSCRIBED"}


_CUSTOMER: dict[str, Getter] = {
    "id": gid("Customer"),
    "legacyResourceId": legacy,
    "createdAt": lambda c, _: instant(c.created_at),
    "updatedAt": lambda c, _: instant(c.updated_at),
    "numberOfOrders": lambda c, _: str(c.orders),
    "amountSpent": lambda c, _: Money(c.spent, c.currency),
    "defaultEmailAddress": _email,
    "tags": lambda c, _: list(c.tags),
}

_PRODUCT: dict[str, Getter] = {
    "id": gid("Product"),
    "legacyResourceId": legacy,
    "title": lambda p, _: p.title,
    "descriptionHtml": lambda p, _: p.description_html,
    "handle": lambda p, _: p.handle,
    "status": lambda p, _: p.status,
    "vendor": lambda p, _: p.vendor,
    "productType": lambda p, _: p.product_type,
    "tags": lambda p, _: list(p.tags),
    "createdAt": lambda p, _: instant(p.created_at),
    "updatedAt": lambda p, _: instant(p.updated_at),
    "publishedAt": lambda p, _: when(p.published_at),
    "totalInventory": lambda p, _: p.stock,
    "featuredMedia": lambda p, _: p.media,
    "publishedOnPublication": catalogue.is_published,
    "seo": lambda p, _: {name: p.seo.get(name) for name in ("title", "description")},
    "variants": lambda p, c: listed(p.variants).page(c.args),
}

_VARIANT: dict[str, Getter] = {
    "id": gid("ProductVariant"),
    "legacyResourceId": legacy,
    "title": lambda v, _: v.title,
    "sku": lambda v, _: v.sku or None,
    "price": lambda v, c: decimal(v.price, c.request.shop.spec.currency),
    "compareAtPrice": lambda v, c: (
        None
        if v.compare_at_price is None
        else decimal(v.compare_at_price, c.request.shop.spec.currency)
    ),
    "inventoryQuantity": lambda v, _: v.available,
    "product": lambda v, _: v.product,
    "inventoryItem": lambda v, _: v,
    "inventoryPolicy": lambda _v, _: "DENY",
}

_INVENTORY_ITEM: dict[str, Getter] = {
    "id": lambda v, _: f"gid://shopify/InventoryItem/{v.inventory_item_id}",
    "legacyResourceId": lambda v, _: str(v.inventory_item_id),
    "sku": lambda v, _: v.sku or None,
    "tracked": lambda v, _: v.tracked,
    "inventoryLevels": inventory_levels,
    "inventoryLevel": inventory_level,
}

_SUBSCRIPTION: dict[str, Getter] = {
    "id": gid("WebhookSubscription"),
    "legacyResourceId": legacy,
    "topic": lambda s, _: s.topic,
    "uri": lambda s, _: s.uri,
    "format": lambda s, _: s.format,
    "filter": lambda s, _: s.filter,
    "name": lambda s, _: s.name,
    "includeFields": lambda s, _: s.include_fields,
    "metafieldNamespaces": lambda s, _: s.metafield_namespaces,
    "apiVersion": lambda s, _: version(s.api_version),
    "createdAt": lambda s, _: instant(s.created_at),
    "updatedAt": lambda s, _: instant(s.updated_at),
}

_BULK: dict[str, Getter] = {
    "id": gid("BulkOperation"),
    "status": lambda b, _: b.status,
    "type": lambda _b, _: "QUERY",
    "query": lambda b, _: b.query,
    "errorCode": lambda b, _: b.error_code,
    "createdAt": lambda b, _: instant(b.created_at),
    "completedAt": lambda b, _: when(b.completed_at),
    "objectCount": lambda b, _: str(b.object_count),
    "rootObjectCount": lambda b, _: str(b.root_object_count),
    "fileSize": lambda b, _: str(b.file_size) if b.url else None,
    "url": lambda b, _: b.url,
    "partialDataUrl": lambda _b, _: None,
}

_PAGE: dict[str, Getter] = {
    "nodes": lambda p, _: p.nodes,
    "edges": lambda p, _: p.edges(),
    "pageInfo": lambda p, _: p,
}
_EDGE: dict[str, Getter] = {"node": lambda e, _: e.node, "cursor": lambda e, _: e.cursor}

_LISTED = (
    "Order",
    "LineItem",
    "FulfillmentOrder",
    "FulfillmentOrderLineItem",
    "OrderTransaction",
    "RefundLineItem",
    "RefundShippingLine",
    "Customer",
    "Product",
    "ProductVariant",
    "InventoryLevel",
    "Page",
    "WebhookSubscription",
)

FIELDS: Mapping[str, Mapping[str, Getter]] = {
    "QueryRoot": {
        "bulkOperation": lambda _r, c: operations.poll(c, c.args["id"]),
        "currentBulkOperation": lambda _r, c: operations.current(c),
        "currentAppInstallation": installation,
        "publicApiVersions": versions,
        "shop": lambda _r, c: c.request.shop,
        "codeDiscountNodeByCode": discounts.by_code,
        "collectionByIdentifier": content.by_identifier,
        "customers": customers,
        "fulfillment": fulfilments.fulfillment,
        "inventoryItem": inventory_item,
        "node": lambda _r, c: find(c, c.args["id"]),
        "nodes": lambda _r, c: [find(c, gid) for gid in c.args["ids"]],
        "order": order,
        "orders": orders,
        "ordersCount": orders_count,
        "pages": content.pages,
        "product": product,
        "products": products,
        "productsCount": products_count,
        "webhookSubscription": lambda _r, c: find(c, c.args["id"]),
        "webhookSubscriptions": webhook_subscriptions,
        "webhookSubscriptionsCount": webhook_subscriptions_count,
        "productByIdentifier": catalogue.by_identifier,
        **setup.QUERIES,
        **things.QUERIES,
    },
    "Mutation": {
        "bulkOperationRunQuery": operations.run_query,
        "bulkOperationCancel": operations.cancel,
        "collectionCreate": content.create_collection,
        "collectionUpdate": content.update_collection,
        "discountCodeBasicCreate": discounts.create,
        "fulfillmentCreate": fulfilments.create,
        "fulfillmentTrackingInfoUpdate": fulfilments.track,
        "inventoryAdjustQuantities": edits.adjust_quantities,
        "orderUpdate": edits.update_order,
        "pageCreate": content.create_page,
        "pageUpdate": content.update_page,
        "productUpdate": edits.update_product,
        "productVariantsBulkUpdate": edits.update_variants,
        "refundCreate": refunds.create,
        "tagsAdd": edits.add_tags,
        "webhookSubscriptionCreate": subscriptions.create,
        "webhookSubscriptionUpdate": subscriptions.update,
        "webhookSubscriptionDelete": subscriptions.delete,
        **setup.MUTATIONS,
        **catalogue.MUTATIONS,
        **things.MUTATIONS,
    },
    "MoneyBag": {"shopMoney": lambda m, _: m, "presentmentMoney": lambda m, _: m},
    "MoneyV2": {"amount": lambda m, _: decimal(m[0], m[1]), "currencyCode": lambda m, _: m[1]},
    "PageInfo": {
        "hasNextPage": lambda p, _: p.has_next,
        "hasPreviousPage": lambda p, _: p.has_previous,
        "startCursor": lambda p, _: p.start(),
        "endCursor": lambda p, _: p.end(),
    },
    "Shop": SHOP,
    "Order": ORDER,
    "LineItem": LINE,
    "OrderTransaction": TRANSACTION,
    "FulfillmentOrder": fulfilments.FULFILLMENT_ORDER,
    "FulfillmentOrderLineItem": fulfilments.FULFILLMENT_ORDER_LINE,
    "Fulfillment": fulfilments.FULFILLMENT,
    "Collection": content.COLLECTION,
    "Page": content.PAGE,
    "DiscountCodeNode": discounts.NODE,
    "DiscountCodeBasic": discounts.BASIC,
    "Refund": REFUND,
    "RefundLineItem": REFUND_LINE,
    "RefundShippingLine": REFUND_SHIPPING,
    "Customer": _CUSTOMER,
    "Product": _PRODUCT,
    "ProductVariant": _VARIANT,
    "InventoryItem": _INVENTORY_ITEM,
    "InventoryLevel": {"quantities": quantities},
    "WebhookSubscription": _SUBSCRIPTION,
    "BulkOperation": _BULK,
    **setup.TYPES,
    **things.TYPES,
    **{f"{name}Connection": _PAGE for name in (*setup.PAGES, *things.PAGES)},
    **{f"{name}Connection": _PAGE for name in _LISTED},
    **{f"{name}Edge": _EDGE for name in _LISTED},
}

_NAMES: Mapping[type, str] = {
    Order: "Order",
    tuple: "Refund",  # with its order, which knows the currency
    Customer: "Customer",
    Discount: "DiscountCodeBasic",
    Product: "Product",
    Variant: "ProductVariant",
    Transaction: "OrderTransaction",
    Shop: "Shop",
    StoredFile: "MediaImage",
    Collection: "Collection",
    ContentPage: "Page",
    ThemeText: "OnlineStoreThemeFileBodyText",
    AppCatalog: "AppCatalog",
    Subscription: "WebhookSubscription",
    BulkOperation: "BulkOperation",
}


def type_of(value: Any) -> str:
    """Name the GraphQL type of an object behind an interface."""
    return _NAMES[type(value)]
