"""A shop's deliveries, from the wire to the tables."""

import asyncio
import json
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import anyio
import orjson
import pytest

from tests import timing
from tests.golden.cases import BESIDE
from tests.http.webhooks.conftest import QuietPlatform
from tests.http.webhooks.merchant import NOON, SHOP, Answered, Merchant, call
from tolsey.actors.listing.messages import SourceRevoked, listing
from tolsey.actors.store.connection.messages import (
    ReadConnection,
    RevokeGrant,
    RevokeListingSources,
)
from tolsey.actors.store.deliveries.topics import TOPICS
from tolsey.actors.store.effects import StoreEffects
from tolsey.actors.store.messages import store
from tolsey.http.webhooks.commerce import CommerceEvents
from tolsey.runtime.decision import Tell
from tolsey.runtime.errors import DeadlineExceeded, Overloaded, TurnFailed
from tolsey.runtime.messages import ActorId, Message
from tolsey.runtime.outbox.rows import row_of
from tolsey.storage.database import Database, Row
from tolsey.storage.errors import StorageUnavailable
from tolsey.storage.runtime.outbox import Outbox

SAMPLES = BESIDE / "commerce" / "webhooks"
EVENTS = "/api/webhooks/commerce/events"
GONE = {"id": 1, "domain": None, "myshopify_domain": SHOP}
"""The body of an `app/uninstalled`: the shop."""
BRIEF_SECONDS = 2.0
"""A deadline that a test waits for."""
ACCEPTED, DUPLICATE = {"status": "accepted"}, {"status": "duplicate"}


def order(at: datetime = NOON, **fields: Any) -> dict[str, Any]:
    return {"id": 7, "currency": "USD", "updated_at": at.isoformat(), **fields}


async def one(database: Database, table: str) -> Row:
    (row,) = await database.fetch(f"SELECT * FROM {table}")  # noqa: S608 - a test's own table name
    return row


async def until(database: Database, sql: str) -> Row:
    """Wait for work that follows a commit."""
    rows = await timing.until(lambda: database.fetch(sql))  # a row without a column is no truth
    return rows[0]


async def test_a_delivery_is_taken_once(merchant: Merchant, database: Database) -> None:
    await merchant.connect()
    body = order(name="#7", total_price="12.50", email="ann@example.com")

    first = await merchant.deliver("orders/create", body, id="d1")
    again = await merchant.deliver("orders/create", body, id="d1")

    assert (first.status, first.json) == (200, ACCEPTED)
    assert (again.status, again.json) == (200, DUPLICATE)
    kept = await one(database, "commerce_orders")
    assert (kept["order_id"], kept["total_minor"], kept["customer_hash"][:3]) == (7, 1250, "s1:")
    assert (await one(database, "commerce_webhook_events"))["delivery_id"] == "d1"


async def test_ten_simultaneous_repeats_are_one(merchant: Merchant, database: Database) -> None:
    await merchant.connect()
    answers = await asyncio.gather(
        *(merchant.deliver("orders/create", order(), id="d1") for _ in range(10))
    )

    assert sorted(answer.json["status"] for answer in answers) == ["accepted"] + ["duplicate"] * 9
    await one(database, "commerce_webhook_events")


async def test_older_deliveries_never_overwrite_newer_ones(
    merchant: Merchant, database: Database
) -> None:
    await merchant.connect()
    later = NOON + timedelta(minutes=5)
    await merchant.deliver("orders/updated", order(later, name="new"))
    late = await merchant.deliver("orders/create", order(NOON, name="old"))

    assert late.json == ACCEPTED
    assert (await one(database, "commerce_orders"))["name"] == "new"


async def test_a_burst_in_the_wrong_order_ends_with_the_newest(
    merchant: Merchant, database: Database
) -> None:
    await merchant.connect()
    moments = [NOON + timedelta(seconds=n) for n in (3, 9, 1, 7, 5)]
    await asyncio.gather(
        *(merchant.deliver("orders/updated", order(at, name=str(at.second))) for at in moments)
    )

    assert (await one(database, "commerce_orders"))["name"] == "9"


async def test_a_deleted_order_stays_deleted(merchant: Merchant, database: Database) -> None:
    await merchant.connect()
    await merchant.deliver("orders/create", order(name="#7", email="ann@example.com", tags="a"))
    await merchant.deliver("orders/delete", {"id": 7})
    await merchant.deliver("orders/updated", order(NOON + timedelta(days=9), name="back"))

    kept = await one(database, "commerce_orders")
    assert kept["deleted_at"] is not None
    assert (kept["name"], kept["customer_hash"], kept["metadata"]) == (None, None, "{}")


