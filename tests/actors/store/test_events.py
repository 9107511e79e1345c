"""Deliveries: claimed, put on record, kept when they are about the shop the store still has."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tolsey.actors.store.connection.messages import RevokeGrant
from tolsey.actors.store.deliveries import events
from tolsey.actors.store.deliveries.messages import (
    AppUninstalled,
    Delivery,
    DeliveryIgnored,
    DeliveryUnreadable,
    DomainCreated,
    OrderChanged,
    OrderEdited,
    ReadOrder,
    ShopUpdated,
    ThemePublished,
)
from tolsey.actors.store.messages import Outcome, store
from tolsey.actors.store.state import StoreState
from tolsey.runtime.decision import Perform, Tell
from tolsey.storage.records.commerce.connection import Connection, ShopProfile
from tolsey.storage.records.commerce.deliveries import CommerceOrder, WebhookEvent
from tolsey.storage.records.journal import AuditRecord

NOON = datetime(2026, 7, 1, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
SHOP = "a.myshopify.com"
CONNECTED = StoreState(
    store_id="store_1",
    organization_id="org_1",
    connection=Connection(store_id="store_1", shop_domain=SHOP, status="active", connected_at=NOON),
)
REVOKED = replace(
    CONNECTED,
    connection=Connection(
        store_id="store_1", shop_domain=SHOP, status="revoked", connected_at=NOON
    ),
)
REPOINTED = replace(
    CONNECTED,
    connection=Connection(
        store_id="store_1", shop_domain="b.myshopify.com", status="active", connected_at=NOON
    ),
)


def delivery(topic: str, at: datetime = NOON) -> Delivery:
    return Delivery(id="d1", topic=topic, shop_domain=SHOP, at=at, event_id="e1", triggered_at=at)


ORDER = CommerceOrder(store_id="store_1", order_id=7, updated_at=NOON, name="#7")
CREATED = OrderChanged(
    delivery=delivery("orders/create"), order=ORDER, audit='{"payload":{"id":7}}'
)


def audits(decision: Any) -> list[AuditRecord]:
    return [record for record in decision.records if isinstance(record, AuditRecord)]


def test_an_order_is_claimed_put_on_record_and_kept_without_touching_the_state() -> None:
    decision = events.keep(CONNECTED, CREATED, ORDER)

    assert decision.state is CONNECTED
    assert decision.records == (
        WebhookEvent(
            store_id="store_1",
            delivery_id="d1",
            topic="orders/create",
            event_id="e1",
            shop_domain=SHOP,
            triggered_at=NOON,
        ),
        AuditRecord(
            event="commerce.webhook.orders.create",
            subject="store_1",
            organization_id="org_1",
            actor="platform",
            metadata=CREATED.audit,
        ),
        ORDER,
    )


@pytest.mark.parametrize("state", [REVOKED, REPOINTED, StoreState(store_id="store_1")])
def test_a_store_that_left_the_shop_keeps_nothing_of_it(state: StoreState) -> None:
    decision = events.keep(state, CREATED, ORDER)

    assert decision.reply is Outcome.IGNORED
    assert ORDER not in decision.records
    assert json.loads(audits(decision)[0].metadata)["ignored"] == "not_connected"


def test_an_unknown_topic_is_taken_note_of() -> None:
    decision = events.ignore(CONNECTED, DeliveryIgnored(delivery("shop/redact")))

    assert decision.reply is Outcome.IGNORED
    assert audits(decision)[0].event == "commerce.webhook.shop.redact"


def test_an_unreadable_body_is_claimed_and_nothing_of_it_kept() -> None:
    decision = events.give_up(CONNECTED, DeliveryUnreadable(delivery("orders/create"), "id"))

    assert [type(record) for record in decision.records] == [WebhookEvent, AuditRecord]
    assert audits(decision)[0].event == "commerce.webhook.unreadable"


def test_an_uninstall_is_on_record_before_and_apart_from_the_update() -> None:
    message = AppUninstalled(delivery("app/uninstalled"), "{}")
    decision = events.app_uninstalled(CONNECTED, message)

    assert decision.state is CONNECTED
    assert audits(decision)[0].event == "commerce.webhook.app.uninstalled"
    assert decision.effects == (
        Tell(
            store("store_1"),
            RevokeGrant(shop_domain=SHOP, happened_at=NOON, at=NOON),
            key="revoke-grant:store_1:d1",
        ),
    )


def test_an_edited_order_is_read_anew() -> None:
    decision = events.order_edited(CONNECTED, OrderEdited(delivery("orders/edited"), 7, "{}"))

    assert decision.effects == (Perform(ReadOrder("store_1", 7, "org_1")),)


def test_older_facts_of_a_shop_change_nothing() -> None:
    def told(plan: str, at: datetime) -> ShopUpdated:
        profile = ShopProfile(store_id="store_1", shop_domain=SHOP, facts_at=at, plan_name=plan)
        return ShopUpdated(delivery("shop/update", at), profile, "{}")

    newer = events.shop_updated(CONNECTED, told("basic", NOON + MINUTE)).state
    older = events.shop_updated(newer, told("affiliate", NOON))

    assert newer.shop is not None
    assert newer.shop.plan_name == "basic"
    assert older.state is newer


def test_a_theme_and_a_domain_are_remembered() -> None:
    theme = ThemePublished(
        delivery=delivery("themes/publish"),
        theme_id=9,
        name="Comfort",
        published_at=NOON,
        audit="{}",
    )
    domain = DomainCreated(delivery("domains/create"), "shop.example", "{}")
    state = events.domain_created(events.theme_published(CONNECTED, theme).state, domain).state
    again = events.domain_created(state, domain).state

    assert state.shop is not None
    assert (state.shop.theme_id, state.shop.custom_domains) == (9, '["shop.example"]')
    assert again == state
