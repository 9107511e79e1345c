"""The world that `bench/growth.py` asks about: one large tenant, one small one, and many like it.

Rows are written by PostgreSQL itself (`generate_series`) and grow in steps, so that one database is
seen at several sizes. Ledgers are chained as the service chains them: its nightly check reads them.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from time import monotonic
from typing import Any, Final

import asyncpg

from bench import measure
from tolsey.actors import chain
from tolsey.actors.store.memory.remembering import MOST_MESSAGES
from tolsey.storage.records.journal import retention_of

SIZES: Final[Mapping[str, tuple[int, ...]]] = {
    "quick": (500,),
    "small": (2_000, 10_000),
    "middle": (10_000, 100_000),
    "large": (10_000, 100_000, 2_000_000),
}
"""How many orders the large store has at each step of a size; all else follows from it."""
SMALL_TENANT: Final = 200
PORTION: Final = 100_000
"""Rows of one statement."""
LOTS_AT_ONCE: Final = 500
SILENT_SECONDS: Final = 10.0
FIRST_ORDER: Final = 5_000_000_000_000
FIRST_PRODUCT: Final = 7_000_000_000_000
SPENDS_OF_A_LOT: Final = 49
EVENTS: Final = (
    *("agent.order_note", "commerce.webhook", "store.renamed", "listing.updated", "plan.changed"),
    "store.created",
)
"""The last is rare, as some events are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tenant:
    """An organization that signed up, its person and its store."""

    name: str
    user_id: str
    organization_id: str
    store_id: str
    shop: str
    headers: Mapping[str, str]
    token: str
    api_key: str
    mail_id: str


@dataclass(frozen=True, slots=True)
class Size:
    """How many rows of each kind there are beside so many orders of the large store."""

    orders: int

    @property
    def rows(self) -> dict[str, int]:
        """Count them; at 2,000,000 orders this is the world the aims were written for."""
        return {
            "organizations": self.orders // 40,
            "orders": self.orders,
            "customers": self.orders // 4,
            "products": self.orders // 100,
            "deliveries": self.orders * 10,
            "audit rows": self.orders * 5 // 2,
            "ledger entries": self.orders,
            "listings": self.orders // 10,
            "storefronts": self.orders // 20,
        }