async def test_where_a_buyer_came_from_is_written_once_with_the_order_and_goes_with_it(
    merchant: Merchant, database: Database
) -> None:
    await merchant.connect()
    came: dict[str, Any] = {"landing_site": "/mug?utm_source=News", "referring_site": None}
    await merchant.deliver("orders/create", order(email="ann@example.com", **came))
    written = await database.fetchrow("SELECT xmin::text, * FROM attribution_touches")
    assert written is not None
    kept = await one(database, "commerce_orders")
    assert (written["source"], written["landing_page"]) == ("news", "/mug")
    assert written["session_id"] == kept["customer_hash"]
    assert kept["customer_hash"] is not None

    later = order(NOON + timedelta(days=1), email="ann@example.com", name="#7", **came)
    await merchant.deliver("orders/updated", later)
    again = await database.fetchrow("SELECT xmin::text, * FROM attribution_touches")
    assert again == written

    await merchant.deliver("orders/delete", {"id": 7})
    gone = await one(database, "attribution_touches")
    assert gone["deleted_at"] is not None
    assert (gone["session_id"], gone["source"], gone["landing_page"]) == (None, None, None)


async def test_what_an_order_is_made_of_stays_until_a_body_tells_it_anew(
    merchant: Merchant, database: Database
) -> None:
    await merchant.connect()
    shipped = [{"title": "Standard", "price": "1.00"}]
    reported = order(line_items=[{"id": 1, "quantity": 2}], shipping_lines=shipped)
    await merchant.deliver("orders/create", reported)
    await merchant.deliver("orders/updated", order(NOON + timedelta(days=1), name="later"))
    kept = await one(database, "commerce_orders")
    assert kept["name"] == "later"
    assert json.loads(kept["parts"])["lines"][0]["quantity"] == 2
    assert json.loads(kept["parts"])["shipping"] == shipped
    odd = order(NOON + timedelta(days=2), name="odd", line_items=[{"quantity": "two"}])
    await merchant.deliver("orders/updated", odd)
    assert (await one(database, "commerce_orders"))["name"] == "odd"
    await merchant.deliver("orders/delete", {"id": 7})
    assert (await one(database, "commerce_orders"))["parts"] is None


async def test_a_deletion_that_overtakes_the_order_wins(
    merchant: Merchant, database: Database
) -> None:
    await merchant.connect()
    await asyncio.gather(
        merchant.deliver("orders/delete", {"id": 7}),
        merchant.deliver("orders/create", order(NOON + timedelta(days=9), name="#7")),
    )

    assert (await one(database, "commerce_orders"))["deleted_at"] is not None


async def test_an_edited_order_is_read_from_the_platform(
    merchant: Merchant, database: Database
) -> None:
    await merchant.connect()
    await merchant.deliver("orders/edited", {"order_edit": {"id": 1, "order_id": 7}})

    row = await until(database, "SELECT name FROM commerce_orders WHERE order_id = 7")
    assert row["name"] == "#read"


async def test_an_uninstall_voids_the_credentials_before_the_answer(
    merchant: Merchant, database: Database
) -> None:
    await merchant.connect()
    answer = await merchant.deliver("app/uninstalled", GONE)
    after = await merchant.deliver("orders/create", order())

    assert answer.json == ACCEPTED
    row = await one(database, "integration_connections")
    assert (row["status"], row["access_token"]) == ("revoked", None)
    assert set(json.loads(row["metadata"])) == {"scopes", "scopesAt", "uninstalledAt"}
    audit = await until(
        database, "SELECT * FROM audit_log WHERE event = 'commerce.webhook.app.uninstalled'"
    )
    assert audit["subject"] == "store_1"
    assert after.status == 401


async def test_an_uninstall_is_told_to_the_listings_that_stand_on_the_shop(
    database: Database, effects: StoreEffects
) -> None:
    for listing_id, shop in (("listing_1", SHOP), ("listing_2", "other.myshopify.com")):
        await database.execute(
            "INSERT INTO revenue_sources (listing_id, organization_id, provider, shop_domain,"
            " client_id, connected_by, connected_at)"
            " VALUES ($1, 'org_1', 'commerce', $2, 'app', 'usr_1', now())",
            listing_id,
            shop,
        )
    reported = await effects.revoke_listing_sources(RevokeListingSources("org_1", SHOP, NOON))

    assert [(tell.to, tell.message) for tell in reported] == [
        (listing("listing_1"), SourceRevoked(NOON, "app_uninstalled"))
    ]


