"""However much one tenant has, and however often a connection asked, a page reads a bounded number of rows."""

import importlib
import inspect
import pkgutil
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any, Final

import asyncpg
import pytest

import tolsey.storage
from tests.databases import Servers, copied
from tolsey.http.selling.badge import RED_FLAGS
from tolsey.storage import files, finding, operations
from tolsey.storage.chat import embeddings, generations, memory
from tolsey.storage.chat.knowledge import knowledge
from tolsey.storage.commerce import (
    agent_operations,
    compliance,
    connections,
    devstores,
    identities,
    launches,
    order_imports,
    stores,
)
from tolsey.storage.database import Database, Row, Transaction
from tolsey.storage.intelligence import calibrating, competitors, history, registry
from tolsey.storage.intelligence import reading as known_shops
from tolsey.storage.intelligence.reading import StorefrontFilter
from tolsey.storage.lifecycle import erasure_list, exports, retention
from tolsey.storage.lifecycle.erasure_list import ErasureCause
from tolsey.storage.lookups import Lookups
from tolsey.storage.money import (
    affiliates,
    checkouts,
    contracts,
    credit_jobs,
    credits,
    disputes,
    payment_events,
    payouts,
    sponsorships,
    subscriptions,
)
from tolsey.storage.oauth import clients, grants, requests
from tolsey.storage.operations import AuditFilter
from tolsey.storage.owners import RowOwner
from tolsey.storage.people import (
    accounts,
    api_keys,
    inbox,
    invitations,
    leaving,
    mail,
    members,
    resets,
    tokens,
)
from tolsey.storage.records.commerce.compliance import ComplianceRequest, ComplianceTopic
from tolsey.storage.records.commerce.shops import ShopKey
from tolsey.storage.records.provider_events import ProviderEventState
from tolsey.storage.records.runtime.turns import Known
from tolsey.storage.records.selling.deals import LegalSignature, Side, SignatureStatus
from tolsey.storage.reports import (
    catalog,
    customers,
    orders,
    pool,
    prefixes,
    products,
    sales,
    store,
    sums,
)
from tolsey.storage.runtime import dead_letters, executions, journal_turns, slots, workflows
from tolsey.storage.runtime import operations as asked
from tolsey.storage.runtime.dead_letters import WhichLetters
from tolsey.storage.runtime.outbox import Outbox
from tolsey.storage.sealing.sealed import Vault
from tolsey.storage.selling import deals, listings, market, roots, seals, snapshots
from tolsey.storage.selling.market import MarketSearch
from tolsey.storage.status import incidents, measuring
from tolsey.storage.status import webhooks as status_webhooks
from tolsey.storage.webhooks import provider_events

GROWN: Final = (Path(__file__).parent / "grown.sql").read_text()
TIMES: Final = 7
"""After five calls PostgreSQL may take a plan for all values, and keeps to what it took."""
MOST: Final = 2_000
"""Rows and index entries, and searches of indexes; a walk through any of the tables reads thousands."""
PAGE: Final = 51
STORE: Final = ShopKey("sto_1")
"""A store's id, and the key of its first shop."""
AT: Final = datetime.now(UTC)
SIGNATURE: Final = LegalSignature(
    id="sig_1",
    deal_id="deal_000001",
    document_type="NDA",
    provider="PLATFORM",
    status=SignatureStatus.SIGNED,
    hosted_url=None,
    template_version="nda",
    document_sha256="0",
    audit_hash="0",
    requested_by="usr_1",
    requested_at=AT,
    expires_at=AT,
)
ASKED_BEFORE: Final = ComplianceRequest(
    id="request_new",
    topic=ComplianceTopic.CUSTOMER_REDACT,
    shop_domain="s7.example",
    delivery_id="d7",
    body_digest="b7",
    email_hash=None,
    stores=(),
    shop_keys=(),
    received_at=AT,
    pending_steps=(),
)
AGO: Final = AT - timedelta(days=30)
KNOWN: Final = Known({"N": 1}, {"store": 1})
VAULT: Final = Vault({"one": bytes(32)})
LISTED_REQUEST: Final = {
    "cause": "request",
    "id": "request_000007",
    "request": {"completed_at": None, "pending_steps": []},
}
KNOWN_SHOP: Final = "d000002.example"
WANTED: Final = (
    *(StorefrontFilter(platform=one) for one in ("common", "rare")),
    *(StorefrontFilter(category=one) for one in ("common", "rare")),
    *(StorefrontFilter(country=one) for one in ("DE", "MT")),
    *(StorefrontFilter(min_velocity=Decimal(one)) for one in (0, 1_000)),
)
OTHERS_WAIT: Final = """
INSERT INTO outbox (key, slot, kind, actor_key, name, payload)
SELECT 'o' || n, 512 + n % 512, 'store', 's', 'N', '{}' FROM generate_series(1, 60000) n
"""

READ: Final = """
SELECT sum(pg_stat_get_xact_tuples_returned(oid)) AS rows,
    sum(pg_stat_get_xact_numscans(oid)) FILTER (WHERE relkind = 'i') AS searches FROM pg_class
WHERE relkind IN ('r', 'i') AND relnamespace = 'public'::regnamespace
"""


class Counted(Database):
    """One connection that counts the rows and index entries which its statements read, and how often they search."""

    def __init__(self, dsn: str, session: Mapping[str, str]) -> None:
        alone = {"max_parallel_workers_per_gather": "0"}  # workers count for themselves
        super().__init__(dsn, max_size=1, session={**session, **alone})
        self.read = self.searched = 0
        self.counting = True

    async def forget_plans(self) -> None:
        """Have every statement planned anew."""
        assert self._pool is not None
        async with self._pool.acquire() as connection:
            await connection.reload_schema_state()
        self.counting = True

    async def fetch(self, sql: str, *args: Any) -> list[Row]:
        async with self.transaction() as tx:
            return await self._counted(tx, sql, *args)

    async def fetchrow(self, sql: str, *args: Any) -> Row | None:
        rows = await self.fetch(sql, *args)
        return rows[0] if rows else None

    async def fetch_as_it_is(self, sql: str, *args: Any) -> list[Row]:
        async with self.transaction() as tx:
            await tx.execute("SET LOCAL plan_cache_mode = force_custom_plan")
            return await self._counted(tx, sql, *args)

    async def _counted(self, tx: Transaction, sql: str, *args: Any) -> list[Row]:
        if not self.counting:
            return await tx.fetch(sql, *args)
        before = await tx.fetchrow(READ)
        rows = await tx.fetch(sql, *args)
        after = await tx.fetchrow(READ)
        assert before is not None
        assert after is not None
        self.read += int(after["rows"] - before["rows"])
        self.searched += int(after["searches"] - before["searches"])
        return rows


AUDITED: Final = (
    AuditFilter(subject="sto_1"),
    AuditFilter(subject="sto_1", event="agent.write"),
    AuditFilter(organization_id="org_1"),
    AuditFilter(actor="usr_1"),
    AuditFilter(event="agent.write"),
    AuditFilter(event="admin.find"),
)
Case = Callable[[Counted], Awaitable[Any]]
TYPED: Final = ("", "5", "7", "50000", "70000009", "x")


async def drained(pages: AsyncIterator[list[Row]]) -> list[list[Row]]:
    return [page async for page in pages]


def begun(table: str, column: str, typed: str) -> Case:
    """Ask for the numbers of a table that begin as typed."""
    return lambda db: prefixes.numbers_like(db, table, column, shop=STORE, typed=typed, limit=101)


