"""What may be read of the commerce platform, field by field: whatever is not here is not read.

Nothing here leads to a person: no buyer, no address, no staff, and none of the free texts, receipts
or metafields that may hold one. Nothing here is deprecated. Tests walk the published schema to prove
both. A connection's edges, nodes and pages are known by its name.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

LEAF: Final = ""
CONNECTION: Final = "Connection"
EDGE: Final = "Edge"
ROOT: Final = "QueryRoot"
PAGING: Final = frozenset({"first", "last", "after", "before", "reverse"})
LISTING: Final = PAGING | {"sortKey"}
SEARCHING: Final = LISTING | {"query"}
ONE: Final = frozenset({"id"})
CHARACTERS: Final = 10_000
"""The longest query that is read."""
MOST_FIELDS: Final = 500
DEEPEST: Final = 16
"""Levels of a query."""


def _leaves(text: str) -> dict[str, str]:
    return dict.fromkeys(text.split(), LEAF)


def _money(text: str) -> dict[str, str]:
    return dict.fromkeys(text.split(), "MoneyBag")


FIELDS: Final[Mapping[str, Mapping[str, str]]] = {
    ROOT: {
        "shop": "Shop",
        "product": "Product",
        "products": "ProductConnection",
        "productsCount": "Count",
        "productVariant": "ProductVariant",
        "productVariants": "ProductVariantConnection",
        "collection": "Collection",
        "collections": "CollectionConnection",
        "inventoryItem": "InventoryItem",
        "inventoryItems": "InventoryItemConnection",
        "inventoryLevel": "InventoryLevel",
        "location": "Location",
        "locations": "LocationConnection",
        "order": "Order",
        "orders": "OrderConnection",
        "ordersCount": "Count",
    },
    "Shop": {
        **_leaves(
            "id name description myshopifyDomain url currencyCode enabledPresentmentCurrencies"
            " ianaTimezone timezoneOffset createdAt updatedAt setupRequired taxesIncluded"
            " taxShipping weightUnit unitSystem orderNumberFormatPrefix orderNumberFormatSuffix"
            " shipsToCountries"
        ),
        "plan": "ShopPlan",
        "primaryDomain": "Domain",
    },
    "ShopPlan": _leaves("partnerDevelopment publicDisplayName shopifyPlus"),
    "Domain": _leaves("id host sslEnabled url"),
    "Product": {
        **_leaves(
            "id legacyResourceId title handle status vendor productType tags description"
            " descriptionHtml createdAt updatedAt publishedAt totalInventory tracksInventory"
            " onlineStoreUrl hasOnlyDefaultVariant hasOutOfStockVariants isGiftCard"
            " requiresSellingPlan templateSuffix"
        ),
        "seo": "SEO",
        "category": "TaxonomyCategory",
        "options": "ProductOption",
        "priceRangeV2": "ProductPriceRangeV2",
        "variants": "ProductVariantConnection",
        "variantsCount": "Count",
        "mediaCount": "Count",
        "collections": "CollectionConnection",
    },
    "SEO": _leaves("title description"),
    "TaxonomyCategory": _leaves("id name fullName"),
    "ProductOption": _leaves("id name position values"),
    "ProductPriceRangeV2": dict.fromkeys(("minVariantPrice", "maxVariantPrice"), "MoneyV2"),
    "ProductVariant": {
        **_leaves(
            "id legacyResourceId title displayName sku barcode price compareAtPrice position"
            " availableForSale sellableOnlineQuantity inventoryQuantity inventoryPolicy taxable"
            " createdAt updatedAt"
        ),
        "selectedOptions": "SelectedOption",
        "product": "Product",
        "inventoryItem": "InventoryItem",
    },
    "SelectedOption": _leaves("name value"),
    "Collection": {
        **_leaves(
            "id legacyResourceId title handle description descriptionHtml sortOrder updatedAt"
        ),
        "seo": "SEO",
        "products": "ProductConnection",
        "productsCount": "Count",
    },
    "InventoryItem": {
        **_leaves(
            "id legacyResourceId sku tracked requiresShipping countryCodeOfOrigin"
            " harmonizedSystemCode createdAt updatedAt"
        ),
        "unitCost": "MoneyV2",
        "inventoryLevels": "InventoryLevelConnection",
        "locationsCount": "Count",
        "variants": "ProductVariantConnection",
    },
    "InventoryLevel": {
        **_leaves("id isActive createdAt updatedAt"),
        "item": "InventoryItem",
        "location": "Location",
        "quantities": "InventoryQuantity",
    },
    "InventoryQuantity": _leaves("id name quantity updatedAt"),
    "Location": {
        **_leaves(
            "id legacyResourceId name isActive fulfillsOnlineOrders hasActiveInventory"
            " shipsInventory createdAt updatedAt"
        ),
        "inventoryLevels": "InventoryLevelConnection",
    },
    "Order": {
        **_leaves(
            "id legacyResourceId name number createdAt processedAt updatedAt cancelledAt"
            " cancelReason closed closedAt confirmed test edited sourceName currencyCode"
            " presentmentCurrencyCode paymentGatewayNames displayFinancialStatus"
            " displayFulfillmentStatus returnStatus fullyPaid unpaid taxesIncluded"
            " subtotalLineItemsQuantity currentSubtotalLineItemsQuantity"
        ),
        **_money(
            "totalPriceSet originalTotalPriceSet currentTotalPriceSet subtotalPriceSet"
            " currentSubtotalPriceSet totalDiscountsSet currentTotalDiscountsSet totalTaxSet"
            " currentTotalTaxSet totalShippingPriceSet totalReceivedSet totalRefundedSet"
            " netPaymentSet totalOutstandingSet totalTipReceivedSet"
        ),
        "lineItems": "LineItemConnection",
        "refunds": "Refund",
        "transactions": "OrderTransaction",
    },
    "LineItem": {
        **_leaves(
            "id title variantTitle sku vendor quantity currentQuantity refundableQuantity"
            " unfulfilledQuantity isGiftCard requiresShipping taxable"
        ),
        **_money(
            "originalUnitPriceSet originalTotalSet totalDiscountSet discountedTotalSet"
            " discountedUnitPriceAfterAllDiscountsSet priceAfterAllDiscountsBeforeTaxesSet"
        ),
        "product": "Product",
        "variant": "ProductVariant",
        "sellingPlan": "LineItemSellingPlan",
    },
    "LineItemSellingPlan": _leaves("name sellingPlanId"),
    "Refund": {
        **_leaves("id createdAt processedAt updatedAt"),
        **_money("totalRefundedSet"),
        "refundLineItems": "RefundLineItemConnection",
    },
    "RefundLineItem": {
        **_leaves("quantity restockType restocked"),
        **_money("priceSet subtotalSet totalTaxSet"),
        "lineItem": "LineItem",
    },
    "OrderTransaction": {
        **_leaves(
            "id kind status test gateway formattedGateway manualPaymentGateway createdAt"
            " processedAt errorCode"
        ),
        **_money("amountSet"),
    },
    "MoneyBag": dict.fromkeys(("shopMoney", "presentmentMoney"), "MoneyV2"),
    "MoneyV2": _leaves("amount currencyCode"),
    "Count": _leaves("count precision"),
    "PageInfo": _leaves("hasNextPage hasPreviousPage startCursor endCursor"),
}

ARGUMENTS: Final[Mapping[tuple[str, str], frozenset[str]]] = {
    (ROOT, "products"): SEARCHING,
    (ROOT, "productsCount"): frozenset({"query", "limit"}),
    (ROOT, "productVariants"): SEARCHING,
    (ROOT, "collections"): SEARCHING,
    (ROOT, "inventoryItems"): PAGING | {"query"},
    (ROOT, "locations"): LISTING,
    # A search would tell whether a person with a given name or address bought here, and cursors hold
    # what is sorted by, which may be the buyer's name.
    (ROOT, "orders"): PAGING,
    (ROOT, "ordersCount"): frozenset({"limit"}),
    **{
        (ROOT, name): ONE
        for name in (
            "product",
            "productVariant",
            "collection",
            "inventoryItem",
            "inventoryLevel",
            "location",
            "order",
        )
    },
    ("Product", "variants"): LISTING,
    ("Product", "collections"): LISTING,
    ("Product", "options"): frozenset({"first"}),
    ("Collection", "products"): LISTING,
    ("InventoryItem", "inventoryLevels"): PAGING,
    ("InventoryItem", "variants"): PAGING - {"reverse"},
    ("InventoryLevel", "quantities"): frozenset({"names"}),
    ("Location", "inventoryLevels"): PAGING,
    ("Order", "lineItems"): PAGING,
    ("Order", "refunds"): frozenset({"first"}),
    ("Order", "transactions"): frozenset({"first", "capturable", "manuallyResolvable"}),
    ("Refund", "refundLineItems"): PAGING,
}
"""What a field may be asked with; nothing where it is not named."""


@dataclass(frozen=True, slots=True)
class Need:
    """What reading a type needs: our scope of the agent, and one of the platform's of the app."""

    ours: str
    theirs: frozenset[str] = field(default_factory=frozenset)


