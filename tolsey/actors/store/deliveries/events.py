"""Decisions about deliveries: each is claimed and put on record, and what it says is kept.

Deliveries may be forged by whoever owns the app's secret, come in any order and more than once;
so they change only what is kept for operations and never what is verified.
"""

import json
from dataclasses import replace
from typing import Any

from tolsey.actors.listing.deals.messages import LookForOwner
from tolsey.actors.store.connection.connecting import check, rescope
from tolsey.actors.store.connection.messages import RevokeGrant
from tolsey.actors.store.deliveries.messages import (
    AppUninstalled,
    BulkFinished,
    CustomerChanged,
    Delivery,
    DeliveryIgnored,
    DeliveryUnreadable,
    DomainCreated,
    FulfillmentChanged,
    InventoryChanged,
    OrderChanged,
    OrderEdited,
    OrderRead,
    ProductChanged,
    ReadOrder,
    RefundCreated,
    ScopesChanged,
    ShopUpdated,
    ThemePublished,
)
from tolsey.actors.store.deliveries.reading import about
from tolsey.actors.store.grants import is_listening
from tolsey.actors.store.messages import Outcome, store
from tolsey.actors.store.state import StoreState, filed
from tolsey.runtime.decision import Decision, Effect, Perform, Tell
from tolsey.storage.records.commerce.connection import ShopProfile
from tolsey.storage.records.commerce.deliveries import WebhookEvent
from tolsey.storage.records.journal import AuditRecord, audit_record

EVENT = "commerce.webhook."
UNREADABLE = "commerce.webhook.unreadable"
APP_UNINSTALLED = "app/uninstalled"
PLATFORM = "platform"
CUSTOM_DOMAINS_KEPT = 50

Applied = Decision[StoreState, Outcome]


def claim(state: StoreState, delivery: Delivery) -> WebhookEvent:
    """Make the row that lets a delivery take effect once."""
    return WebhookEvent(
        store_id=state.store_id,
        delivery_id=delivery.id,
        topic=delivery.topic,
        event_id=delivery.event_id,
        shop_domain=delivery.shop_domain,
        triggered_at=delivery.triggered_at,
    )


def put_on_record(state: StoreState, delivery: Delivery, audit: str) -> AuditRecord:
    """Make the audit row of a delivery; `audit` is JSON text without personal data."""
    event = EVENT + delivery.topic.replace("/", ".")
    return AuditRecord(
        event=event,
        subject=state.store_id,
        organization_id=state.organization_id,
        actor=PLATFORM,
        metadata=audit,
    )


def applied(
    state: StoreState, delivery: Delivery, audit: str, *kept: Any, effects: tuple[Effect, ...] = ()
) -> Applied:
    """Claim a delivery, put it on record and keep what it said."""
    records = (claim(state, delivery), put_on_record(state, delivery, audit), *kept)
    return Decision(state, reply=Outcome.APPLIED, records=records, effects=effects)


def skip(state: StoreState, delivery: Delivery, reason: str) -> Applied:
    """Claim a delivery and put on record why nothing of it is kept."""
    audit = json.dumps({**about(delivery), "ignored": reason})
    records = (claim(state, delivery), put_on_record(state, delivery, audit))
    return Decision(state, reply=Outcome.IGNORED, records=records)


def ignore(state: StoreState, message: DeliveryIgnored) -> Applied:
    """Take note of a topic that is not in the catalogue."""
    return skip(state, message.delivery, "topic")


def give_up(state: StoreState, message: DeliveryUnreadable) -> Applied:
    """Take note of a body that is not as documented; nothing of it is kept.

    It is accepted all the same: the platform drops a subscription whose deliveries are refused
    eight times in a row, and one odd product must not cost the shop all later ones.
    """
    delivery = message.delivery
    record = audit_record(
        UNREADABLE,
        state.store_id,
        state.organization_id,
        PLATFORM,
        **about(delivery),
        topic=delivery.topic,
        field=message.field,
    )
    effects: tuple[Effect, ...] = ()
    if delivery.topic == APP_UNINSTALLED and state.connection is not None:
        # It may be an uninstall in a shape that we do not know: the platform knows.
        effects = (check(state, state.connection),)
    records = (claim(state, delivery), record)
    return Decision(state, reply=Outcome.IGNORED, records=records, effects=effects)


def keep(
    state: StoreState,
    message: OrderChanged
    | RefundCreated
    | FulfillmentChanged
    | ProductChanged
    | CustomerChanged
    | InventoryChanged,
    *rows: Any,
) -> Applied:
    """Keep rows of what the shop has, unless what is kept is newer (their tables see to that)."""
    delivery = message.delivery
    if not is_listening(state, delivery.shop_domain):
        return skip(state, delivery, "not_connected")
    return applied(state, delivery, message.audit, *filed(state, *rows))


def customer_changed(state: StoreState, message: CustomerChanged) -> Applied:
    """Keep a customer; one that was deleted does not come back with an import that runs."""
    decision = keep(state, message, message.customer)
    if message.customer.deleted_at is None or decision.reply is not Outcome.APPLIED:
        return decision
    return replace(decision, state=state.without_customer(message.customer.customer_id))


