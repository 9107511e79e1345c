"""What the fields of a shop and of the app's installation in it read."""

from typing import Any

from tolsey.sandbox.clock import instant
from tolsey.sandbox.commerce.fields import setup
from tolsey.sandbox.commerce.fields.leaves import gid
from tolsey.sandbox.commerce.query.projection import Call, Getter
from tolsey.sandbox.commerce.shop.state import Shop


def _scopes(call: Call) -> list[dict[str, str]]:
    return [{"handle": s, "description": s.replace("_", " ")} for s in call.request.shop.scopes]


def installation(_: Any, call: Call) -> dict[str, Any]:
    """Describe the app and its scopes."""
    shop = call.request.shop
    app = {
        "id": "gid://shopify/App/1",
        "apiKey": shop.spec.client_id,
        "handle": "tolsey",
        "title": "Tolsey",
    }
    return {
        "id": f"gid://shopify/AppInstallation/{shop.id}",
        "app": app,
        "accessScopes": _scopes(call),
    }


def versions(_: Any, call: Call) -> list[dict[str, Any]]:
    """List the API versions."""
    return [version(handle) for handle in call.request.platform.versions]


def version(handle: str) -> dict[str, Any]:
    """Describe an API version."""
    return {"handle": handle, "displayName": handle, "supported": handle != "unstable"}


def _plan(shop: Shop, _: Call) -> dict[str, Any]:
    return {
        "displayName": shop.plan,
        "publicDisplayName": "Development" if shop.partner_development else shop.plan,
        "partnerDevelopment": shop.partner_development,
        "shopifyPlus": shop.plan == "Plus",
    }


def _domain(shop: Shop, _: Call) -> dict[str, Any]:
    host = shop.primary_domain
    return {
        "id": f"gid://shopify/Domain/{shop.id}",
        "host": host,
        "sslEnabled": shop.setup.has_tls,
        "url": f"https://{host}",
    }


def _address(shop: Shop, _: Call) -> dict[str, Any]:
    return {
        "id": f"gid://shopify/ShopAddress/{shop.id}",
        "countryCodeV2": shop.spec.country,
        **{name: shop.setup.address.get(name) for name in ("address1", "city", "zip", "phone")},
    }


SHOP: dict[str, Getter] = {
    "id": gid("Shop"),
    "name": lambda s, _: s.spec.name,
    "email": lambda s, _: s.email,
    "contactEmail": lambda s, _: s.email,
    "createdAt": lambda s, _: instant(s.spec.created_at),
    "updatedAt": lambda s, _: instant(s.updated_at),
    "currencyCode": lambda s, _: s.spec.currency,
    "enabledPresentmentCurrencies": lambda s, _: [s.spec.currency],
    "ianaTimezone": lambda s, _: s.spec.timezone,
    "timezoneOffset": lambda _s, _: "+0000",
    "timezoneOffsetMinutes": lambda _s, _: 0,
    "myshopifyDomain": lambda s, _: s.domain,
    "url": lambda s, _: f"https://{s.primary_domain}",
    "plan": _plan,
    "primaryDomain": _domain,
    "shopAddress": _address,
    "setupRequired": lambda _s, _: False,
    "taxShipping": lambda _s, _: False,
    "taxesIncluded": lambda _s, _: False,
    "alerts": lambda _s, _: [],
    "checkoutApiSupported": lambda _s, _: True,
    "resourceLimits": lambda _s, _: {"locationLimit": 4},
    "shipsToCountries": lambda s, _: sorted({c for z in s.setup.zones for c in z["codes"]}),
    "shopPolicies": setup.policies,
    "weightUnit": lambda _s, _: "KILOGRAMS",
}