REPORTS: Final[dict[str, list[Case]]] = {
    "reports.catalog.find": [lambda db: catalog.find(db, STORE, 7000000021)],
    "reports.catalog.items_of": [lambda db: catalog.items_of(db, STORE, 7000000021)],
    "reports.catalog.page": [
        lambda db: catalog.page(db, STORE, catalog.ProductFilter(), None, PAGE),
        lambda db: catalog.page(db, STORE, catalog.ProductFilter(), 7000000900, PAGE),
        lambda db: catalog.page(db, STORE, catalog.ProductFilter(vendor="RARE"), None, PAGE),
        lambda db: catalog.page(db, STORE, catalog.ProductFilter(product_type="râre"), None, PAGE),
    ],
    "reports.catalog.search": [
        lambda db: catalog.search(db, STORE, ["ete"], None, 10),
        lambda db: catalog.search(db, STORE, ["Robe", "k4711"], None, 10),
        lambda db: catalog.search(db, STORE, ["robe"], None, 10),
        lambda db: catalog.search(db, STORE, ["robe"], None, PAGE),
        lambda db: catalog.search(db, STORE, ["robe", "7"], None, PAGE),
        lambda db: catalog.search(db, STORE, ["robe"], 7000000900, 10),
        lambda db: catalog.search(db, STORE, ["zebra"], None, 10),
        lambda db: catalog.search(db, STORE, ["zx"], None, 10),
    ],
    "reports.catalog.ids_like": [
        lambda db: catalog.ids_like(db, STORE, "été", 101),
        lambda db: catalog.ids_like(db, STORE, "robe", 101),
        lambda db: catalog.ids_like(db, STORE, "70000009", 101),
        lambda db: catalog.ids_like(db, STORE, "", 101),
    ],
    "reports.catalog.levels": [
        lambda db: catalog.levels(db, STORE, None, PAGE),
        lambda db: catalog.levels(db, STORE, (4000, 1), PAGE, location_id=1),
        lambda db: catalog.levels(db, STORE, None, PAGE, items=[4711]),
    ],
    "reports.customers.busiest": [
        lambda db: customers.busiest(db, STORE, None, PAGE),
        lambda db: customers.busiest(db, STORE, (2, "s1:8"), PAGE),
    ],
    "reports.customers.cohorts": [lambda db: customers.cohorts(db, STORE, 12)],
    "reports.customers.by_pseudonym": [
        lambda db: customers.by_pseudonym(db, STORE, "", PAGE),
        lambda db: customers.by_pseudonym(db, STORE, "s1:f", PAGE),
    ],
    "reports.customers.counts": [
        lambda db: customers.counts(db, STORE, ["s1:c4ca4238a0b923820dcc509a6f75849b"]),
    ],
    "reports.customers.is_known": [
        lambda db: customers.is_known(db, STORE, "s1:c4ca4238a0b923820dcc509a6f75849b"),
        lambda db: customers.is_known(db, STORE, "s1:nobody"),
    ],
    "reports.orders.named": [
        lambda db: orders.named(db, STORE, "#1007", 5),
        lambda db: orders.named(db, STORE, "5000000007", 5),
        lambda db: orders.named(db, STORE, "nothing", 5),
    ],
    "reports.orders.ids_like": [
        lambda db: orders.ids_like(db, STORE, "#1", 101),
        lambda db: orders.ids_like(db, STORE, "5", 101),
        lambda db: orders.ids_like(db, STORE, "", 101),
    ],
    "reports.orders.page": [
        lambda db: orders.page(db, STORE, orders.OrderFilter(), None, PAGE),
        lambda db: orders.page(db, STORE, orders.OrderFilter(), 5000100000, PAGE),
        lambda db: orders.page(
            db, STORE, orders.OrderFilter(financial_status="refunded"), None, PAGE
        ),
        lambda db: orders.page(
            db, STORE, orders.OrderFilter(fulfillment_status="unfulfilled"), None, PAGE
        ),
        lambda db: orders.page(
            db,
            STORE,
            orders.OrderFilter(customer="s1:c4ca4238a0b923820dcc509a6f75849b"),
            None,
            PAGE,
        ),
        lambda db: orders.page(db, STORE, orders.OrderFilter(customer="s1:often"), None, PAGE),
    ],
    "reports.orders.page_of_times": [
        lambda db: orders.page_of_times(
            db, STORE, orders.OrderFilter(since=AT - timedelta(hours=9), until=AT), None, PAGE
        ),
        lambda db: orders.page_of_times(db, STORE, orders.OrderFilter(until=AGO), None, PAGE),
        lambda db: orders.page_of_times(
            db, STORE, orders.OrderFilter(until=AT), (AGO, 5000000007), PAGE
        ),
        lambda db: orders.page_of_times(
            db, STORE, orders.OrderFilter(since=AGO), (AGO + timedelta(hours=1), 5000000007), PAGE
        ),
    ],
    "reports.prefixes.numbers_like": [
        *(begun("commerce_orders", "order_id", typed) for typed in TYPED),
        *(begun("commerce_products", "product_id", typed) for typed in TYPED),
    ],
    "reports.products.median_price": [lambda db: products.median_price(db, STORE)],
    "reports.products.running_out": [
        lambda db: products.running_out(db, STORE, (AT - timedelta(days=28)).date(), AT.date(), 25)
    ],
    "reports.sums.is_whole": [lambda db: sums.is_whole(db, STORE)],
    "reports.sums.knows_stock": [lambda db: sums.knows_stock(db, STORE)],
    "reports.sales.refunds": [
        lambda db: sales.refunds(db, STORE, AT - timedelta(days=365), AT + timedelta(hours=3))
    ],
    "reports.sales.zone_of": [lambda db: sales.zone_of(db, STORE)],
    "reports.store.audit": [
        lambda db: store.audit(db, STORE, "org_1", None, PAGE),
        lambda db: store.audit(db, STORE, "org_1", 30_000, PAGE),
        lambda db: store.audit(db, STORE, "org_1", None, PAGE, event="agent."),
        lambda db: store.audit(db, STORE, "org_1", 30_000, PAGE, event="commerce."),
        lambda db: store.audit(db, STORE, "org_1", None, PAGE, event="nothing"),
    ],
    "reports.store.connected_at": [lambda db: store.connected_at(db, STORE)],
    "reports.store.listings": [lambda db: store.listings(db, STORE, "org_1")],
    "reports.store.shop_domain": [lambda db: store.shop_domain(db, STORE)],
    "operations.audit_rows": [
        lambda db: operations.audit_rows(db, PAGE, None),
        lambda db: operations.audit_rows(db, PAGE, 30_000),
        *(lambda db, one=one: operations.audit_rows(db, PAGE, None, one) for one in AUDITED),
        *(lambda db, one=one: operations.audit_rows(db, PAGE, 30_000, one) for one in AUDITED),
    ],
    "files.among": [lambda db: files.among(db, ["file_7", "file_8"])],
    "files.find": [lambda db: files.find(db, "file_7")],
    "files.page_of_store": [
        lambda db: files.page_of_store(db, "sto_1", "store_export", after=None, at=AT, limit=PAGE),
        lambda db: files.page_of_store(
            db, "sto_1", "store_export", after="file_20", at=AT, limit=PAGE
        ),
    ],
    "files.expired": [lambda db: files.expired(db, AT, PAGE)],
    "finding.find": [
        lambda db: finding.find(db, "s"),
        lambda db: finding.find(db, "store"),
        lambda db: finding.find(db, "S77.example"),
        lambda db: finding.find(db, "https://lst_000007.example/admin"),
        lambda db: finding.find(db, "sto_7"),
        lambda db: finding.find(db, "lst_000001"),
        lambda db: finding.find(db, "org_7"),
        lambda db: finding.find(db, "u7@example.com"),
        lambda db: finding.find(db, "nobody"),
    ],
    "selling.listings.listings_of_store": [
        lambda db: listings.listings_of_store(db, "sto_1", "org_1", "lst_000001.example"),
        lambda db: listings.listings_of_store(db, "sto_7", "org_7", None),
    ],
    "selling.listings.to_withdraw": [
        lambda db: listings.to_withdraw(db, "sto_1"),
        lambda db: listings.to_withdraw(db, "org_7"),
    ],
    "operations.calls": [
        lambda db: operations.calls(db, PAGE, None),
        lambda db: operations.calls(db, PAGE, (AT, "k"), state="waiting"),
        *(
            lambda db, state=state: operations.calls(db, PAGE, (AT, "k"), state=state)
            for state in ("failed", "done")
        ),
    ],
    "operations.obstacles": [
        lambda db: operations.obstacles(db, STORE, "org_1", most=PAGE, overdue=timedelta(days=30))
    ],
    "operations.calls_of": [lambda db: operations.calls_of(db, "store", "s", PAGE)],
    "operations.timers_of": [lambda db: operations.timers_of(db, 7, "store", "s", PAGE)],
    "operations.deliveries": [
        lambda db: operations.deliveries(db, PAGE, None),
        lambda db: operations.deliveries(db, PAGE, (AT - timedelta(hours=4), "1")),
        lambda db: operations.deliveries(db, PAGE, None, "sto_1"),
        lambda db: operations.deliveries(db, PAGE, (AT - timedelta(hours=4), "1"), "sto_1"),
        lambda db: operations.deliveries(db, PAGE, None, "sto_301"),
        lambda db: operations.deliveries(db, PAGE, None, "sto_301", "orders/create"),
        lambda db: operations.deliveries(db, PAGE, None, "sto_301", "app/uninstalled"),
    ],
    "money.payment_events.listed": [
        lambda db: payment_events.listed(db, PAGE),
        lambda db: payment_events.listed(db, PAGE, state="failed"),
        lambda db: payment_events.listed(db, PAGE, state="parked"),
        lambda db: payment_events.listed(db, PAGE, organization_id="org_7"),
        lambda db: payment_events.listed(db, PAGE, state="failed", organization_id="org_7"),
        lambda db: payment_events.listed(db, PAGE, before=(AT - timedelta(hours=4), "x")),
    ],
    "selling.listings.page_flagged": [
        lambda db: listings.page_flagged(db, tuple(RED_FLAGS), None, PAGE),
        lambda db: listings.page_flagged(db, tuple(RED_FLAGS), "lst_000002", PAGE),
    ],
}
"""What is read over connections that plan for values."""

