"""Webhook and REST bodies of shops, products, stock and customers."""

from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from tolsey.sandbox.clock import instant
from tolsey.sandbox.commerce.shop.money import plain
from tolsey.sandbox.commerce.shop.orders import Customer
from tolsey.sandbox.commerce.shop.products import LOCATION_ID, Product, Variant
from tolsey.sandbox.commerce.shop.state import Shop

# Products carry only so many variants in full; the rest are listed by id.
_FULL_VARIANTS = 100


def local(moment: datetime | None, shop: Shop) -> str | None:
    """Write a moment as REST bodies do: in the shop's zone, with its offset."""
    if moment is None:
        return None
    return moment.astimezone(ZoneInfo(shop.spec.timezone)).isoformat(timespec="seconds")


def shop_body(shop: Shop) -> dict[str, Any]:
    """Describe a shop as `app/uninstalled`, `shop/update` and REST do."""
    spec = shop.spec
    return {
        "id": shop.id,
        "name": spec.name,
        "email": shop.email,
        "domain": shop.primary_domain,
        "province": None,
        "country": spec.country,
        "address1": None,
        "zip": None,
        "city": None,
        "source": None,
        "phone": None,
        "latitude": None,
        "longitude": None,
        "primary_locale": "en",
        "address2": None,
        "created_at": local(spec.created_at, shop),
        "updated_at": local(shop.updated_at, shop),
        "country_code": spec.country,
        "country_name": spec.country,
        "currency": spec.currency,
        "customer_email": shop.email,
        "timezone": spec.timezone,
        "iana_timezone": spec.timezone,
        "shop_owner": "Shop Owner",
        "money_format": "{{amount}}",
        "money_with_currency_format": "{{amount}} " + spec.currency,
        "weight_unit": "kg",
        "province_code": None,
        "taxes_included": False,
        "auto_configure_tax_inclusivity": None,
        "tax_shipping": False,
        "county_taxes": False,
        "plan_display_name": "Development" if shop.partner_development else shop.plan,
        "plan_name": shop.plan_name,
        "has_discounts": False,
        "has_gift_cards": True,
        "myshopify_domain": shop.domain,
        "google_apps_domain": None,
        "google_apps_login_enabled": None,
        "money_in_emails_format": "{{amount}}",
        "money_with_currency_in_emails_format": "{{amount}} " + spec.currency,
        "eligible_for_payments": True,
        "requires_extra_payments_agreement": False,
        "password_enabled": shop.partner_development,
        "has_storefront": True,
        "finances": True,
        "checkout_api_supported": False,
        "primary_location_id": LOCATION_ID,
        "multi_location_enabled": False,
        "setup_required": False,
        "pre_launch_enabled": False,
        "enabled_presentment_currencies": [spec.currency],
        "marketing_sms_consent_enabled_at_checkout": False,
        "transactional_sms_disabled": False,
    }


def scopes_body(shop: Shop, previous: tuple[str, ...], now: datetime) -> dict[str, Any]:
    """Describe a change of scopes as `app/scopes_update` does."""
    return {
        "id": 1,
        "shop_id": f"gid://shopify/Shop/{shop.id}",
        "previous": list(previous),
        "current": list(shop.scopes),
        "updated_at": instant(now),
    }


def domain_body(number: int, host: str) -> dict[str, Any]:
    """Describe a domain as `domains/create` does."""
    places = {"country": None, "default_locale": "en", "alternate_locales": list[str]()}
    return {"id": number, "host": host, "ssl_enabled": True, "localization": places}


def theme_body(shop: Shop, number: int, name: str, now: datetime) -> dict[str, Any]:
    """Describe a theme as `themes/publish` does."""
    return {
        "id": number,
        "name": name,
        "created_at": local(now, shop),
        "updated_at": local(now, shop),
        "role": "main",
        "theme_store_id": None,
        "previewable": True,
        "processing": False,
        "admin_graphql_api_id": f"gid://shopify/OnlineStoreTheme/{number}",
    }