async def test_an_uninstall_that_cannot_be_saved_is_answered_200_and_saved_later(
    merchant: Merchant, database: Database
) -> None:
    await merchant.connect()

    class Failing:
        async def ask(self, to: ActorId, message: Message[Any], **options: Any) -> Any:
            if isinstance(message, RevokeGrant):
                raise TurnFailed("RevokeGrant", "the disk is full")
            return await merchant.runtime.ask(to, message, **options)

        async def accept(self, to: ActorId, message: Message[Any], *, id: str, **how: Any) -> bool:
            raise AssertionError(to, message, id, how)

    merchant.app = CommerceEvents(
        Failing(), merchant.directory, merchant.requests, lambda: NOON + timedelta(hours=1)
    )
    answer = await merchant.deliver("app/uninstalled", GONE)

    assert (answer.status, answer.json) == (200, ACCEPTED)
    assert await database.fetch(
        "SELECT FROM audit_log WHERE event = 'commerce.webhook.app.uninstalled'"
    )
    await until(database, "SELECT FROM integration_connections WHERE status = 'revoked'")


async def asked(merchant: Merchant, platform: QuietPlatform) -> None:
    """Wait until the platform was asked whether a grant lives, and what follows has been done."""
    with anyio.fail_after(60):
        while not platform.asked or merchant.runtime.admin.effects_in_flight:
            await asyncio.sleep(0)


@pytest.mark.parametrize("still_lives", [True, False])
async def test_a_late_uninstall_leaves_a_store_whose_new_grant_the_platform_honours(
    merchant: Merchant, database: Database, platform: QuietPlatform, still_lives: bool
) -> None:
    await merchant.connect()
    platform.grants = still_lives
    early = (NOON - timedelta(minutes=6)).isoformat()
    answer = await merchant.deliver("app/uninstalled", GONE, x_shopify_triggered_at=early)

    assert answer.json == ACCEPTED
    await asked(merchant, platform)
    if not still_lives:
        await until(database, "SELECT FROM integration_connections WHERE status = 'revoked'")
    status = (await one(database, "integration_connections"))["status"]
    assert status == ("active" if still_lives else "revoked")


@pytest.mark.parametrize("seconds", [3, 299])
async def test_a_clock_that_is_off_keeps_no_grant_alive(
    merchant: Merchant, database: Database, platform: QuietPlatform, seconds: int
) -> None:
    await merchant.connect()
    early = (NOON - timedelta(seconds=seconds)).isoformat()
    await merchant.deliver("app/uninstalled", GONE, x_shopify_triggered_at=early)

    assert (await one(database, "integration_connections"))["status"] == "revoked"
    assert platform.asked == 0


@pytest.mark.parametrize(
    "body",
    [order(), {"id": 1}, {**GONE, "myshopify_domain": "other.myshopify.com"}],
    ids=["an order", "nothing of a shop", "another shop"],
)
async def test_no_other_body_is_taken_for_an_uninstall(
    merchant: Merchant, database: Database, platform: QuietPlatform, body: dict[str, Any]
) -> None:
    await merchant.connect()
    answer = await merchant.deliver("app/uninstalled", body)

    assert answer.json == ACCEPTED
    await until(database, "SELECT FROM audit_log WHERE event = 'commerce.webhook.unreadable'")
    await asked(merchant, platform)
    assert (await one(database, "integration_connections"))["status"] == "active"


async def test_forged_unknown_and_unsigned_deliveries_look_the_same(merchant: Merchant) -> None:
    await merchant.connect()
    forged = await merchant.deliver("orders/create", order(), secret="guess")
    unknown = await merchant.deliver("orders/create", order(), shop="other.myshopify.com")
    foreign = await merchant.deliver("orders/create", order(), shop="shop.example.com")
    unsigned = await call(
        merchant.app,
        b"{}",
        [(b"x-shopify-topic", b"orders/create"), (b"x-shopify-shop-domain", SHOP.encode())],
    )

    assert forged.status == unknown.status == foreign.status == unsigned.status == 401
    assert forged.body == unknown.body == foreign.body == unsigned.body
    assert forged.headers == unknown.headers == foreign.headers == unsigned.headers
    assert forged.json["code"] == "invalid_signature"


