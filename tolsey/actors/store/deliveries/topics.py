"""The one catalogue of the platform topics we subscribe to, each with its reason.

Subscriptions at connect time, the receiver, and what the service keeps all come from here.
`checkouts/*` is left out on purpose: it would produce audit rows only. So are `carts/*`,
`variants/*` (derived), `disputes/*` (its scope is often refused) and `collections/*`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from tolsey.actors.bodies import Body
from tolsey.actors.store.deliveries import notices, payloads
from tolsey.actors.store.deliveries.reading import Reading
from tolsey.actors.store.messages import Outcome
from tolsey.runtime.messages import Message


@dataclass(frozen=True, slots=True)
class Topic:
    """Why we listen, what the merchant must grant for it, and who reads its body."""

    reason: str
    scope: str | None
    read: Callable[[Body, Reading], Message[Outcome]]


ORDERS, FULFILLMENTS = "read_orders", "read_fulfillments"
PRODUCTS, CUSTOMERS = "read_products", "read_customers"

TOPICS: Final[Mapping[str, Topic]] = {
    "app/uninstalled": Topic(
        "A revoked grant must never be used again.", None, notices.app_uninstalled
    ),
    "app/scopes_update": Topic(
        "What the grant allows is known before the next renewal.", None, notices.scopes_changed
    ),
    "shop/update": Topic(
        "The plan tells when a transferred dev store is the merchant's own; currency and domain.",
        None,
        notices.shop_updated,
    ),
    "domains/create": Topic(
        "The custom-domain milestone is seen at once.", None, notices.domain_created
    ),
    "themes/publish": Topic(
        "The theme milestone, and which theme is live.", "read_themes", notices.theme_published
    ),
    "bulk_operations/finish": Topic(
        "A bulk export is ready to be read.", None, notices.bulk_finished
    ),
    "orders/create": Topic("A sale, and whose.", ORDERS, payloads.order_changed),
    "orders/updated": Topic(
        "An order's state, tags and notes, and late edits.", ORDERS, payloads.order_changed
    ),
    "orders/paid": Topic(
        "Money arrived; the first-sale milestone.", ORDERS, payloads.order_changed
    ),
    "orders/cancelled": Topic("A sale that is none.", ORDERS, payloads.order_changed),
    "orders/fulfilled": Topic("Everything of an order was sent.", ORDERS, payloads.order_changed),
    "orders/partially_fulfilled": Topic(
        "A part of an order was sent.", ORDERS, payloads.order_changed
    ),
    "orders/edited": Topic(
        "Changed lines change totals; the order is read anew.", ORDERS, payloads.order_edited
    ),
    "orders/delete": Topic(
        "What the merchant deleted is kept by no one.", ORDERS, payloads.order_deleted
    ),
    "refunds/create": Topic("Net sales and the refund rate.", ORDERS, payloads.refund_created),
    "fulfillments/create": Topic(
        "A parcel's way begins.", FULFILLMENTS, payloads.fulfillment_changed
    ),
    "fulfillments/update": Topic("Where a parcel is.", FULFILLMENTS, payloads.fulfillment_changed),
    "products/create": Topic("The catalogue.", PRODUCTS, payloads.product_changed),
    "products/update": Topic("The catalogue as it is now.", PRODUCTS, payloads.product_changed),
    "products/delete": Topic("What is no longer sold.", PRODUCTS, payloads.product_deleted),
    "inventory_levels/update": Topic(
        "What is in stock.", "read_inventory", payloads.inventory_changed
    ),
    "customers/create": Topic(
        "A buyer, as this store's pseudonym.", CUSTOMERS, payloads.customer_changed
    ),
    "customers/update": Topic(
        "A changed address changes the pseudonym.", CUSTOMERS, payloads.customer_changed
    ),
    "customers/delete": Topic(
        "A buyer's pseudonym is erased.", CUSTOMERS, payloads.customer_deleted
    ),
}

REASONS: Final[Mapping[str, str]] = {name: topic.reason for name, topic in TOPICS.items()}
"""What a shop is subscribed to, as the platform's client wants it."""