PEOPLE: Final = """
WITH one AS (SELECT n FROM generate_series($1::integer, $2::integer - 1) n), users AS (
    INSERT INTO users (id, email, password_hash)
    SELECT 'usr_g' || n, 'g' || n || '@example.com', '' FROM one
), organizations AS (
    INSERT INTO organizations (id, name, plan)
    SELECT 'org_g' || n, 'Tenant ' || n, CASE n % 10 WHEN 0 THEN 'pro' ELSE 'free' END FROM one
), members AS (
    INSERT INTO members (organization_id, user_id, role)
    SELECT 'org_g' || n, 'usr_g' || n, 'owner' FROM one
), stores AS (
    INSERT INTO stores (id, organization_id, name, sealed_salt, created_at)
    SELECT 'store_g' || n, 'org_g' || n, 'Store ' || n, '', now() FROM one
), sessions AS (
    INSERT INTO sessions (token_hash, user_id, expires_at)
    SELECT sha256(('session' || n)::bytea), 'usr_g' || n, now() + interval '20 days' FROM one
), grants AS (
    INSERT INTO oauth_grants (id, user_id, client_id, client_name, redirect_uri, organization_id,
        store_id, resource, scopes, created_at)
    SELECT 'grant_g' || n, 'usr_g' || n, 'client_g', 'Agent', '', 'org_g' || n, 'store_g' || n, '',
        '{orders:read}', now() - interval '40 days' FROM one
)
INSERT INTO oauth_tokens (token_hash, grant_id, kind, scopes, expires_at)
SELECT sha256((k || 'token' || n)::bytea), 'grant_g' || n, 'refresh', '{orders:read}',
    now() + interval '20 days'
FROM one, generate_series(1, 4) k
"""
ORDERS: Final = """
INSERT INTO commerce_orders (store_id, order_id, updated_at, name, currency, total_minor,
    current_total_minor, financial_status, fulfillment_status, test, source_name, customer_hash,
    metadata, processed_at, created_at_platform, parts)
SELECT $1, $4::bigint + n, at, '#' || 1000 + n, 'USD', 1000 + n % 9000, 1000 + n % 9000,
    CASE WHEN n % 20 = 0 THEN 'refunded' WHEN n % 20 = 1 THEN 'pending' ELSE 'paid' END,
    CASE WHEN n % 100 = 7 THEN NULL ELSE 'fulfilled' END, n % 500 = 3, 'web',
    's1:' || encode(sha256(('buyer' || buyer)::bytea), 'hex'), '{"tags": "a, b"}', at, at,
    jsonb_build_object('discounts', '[]'::jsonb, 'totalDiscounts', '0.00', 'shipping', '[]'::jsonb, 'lines', (
        SELECT jsonb_agg(jsonb_build_object('id', n * 2::bigint + k, 'productId', 7000000000000 + product,
            'variantId', product * 10 + 1 + n % 3, 'title', 'Lamp', 'variantTitle', 'Size', 'sku', 'LAMP',
            'quantity', 1 + n % 2, 'currentQuantity', 1 + n % 2, 'price', '19.90', 'discount', '0.10'))
        FROM generate_series(0, n % 2) k CROSS JOIN LATERAL (
            -- Few products sell often.
            SELECT floor(power((hashint4(n + k) & 1048575) / 1048576.0, 3) * greatest($6 / 100, 1))::integer
                AS product) AS chosen))
FROM generate_series($2::integer, $3::integer - 1) n
CROSS JOIN LATERAL (
    SELECT now() - interval '700 days' * (1 - (n - $5::integer + 1)::float / ($6::integer - $5)) AS at,
        -- Few buyers buy often.
        floor(power((hashint4(n) & 1048575) / 1048576.0, 2) * greatest($6 / 4, 1))::integer AS buyer
) said
"""
REFUNDS: Final = """
INSERT INTO commerce_refunds (store_id, refund_id, order_id, currency, amount_minor, processed_at)
SELECT store_id, order_id, order_id, currency, 500, processed_at FROM commerce_orders
WHERE store_id = $1 AND order_id BETWEEN $4::bigint + $2::integer AND $4 + $3::integer - 1
    AND financial_status = 'refunded'
"""
PARCELS: Final = """
INSERT INTO commerce_fulfillments (store_id, fulfillment_id, order_id, updated_at, status,
    shipment_status, tracking_company)
SELECT store_id, order_id, order_id, processed_at, 'success', 'delivered', 'DHL'
FROM commerce_orders
WHERE store_id = $1 AND order_id BETWEEN $4::bigint + $2::integer AND $4 + $3::integer - 1
    AND fulfillment_status IS NOT NULL
"""
CUSTOMERS: Final = """
INSERT INTO commerce_customers (store_id, customer_id, updated_at, email_hash, state, currency,
    created_at_platform)
SELECT $1, n, now(), 's1:' || encode(sha256(('buyer' || n)::bytea), 'hex'), 'enabled', 'USD', now()
FROM generate_series($2::integer, $3::integer - 1) n
"""
PRODUCTS: Final = """
INSERT INTO commerce_products (store_id, product_id, updated_at, title, handle, vendor,
    product_type, status, tags, variants, variant_count, created_at_platform)
SELECT $1, $4::bigint + n, now(), 'Lamp of brass ' || n, 'lamp-' || n, 'Vendor ' || n % 40,
    'Type ' || n % 20, CASE n % 10 WHEN 9 THEN 'draft' ELSE 'active' END, 'brass, light', (
        SELECT jsonb_agg(jsonb_build_object('id', n * 10 + v, 'title', 'Size ' || v,
            'sku', 'LAMP-' || n || '-' || v, 'price', '199.00', 'inventoryItemId', n * 10 + v,
            'inventoryQuantity', v, 'tracked', true))
        FROM generate_series(1, 3) v
    ), 3, now()
FROM generate_series($2::integer, $3::integer - 1) n
"""
LEVELS: Final = """
INSERT INTO commerce_inventory_levels (store_id, inventory_item_id, location_id, updated_at, available)
SELECT $1, n * 10 + v, 1, now(), (n * 7 + v) % 400
FROM generate_series($2::integer, $3::integer - 1) n, generate_series(1, 3) v
"""
DELIVERIES: Final = """
INSERT INTO commerce_webhook_events (store_id, delivery_id, topic, shop_domain, created_at)
SELECT CASE WHEN n % 2 = 0 THEN $1 ELSE 'store_g' || (hashint4(n) & 1023) END, 'g' || n,
    'orders/updated', 'g.myshopify.com',
    now() - interval '7 days' * (n % 1000) / 900.0  -- one in ten is due to go
FROM generate_series($2::integer, $3::integer - 1) n
"""
AUDIT: Final = """
INSERT INTO audit_log (event, subject, organization_id, actor, metadata, retention, created_at)
SELECT said.event, CASE WHEN n % 2 = 0 THEN $1 ELSE 'store_g' || (hashint4(n) & 1023) END,
    CASE WHEN n % 2 = 0 THEN $4 ELSE 'org_g' || (hashint4(n) & 1023) END, 'system', '{}',
    said.retention, now() - interval '200 days' * (1 - (n - $7::integer + 1)::float / ($8::integer - $7))
FROM generate_series($2::integer, $3::integer - 1) n
CROSS JOIN LATERAL (
    SELECT ($5::text[])[place] AS event, ($6::text[])[place] AS retention FROM (
        SELECT CASE WHEN n % 5000 = 0 THEN cardinality($5::text[]) ELSE 1 + n % (cardinality($5::text[]) - 1) END
    ) AS chosen(place)
) said
"""
LISTINGS: Final = """
INSERT INTO listings (id, organization_id, title, slug, status, anonymous, included_assets,
    excluded_assets, self_reported, auto_approve_access, financing_offered, created_by, created_at,
    seller_active_at, published_at, asking_price, currency, country, category, business_model)
SELECT 'lst_g' || lpad(n::text, 9, '0'),
    CASE WHEN n % 20 = 0 THEN $1 ELSE 'org_g' || (hashint4(n) & 1023) END, 'A shop of lamps ' || n,
    'lamps-' || n, CASE n % 5 WHEN 4 THEN 'DRAFT' ELSE 'ACTIVE' END, false, '[]', '[]', '{}', false,
    false, 'usr_g0', now(), now(), now(), 1000000 + n % 5000 * 1000, CASE n % 3 WHEN 0 THEN 'EUR' ELSE 'USD' END,
    'DE', CASE WHEN n % 50 = 0 THEN 'rare' ELSE 'common' END, CASE WHEN n % 2 = 0 THEN 'dtc' ELSE 'saas' END
FROM generate_series($2::integer, $3::integer - 1) n
"""
PROOFS: Final = """
INSERT INTO listing_verifications (listing_id, provider, state, since, generation, shop_domain,
    accepted_at, last_ok_at, verified_at, keeps_badge)
SELECT 'lst_g' || lpad(n::text, 9, '0'), 'commerce',
    CASE WHEN n % 50 = 0 THEN 'verified' ELSE 'suspended' END, now(), 1,
    'g' || n || '.myshopify.com', now(), now(), now(), false
FROM generate_series($1::integer, $2::integer - 1) n WHERE n % 10 = 0
"""
SNAPSHOTS: Final = """
INSERT INTO revenue_snapshots (listing_id, window_end, window_start, source, shop_domain,
    definition, shop_currency, verified, figures, orders, skipped, flags)
SELECT 'lst_g' || lpad(n::text, 9, '0'), date_trunc('hour', now()) - day * interval '1 day',
    date_trunc('hour', now()) - (day + 30) * interval '1 day', 'commerce',
    'g' || n || '.myshopify.com', 'rv2', 'USD', true,
    '{"USD": {"revenue30d": 120000, "mrr": 0, "annualised": 1440000, "orders": 10}}', 10, '{}',
    CASE WHEN n % 1000 = 0 THEN '["refund_rate"]'::jsonb ELSE '[]' END
FROM generate_series($1::integer, $2::integer - 1) n, generate_series(0, 9) day WHERE n % 10 = 0
"""
DEAD_LETTERS: Final = """
INSERT INTO dead_letters (id, key, slot, kind, actor_key, name, payload, attempts, error, status,
    created_at, died_at, settled_at)
SELECT 'dl_g' || n, 'g' || n, n % 1024, 'store', 'store_g' || (hashint4(n) & 1023), 'store.Gone',
    '{}', 8, 'it failed', CASE WHEN n % 1000 = 0 THEN 'dead' ELSE 'discarded' END,
    now() - interval '1 hour', now() - n * interval '1 second',
    CASE WHEN n % 1000 <> 0 THEN now() END
FROM generate_series($1::integer, $2::integer - 1) n
"""
REMINDERS: Final = """
INSERT INTO outbox (key, slot, kind, actor_key, name, payload, due_at)
SELECT 'reminder:g' || n, n % 1024, 'listing', 'lst_g' || n, 'listing.Reminded', '{}',
    now() + interval '1 day' + n * interval '1 second'
FROM generate_series($1::integer, $2::integer - 1) n
"""
OPERATIONS: Final = """
INSERT INTO agent_operations (store_id, operation_id, user_id, client_id, tool, subject, digest,
    state, created_at, finished_at)
SELECT $1, 'op_g' || n, $4, 'bench', 'tag_order', n::text, '', 'applied', now(), now()
FROM generate_series($2::integer, $3::integer - 1) n
"""
STOREFRONTS: Final = """
INSERT INTO storefronts (domain, state, source, discovered_at, platform, country, category, velocity,
    product_count, scanned_at, snapshot_at, next_scan_at)
SELECT 's' || lpad(n::text, 6, '0') || '.bench-shops.com', 'active', 'competitor',
    now() - n * interval '1 minute', CASE WHEN n % 50 = 0 THEN 'rare' ELSE 'common' END,
    CASE WHEN n % 50 = 0 THEN 'MT' ELSE 'DE' END, CASE WHEN n % 50 = 0 THEN 'rare' ELSE 'common' END,
    n % 100, 100, now(), now(), now() + interval '1 day'
FROM generate_series($1::integer, $2::integer - 1) n
"""
COMPETITORS: Final = """
INSERT INTO competitors (store_id, domain, added_by, added_at)
SELECT CASE WHEN n BETWEEN 5 AND 19 THEN $1 ELSE 'store_g' || (hashint4(n) & 1023) END,
    's' || lpad(n::text, 6, '0') || '.bench-shops.com', 'usr_g0', now() - n * interval '1 minute'
FROM generate_series($2::integer, $3::integer - 1) n
"""
"""Of the shops of the registry, one in four has somebody who competes with it."""
CATALOGUE: Final = """
WITH products AS (
    INSERT INTO storefront_products (domain, product_id, title, handle, vendor, product_type, first_seen_at,
        changed_at)
    SELECT 's' || lpad((n % 5)::text, 6, '0') || '.bench-shops.com', n, 'Lamp ' || n, 'lamp-' || n, 'House',
        'Lamp', now() - interval '60 days', now()
    FROM generate_series($1::integer, $2::integer - 1) n
    RETURNING domain, product_id
), variants AS (
    INSERT INTO storefront_variants (domain, variant_id, product_id, title, sku, price, available, quantity,
        changed_at)
    SELECT domain, product_id, product_id, 'S', 'K' || product_id, 19.90, true, 40, now() FROM products
)
INSERT INTO storefront_changes (domain, at, variant_id, kind, product_id, before, after)
SELECT domain, now() - k * interval '6 hours' - interval '1 hour', product_id, 'quantity', product_id,
    (40 + k)::text, (39 + k)::text
FROM products, generate_series(0, 19) k
"""
"""Most is known of five shops; each product of theirs sells one every six hours."""
SNAPSHOTS_OF_SHOPS: Final = """
INSERT INTO storefront_snapshots (domain, taken_at, scan_id, product_count, variant_count, changed)
SELECT 's' || lpad((n % 5)::text, 6, '0') || '.bench-shops.com', now() - n * interval '6 hours', 'seen_' || n,
    100, 100, 1
FROM generate_series($1::integer, $2::integer - 1) n
"""
MESSAGES: Final = """
INSERT INTO messages (id, organization_id, store_id, role, text)
SELECT 'msg_g' || n, $1, $4, 'user', 'How many lamps did we sell in week ' || n || '?'
FROM generate_series($2::integer, $3::integer - 1) n
"""
PAYMENT_EVENTS: Final = """
INSERT INTO payment_events (event_id, type, livemode, created_at, organization_id, state,
    received_at, settled_at)
SELECT 'evt_g' || n, 'invoice.paid', true, now(),
    CASE WHEN n % 4 = 0 THEN $1 ELSE 'org_g' || (hashint4(n) & 1023) END,
    CASE WHEN n % 1000 = 0 THEN 'failed' ELSE 'applied' END, now() - n * interval '1 second', now()
FROM generate_series($2::integer, $3::integer - 1) n
"""


