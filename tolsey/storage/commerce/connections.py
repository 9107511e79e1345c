"""SQL for stores' commerce connections and what is known of their shops; sealing of their keys."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final

from tolsey.storage.database import Database, Row
from tolsey.storage.lookups import records
from tolsey.storage.records.commerce.connection import (
    Connection,
    ConnectionStatus,
    ShopProfile,
)
from tolsey.storage.records.commerce.shops import ConnectionPeriod, ShopKey, ShopOfStore
from tolsey.storage.sealing.sealed import Vault
from tolsey.storage.tables import Record, Table, table_of

TABLE: Final = "integration_connections"
TOKEN: Final = "access_token"  # noqa: S105 - a column's name
SECRET: Final = "metadata.clientSecretEncrypted"  # noqa: S105 - a column's name
FORMER_SECRET_LIFE: Final = timedelta(hours=48)
"""How long deliveries may still be signed with a replaced secret: the platform's retry window."""

SHOP: Final = table_of(ShopProfile)
SHOPS: Final = table_of(ShopOfStore)
HISTORY: Final = table_of(ConnectionPeriod)
MOST_PERIODS: Final = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreParts:
    """What is on disk of one store's connection."""

    organization_id: str | None
    connection: Connection | None
    shop: ShopProfile | None
    shops: tuple[ShopOfStore, ...] = ()


async def load(database: Database, store_ids: Sequence[str]) -> dict[str, StoreParts]:
    """Read the parts of stores; one that is not there has none."""
    # One query: a store that wakes up in the middle of a burst waits for one round trip.
    rows = await database.fetch(
        """
        SELECT wanted.store_id AS wanted, stores.organization_id,
               to_jsonb(c.*)::text AS connection, c.connected_at, c.token_expires_at,
               c.refused_at, c.uninstalled_at, to_jsonb(p.*)::text AS shop, (
                   SELECT jsonb_agg(k.* ORDER BY k.first_connected_at)::text
                   FROM shops_of_stores k WHERE k.store_id = wanted.store_id
               ) AS shops
        FROM unnest($1::text[]) AS wanted(store_id)
        LEFT JOIN stores ON stores.id = wanted.store_id AND stores.deleted_at IS NULL
        LEFT JOIN integration_connections c
               ON c.store_id = wanted.store_id AND c.provider = 'commerce'
        LEFT JOIN store_shops p ON p.store_id = wanted.store_id
        """,
        list(store_ids),
    )
    return {
        row["wanted"]: StoreParts(
            organization_id=row["organization_id"],
            connection=_connection(json.loads(row["connection"]), row)
            if row["connection"]
            else None,
            shop=_restored(SHOP, json.loads(row["shop"])) if row["shop"] else None,
            shops=tuple(_restored(SHOPS, one) for one in json.loads(row["shops"] or "[]")),
        )
        for row in rows
    }


def _connection(kept: dict[str, Any], row: Row) -> Connection:
    metadata = kept["metadata"]
    scopes_at = metadata.get("scopesAt")
    return Connection(
        store_id=kept["store_id"],
        shop_domain=kept["shop_domain"],
        status=kept["status"],
        connected_at=row["connected_at"],
        client_id=kept["client_id"],
        access_token=kept["access_token"],
        token_expires_at=row["token_expires_at"],
        client_secret=metadata.get("clientSecretEncrypted"),
        former_secret=metadata.get("formerClientSecretEncrypted"),
        scopes=tuple(metadata.get("scopes", ())),
        scopes_at=scopes_at and datetime.fromisoformat(scopes_at),
        refused_at=row["refused_at"],
        uninstalled_at=row["uninstalled_at"],
    )


def _restored(table: Table[Record], kept: dict[str, Any]) -> Record:
    for name, kind in table.columns.items():
        value = kept[name]
        if value is None:
            continue
        if kind == "timestamptz":
            kept[name] = datetime.fromisoformat(value)
        elif kind == "jsonb":
            kept[name] = json.dumps(value)
    return table.read(kept)


@dataclass(frozen=True, slots=True)
class Credentials:
    """What mints a store's tokens; `client_secret` is sealed text. Nothing does without `client_id`."""

    shop_domain: str
    client_id: str | None
    client_secret: str = field(repr=False)


async def credentials_of(
    database: Database, store_id: str, connected_at: datetime
) -> Credentials | None:
    """Read the credentials of the connection made at a time; None when it is no more."""
    row = await database.fetchrow(
        """
        SELECT shop_domain, client_id, metadata->>'clientSecretEncrypted' AS client_secret
        FROM integration_connections
        WHERE store_id = $1 AND provider = 'commerce' AND status = $2 AND connected_at = $3
          AND metadata ? 'clientSecretEncrypted'
        """,
        store_id,
        ConnectionStatus.ACTIVE,
        connected_at,
    )
    return Credentials(**row) if row else None