SHORT: Final[dict[str, list[Case]]] = {
    "reports.orders.find": [lambda db: orders.find(Lookups(db, orders.BY_ID), STORE, 5000000007)],
    "chat.knowledge.knowledge": [lambda db: knowledge(db, "org_1", STORE, STORE)],
    "chat.generations.is_left": [lambda db: generations.is_left(db, "gen_1")],
    "chat.generations.has_chatted": [lambda db: generations.has_chatted(db, "org_1", AGO)],
    "chat.memory.counts": [lambda db: memory.counts(db, "org_1")],
    "chat.memory.count_messages": [lambda db: memory.count_messages(db, STORE)],
    "chat.embeddings.progress": [lambda db: embeddings.progress(db, STORE, "m")],
    "chat.embeddings.unembedded": [lambda db: embeddings.unembedded(db, STORE, "m", 10)],
    "chat.embeddings.nearest": [
        lambda db: embeddings.nearest(db, STORE, "m", [1.0, 0.0], 10),
    ],
    "chat.memory.fact": [lambda db: memory.fact(db, STORE, "brand.voice")],
    "chat.memory.facts_by_key": [lambda db: memory.facts_by_key(db, STORE)],
    "chat.memory.facts_of": [lambda db: memory.facts_of(db, STORE, None, PAGE)],
    "chat.memory.message": [lambda db: memory.message(db, STORE, "msg_1")],
    "chat.memory.messages_of": [lambda db: memory.messages_of(db, STORE, None, PAGE)],
    "chat.memory.worded": [lambda db: memory.worded(db, STORE, ["lamp", "red"], 10)],
    "chat.memory.stores_of": [lambda db: memory.stores_of(db, "org_1")],
    "commerce.agent_operations.acts_of": [
        lambda db: agent_operations.acts_of(db, STORE, None, PAGE),
        lambda db: agent_operations.acts_of(db, STORE, (AT, "op_1"), PAGE),
    ],
    "commerce.agent_operations.taken_back": [
        lambda db: agent_operations.taken_back(db, STORE, ["op_1", "op_2"])
    ],
    "commerce.agent_operations.asked_for": [lambda db: agent_operations.asked_for(db, "op_1", AT)],
    "commerce.agent_operations.audit_id": [lambda db: agent_operations.audit_id(db, STORE, "op_1")],
    "commerce.agent_operations.audit_ids": [
        lambda db: agent_operations.audit_ids(db, ["op_1", "op_2"])
    ],
    "commerce.agent_operations.change_sets_of": [
        lambda db: agent_operations.change_sets_of(db, STORE, AT)
    ],
    "commerce.agent_operations.known": [lambda db: agent_operations.known(db, STORE, "op_1")],
    "commerce.agent_operations.of_change_set": [
        lambda db: agent_operations.of_change_set(db, "op_1")
    ],
    "commerce.agent_operations.find": [lambda db: agent_operations.find(db, STORE, "op_1")],
    "commerce.agent_operations.load": [lambda db: agent_operations.load(db, [STORE])],
    "commerce.agent_operations.planned": [lambda db: agent_operations.planned(db, STORE, "op_1")],
    "commerce.compliance.find": [lambda db: compliance.find(db, "request_000007")],
    "commerce.compliance.kept_as": [lambda db: compliance.kept_as(db, ASKED_BEFORE)],
    "commerce.compliance.shops_of": [lambda db: compliance.shops_of(db, STORE)],
    "commerce.compliance.owed_to_customers": [lambda db: compliance.owed_to_customers(db, [STORE])],
    "commerce.compliance.page": [
        lambda db: compliance.page(db, None, PAGE),
        lambda db: compliance.page(db, "request_000700", PAGE),
        lambda db: compliance.page(db, None, PAGE, overdue_at=AT),
        lambda db: compliance.page(db, None, PAGE, store_id=STORE),
        lambda db: compliance.page(db, None, PAGE, is_open=True),
    ],
    "commerce.compliance.receipts": [
        lambda db: compliance.receipts(db, ["request_000007", "request_000008"])
    ],
    "commerce.compliance.stores_of": [lambda db: compliance.stores_of(db, "s7.example")],
    "commerce.compliance.subjects": [lambda db: compliance.subjects(db, "request_000007")],
    "commerce.connections.history": [lambda db: connections.history(db, STORE)],
    "commerce.connections.storefront_of": [lambda db: connections.storefront_of(db, STORE)],
    "commerce.connections.shop_key_of": [lambda db: connections.shop_key_of(db, STORE)],
    "commerce.connections.credentials_of": [lambda db: connections.credentials_of(db, STORE, AT)],
    "commerce.connections.delivered_at": [
        lambda db: connections.delivered_at(db, STORE, ("orders/create", "shop/update", "x"))
    ],
    "commerce.connections.is_shared": [lambda db: connections.is_shared(db, STORE)],
    "commerce.connections.listeners_of": [lambda db: connections.listeners_of(db, "s1.example")],
    "commerce.connections.load": [lambda db: connections.load(db, [STORE])],
    "commerce.devstores.available": [lambda db: devstores.available(db, 1)],
    "commerce.devstores.holdings": [lambda db: devstores.holdings(db, ["sto_1", "sto_2"])],
    "commerce.identities.any_older": [lambda db: identities.any_older(db, [STORE, "sto_2"])],
    "commerce.identities.digests": [
        lambda db: identities.digests(db, STORE, after="", page_size=PAGE)
    ],
    "commerce.launches.attempts": [
        lambda db: launches.attempts(db, "sto_1", "brand.kit"),
    ],
    "commerce.launches.durations": [
        lambda db: launches.durations(db, "sto_1", ["foundation.audit"])
    ],
    "commerce.launches.find": [lambda db: launches.find(db, "sto_1")],
    "commerce.launches.load": [lambda db: launches.load(db, ["sto_1", "sto_2"])],
    "commerce.launches.modules": [lambda db: launches.modules(db, "sto_1")],
    "commerce.launches.sold_by_hour": [
        lambda db: launches.sold_by_hour(db, "sto_1", since=AT, until=AT + timedelta(days=1)),
    ],
    "commerce.launches.version": [lambda db: launches.version(db, "sto_1")],
    "commerce.order_imports.deleted_customers": [
        lambda db: order_imports.deleted_customers(db, STORE, [7, 8, 9])
    ],
    "commerce.order_imports.known": [lambda db: order_imports.known(db, "sto_1")],
    "commerce.order_imports.load": [lambda db: order_imports.load(db, ["sto_1", "sto_2"])],
    "commerce.stores.find_for": [lambda db: stores.find_for(db, STORE, "usr_1")],
    "commerce.stores.version": [
        lambda db: stores.version(db, [f"sto_{n}" for n in range(1, 201)]),
    ],
    "commerce.stores.find": [lambda db: stores.find(db, STORE)],
    "commerce.stores.load": [lambda db: stores.load(db, ["org_1"])],
    "commerce.stores.to_erase": [lambda db: stores.to_erase(db, AGO)],
    "commerce.stores.stores_for": [
        lambda db: stores.stores_for(db, "usr_1", None, "", PAGE),
        lambda db: stores.stores_for(db, "usr_1", "org_1", "", PAGE),
    ],
    "commerce.stores.salt_of_key": [
        lambda db: stores.salt_of_key(db, VAULT, ShopKey("sto_none@s1.example"))
    ],
    "lifecycle.erasure_list.entry_of": [
        lambda db: erasure_list.entry_of(db, ErasureCause.REQUEST, "request_000007"),
        lambda db: erasure_list.entry_of(db, ErasureCause.STORE, STORE),
        lambda db: erasure_list.entry_of(db, ErasureCause.USER, "usr_1"),
        lambda db: erasure_list.entry_of(db, ErasureCause.ORGANIZATION, "org_1"),
    ],
    "lifecycle.erasure_list.is_newer": [
        lambda db: erasure_list.is_newer(db, LISTED_REQUEST),
        lambda db: erasure_list.is_newer(db, {"cause": "store", "id": STORE}),
        lambda db: erasure_list.is_newer(db, {"cause": "user", "id": "usr_1"}),
        lambda db: erasure_list.is_newer(db, {"cause": "organization", "id": "org_1"}),
    ],
    "intelligence.calibrating.find": [lambda db: calibrating.find(db, "lst_000001")],
    "intelligence.calibrating.latest": [lambda db: calibrating.latest(db, AGO)],
    "intelligence.competitors.load": [
        lambda db: competitors.load(db, STORE, [KNOWN_SHOP, "e7.example"])
    ],
    "intelligence.competitors.page": [
        lambda db: competitors.page(db, STORE, PAGE, None),
        lambda db: competitors.page(db, STORE, PAGE, (AT - timedelta(hours=9), "e540.example")),
    ],
    "intelligence.history.snapshot_times": [lambda db: history.snapshot_times(db, KNOWN_SHOP, AGO)],
    "intelligence.reading.changes": [
        lambda db: known_shops.changes(db, AGO, PAGE, domains=[KNOWN_SHOP], before=None),
        lambda db: known_shops.changes(
            db, AGO, PAGE, domains=[KNOWN_SHOP, "d000003.example"], before=None
        ),
        lambda db: known_shops.changes(
            db,
            AGO,
            PAGE,
            domains=[KNOWN_SHOP],
            before=(AT - timedelta(days=9), KNOWN_SHOP, 7, "price"),
        ),
        lambda db: known_shops.changes(db, AGO, PAGE, domains=["d015000.example"], before=None),
        lambda db: known_shops.changes(
            db,
            AGO,
            PAGE,
            domains=[KNOWN_SHOP, *(f"d{n:06}.example" for n in range(3, 13))],
            before=(AT - timedelta(days=1), "d000007.example", 7, "price"),
        ),
    ],
    "intelligence.reading.products": [
        lambda db: known_shops.products(db, KNOWN_SHOP, PAGE, None),
        lambda db: known_shops.products(db, KNOWN_SHOP, PAGE, 9_000),
    ],
    "intelligence.reading.snapshots": [
        lambda db: known_shops.snapshots(db, KNOWN_SHOP, PAGE, None),
        lambda db: known_shops.snapshots(db, KNOWN_SHOP, PAGE, AGO),
    ],
    "intelligence.reading.storefronts": [
        lambda db: known_shops.storefronts(db, PAGE, None, StorefrontFilter()),
        lambda db: known_shops.storefronts(
            db, PAGE, (AT - timedelta(days=9), KNOWN_SHOP), StorefrontFilter()
        ),
        *(
            lambda db, wanted=wanted: known_shops.storefronts(db, PAGE, None, wanted)
            for wanted in WANTED
        ),
    ],
    "intelligence.registry.find": [lambda db: registry.find(db, KNOWN_SHOP)],
    "intelligence.registry.find_scan": [lambda db: registry.find_scan(db, "scan_7")],
    "intelligence.registry.load": [lambda db: registry.load(db, [KNOWN_SHOP, "d000007.example"])],
    "intelligence.registry.open_scans": [lambda db: registry.open_scans(db, [KNOWN_SHOP])],
    "intelligence.registry.suppressions": [lambda db: registry.suppressions(db, [KNOWN_SHOP])],
    "money.affiliates.code_use": [lambda db: affiliates.code_use(db, "CODE7", "org_1", "usr_1")],
    "money.affiliates.codes_of": [
        lambda db: affiliates.codes_of(db, "usr_1", None, PAGE),
        lambda db: affiliates.codes_of(db, "usr_1", "afc_5", PAGE),
    ],
    "money.affiliates.organizations_run_by": [
        lambda db: affiliates.organizations_run_by(db, "usr_1")
    ],
    "money.affiliates.redemption": [lambda db: affiliates.redemption(db, "afr_7")],
    "money.checkouts.last": [lambda db: checkouts.last(db, "org_1")],
    "money.contracts.load": [lambda db: contracts.load(db, ["org_1"])],
    "money.credit_jobs.lapsed": [lambda db: drained(credit_jobs.lapsed(db, AT))],
    "money.credit_jobs.months_due": [lambda db: drained(credit_jobs.months_due(db, AT))],
    "money.credit_jobs.without_bonus": [
        lambda db: drained(credit_jobs.without_bonus(db, AT.date()))
    ],
    "money.credit_jobs.last_check": [lambda db: credit_jobs.last_check(db, "org_1")],
    "money.credits.entries": [
        lambda db: credits.entries(db, "org_1", PAGE),
        lambda db: credits.entries(db, "org_1", PAGE, 9_000),
    ],
    "money.credits.history": [lambda db: credits.history(db, "org_1", 9_000, PAGE)],
    "money.credits.movements": [lambda db: credits.movements(db, "org_1", PAGE)],
    "money.credits.payment": [lambda db: credits.payment(db, "org_1", "pi_1")],
    "money.payment_events.has_ended": [lambda db: payment_events.has_ended(db, "org_7", "sub_1")],
    "money.payment_events.invoice_paid_by": [
        lambda db: payment_events.invoice_paid_by(db, "org_7", "pi_1")
    ],
    "money.payment_events.is_awaited": [lambda db: payment_events.is_awaited(db, ["in_7"])],
    "money.payment_events.stranded": [lambda db: payment_events.stranded(db, PAGE)],
    "money.payment_events.adopt": [
        payment_events.adopt,
        lambda db: payment_events.adopt(db, ["in_7"]),
    ],
    "money.payouts.failures": [lambda db: payouts.failures(db, "acct_1")],
    "money.payouts.find": [lambda db: payouts.find(db, "usr_1")],
    "money.payouts.account_of_sellers": [lambda db: payouts.account_of_sellers(db, "org_1")],
    "money.payouts.may_sell": [lambda db: payouts.may_sell(db, "org_1")],
    "money.sponsorships.is_known": [lambda db: sponsorships.is_known(db, "pi_1")],
    "money.subscriptions.unpaid": [lambda db: subscriptions.unpaid(db, ["org_1"])],
    "money.subscriptions.load": [lambda db: subscriptions.load(db, ["org_1"])],
    "oauth.clients.names_of": [lambda db: clients.names_of(db, ["cli_7", "c"])],
    "oauth.clients.find": [lambda db: clients.find(db, "cli_7")],
    "oauth.grants.admitted": [lambda db: grants.admitted(db, "token", AT)],
    "oauth.grants.find_code": [lambda db: grants.find_code(db, "code")],
    "oauth.grants.find_token": [lambda db: grants.find_token(db, "token")],
    "oauth.grants.of_user": [lambda db: grants.of_user(db, "usr_1", PAGE)],
    "oauth.grants.only_resource": [lambda db: grants.only_resource(db, "cli_7")],
    "oauth.requests.find": [lambda db: requests.find(db, "request", AT)],
    "people.accounts.names_of": [lambda db: accounts.names_of(db, ["org_1", "org_2"])],
    "people.accounts.find_organization": [
        lambda db: accounts.find_organization(db, "org_1", "usr_1")
    ],
    "people.accounts.find_user": [lambda db: accounts.find_user(db, "u1@example.com")],
    "people.accounts.inbox_seen_at": [lambda db: accounts.inbox_seen_at(db, "usr_1")],
    "people.accounts.organizations_of": [lambda db: accounts.organizations_of(db, "usr_1", "", 9)],
    "people.accounts.owned_by": [lambda db: accounts.owned_by(db, "usr_1")],
    "people.accounts.role_in": [lambda db: accounts.role_in(db, "usr_1", "org_1")],
    "people.api_keys.admitted": [lambda db: api_keys.admitted(db, api_keys.make_value(), AT)],
    "people.api_keys.listed": [
        lambda db: api_keys.listed(db, "usr_1", AT, before="", limit=PAGE),
        lambda db: api_keys.listed(db, "usr_1", AT, before="key_7", limit=PAGE),
    ],
    "people.inbox.version": [
        lambda db: inbox.version(db, ["org_1"]),
        lambda db: inbox.version(db, [f"org_{n}" for n in range(1, 201)]),
    ],
    "people.invitations.find": [lambda db: invitations.find(db, "invite_7")],
    "people.invitations.listed": [
        lambda db: invitations.listed(db, "org_1", AT, before="", limit=PAGE),
        lambda db: invitations.listed(db, "org_1", AT, before="inv_7", limit=PAGE),
    ],
    "people.leaving.organizations_due": [lambda db: leaving.organizations_due(db, AT)],
    "people.leaving.owned_alone": [lambda db: leaving.owned_alone(db, "usr_1")],
    "people.leaving.users_due": [lambda db: leaving.users_due(db, AT)],
    "people.mail.mark_of": [lambda db: mail.mark_of(db, "u7@example.com")],
    "people.mail.marks": [
        lambda db: mail.marks(db, PAGE, None),
        lambda db: mail.marks(db, PAGE, (AT, "u7@example.com")),
    ],
    "people.mail.find": [lambda db: mail.find(db, "mail_7")],
    "people.mail.listed": [
        lambda db: mail.listed(db, PAGE, (AGO, "mail_7")),
        lambda db: mail.listed(db, PAGE, None, recipient="u1@example.com"),
    ],
    "people.mail.payee": [lambda db: mail.payee(db, "acct_7")],
    "people.mail.paces": [lambda db: mail.paces(db, "u1@example.com")],
    "people.mail.those_in": [lambda db: mail.those_in(db, "org_1", ["owner", "admin"])],
    "people.members.find_member": [lambda db: members.find_member(db, "org_1", "u1@example.com")],
    "people.members.one_of": [lambda db: members.one_of(db, "org_1", "usr_1")],
    "people.members.page_of": [lambda db: members.page_of(db, "org_1", "usr_1", PAGE)],
    "people.members.members_of": [lambda db: members.members_of(db, "org_1")],
    "people.resets.is_open": [lambda db: resets.is_open(db, "token", AT)],
    "people.tokens.find": [lambda db: tokens.find(db, "token", AT)],
    "people.tokens.open_sessions": [lambda db: tokens.open_sessions(db, "usr_1", "token", AT)],
    "lifecycle.retention.due": [
        partial(retention.due, rules=[rule], most=PAGE) for rule in retention.RULES
    ],
    "runtime.executions.last": [
        lambda db: executions.last(db, ["sweep"], 10),
        lambda db: executions.last(db, ["sweep"], trigger="schedule"),
    ],
    "runtime.executions.running": [lambda db: executions.running(db, ["sweep"])],
    "runtime.dead_letters.by_kind": [lambda db: dead_letters.by_kind(db, 10_000)],
    "runtime.dead_letters.count": [
        lambda db: dead_letters.count(db, WhichLetters(id="dl_00000002")),
        lambda db: dead_letters.count(db, WhichLetters(fingerprint="0123456789abcdef")),
    ],
    "runtime.dead_letters.behind": [
        lambda db: dead_letters.behind(db, WhichLetters(id="dl_00000002")),
        lambda db: dead_letters.behind(db, WhichLetters(fingerprint="0123456789abcdef")),
    ],
    "runtime.dead_letters.waiting_behind": [
        lambda db: dead_letters.waiting_behind(db, "dl_00000002", PAGE)
    ],
    "runtime.dead_letters.find": [lambda db: dead_letters.find(db, "dl_00000002")],
    "runtime.dead_letters.groups": [lambda db: dead_letters.groups(db, PAGE, "")],
    "runtime.dead_letters.listed": [
        lambda db: dead_letters.listed(db, PAGE, None),
        lambda db: dead_letters.listed(db, PAGE, "dl_00000002"),
        lambda db: dead_letters.listed(db, PAGE, None, status="discarded"),
        lambda db: dead_letters.listed(db, PAGE, None, fingerprint="0123456789abcdef"),
        lambda db: dead_letters.listed(db, 1, None, id="dl_00000002"),
    ],
    "runtime.journal_turns.turn_of": [
        lambda db: journal_turns.turn_of(db, "store", STORE, "m1", 5_000)
    ],
    "runtime.journal_turns.turns": [
        lambda db: journal_turns.turns(db, "store", STORE, PAGE),
        lambda db: journal_turns.turns(db, "store", STORE, PAGE, 7),
    ],
    "runtime.journal_turns.ways_back": [
        lambda db: drained(journal_turns.ways_back(db, "store", STORE, newest=9, oldest=1))
    ],
    "runtime.operations.find": [lambda db: asked.find(db, "operation_7")],
    "runtime.operations.load": [lambda db: asked.load(db, ["org_1"])],
    "runtime.outbox.Outbox.due": [
        lambda db: Outbox(db).due(500, ["k"], KNOWN, range(512)),
        lambda db: Outbox(db).due(500, ["k"], KNOWN, range(256, 768)),
        lambda db: Outbox(db).due(500, ["k"], KNOWN),
    ],
    "runtime.slots.reply_of": [lambda db: slots.reply_of(db, "store", STORE, "m1")],
    "runtime.slots.versions": [lambda db: slots.versions(db, "store", [STORE, "sto_2"])],
    "runtime.workflows.load": [lambda db: workflows.load(db, ["org_1"])],
    "selling.deals.deal_of_offer": [lambda db: deals.deal_of_offer(db, "offer_000001")],
    "selling.deals.of_escrow": [lambda db: deals.of_escrow(db, "3300001")],
    "selling.deals.deal_of_signature": [lambda db: deals.deal_of_signature(db, "sig_1")],
    "selling.deals.file_of": [lambda db: deals.file_of(db, "deal_000001", "file_000001")],
    "selling.deals.files_of": [lambda db: deals.files_of(db, "deal_000001", None, PAGE)],
    "selling.deals.kinds_of_files": [lambda db: deals.kinds_of_files(db, "deal_000001")],
    "selling.deals.viewings": [lambda db: deals.viewings(db, "deal_000001", None, PAGE)],
    "selling.deals.metrics_of": [lambda db: deals.metrics_of(db, "sig_1")],
    "selling.deals.agreed_metrics": [lambda db: deals.agreed_metrics(db, "deal_000001")],
    "selling.deals.document": [lambda db: deals.document(db, "0")],
    "selling.deals.documents_like": [lambda db: deals.documents_like(db, "deal_000001", "0")],
    "selling.deals.ledger_until": [lambda db: deals.ledger_until(db, SIGNATURE)],
    "selling.deals.signature_events": [lambda db: deals.signature_events(db, "sig_1")],
    "selling.deals.events": [lambda db: deals.events(db, "deal_000001", 1, PAGE)],
    "selling.roots.is_shared": [lambda db: roots.is_shared(db, "sig_1", "token", AT)],
    "selling.roots.last": [roots.last],
    "selling.roots.of_signature": [lambda db: roots.of_signature(db, "sig_1")],
    "selling.roots.page": [
        lambda db: roots.page(db, None, PAGE),
        lambda db: roots.page(db, AT.date(), PAGE),
    ],
    "selling.seals.certificate": [lambda db: seals.certificate(db, "k1")],
    "selling.seals.find": [lambda db: seals.find(db, "sig_1")],
    "selling.deals.version": [lambda db: deals.version(db, "deal_000001", [Side.SELLER])],
    "selling.deals.find": [lambda db: deals.find(db, "deal_000001")],
    "selling.deals.is_store_selling": [lambda db: deals.is_store_selling(db, "sto_1")],
    "selling.deals.load": [lambda db: deals.load(db, ["lst_000001"])],
    "selling.deals.handing_over": [lambda db: deals.handing_over(db, "store_1")],
    "selling.deals.draft_of": [lambda db: deals.draft_of(db, "offer_1", Side.SELLER)],
    "selling.deals.offers": [lambda db: deals.offers(db, "deal_000001", None, PAGE)],
    "selling.deals.about": [
        lambda db: deals.about(db, "lst_000001", None, PAGE),
        lambda db: deals.about(db, "lst_000001", "deal_000400", PAGE),
    ],
    "selling.deals.open_of_buyer": [lambda db: deals.open_of_buyer(db, "usr_1", "lst_000001")],
    "selling.deals.signatures_of": [lambda db: deals.signatures_of(db, "deal_000001")],
    "money.disputes.deals": [
        lambda db: disputes.deals(db, None, PAGE),
        lambda db: disputes.deals(db, (AT, "deal_000400"), PAGE),
    ],
    "money.disputes.payments": [
        lambda db: disputes.payments(db, None, PAGE),
        lambda db: disputes.payments(db, ("pi_1", "org_1"), PAGE),
    ],
    "selling.listings.titles_of": [lambda db: listings.titles_of(db, ["lst_000001"])],
    "selling.market.is_watched": [lambda db: market.is_watched(db, "lst_000001", "usr_1")],
    "selling.deals.page_of_user": [
        lambda db: deals.page_of_user(db, "usr_1", None, None, PAGE),
        lambda db: deals.page_of_user(db, "usr_1", "org_1", "deal_000400", PAGE),
    ],
    "selling.listings.find": [lambda db: listings.find(db, "lst_000001")],
    "selling.listings.find_public": [lambda db: listings.find_public(db, "s1")],
    "selling.listings.left_alone": [lambda db: listings.left_alone(db, AT)],
    "selling.listings.listing_using": [
        lambda db: listings.listing_using(db, "commerce", "lst_000001.example")
    ],
    "selling.listings.listings_of_shop": [
        lambda db: listings.listings_of_shop(db, "org_1", "lst_000001.example")
    ],
    "selling.listings.load": [lambda db: listings.load(db, ["lst_000001"])],
    "selling.listings.page_of_user": [
        lambda db: listings.page_of_user(db, "usr_1", None, None, PAGE),
        lambda db: listings.page_of_user(db, "usr_1", "org_1", "lst_000002", PAGE),
    ],
    "status.incidents.find": [lambda db: incidents.find(db, "inc_1")],
    "webhooks.provider_events.find": [lambda db: provider_events.find(db, "mail", "evt_7")],
    "webhooks.provider_events.listed": [
        lambda db: provider_events.listed(db, PAGE, None, provider=None, state=None),
        lambda db: provider_events.listed(
            db, PAGE, (AT, "evt_7"), provider="messaging", state=None
        ),
        lambda db: provider_events.listed(
            db, PAGE, None, provider=None, state=ProviderEventState.FAILED
        ),
        lambda db: provider_events.listed(
            db, PAGE, None, provider="code-host", state=ProviderEventState.FAILED
        ),
    ],
    "status.incidents.listed": [
        lambda db: incidents.listed(db, PAGE, None, public=True),
        lambda db: incidents.listed(db, PAGE, (AT, "inc_1"), public=False),
    ],
    "status.webhooks.find": [lambda db: status_webhooks.find(db, "swh_1")],
    "status.incidents.updates": [lambda db: incidents.updates(db, ["inc_1"])],
    "status.measuring.components": [measuring.components],
    "status.measuring.dead_since": [lambda db: measuring.dead_since(db, AT)],
    "status.measuring.overdue_lanes": [lambda db: measuring.overdue_lanes(db, AGO)],
    "status.measuring.days": [lambda db: measuring.days(db, AGO)],
    "status.measuring.payments": [lambda db: measuring.payments(db, AT, timedelta(days=30))],
    "status.measuring.raised": [measuring.raised],
    "selling.market.search": [
        lambda db: market.search(db, MarketSearch(), after=None, at=AT, limit=PAGE),
        lambda db: market.search(
            db, MarketSearch(words="rare"), after=(None, "lst_004000"), at=AT, limit=PAGE
        ),
        lambda db: market.search(
            db,
            MarketSearch(currency="USD", least_price=400_000, order="price_asc"),
            after=(400_100, "lst_000003"),
            at=AT,
            limit=PAGE,
        ),
        lambda db: market.search(
            db,
            MarketSearch(currency="USD", order="revenue_desc"),
            after=None,
            at=AT,
            limit=PAGE,
        ),
        *(
            partial(market.search, wanted=wanted, after=None, at=AT, limit=PAGE)
            for wanted in (
                *(MarketSearch(status=one) for one in ("ACTIVE", "SOLD", "PAUSED")),
                *(MarketSearch(country=one) for one in ("DE", "MT")),
                *(MarketSearch(business_model=one) for one in ("saas", "none")),
                *(MarketSearch(financing=one) for one in (True, False)),
                *(MarketSearch(verified=one) for one in (True, False)),
                MarketSearch(currency="USD", least_revenue=1),
                MarketSearch(currency="USD", most_revenue=9_000),
            )
        ),
    ],
    "selling.market.attention_of": [lambda db: market.attention_of(db, ["lst_000001"])],
    "selling.market.watched_by": [lambda db: market.watched_by(db, "usr_1", None, PAGE)],
    "selling.listings.source_of": [lambda db: listings.source_of(db, "lst_000001")],
    "selling.snapshots.earlier": [
        lambda db: snapshots.earlier(db, "lst_000001", "lst_000001.example", "rv2", [AT])
    ],
    "selling.snapshots.history": [
        lambda db: snapshots.history(db, "lst_000001", "lst_000001.example", AGO)
    ],
    "selling.snapshots.latest": [
        lambda db: snapshots.latest(db, "lst_000001", "lst_000001.example")
    ],
}
"""What is read over the pool of all."""