async def write(
    connection: "asyncpg.Connection[asyncpg.Record]",
    statement: str,
    *arguments: Any,
    at: int,
) -> None:
    """Write a span of rows, whose ends are the arguments at `at` and the next, in portions.

    The triggers that keep sums hold the rows of a whole statement in memory.
    """
    before, after = arguments[at : at + 2]
    table = statement.split("INSERT INTO ", 1)[1].split(maxsplit=1)[0]
    said = monotonic()
    for start in range(before, after, PORTION):
        end = min(start + PORTION, after)
        await connection.execute(statement, *arguments[:at], start, end, *arguments[at + 2 :])
        if monotonic() - said > SILENT_SECONDS:
            said = monotonic()
            measure.say(f"{table}: {end - before:,} of {after - before:,}")


async def fill_store(
    connection: "asyncpg.Connection[asyncpg.Record]", store_id: str, before: int, after: int
) -> None:
    """Let a store grow from so many orders to so many, with all that belongs to them."""
    orders = (store_id, before, after, FIRST_ORDER)
    await write(connection, ORDERS, *orders, before, after, at=1)
    await write(connection, REFUNDS, *orders, at=1)
    await write(connection, PARCELS, *orders, at=1)
    await write(connection, CUSTOMERS, store_id, before // 4, after // 4, at=1)
    products = (before // 100, after // 100)
    await write(connection, PRODUCTS, store_id, *products, FIRST_PRODUCT, at=1)
    await write(connection, LEVELS, store_id, *products, at=1)


async def fill(
    connection: "asyncpg.Connection[asyncpg.Record]", large: Tenant, before: int, after: int
) -> None:
    """Let the world grow from one size to the next; the large tenant grows as its store does."""
    was, becomes = Size(before).rows, Size(after).rows

    def span(kind: str, share: int = 1) -> tuple[int, int]:
        return was[kind] // share, becomes[kind] // share

    organization, store = large.organization_id, large.store_id
    # What a power cut would lose is made anew.
    await connection.execute("SET synchronous_commit = off")
    await write(connection, PEOPLE, *span("organizations"), at=0)
    await fill_store(connection, store, before, after)
    await write(connection, DELIVERIES, store, *span("deliveries"), at=1)
    audit = span("audit rows")
    kept = [str(retention_of(event)) for event in EVENTS]
    await write(connection, AUDIT, store, *audit, organization, list(EVENTS), kept, *audit, at=1)
    await write(connection, LISTINGS, organization, *span("listings"), at=1)
    await write(connection, PROOFS, *span("listings"), at=0)
    await write(connection, SNAPSHOTS, *span("listings"), at=0)
    await write(connection, DEAD_LETTERS, *span("deliveries", 20), at=0)
    await write(connection, REMINDERS, *span("deliveries", 20), at=0)
    await write(connection, OPERATIONS, store, *span("orders", 100), large.user_id, at=1)
    await write(connection, STOREFRONTS, *span("storefronts"), at=0)
    await write(connection, COMPETITORS, store, *span("storefronts", 4), at=1)
    await write(connection, CATALOGUE, *span("products"), at=0)
    await write(connection, SNAPSHOTS_OF_SHOPS, *span("products", 20), at=0)
    remembered = (min(rows["orders"] // 10, MOST_MESSAGES) for rows in (was, becomes))
    await write(connection, MESSAGES, organization, *remembered, store, at=1)
    await write(connection, PAYMENT_EVENTS, organization, *span("ledger entries", 10), at=1)
    await fill_ledgers(connection, organization, span("ledger entries"), span("organizations"))
    # As the server itself does within minutes of so many rows; else who reads them first writes, too.
    await connection.execute("VACUUM (ANALYZE)")


async def fill_ledgers(
    connection: "asyncpg.Connection[asyncpg.Record]",
    organization_id: str,
    entries: tuple[int, int],
    others: tuple[int, int],
) -> None:
    """Let the ledgers grow: a quarter of all entries is the large tenant's."""
    first, last = (count // 4 // (SPENDS_OF_A_LOT + 1) for count in entries)
    for start in range(first, last, LOTS_AT_ONCE):
        await fill_ledger(connection, organization_id, min(LOTS_AT_ONCE, last - start))
    said = monotonic()
    for number in range(*others):
        await fill_ledger(connection, f"org_g{number}", 1, SPENDS_OF_A_LOT // 2)
        if monotonic() - said > SILENT_SECONDS:
            said = monotonic()
            measure.say(f"ledgers: {number - others[0]:,} of {others[1] - others[0]:,}")


async def fill_ledger(
    connection: "asyncpg.Connection[asyncpg.Record]",
    organization_id: str,
    lots: int,
    spends: int = SPENDS_OF_A_LOT,
) -> None:
    """Grant an organization lots and spend a little of each, as entries that follow its last."""
    account = await connection.fetchrow(
        "SELECT seq, hash FROM credit_accounts WHERE organization_id = $1", organization_id
    )
    ledger = Ledger(organization_id, *(account or (0, chain.GENESIS)))
    rows = list(ledger.written(lots, spends))
    for table, kept in {
        "credit_entries": [entry for entry, _ in rows],
        "credit_postings": [posting for _, posting in rows],
        "credit_lots": ledger.lots,
    }.items():
        if kept:
            columns = list(kept[0])
            await connection.copy_records_to_table(
                table, columns=columns, records=[tuple(row.values()) for row in kept]
            )
    await connection.execute(
        "INSERT INTO credit_accounts (organization_id, seq, hash, debt, allowance)"
        " VALUES ($1, $2, $3, 0, 0)"
        " ON CONFLICT (organization_id) DO UPDATE SET seq = excluded.seq, hash = excluded.hash",
        *(organization_id, ledger.seq, ledger.hash),
    )


class Ledger:
    """Entries of one organization, each chained onto the one before."""

    AMOUNT: Final = 10**9
    COST: Final = 250

    def __init__(self, organization_id: str, seq: int, last: str) -> None:
        self.organization_id = organization_id
        self.seq = seq
        self.hash = last
        self.lots: list[dict[str, Any]] = []
        self.at = datetime.now(UTC) - timedelta(days=1)

    def written(self, lots: int, spends: int) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
        """Give each entry with its posting."""
        for _ in range(lots):
            lot = f"bench:{self.seq + 1}"
            yield self._entry(f"grant:{lot}", "bonus", (f"lot:{lot}", "promo", self.AMOUNT))
            for _ in range(spends):
                key = f"spend:bench:{self.seq + 1}"
                yield self._entry(key, "spend", ("usage", f"lot:{lot}", self.COST))
            self.lots.append(self._lot(lot, self.AMOUNT - spends * self.COST))

    def _entry(
        self, key: str, kind: str, move: tuple[str, str, int]
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        self.seq += 1
        said = (self.organization_id, self.seq, key, kind, None, self.at)
        self.hash = chain.sealed(self.hash, said, [move])
        names = ("organization_id", "seq", "key", "kind", "reference", "at")
        debit, credit, amount = move
        whose = {"organization_id": self.organization_id, "seq": self.seq}
        return (
            {**dict(zip(names, said, strict=True)), "hash": self.hash},
            {**whose, "n": 0, "debit": debit, "credit": credit, "amount": amount},
        )

    def _lot(self, lot: str, remaining: int) -> dict[str, Any]:
        return {
            "organization_id": self.organization_id,
            "id": lot,
            "kind": "bonus",
            "amount": self.AMOUNT,
            "remaining": remaining,
            "pinned": 0,
            "granted_at": self.at,
            "expires_at": self.at + timedelta(days=300 + len(self.lots) % 60),
            "seq": self.seq,
        }
