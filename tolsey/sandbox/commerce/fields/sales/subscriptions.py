"""The mutations that change the webhook subscriptions of an app in a shop."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from tolsey.sandbox.commerce.query.projection import Call
from tolsey.sandbox.commerce.shop.state import Shop
from tolsey.sandbox.commerce.shop.subscriptions import Subscription

# What a topic's name begins with, and the scope that reading it takes.
_SCOPES = {
    "ORDERS": "read_orders",
    "REFUNDS": "read_orders",
    "DRAFT_ORDERS": "read_draft_orders",
    "CHECKOUTS": "read_orders",
    "CARTS": "read_orders",
    "DISPUTES": "read_shopify_payments_disputes",
    "FULFILLMENTS": "read_fulfillments",
    "PRODUCTS": "read_products",
    "COLLECTIONS": "read_products",
    "INVENTORY_LEVELS": "read_inventory",
    "CUSTOMERS": "read_customers",
    "THEMES": "read_themes",
}
_CUSTOMER_DATA = ("ORDERS", "REFUNDS", "CUSTOMERS", "FULFILLMENTS", "CHECKOUTS", "DRAFT_ORDERS")


def scope_of(topic: str) -> str | None:
    """Name the scope a topic's enum value needs, if any."""
    return next((s for name, s in _SCOPES.items() if topic.startswith(name + "_")), None)


def create(_root: Any, call: Call) -> dict[str, Any]:
    """Subscribe an address to a topic."""
    shop, topic = call.request.shop, call.args["topic"]
    asked = call.args["webhookSubscription"]
    error = _refusal(shop, topic, asked.get("uri"))
    if error is not None:
        return {"userErrors": [error], "webhookSubscription": None}
    now = call.request.platform.now()
    made = Subscription(
        id=next(shop.ids),
        topic=topic,
        uri=asked["uri"],
        api_version=call.request.platform.api_version,
        created_at=now,
        updated_at=now,
    )
    _apply(made, asked)
    shop.subscriptions[made.id] = made
    return {"userErrors": [], "webhookSubscription": made}


def update(_root: Any, call: Call) -> dict[str, Any]:
    """Change a subscription's address or format."""
    shop, asked = call.request.shop, call.args["webhookSubscription"]
    found = shop.subscriptions.get(_number(call.args["id"]))
    if found is None:
        error = _error(["id"], "Webhook subscription does not exist")
        return {"userErrors": [error], "webhookSubscription": None}
    if asked.get("uri") and asked["uri"] != found.uri:
        refusal = _refusal(shop, found.topic, asked["uri"])
        if refusal is not None:
            return {"userErrors": [refusal], "webhookSubscription": None}
        found.uri = asked["uri"]
    _apply(found, asked)
    found.updated_at = call.request.platform.now()
    return {"userErrors": [], "webhookSubscription": found}


def delete(_root: Any, call: Call) -> dict[str, Any]:
    """Remove a subscription."""
    gone = call.request.shop.subscriptions.pop(_number(call.args["id"]), None)
    if gone is None:
        error = _error(["id"], "Webhook subscription does not exist")
        return {"userErrors": [error], "deletedWebhookSubscriptionId": None}
    return {"userErrors": [], "deletedWebhookSubscriptionId": call.args["id"]}


def _apply(subscription: Subscription, asked: Mapping[str, Any]) -> None:
    subscription.format = asked.get("format") or subscription.format
    subscription.filter = asked.get("filter") or subscription.filter
    subscription.name = asked.get("name") or subscription.name
    subscription.include_fields = asked.get("includeFields") or subscription.include_fields
    namespaces = asked.get("metafieldNamespaces")
    subscription.metafield_namespaces = namespaces or subscription.metafield_namespaces


def _refusal(shop: Shop, topic: str, uri: str | None) -> dict[str, Any] | None:
    if not uri:
        return _error(["webhookSubscription", "callbackUrl"], "Address can't be blank")
    parts = urlsplit(uri)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        message = f"Address protocol {parts.scheme}:// is not supported"
        return _error(["webhookSubscription", "callbackUrl"], message)
    scope = scope_of(topic)
    if scope is not None and not shop.grants(scope):
        message = "You cannot create a webhook subscription with the specified topic"
        return _error(["webhookSubscription"], message)
    if topic.startswith(_CUSTOMER_DATA) and not shop.spec.approved_for_customer_data:
        message = (
            "This app is not approved to subscribe to webhook topics "
            "containing protected customer data."
        )
        return _error(["webhookSubscription"], message)
    if any(s.topic == topic and s.uri == uri for s in shop.subscriptions.values()):
        message = "Address for this topic has already been taken"
        return _error(["webhookSubscription", "callbackUrl"], message)
    return None


def _error(where: list[str], message: str) -> dict[str, Any]:
    return {"field": where, "message": message}


def _number(gid: str) -> int:
    tail = gid.rsplit("/", 1)[-1]
    return int(tail) if tail.isdigit() else -1