UNBOUNDED: Final = {
    "selling.deals": {"without_nda"},  # a repair, once at each start
    "selling.seals": {"certificates"},  # one for each key there ever was
    "selling.roots": {"unrooted"},  # what was signed since yesterday, of a walk along two indexes
    "chat.vectors": {"DatabaseVectors.count"},
    "commerce.compliance": {
        *("open_obligations", "unfinished", "uninstalled"),  # what is open
        *("lately_handled", "lately_redacted"),  # a job's look at the last days
    },
    "commerce.devstores": {"awaited", "pool"},  # shops that we made by hand
    "commerce.launches": {
        "deliveries",
        "waiting",
    },  # an hour's, once a launch; the work of ten minutes, a page at a time
    "commerce.identities": {"waiting"},  # a command that goes through all that is older
    "commerce.shop_erasure": {"count"},  # receipts of an erasure: all that there is of a shop
    "lifecycle.erasure": {"left"},  # the same, of whoever's rows they are
    "lifecycle.exports": {
        "rows",
        "staying",
    },  # everything, a page at a time; or whether there is any
    "intelligence.competitors": {"of_organization"},  # all, for a question about them together
    "intelligence.calibrating": {"verified"},  # the shops that are compared once a day
    "intelligence.feeding": {"count", "due", "hot", "unheard"},  # the work of a tick
    "intelligence.history": {"stock_changes", "stocked"},  # added up, of 60 days of one shop
    "sealing.keys": {
        "accept",
        "forget_unused",
        "open_vault",
        "still_used",
        "trouble",
    },  # a look at each start
    "money.credit_jobs": {"books", "changed"},  # what one has open; a walk through all ledgers
    "money.credits": {"load"},  # what is open
    "operations": {"has_map", "due_by_slot", "slot", "slots"},  # 1,024 slots, and what is due
    "people.administrators": {"organization_id"},
    "reports.catalog": {"low"},  # added up
    "reports.products": {"best_sellers"},  # added up, where the leaders of months leave it open
    "reports.sales": {"attributed", "report"},
    "reports.store": {"summary"},
    "reports.sums": {"differences", "stores", "unbuilt"},  # a job's recount
    "lifecycle.retention": {"sweep"},  # jobs: what is due, batch by batch
    "sealing.rotation": {
        "is_in_use",
        "on_the_way",
        "rotate",
        "waiting",
    },  # a command that goes through all that is sealed
    "runtime.outbox": {"Outbox.unread"},
    "runtime.slots": {"Slots.deployment", "Slots.read", "Slots.take", "claim"},
    "status.webhooks": {"of_component"},  # programs that are told, page by page: 1,000 at most
    "status.incidents": {
        "count_subscribers",
        "subscribers",
        "unresolved",
    },  # who is written to, page by page; a few a year
    "selling.listings": {"due_for_sync"},  # the work of an hour
}
"""What reads as much as there is of something, or a table that does not grow."""

