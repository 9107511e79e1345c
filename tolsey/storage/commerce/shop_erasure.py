"""SQL of the legs by which a shop or a customer is forgotten (rules/shops#erasure)."""

from typing import Any, Final

import orjson

from tolsey.storage.database import Database

ARCHIVE: Final = """
FROM audit_log WHERE subject = $1 AND event COLLATE "C" >= 'commerce.webhook.'
  AND event COLLATE "C" < 'commerce.webhook/' AND metadata ? 'payload'
  AND NOT metadata ? 'sanitised' AND ($2 = '' OR metadata->>'shopDomain' = $2)
  AND ($3 = '' OR strpos(metadata::text, $3) > 0)
"""
"""What the archive of a store holds of a shop, or of one customer, and nobody has emptied yet."""

HASHES: Final = """
FROM integration_connections WHERE store_id = $1 AND shop_domain = $2
  AND (secret_hash IS NOT NULL OR mcp_key_hash IS NOT NULL OR pairing_code IS NOT NULL)
"""
CREDENTIALS: Final = """
FROM integration_connections WHERE store_id = $1 AND shop_domain = $2
  AND (access_token IS NOT NULL OR metadata ?| '{clientSecretEncrypted,formerClientSecretEncrypted}'
    OR secret_hash IS NOT NULL OR mcp_key_hash IS NOT NULL OR pairing_code IS NOT NULL)
"""
FREE_TEXT: Final = "FROM commerce_orders WHERE store_id = $1 AND metadata <> '{}'"

SALTS: Final = """
FROM stores s LEFT JOIN shops_of_stores k ON k.store_id = s.id AND k.shop_domain = $2 WHERE s.id = $1
  AND CASE WHEN k.shop_key <> s.id THEN coalesce(k.sealed_salt, '') ELSE s.sealed_salt END <> ''
"""
PROFILE: Final = """
FROM store_shops p WHERE store_id = $1 AND shop_domain = $2
  AND jsonb_strip_nulls(to_jsonb(p) - '{store_id,shop_domain,facts_at}'::text[])
    <> '{"custom_domains": [], "subscriptions": {}}'
"""
_OF_LAUNCH: Final = """
FROM {} WHERE store_id = $1 AND $3 = '' AND $4::text IS NOT NULL AND NOT EXISTS (
    SELECT FROM store_launches l WHERE l.store_id = $1 AND l.shop_domain IS DISTINCT FROM $2
      AND (l.shop_domain IS NOT NULL OR EXISTS (
        SELECT FROM integration_connections c WHERE c.store_id = $1 AND c.status = 'active')))
"""
"""What a launch holds, unless it worked in another shop, or in none yet and the store has another one now."""
LAUNCH: Final = {
    table: _OF_LAUNCH.format(table)
    for table in (
        "platform_activity",
        "store_contexts",
        "launch_attempts",
        "launch_milestones",
        "store_launches",  # which tells whose the others are, so it goes last
    )
}
_ANY_WORDS: Final = "$2::text IS NOT NULL AND $3::text IS NOT NULL AND $4::text IS NOT NULL"
COPIES: Final = {
    # A message that was given up holds what it was to tell.
    "dead_letters": "FROM dead_letters WHERE kind = 'store' AND actor_key = $1"
    " AND strpos(payload::text, coalesce(nullif($3, ''), $2)) > 0 AND $4::text IS NOT NULL",
    # What waits behind one may wait for long; what only waits for its turn does not.
    "outbox": "FROM outbox WHERE kind = 'store' AND actor_key = $1 AND held_by IS NOT NULL"
    " AND strpos(payload::text, coalesce(nullif($3, ''), $2)) > 0 AND $4::text IS NOT NULL",
    "actor_journal": "FROM actor_journal WHERE kind = 'store' AND key = $1 AND reply IS NOT NULL"
    f" AND {_ANY_WORDS}",
    "agent_operations": """
        FROM agent_operations o WHERE store_id = $1 AND EXISTS (
            SELECT FROM connection_history h WHERE h.store_id = $1 AND h.shop_domain = $2
              AND o.created_at >= h.connected_at AND o.created_at <= coalesce(h.ended_at, 'infinity'))
          AND $3 = '' AND $4::text IS NOT NULL
    """,
    "files": f"FROM files WHERE store_id = $1 AND expires_at > now() AND {_ANY_WORDS}",
    # What a member of the store's organization was answered may be about anyone; that a key was used stays.
    "idempotency_keys": """
        FROM idempotency_keys WHERE answer->>'body' <> '{}' AND user_id IN (
            SELECT m.user_id FROM stores s JOIN members m USING (organization_id) WHERE s.id = $1)
          AND $2::text IS NOT NULL AND $3::text IS NOT NULL AND $4::text IS NOT NULL
    """,
    **LAUNCH,
}
"""What holds words of a shop's customers beside the shop's own tables: $1 the store, $2 the shop's domain, $3
the pseudonym of the customer whom a request is about or '' for all of them, $4 the key of the shop's rows."""