_CATALOG: Final = Need("catalog:read", frozenset({"read_products"}))
_STOCK: Final = Need("inventory:read", frozenset({"read_inventory"}))
_ORDERS: Final = Need("orders:read", frozenset({"read_orders"}))

NEEDS: Final[Mapping[str, Need]] = {
    "Shop": Need("store:read"),
    "Product": _CATALOG,
    "ProductVariant": _CATALOG,
    "Collection": _CATALOG,
    "InventoryItem": Need("inventory:read", frozenset({"read_inventory", "read_products"})),
    "InventoryLevel": _STOCK,
    "Location": Need("inventory:read", frozenset({"read_locations", "read_inventory"})),
    "Order": _ORDERS,
    "LineItem": _ORDERS,
    "Refund": _ORDERS,
    "RefundLineItem": _ORDERS,
    "OrderTransaction": _ORDERS,
}
ROOT_NEEDS: Final[Mapping[str, Need]] = {"productsCount": _CATALOG, "ordersCount": _ORDERS}
"""Fields of the root whose type does not say what they read."""


def fields_of(kind: str) -> Mapping[str, str]:
    """List what may be read of a type, and of what type that is."""
    if kind in FIELDS:
        return FIELDS[kind]
    for ending in (CONNECTION, EDGE):
        base = kind.removesuffix(ending)
        if base != kind and base in NEEDS:
            if ending == EDGE:
                return {"cursor": LEAF, "node": base}
            return {"edges": f"{base}{EDGE}", "nodes": base, "pageInfo": "PageInfo"}
    return {}