WRITING: Final = {
    "chat.embeddings": {"forget_left", "keep"},
    "chat.generations": {"begin", "end", "end_left", "forget"},
    "chat.vectors": {"DatabaseVectors.purge"},
    "commerce.agent_operations": {"put_on_record"},
    "commerce.compliance": {"complete", "keep_receipt", "redacted", "step_done"},
    "commerce.devstores": {"refuse"},
    "commerce.shop_erasure": {
        *(
            "clear_addresses",
            "clear_copies",
            "clear_free_text",
            "clear_hashes",
            "clear_words_of_order",
        ),
        *("destroy_salt", "sanitise"),
    },
    "commerce.stores": {"salt_of"},
    "lifecycle.erasure": {"erase"},
    "selling.deals": {"note_viewing"},
    "selling.market": {"note_view", "unwatch", "watch"},
    "idempotency": {"answer", "claim", "release"},
    "selling.seals": {"keep", "keep_certificate"},
    "selling.roots": {"share"},
    "sealing.keys": {"note_rotation"},
    "intelligence.calibrating": {"keep"},
    "intelligence.catalogue": {"keep", "note_velocity"},
    "intelligence.registry": {"forget"},
    "money.affiliates": {"add_code"},
    "money.checkouts": {"follow"},
    "money.credit_jobs": {"keep_check"},
    "money.payment_events": {"take"},
    "money.payouts": {"opened", "record_payout", "refreshed", "visited"},
    "oauth.clients": {"add"},
    "oauth.requests": {"keep"},
    "people.accounts": {"rename_organization", "replace_rules"},
    "people.administrators": {"create_administrator"},
    "people.leaving": {"end_organization"},
    "people.mail": {"end", "keep", "postpone"},
    "people.members": {"remove", "set_role"},
    "reports.sums": {"build", "forget"},
    "status.webhooks": {"note_failure", "note_success", "unsubscribe"},
    "runtime.dead_letters": {"discard", "replay"},
    "runtime.outbox": {
        *("Outbox.add", "Outbox.begin", "Outbox.bury", "Outbox.give_back"),
        *("Outbox.postpone", "Outbox.replace"),
    },
    "lifecycle.retention": {"commit"},
    "runtime.slots": {"Slots.beat", "Slots.forget", "Slots.pin", "Slots.release"},
}


