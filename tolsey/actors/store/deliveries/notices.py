"""Readers of bodies about the shop itself and the app in it.

The shop's owner, addresses, phones and e-mails end here, as buyers' do in `payloads`.
"""

from datetime import datetime

from tolsey.actors.bodies import Body, Unreadable
from tolsey.actors.store.deliveries import fields
from tolsey.actors.store.deliveries.messages import (
    AppUninstalled,
    BulkFinished,
    DomainCreated,
    ScopesChanged,
    ShopUpdated,
    ThemePublished,
)
from tolsey.actors.store.deliveries.reading import Reading, audit, changed_at, json_text
from tolsey.storage.records.commerce.connection import ShopProfile

SCOPES_KEPT = 500
SHOP_FIELDS = frozenset({"myshopify_domain", "domain"})
"""What a shop's body has and no other body that the platform sends (rules/shops#uninstalling)."""


def app_uninstalled(body: Body, reading: Reading) -> AppUninstalled:
    """Read that the app is gone; the body is the shop, which is all that it says.

    Only the body is signed, not the topic: another one of this shop's deliveries must not end its grant.
    The platform's own samples leave the domains null.
    """
    if not SHOP_FIELDS & body.keys():
        raise Unreadable("myshopify_domain", "not a shop")
    named = body.get("myshopify_domain")
    if named is not None and str(named).lower() != reading.delivery.shop_domain:
        raise Unreadable("myshopify_domain", "another shop")
    shop_id = body.get("id")
    is_id = type(shop_id) is int and 0 < shop_id < fields.BIGINT
    payload = {"id": shop_id if is_id else None}
    return AppUninstalled(reading.delivery, audit(reading, payload))


def scopes_changed(body: Body, reading: Reading) -> ScopesChanged:
    """Read what the app may do now."""
    if body.get("current") is None:
        raise Unreadable("current", "not a list of texts")
    scopes = fields.texts(body, "current", SCOPES_KEPT)
    at = fact_time(body, reading)  # a time ahead of ours must not shut out the next renewal
    payload = {"current": scopes, "updatedAt": at}
    return ScopesChanged(
        delivery=reading.delivery, scopes=scopes, changed_at=at, audit=audit(reading, payload)
    )


def shop_updated(body: Body, reading: Reading) -> ShopUpdated:
    """Read the shop's facts; its owner, address, phone and e-mail are left out."""
    profile = ShopProfile(
        store_id=reading.store_id,
        shop_domain=reading.delivery.shop_domain,
        facts_at=fact_time(body, reading),
        shop_id=fields.number(body, "id"),
        name=fields.text(body, "name"),
        plan_name=fields.text(body, "plan_name", 100),
        plan_display_name=fields.text(body, "plan_display_name", 100),
        currency=fields.currency(body, "currency"),
        primary_domain=fields.text(body, "domain", 255),
        timezone=fields.text(body, "iana_timezone", 100),
        country=fields.text(body, "country_code", 10),
        password_enabled=fields.flag(body, "password_enabled"),
        setup_required=fields.flag(body, "setup_required"),
        shop_created_at=fields.moment(body, "created_at"),
    )
    payload = {
        "id": profile.shop_id,
        "planName": profile.plan_name,
        "currency": profile.currency,
        "domain": profile.primary_domain,
        "passwordEnabled": profile.password_enabled,
    }
    return ShopUpdated(reading.delivery, profile, audit(reading, payload))


def fact_time(body: Body, reading: Reading) -> datetime:
    """Say when facts held: never later than they arrived, so that newer ones can replace them."""
    return min(changed_at(body, reading), reading.delivery.at)


def domain_created(body: Body, reading: Reading) -> DomainCreated:
    """Read the shop's new address."""
    host = fields.text(body, "host", 255)
    if not host:
        raise Unreadable("host", "not a host name")
    return DomainCreated(reading.delivery, host.lower(), audit(reading, {"host": host}))


def theme_published(body: Body, reading: Reading) -> ThemePublished:
    """Read which theme the shop shows."""
    theme_id = fields.identifier(body, "id")
    name = fields.text(body, "name", 255)
    payload = {"id": theme_id, "role": fields.text(body, "role", 50)}
    at = fact_time(body, reading)
    return ThemePublished(
        delivery=reading.delivery,
        theme_id=theme_id,
        name=name,
        published_at=at,
        audit=audit(reading, payload),
    )


def bulk_finished(body: Body, reading: Reading) -> BulkFinished:
    """Read how a bulk export ended."""
    gid = fields.text(body, "admin_graphql_api_id", 200)
    if not gid:
        raise Unreadable("admin_graphql_api_id", "not an id")
    operation = {
        "id": gid,
        "status": fields.text(body, "status", 50),
        "errorCode": fields.text(body, "error_code", 50),
        "type": fields.text(body, "type", 50),
    }
    completed_at = fields.moment(body, "completed_at") or reading.delivery.happened_at
    return BulkFinished(
        delivery=reading.delivery,
        operation=json_text(operation),
        finished_at=min(completed_at, reading.delivery.at),
        audit=audit(reading, operation),
    )