def order_edited(state: StoreState, message: OrderEdited) -> Applied:
    """Ask the platform what the order is now."""
    delivery = message.delivery
    if not is_listening(state, delivery.shop_domain):
        return skip(state, delivery, "not_connected")
    call = Perform(ReadOrder(state.store_id, message.order_id, state.organization_id))
    return applied(state, delivery, message.audit, effects=(call,))


def order_read(state: StoreState, message: OrderRead) -> Decision[StoreState, None]:
    """Keep an order as the platform answered it."""
    if not is_listening(state, message.shop_domain):
        return Decision(state, reply=None)
    return Decision(state, reply=None, records=filed(state, message.order))


def app_uninstalled(state: StoreState, message: AppUninstalled) -> Applied:
    """Put the uninstall on record, and see to it that the credentials go whatever happens next.

    The record stands on its own, so that it survives when the update after it fails
    (rules/shops#uninstalling).
    """
    delivery = message.delivery
    revoke = Tell(
        store(state.store_id),
        RevokeGrant(
            shop_domain=delivery.shop_domain, happened_at=delivery.happened_at, at=delivery.at
        ),
        key=f"revoke-grant:{state.store_id}:{delivery.id}",
    )
    return applied(state, delivery, message.audit, effects=(revoke,))


def scopes_changed(state: StoreState, message: ScopesChanged) -> Applied:
    """Rewrite what the grant allows, without waiting for the next renewal."""
    delivery = message.delivery
    if not is_listening(state, delivery.shop_domain):
        return skip(state, delivery, "not_connected")
    after, effects = rescope(state, message.scopes, message.changed_at)
    return replace(applied(state, delivery, message.audit, effects=effects), state=after)


def shop_updated(state: StoreState, message: ShopUpdated) -> Applied:
    """Keep the shop's own facts, unless newer ones are known."""
    delivery, reported = message.delivery, message.shop
    if not is_listening(state, delivery.shop_domain):
        return skip(state, delivery, "not_connected")
    shop = known(state, delivery)
    if reported.facts_at < shop.facts_at:
        return skip(state, delivery, "older")
    facts = replace(
        shop,
        facts_at=reported.facts_at,
        shop_id=reported.shop_id,
        name=reported.name,
        plan_name=reported.plan_name,
        plan_display_name=reported.plan_display_name,
        currency=reported.currency or shop.currency,
        primary_domain=reported.primary_domain or shop.primary_domain,
        timezone=reported.timezone or shop.timezone,
        country=reported.country,
        password_enabled=reported.password_enabled,
        setup_required=reported.setup_required,
        shop_created_at=reported.shop_created_at or shop.shop_created_at,
    )
    done = applied(state, delivery, message.audit, effects=_owner_looked_for(state, delivery))
    return replace(done, state=replace(state, shop=facts))


def _owner_looked_for(state: StoreState, delivery: Delivery) -> tuple[Perform, ...]:
    """Ask whose the shop is now: its buyer's, perhaps, to whom a deal hands it over."""
    if state.organization_id is None:
        return ()
    call = LookForOwner(store_id=state.store_id, organization_id=state.organization_id)
    return (Perform(call, key=f"owner:{state.store_id}:{delivery.id}"),)


def domain_created(state: StoreState, message: DomainCreated) -> Applied:
    """Remember an address of the shop's own."""
    delivery = message.delivery
    if not is_listening(state, delivery.shop_domain):
        return skip(state, delivery, "not_connected")
    shop = known(state, delivery)
    hosts = json.loads(shop.custom_domains)
    if message.host not in hosts:
        hosts = [*hosts, message.host][-CUSTOM_DOMAINS_KEPT:]
    after = replace(state, shop=replace(shop, custom_domains=json.dumps(hosts)))
    return replace(applied(state, delivery, message.audit), state=after)


def theme_published(state: StoreState, message: ThemePublished) -> Applied:
    """Remember which theme the shop shows."""
    delivery = message.delivery
    if not is_listening(state, delivery.shop_domain):
        return skip(state, delivery, "not_connected")
    shop = known(state, delivery)
    if shop.theme_at is not None and message.published_at < shop.theme_at:
        return skip(state, delivery, "older")
    shown = replace(
        shop, theme_id=message.theme_id, theme_name=message.name, theme_at=message.published_at
    )
    return replace(applied(state, delivery, message.audit), state=replace(state, shop=shown))


def bulk_finished(state: StoreState, message: BulkFinished) -> Applied:
    """Remember the last bulk export that ended."""
    delivery = message.delivery
    if not is_listening(state, delivery.shop_domain):
        return skip(state, delivery, "not_connected")
    shop = known(state, delivery)
    if shop.bulk_at is not None and message.finished_at < shop.bulk_at:
        return skip(state, delivery, "older")
    ended = replace(shop, bulk_operation=message.operation, bulk_at=message.finished_at)
    return replace(applied(state, delivery, message.audit), state=replace(state, shop=ended))


def known(state: StoreState, delivery: Delivery) -> ShopProfile:
    """Start from what is known of the shop; a shop never heard of knows nothing yet."""
    if state.shop is not None and state.shop.shop_domain == delivery.shop_domain:
        return state.shop
    return ShopProfile(
        store_id=state.store_id, shop_domain=delivery.shop_domain, facts_at=delivery.happened_at
    )
