"""Privacy requests: they come without a subscription, signed by the platform app's own secret."""

from typing import Any

import orjson

from tolsey.sandbox.commerce.course.shops import Shops
from tolsey.sandbox.commerce.webhooks.deliveries import Delivery


def request_data(
    platform: Shops, domain: str, customer_id: int, *, uri: str, secret: str
) -> Delivery:
    """Ask for what is kept of a customer (`customers/data_request`)."""
    body = _customer(platform, domain, customer_id)
    body["orders_requested"] = body.pop("orders")
    body["data_request"] = {"id": 9999}
    return _send(platform, domain, "customers/data_request", body, uri, secret)


def redact_customer(
    platform: Shops, domain: str, customer_id: int, *, uri: str, secret: str
) -> Delivery:
    """Ask to forget a customer (`customers/redact`)."""
    body = _customer(platform, domain, customer_id)
    body["orders_to_redact"] = body.pop("orders")
    return _send(platform, domain, "customers/redact", body, uri, secret)


def redact_shop(platform: Shops, domain: str, *, uri: str, secret: str) -> Delivery:
    """Ask to forget a shop (`shop/redact`), as the platform does 48 hours after uninstalling."""
    body = {"shop_id": platform.shop(domain).id, "shop_domain": domain}
    return _send(platform, domain, "shop/redact", body, uri, secret)


def _customer(platform: Shops, domain: str, customer_id: int) -> dict[str, Any]:
    shop = platform.shop(domain)
    customer = shop.customers[customer_id]
    bought = [o.id for o in shop.orders.values() if o.customer and o.customer.id == customer_id]
    who = {"id": customer.id, "email": customer.email, "phone": None}
    return {"shop_id": shop.id, "shop_domain": domain, "customer": who, "orders": bought}


def _send(  # noqa: PLR0917 - a private step of the three above
    platform: Shops, domain: str, topic: str, body: dict[str, Any], uri: str, secret: str
) -> Delivery:
    return platform.deliveries.tell(
        platform.shop(domain),
        topic,
        uri,
        orjson.dumps(body),
        at=platform.now(),
        secret=secret,
    )