async def test_every_store_whose_own_secret_signed_hears_of_it(
    merchant: Merchant, database: Database
) -> None:
    await merchant.connect("store_1", secret="one")
    await merchant.connect("store_2", secret="two")
    await merchant.connect("store_3", secret="one")

    answer = await merchant.deliver("orders/create", order(email="a@example.com"), secret="one")

    assert answer.json == ACCEPTED
    rows = await database.fetch("SELECT store_id, customer_hash FROM commerce_orders ORDER BY 1")
    assert [row["store_id"] for row in rows] == ["store_1", "store_3"]
    assert rows[0]["customer_hash"] != rows[1]["customer_hash"]


async def test_a_replaced_secret_signs_for_two_more_days(merchant: Merchant) -> None:
    await merchant.connect(secret="old", at=NOON - timedelta(hours=1))
    await merchant.connect(secret="new")

    assert (await merchant.deliver("orders/create", order(), secret="old")).status == 200
    assert (await merchant.deliver("orders/create", order(), secret="new")).status == 200
    await merchant.connect(secret="third", at=NOON - timedelta(days=3))
    assert (await merchant.deliver("orders/create", order(), secret="new")).status == 401


@pytest.mark.parametrize(
    "body",
    [b"", b"[]", b"{", b'{"a": NaN}', b'{"a": "\\ud800"}', b'{"a":' + b"[" * 64 + b"]" * 64 + b"}"],
    ids=lambda body: repr(body[:12]),
)
async def test_a_signed_body_that_is_no_object_is_400(merchant: Merchant, body: bytes) -> None:
    await merchant.connect()
    answer = await merchant.deliver("orders/create", body)

    assert (answer.status, answer.json["code"]) == (400, "malformed_payload")


async def test_an_unreadable_body_is_accepted_and_only_put_on_record(
    merchant: Merchant, database: Database
) -> None:
    await merchant.connect()
    answer = await merchant.deliver("inventory_levels/update", {})

    assert answer.json == ACCEPTED
    assert await database.fetch("SELECT FROM commerce_inventory_levels") == []
    row = await until(
        database, "SELECT metadata FROM audit_log WHERE event = 'commerce.webhook.unreadable'"
    )
    assert json.loads(row["metadata"])["field"] == "inventory_item_id"


@pytest.mark.parametrize("topic", ["shop/redact", "checkouts/create", "Ev\u00e9nt\x01", "x" * 500])
async def test_topics_without_a_reason_are_accepted_and_ignored(
    merchant: Merchant, database: Database, topic: str
) -> None:
    await merchant.connect()
    answer = await merchant.deliver(topic, {"id": 1})

    assert answer.json == ACCEPTED
    assert (await one(database, "commerce_webhook_events"))["topic"] not in TOPICS


async def test_a_delivery_without_a_topic_is_400(merchant: Merchant) -> None:
    await merchant.connect()
    answer = await merchant.deliver("", {"id": 1})

    assert (answer.status, answer.json["code"]) == (400, "missing_topic")


async def test_nul_characters_are_kept_as_replacements(
    merchant: Merchant, database: Database
) -> None:
    await merchant.connect()
    answer = await merchant.deliver("orders/create", order(name="#\0", tags="\0"), id="d\0")

    assert answer.json == ACCEPTED
    assert (await one(database, "commerce_orders"))["name"] == "#\ufffd"


async def test_deliveries_without_an_id_are_known_by_event_or_content(merchant: Merchant) -> None:
    await merchant.connect()

    async def twice(event: str, body: object) -> list[Answered]:
        named = {"x_shopify_webhook_id": "", "x_shopify_event_id": event}
        return [await merchant.deliver("orders/create", body, **named) for _ in range(2)]

    for event in ("e1", ""):
        first, again = await twice(event, order())
        assert (first.json, again.json) == (ACCEPTED, DUPLICATE)
    same_event = await merchant.deliver(
        "orders/updated", order(), x_shopify_webhook_id="", x_shopify_event_id="e1"
    )
    assert same_event.json == ACCEPTED


async def test_too_large_bodies_are_413_with_and_without_saying_so(merchant: Merchant) -> None:
    said = await call(merchant.app, b"", [(b"content-length", b"5242881")])
    huge = await call(merchant.app, b"", [(b"content-length", b"9" * 5000)])
    sent = await call(merchant.app, [b"x" * 4_000_000, b"x" * 2_000_000], [])

    assert (said.status, huge.status, sent.status) == (413, 413, 413)