@pytest.fixture(scope="module")
async def grown(servers: Servers, template: str) -> AsyncIterator[str]:
    """Fill a database of this module's own."""
    async for url in copied(servers, template):
        connection = await asyncpg.connect(url)
        await connection.execute(GROWN)
        await connection.execute("VACUUM (ANALYZE)")
        await connection.close()
        yield url


@pytest.fixture(scope="module")
async def page_reader(grown: str) -> AsyncIterator[Counted]:
    async with connected(grown) as database:
        yield database


@pytest.fixture(scope="module")
async def report_reader(grown: str) -> AsyncIterator[Counted]:
    async with connected(grown, pool.SESSION) as database:
        yield database


@pytest.mark.parametrize("name", [*REPORTS, *SHORT])
async def test_a_page_of_a_large_tenant_reads_few_rows_however_often_it_is_asked(
    page_reader: Counted, report_reader: Counted, name: str
) -> None:
    database = report_reader if name in REPORTS else page_reader
    for number, case in enumerate(REPORTS.get(name) or SHORT[name]):
        await database.forget_plans()
        for time in range(TIMES):
            database.read = database.searched = 0
            database.counting = time in {0, TIMES - 1}  # to count takes longer than to read
            await case(database)
            assert database.read <= MOST, f"case {number}"
            assert database.searched <= MOST, f"case {number}"