async def delivered_at(database: Database, store_id: str, topics: Sequence[str]) -> datetime | None:
    """Tell when the last delivery of some topics came for a store; None when none is kept.

    Each topic is said as a range: then no index but that of topics can serve the order. That of times
    would be walked from end to end for a topic of which nothing ever came.
    """
    row = await database.fetchrow(
        """
        SELECT max(last.created_at) AS at
        FROM unnest($2::text[]) AS wanted(topic)
        CROSS JOIN LATERAL (
            SELECT e.created_at FROM commerce_webhook_events e
            WHERE e.store_id = $1 AND e.topic >= wanted.topic AND e.topic <= wanted.topic
            ORDER BY e.topic, e.created_at DESC LIMIT 1
        ) last
        """,
        store_id,
        list(topics),
    )
    return row["at"] if row else None


async def is_shared(database: Database, store_id: str) -> bool:
    """Tell whether another store is connected to the same shop through the same app.

    Nothing tells apart the apps of static tokens: they are taken for one.
    """
    row = await database.fetchrow(
        """
        SELECT FROM integration_connections one JOIN integration_connections other
            ON other.shop_domain = one.shop_domain
            AND other.client_id IS NOT DISTINCT FROM one.client_id
            AND other.provider = one.provider AND other.store_id <> one.store_id
        WHERE one.store_id = $1 AND one.provider = 'commerce' AND other.status = $2 LIMIT 1
        """,
        store_id,
        ConnectionStatus.ACTIVE,
    )
    return row is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Listener:
    """A store that deliveries of a shop may be for; secrets are sealed text."""

    store_id: str
    shop_key: str
    sealed_salt: str = field(repr=False)
    client_secret: str = field(repr=False)
    former_secret: str | None = field(repr=False)
    connected_at: datetime


async def listeners_of(database: Database, shop_domain: str) -> list[Listener]:
    """Read the stores with a live connection to a shop."""
    rows = await database.fetch(
        """
        SELECT c.store_id, coalesce(k.shop_key, c.store_id) AS shop_key,
               CASE WHEN k.shop_key <> c.store_id THEN coalesce(k.sealed_salt, '')
                   ELSE stores.sealed_salt END AS sealed_salt, c.connected_at,
               c.metadata->>'clientSecretEncrypted' AS client_secret,
               c.metadata->>'formerClientSecretEncrypted' AS former_secret
        FROM integration_connections c
        JOIN stores ON stores.id = c.store_id AND stores.deleted_at IS NULL
        LEFT JOIN shops_of_stores k ON k.store_id = c.store_id AND k.shop_domain = c.shop_domain
        WHERE c.shop_domain = $1 AND c.provider = 'commerce' AND c.status = $2
          AND c.metadata ? 'clientSecretEncrypted'
        ORDER BY c.store_id
        """,
        shop_domain,
        ConnectionStatus.ACTIVE,
    )
    return [Listener(**row) for row in rows]


async def storefront_of(database: Database, store_id: str) -> str | None:
    """Name the host at which the shop that a store is connected to shows itself; None without one."""
    row = await database.fetchrow(
        """
        SELECT coalesce(p.primary_domain, c.shop_domain) AS host
        FROM integration_connections c
        JOIN stores ON stores.id = c.store_id AND stores.deleted_at IS NULL
        LEFT JOIN store_shops p ON p.store_id = c.store_id AND p.shop_domain = c.shop_domain
        WHERE c.store_id = $1 AND c.provider = 'commerce' AND c.status = $2
        """,
        store_id,
        ConnectionStatus.ACTIVE,
    )
    return row["host"] if row else None


async def shop_key_of(database: Database, store_id: str) -> ShopKey:
    """Tell what the rows of the shop that a store is, or was last, connected to are kept under."""
    row = await database.fetchrow(
        """
        SELECT k.shop_key FROM integration_connections c
        JOIN shops_of_stores k ON k.store_id = c.store_id AND k.shop_domain = c.shop_domain
        WHERE c.store_id = $1 AND c.provider = 'commerce'
        """,
        store_id,
    )
    return ShopKey(row["shop_key"] if row else store_id)


async def history(database: Database, store_id: str) -> list[ConnectionPeriod]:
    """List to which shops a store was connected when, the first connection first."""
    where = "store_id = $1 ORDER BY connected_at LIMIT $2"
    return await records(database, HISTORY, where, store_id, MOST_PERIODS)


def seal_token(vault: Vault, store_id: str, token: str) -> str:
    """Seal an access token for a store's connection."""
    return vault.seal(token, table=TABLE, column=TOKEN, row=store_id, tenant=store_id)


def open_token(vault: Vault, store_id: str, sealed: str) -> str:
    """Open a store's access token, for the moment of a call; SealBroken when it cannot be."""
    return vault.open(sealed, table=TABLE, column=TOKEN, row=store_id, tenant=store_id)


def seal_secret(vault: Vault, store_id: str, secret: str) -> str:
    """Seal the merchant's client secret for a store's connection."""
    return vault.seal(secret, table=TABLE, column=SECRET, row=store_id, tenant=store_id)


def open_secret(vault: Vault, store_id: str, sealed: str) -> str:
    """Open the merchant's client secret; SealBroken when it cannot be."""
    return vault.open(sealed, table=TABLE, column=SECRET, row=store_id, tenant=store_id)