async def test_five_megabytes_in_parts_are_taken(merchant: Merchant) -> None:
    await merchant.connect()
    body = orjson.dumps({**order(), "note": "x" * 5_000_000})
    assert (await merchant.deliver("orders/create", body)).json == ACCEPTED


async def test_a_half_sent_body_is_given_up(merchant: Merchant) -> None:
    answer = await call(merchant.app, [b"{", None], [])

    assert (answer.status, answer.json["code"]) == (408, "body_timeout")


async def test_other_methods_are_405(merchant: Merchant) -> None:
    answer = await call(merchant.app, b"", [], method="GET")

    assert (answer.status, answer.headers[b"allow"]) == (405, b"POST")


async def test_headers_that_disagree_are_400(merchant: Merchant) -> None:
    await merchant.connect()
    answer = await merchant.deliver(
        "orders/create", order(), shopify_hmac_sha256="other", shopify_topic="orders/delete"
    )

    assert (answer.status, answer.json["code"]) == (400, "headers_disagree")


class Busy:
    """A runtime whose mailboxes are full."""

    def __init__(self, merchant: Merchant, *, disk: bool) -> None:
        self.merchant = merchant
        self.disk = disk

    async def ask(self, to: ActorId, message: Message[Any], **_: Any) -> Any:
        del to, message
        raise Overloaded("the mailbox")

    async def accept(self, to: ActorId, message: Message[Any], *, id: str, **how: Any) -> bool:
        if not self.disk:
            raise StorageUnavailable("gone")
        return await self.merchant.runtime.accept(to, message, id=id, **how)


async def test_a_busy_store_takes_it_later(merchant: Merchant, database: Database) -> None:
    await merchant.connect()
    merchant.app = CommerceEvents(
        Busy(merchant, disk=True), merchant.directory, merchant.requests, lambda: NOON
    )
    answer = await merchant.deliver("orders/create", order(name="#7"), id="d1")

    assert answer.json == ACCEPTED
    await until(database, "SELECT FROM commerce_orders WHERE name = '#7'")


class Later(Busy):
    """Mailboxes that take nothing now; what they keep is tried again in an hour."""

    async def accept(self, to: ActorId, message: Message[Any], *, id: str, **how: Any) -> bool:
        row = row_of(Tell(to, message, id, NOON + timedelta(days=36500)), to, id, form="1")
        return bool(await Outbox(self.merchant.database).add([replace(row, **how)]))


async def test_what_is_kept_is_known_and_not_overtaken_by_what_came_after(
    merchant: Merchant, database: Database
) -> None:
    await merchant.connect()
    at_once, minute = merchant.app, timedelta(minutes=1)
    assert (await merchant.deliver("orders/create", order(name="#0"), id="d0")).json == ACCEPTED
    merchant.app = CommerceEvents(
        Later(merchant, disk=True), merchant.directory, merchant.requests, lambda: NOON
    )
    assert (await merchant.deliver("orders/create", order(name="#1"), id="d1")).json == ACCEPTED

    merchant.app = at_once
    assert (await merchant.deliver("orders/create", order(name="#1"), id="d1")).json == DUPLICATE
    after = order(NOON + minute, name="#2")
    assert (await merchant.deliver("orders/updated", after, id="d2")).json == ACCEPTED
    assert (await merchant.deliver("orders/updated", after, id="d2")).json == DUPLICATE
    assert (await merchant.deliver("orders/create", order(name="#0"), id="d0")).json == DUPLICATE
    assert (await one(database, "commerce_orders"))["name"] == "#0"

    await database.execute("UPDATE outbox SET due_at = now()")
    await until(
        database, "SELECT WHERE NOT EXISTS (SELECT FROM outbox WHERE name <> 'StartBulkExport')"
    )
    taken = await database.fetch(
        "SELECT delivery_id FROM commerce_webhook_events JOIN actor_journal j"
        " ON j.message_id LIKE '%:' || delivery_id"
        " WHERE delivery_id <> 'd0' ORDER BY j.version"
    )
    assert [row["delivery_id"] for row in taken] == ["d1", "d2"]
    assert (await one(database, "commerce_orders"))["name"] == "#2"