@pytest.mark.parametrize("word", ["n°", "8", "82", "824", "été", "zebra"])
async def test_a_search_finds_every_product_that_holds_the_word_once(grown: str, word: str) -> None:
    """Whether the newest are full of them, or an index has to tell where they are."""
    async with connected(grown, pool.SESSION) as database:
        rows = await database.fetch(
            "SELECT product_id FROM commerce_products WHERE store_id = $1"
            " AND concat(title, handle, variants) LIKE '%' || $2 || '%' ORDER BY 1 DESC",
            *(STORE, word),
        )
        found: list[int] = []
        for _ in range(6):
            part = await catalog.search(database, STORE, [word], found[-1] if found else None, 200)
            found += [row["product_id"] for row in part]
        assert found == [row["product_id"] for row in rows][:1200]


async def test_pages_of_what_changed_at_shops_at_one_moment_have_each_change_once(
    grown: str,
) -> None:
    domains = [f"d{n:06}.example" for n in (4, 2, 3)]
    async with connected(grown) as database:
        rows = await database.fetch(
            "SELECT at, domain, variant_id, kind FROM storefront_changes WHERE domain = ANY($1)",
            domains,
        )
        found: list[tuple[Any, ...]] = []
        while True:
            before = found[-1] if found else None
            page = await known_shops.changes(database, AGO, 1_700, domains=domains, before=before)
            found += [(one["at"], one["domain"], one["variant_id"], one["kind"]) for one in page]
            if len(page) < 1_700:
                break
        assert found == sorted((tuple(row) for row in rows), reverse=True)
        assert len({at for at, *_ in found}) < 10


@pytest.mark.changes_schema
async def test_a_search_for_a_word_of_many_products_reads_no_more_of_a_larger_store(
    database_url: str,
) -> None:
    """What one product in eight has is found among the newest: an index would tell of all of them."""
    async with connected(database_url) as database:
        await database.execute(
            "INSERT INTO commerce_products (store_id, product_id, updated_at, title, variants, variant_count)"
            " SELECT 'sto_1', n, now(), CASE WHEN n % 8 = 0 THEN 'zebra' ELSE 'robe' END, '[]', 0"
            " FROM generate_series(1, 9600) n"
        )
        # As of a store whose other products are older still.
        await database.execute("UPDATE commerce_product_counts SET products = 100000")
        await database.execute("ANALYZE commerce_products")
    async with connected(database_url, pool.SESSION) as database:
        found = await catalog.search(database, STORE, ["zebra"], None, 70)
        assert [row["product_id"] for row in found] == [9600 - 8 * n for n in range(70)]
        assert database.read <= 800