async def count(database: Database, found: str, *args: str) -> int:
    """Count what a leg is to do."""
    row = await database.fetchrow(f"SELECT count(*) AS n {found}", *args)
    return int(row["n"]) if row else 0


async def clear_hashes(database: Database, store_id: str, shop_domain: str) -> None:
    """Clear what an agent or a plugin of a shop is known by."""
    await database.execute(
        "UPDATE integration_connections SET secret_hash = NULL, mcp_key_hash = NULL, pairing_code = NULL"
        " WHERE store_id = $1 AND shop_domain = $2",
        store_id,
        shop_domain,
    )


async def clear_free_text(database: Database, shop_key: str, limit: int) -> int:
    """Clear a batch of the orders' free text."""
    batch = f"SELECT ctid {FREE_TEXT} LIMIT $2"
    return await database.execute(
        f"UPDATE commerce_orders SET metadata = '{{}}' WHERE ctid = ANY(ARRAY({batch}))",  # noqa: S608 - constants of this module
        shop_key,
        limit,
    )


async def clear_words_of_order(database: Database, shop_key: str, order_id: int) -> None:
    """Clear the free text of one order, so that no older delivery brings it back."""
    await database.execute(
        "UPDATE commerce_orders SET metadata = '{}', updated_at = greatest(updated_at, now())"
        " WHERE store_id = $1 AND order_id = $2",
        shop_key,
        order_id,
    )


async def clear_addresses(database: Database, store_id: str, module: str) -> None:
    """Clear the mail addresses in a module of a store's context, but for the merchant's own."""
    await database.execute(
        """
        UPDATE store_contexts SET value = regexp_replace(value::text, '[^[:space:]"]+@[^[:space:]"]+', '', 'g')::jsonb
            || jsonb_strip_nulls(jsonb_build_object('contact_email', value->'contact_email'))
        WHERE store_id = $1 AND module = $2
        """,
        store_id,
        module,
    )


async def destroy_salt(database: Database, store_id: str) -> None:
    """Destroy the salt of a store's first shop, which stands with the store."""
    await database.execute("UPDATE stores SET sealed_salt = '' WHERE id = $1", store_id)


async def clear_copies(
    database: Database, store_id: str, shop_domain: str, customer: str, shop_key: str
) -> None:
    """Clear what holds words of a shop's customers, or of one, beside the shop's own tables; a store has few of it."""
    for table in ("dead_letters", "outbox", "agent_operations", *LAUNCH):
        await database.execute(f"DELETE {COPIES[table]}", store_id, shop_domain, customer, shop_key)
    # What waited behind a letter that is gone now goes on.
    await database.execute(
        "UPDATE outbox o SET held_by = NULL, due_at = now() WHERE kind = 'store' AND actor_key = $1"
        " AND held_by IS NOT NULL AND NOT EXISTS (SELECT FROM dead_letters d WHERE d.id = o.held_by)",
        store_id,
    )
    await database.execute(
        "UPDATE actor_journal SET reply = NULL WHERE kind = 'store' AND key = $1 AND reply IS NOT NULL",
        store_id,
    )
    await database.execute(
        "UPDATE files SET expires_at = now() WHERE store_id = $1 AND expires_at > now()", store_id
    )
    answered = f"SELECT ctid {COPIES['idempotency_keys']}"
    await database.execute(
        "UPDATE idempotency_keys SET answer = answer || jsonb_build_object('body', '{}')"  # noqa: S608 - constants of this module
        f" WHERE ctid = ANY(ARRAY({answered}))",
        store_id,
        shop_domain,
        customer,
        shop_key,
    )


async def sanitise(
    database: Database, store_id: str, shop_domain: str, mention: str, limit: int
) -> int:
    """Empty a batch of the archive key by key: what a delivery had is seen, what it said is not."""
    rows = await database.fetch(
        f"SELECT id, metadata::text AS metadata {ARCHIVE} ORDER BY id LIMIT $4",
        store_id,
        shop_domain,
        mention,
        limit,
    )
    emptied = []
    for row in rows:
        metadata = orjson.loads(row["metadata"])
        emptied.append(
            orjson.dumps(
                {**metadata, "payload": without_values(metadata["payload"]), "sanitised": True}
            ).decode()
        )
    await database.execute(
        "UPDATE audit_log SET metadata = told.metadata::jsonb"
        " FROM unnest($1::bigint[], $2::text[]) AS told(id, metadata) WHERE audit_log.id = told.id",
        [row["id"] for row in rows],
        emptied,
    )
    return len(rows)


def without_values(told: Any) -> Any:
    """Keep the keys of a body and nothing that stood under them; doing it again changes nothing."""
    if isinstance(told, dict):
        return {key: without_values(value) for key, value in told.items()}
    if isinstance(told, list):
        return [without_values(value) for value in told]
    return None