async def test_what_cannot_be_kept_is_503_so_that_the_platform_tries_again(
    merchant: Merchant,
) -> None:
    await merchant.connect()
    merchant.app = CommerceEvents(
        Busy(merchant, disk=False), merchant.directory, merchant.requests, lambda: NOON
    )
    answer = await merchant.deliver("orders/create", order())

    assert (answer.status, answer.headers[b"retry-after"]) == (503, b"5")


class Hanging:
    """Mailboxes that answer nothing in time, and a disk or a word to the others that never ends."""

    def __init__(self, merchant: Merchant, *, hangs: str) -> None:
        self.merchant = merchant
        self.hangs = hangs

    async def ask(self, to: ActorId, message: Message[Any], **how: Any) -> Any:
        if self.hangs == "tell" and not isinstance(message, RevokeGrant):
            return await self.merchant.runtime.ask(to, message)
        await asyncio.sleep(how["timeout"])
        raise DeadlineExceeded("no turn in time")

    async def accept(self, to: ActorId, message: Message[Any], *, id: str, **how: Any) -> bool:
        if self.hangs == "disk":
            await asyncio.Event().wait()
        return await self.merchant.runtime.accept(to, message, id=id, **how)


async def never(_: object) -> None:
    await asyncio.Event().wait()


async def test_all_steps_for_all_stores_of_a_shop_have_one_deadline(merchant: Merchant) -> None:
    for n in range(40):
        await merchant.connect(f"store_{n}")
    hanging = Hanging(merchant, hangs="disk")
    merchant.app = CommerceEvents(
        hanging, merchant.directory, merchant.requests, lambda: NOON, delivery_seconds=BRIEF_SECONDS
    )
    async with asyncio.timeout(40 * BRIEF_SECONDS / 4):
        answer = await merchant.deliver("orders/create", order())
    assert (answer.status, answer.json["code"]) == (503, "storage_unavailable")


async def test_shops_that_cannot_be_read_in_time_are_503(
    merchant: Merchant, monkeypatch: pytest.MonkeyPatch
) -> None:
    await merchant.connect()
    monkeypatch.setattr("tolsey.storage.commerce.connections.listeners_of", lambda *_: never(None))
    merchant.app = CommerceEvents(
        merchant.runtime,
        merchant.directory,
        merchant.requests,
        lambda: NOON,
        delivery_seconds=BRIEF_SECONDS,
    )
    async with asyncio.timeout(60):
        answer = await merchant.deliver("orders/create", order())
    assert (answer.status, answer.json["code"]) == (503, "storage_unavailable")


async def test_an_uninstall_that_others_do_not_hear_of_in_time_is_answered_200(
    merchant: Merchant,
) -> None:
    await merchant.connect()
    merchant.directory.tell_others = never
    merchant.app = CommerceEvents(
        Hanging(merchant, hangs="tell"),
        merchant.directory,
        merchant.requests,
        lambda: NOON,
        delivery_seconds=4.0,
    )
    async with asyncio.timeout(60):
        answer = await merchant.deliver("app/uninstalled", GONE)
    assert (answer.status, answer.json) == (200, ACCEPTED)


async def test_an_unreachable_database_is_503(merchant: Merchant, database: Database) -> None:
    await database.close()
    answer = await merchant.deliver("orders/create", order())

    assert (answer.status, answer.json["code"]) == (503, "storage_unavailable")


@pytest.mark.skipif(not SAMPLES.is_dir(), reason="the shared data are not here")
async def test_every_documented_body_is_taken_and_leaves_its_row(
    merchant: Merchant, database: Database
) -> None:
    await merchant.connect()
    for topic in [*(name for name in TOPICS if name != "app/uninstalled"), "app/uninstalled"]:
        body = (SAMPLES / f"{topic.replace('/', '__')}.json").read_bytes()
        assert (await merchant.deliver(topic, body)).json == ACCEPTED, topic

    tables = ("orders", "refunds", "fulfillments", "products", "customers", "inventory_levels")
    for table in tables:
        assert await database.fetch(f"SELECT FROM commerce_{table}"), table
    events = {row["event"] for row in await database.fetch("SELECT event FROM audit_log")}
    assert {f"commerce.webhook.{topic.replace('/', '.')}" for topic in TOPICS} <= events
    shop = await one(database, "store_shops")
    assert (shop["theme_name"], json.loads(shop["custom_domains"])) == (
        "Comfort",
        ["jsmith.myshopify.com"],
    )
    view = await merchant.runtime.ask(store("store_1"), ReadConnection())
    assert view is not None
    assert view.status == "revoked"