@pytest.mark.changes_schema
async def test_who_has_credits_that_lapsed_is_looked_for_once(database_url: str) -> None:
    """Each page of the job begins where the one before ended, and passes by what is not due."""
    async with connected(database_url) as database:
        await database.execute(
            "INSERT INTO credit_lots (organization_id, id, kind, amount, remaining, pinned, granted_at,"
            " expires_at, seq) SELECT 'org_' || lpad(n::text, 5, '0'), 'lot' || k, 'bonus', 2, 2, n % 2,"
            " now(), now() + CASE WHEN n % 3 > 0 THEN 1 - 2 * k ELSE 1 END * interval '1 day', 1"
            " FROM generate_series(1, 2000) n, generate_series(0, 1) k"
        )
        await database.execute("ANALYZE credit_lots")
        database.read = 0
        found = [
            row["id"] for page in await drained(credit_jobs.lapsed(database, AT)) for row in page
        ]
        due = [f"org_{n:05}" for n in range(1, 2001) if n % 3 > 0]
        assert found == due
        assert database.read <= 3 * 2000


@pytest.mark.changes_schema
async def test_buyers_are_listed_whatever_each_of_them_ordered(database_url: str) -> None:
    async with connected(database_url) as database:
        await database.execute(
            "INSERT INTO commerce_orders (store_id, order_id, updated_at, test, metadata, customer_hash)"
            " SELECT 'sto_1', n, now(), false, '{}', 's1:' || n % 4 FROM generate_series(1, 8000) n"
        )
        await database.execute("ANALYZE commerce_orders")
        database.read = 0
        assert await customers.by_pseudonym(database, STORE, "s1:0", 2) == ["s1:1", "s1:2"]
        assert await customers.by_pseudonym(database, STORE, "", 9) == [f"s1:{n}" for n in range(4)]
        assert database.read <= 100


@pytest.mark.changes_schema
async def test_a_store_of_which_one_topic_was_ever_told_is_looked_at_without_its_deliveries(
    database_url: str,
) -> None:
    """Nothing of the others makes the index of times look as if each topic stood near its end."""
    async with connected(database_url) as database:
        await database.execute(
            "INSERT INTO commerce_webhook_events (store_id, delivery_id, topic, shop_domain,"
            " created_at) SELECT 'sto_1', n, 'orders/updated', 's1.example', now() - n * interval '1 second'"
            " FROM generate_series(1, 20000) n"
        )
        await database.execute("ANALYZE commerce_webhook_events")
        for _ in range(TIMES):
            database.read = 0
            assert await connections.delivered_at(database, "sto_1", ("orders/updated", "x", "y"))
            assert database.read <= MOST


@pytest.mark.changes_schema
async def test_the_deliveries_of_a_store_of_one_topic_are_not_looked_for_in_those_of_all(
    database_url: str,
) -> None:
    """Rows lie in the order of their times, which makes their index look like the shortest way to each topic."""
    async with connected(database_url) as database:
        await database.execute(
            "INSERT INTO commerce_webhook_events (store_id, delivery_id, topic, shop_domain, created_at)"
            " SELECT CASE WHEN n % 2 = 0 THEN 'sto_1' ELSE 'sto_' || (hashint4(n) & 1023) END, n, 'orders/updated',"
            " 's1.example', now() - n * interval '1 second' FROM generate_series(1, 60000) n ORDER BY -n"
        )
        await database.execute("ANALYZE commerce_webhook_events")
        for _ in range(TIMES):
            database.read = 0
            assert len(await operations.deliveries(database, PAGE, None, "sto_1")) == PAGE
            assert database.read <= MOST


@pytest.mark.parametrize("owner", [RowOwner.USER, RowOwner.ORGANIZATION, RowOwner.STORE])
async def test_the_export_of_an_owner_reads_no_row_of_others(grown: str, owner: RowOwner) -> None:
    async with connected(grown) as database:
        read = {}
        for table, belongs in exports.sections(owner):
            database.read = 0
            assert [one async for one in exports.rows(database, table, belongs, "nobody")] == []
            read[table.name] = database.read
    far = {name: rows for name, rows in read.items() if rows > MOST}
    assert not far, ", ".join(far)


async def test_the_rows_that_a_statement_reads_are_counted(grown: str) -> None:
    async with connected(grown) as database:
        await database.fetch("SELECT count(*) FROM listings WHERE title = 'L'")
        assert database.read >= 20_000


async def test_the_poll_of_the_outbox_depends_on_no_statistics(database_url: str) -> None:
    async with connected(database_url) as database:
        outbox = Outbox(database)
        for _ in range(TIMES):
            assert await outbox.due(500, ["k"], KNOWN, range(512)) == []
        await database.execute(OTHERS_WAIT)
        database.read = 0
        assert await outbox.due(500, ["k"], KNOWN, range(512)) == []
        assert database.read <= MOST


async def test_each_slot_has_its_share_of_what_is_due_and_the_page_is_full(
    database: Database,
) -> None:
    outbox = Outbox(database)
    await database.execute(
        "INSERT INTO outbox (key, slot, kind, actor_key, name, payload)"
        " SELECT 'many' || n, 1, 'store', 's', 'N', '{}' FROM generate_series(1, 300) n"
    )
    await database.execute(
        "INSERT INTO outbox (key, slot, kind, actor_key, name, payload)"
        " SELECT 'few' || n, n, 'store', 's', 'N', '{}' FROM generate_series(2, 9) n"
    )
    found = await outbox.due(100, [], KNOWN, range(10))
    assert len({row.key for row in found}) == 100
    assert {row.slot for row in found} == set(range(1, 10))
    assert len(await outbox.due(500, [row.key for row in found], KNOWN, range(10))) == 208
    assert {row.slot for row in await outbox.due(500, [], KNOWN, [1, 5])} == {1, 5}


def test_every_function_that_reads_is_tried_or_said_to_read_all_there_is() -> None:
    apart = {
        f"{module}.{name}"
        for said in (UNBOUNDED, WRITING)
        for module, names in said.items()
        for name in names
    }
    known = {*REPORTS, *SHORT, *apart}
    found = set(reading())
    assert found - known == set(), "give each a case above"
    assert known - found == set(), "these are gone"


@asynccontextmanager
async def connected(url: str, session: Mapping[str, str] | None = None) -> AsyncIterator[Counted]:
    database = Counted(url, session or {})
    await database.open()
    try:
        yield database
    finally:
        await database.close()


def reading() -> Iterator[str]:
    """Name what takes a database, of all modules of storage."""
    for module in pkgutil.walk_packages(tolsey.storage.__path__, "tolsey.storage."):
        found = importlib.import_module(module.name)
        if module.name.endswith((".database", ".journal", ".lookups", ".pool")):
            continue
        for name, one in inspect.getmembers(found):
            if name.startswith("_") or getattr(one, "__module__", None) != module.name:
                continue
            place = f"{module.name.removeprefix('tolsey.storage.')}.{name}"
            if inspect.isclass(one) and takes_a_database(one.__init__):
                for method, _ in inspect.getmembers(one, inspect.iscoroutinefunction):
                    if not method.startswith("_"):
                        yield f"{place}.{method}"
            elif inspect.isfunction(one) and takes_a_database(one):
                yield place


def takes_a_database(called: Callable[..., Any]) -> bool:
    """Whether one of the first two parameters is a database, or whatever rows are read from."""
    first = list(inspect.signature(called).parameters.values())[:2]
    return any(
        name in str(parameter.annotation)
        for parameter in first
        for name in ("Database", "Lookups", "Reader")
    )