def customer_body(shop: Shop, customer: Customer) -> dict[str, Any]:
    """Describe a customer as `customers/*` and orders do."""
    return {
        "id": customer.id,
        "created_at": local(customer.created_at, shop),
        "updated_at": local(customer.updated_at, shop),
        "first_name": customer.first_name,
        "last_name": customer.last_name,
        "state": "disabled",
        "note": None,
        "verified_email": customer.email is not None,
        "multipass_identifier": None,
        "tax_exempt": False,
        "email": customer.email,
        "phone": None,
        "currency": customer.currency,
        "addresses": [],
        "tax_exemptions": [],
        "admin_graphql_api_id": f"gid://shopify/Customer/{customer.id}",
        "default_address": address(shop, customer),
    }


def address(shop: Shop, customer: Customer) -> dict[str, Any]:
    """Make up where a customer lives."""
    return {
        "id": customer.id + 1,
        "customer_id": customer.id,
        "first_name": customer.first_name,
        "last_name": customer.last_name,
        "company": None,
        "address1": "1 Sandbox Lane",
        "address2": None,
        "city": "Sampleton",
        "province": None,
        "country": shop.spec.country,
        "zip": "00000",
        "phone": None,
        "name": f"{customer.first_name} {customer.last_name}",
        "province_code": None,
        "country_code": shop.spec.country,
        "country_name": shop.spec.country,
        "default": True,
    }


def gone_customer_body(customer: Customer) -> dict[str, Any]:
    """Describe a customer as `customers/delete` does."""
    gid = f"gid://shopify/Customer/{customer.id}"
    return {"id": customer.id, "tax_exemptions": [], "admin_graphql_api_id": gid}


def product_body(shop: Shop, product: Product) -> dict[str, Any]:
    """Describe a product as `products/*` does."""
    return {
        "admin_graphql_api_id": f"gid://shopify/Product/{product.id}",
        "body_html": product.description_html or None,
        "created_at": local(product.created_at, shop),
        "handle": product.handle,
        "id": product.id,
        "product_type": product.product_type,
        "published_at": local(product.published_at, shop),
        "template_suffix": None,
        "title": product.title,
        "updated_at": local(product.updated_at, shop),
        "vendor": product.vendor,
        "status": product.status.lower(),
        "published_scope": "web",
        "tags": ", ".join(product.tags),
        "variants": [
            _variant_body(shop, product, position, variant)
            for position, variant in enumerate(product.variants[:_FULL_VARIANTS], 1)
        ],
        "options": [],
        "images": [],
        "image": None,
        "media": [],
        "variant_gids": [
            {
                "admin_graphql_api_id": f"gid://shopify/ProductVariant/{variant.id}",
                "updated_at": instant(product.updated_at),
            }
            for variant in product.variants
        ],
        "has_variants_that_requires_components": False,
        "category": None,
    }


def _variant_body(shop: Shop, product: Product, position: int, variant: Variant) -> dict[str, Any]:
    currency = shop.spec.currency
    compare = variant.compare_at_price
    return {
        "admin_graphql_api_id": f"gid://shopify/ProductVariant/{variant.id}",
        "barcode": None,
        "compare_at_price": None if compare is None else plain(compare, currency),
        "created_at": local(product.created_at, shop),
        "id": variant.id,
        "inventory_policy": "deny",
        "position": position,
        "price": plain(variant.price, currency),
        "product_id": product.id,
        "sku": variant.sku or None,
        "taxable": True,
        "title": variant.title,
        "updated_at": local(product.updated_at, shop),
        "option1": variant.title,
        "option2": None,
        "option3": None,
        "image_id": None,
        "inventory_item_id": variant.inventory_item_id,
        "inventory_quantity": variant.available,
        "old_inventory_quantity": variant.available,
    }


def stock_body(shop: Shop, variant: Variant, now: datetime) -> dict[str, Any]:
    """Describe a stock level as `inventory_levels/update` does."""
    item = variant.inventory_item_id
    return {
        "inventory_item_id": item,
        "location_id": LOCATION_ID,
        "available": variant.available if variant.tracked else None,
        "updated_at": local(now, shop),
        "admin_graphql_api_id": (
            f"gid://shopify/InventoryLevel/{LOCATION_ID}?inventory_item_id={item}"
        ),
    }
