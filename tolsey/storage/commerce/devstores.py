"""SQL for the pool of stores that are handed out; sealing of their keys."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from tolsey.storage.database import Database, Row, Transaction
from tolsey.storage.records.commerce.devstores import (
    DevStore,
    DevStoreClaim,
    DevStoreHolding,
    DevStoreState,
    DevStoreTransfer,
)
from tolsey.storage.sealing.sealed import Vault
from tolsey.storage.tables import table_of

POOL: Final = table_of(DevStore)
CLAIMS: Final = table_of(DevStoreClaim)
TRANSFERS: Final = table_of(DevStoreTransfer)


def seal_keys(
    vault: Vault, shop_domain: str, client_secret: str, access_token: str | None
) -> tuple[str, str | None]:
    """Seal what opens a shop of the pool: its app's secret, and a static token where it has one."""
    place = {"table": POOL.name, "row": shop_domain, "tenant": shop_domain}
    token = access_token and vault.seal(access_token, column="access_token", **place)
    return vault.seal(client_secret, column="client_secret", **place), token


def open_keys(vault: Vault, one: DevStore) -> tuple[str, str | None]:
    """Open what opens a shop of the pool; SealBroken when it cannot be."""
    place = {"table": POOL.name, "row": one.shop_domain, "tenant": one.shop_domain}
    token = one.access_token and vault.open(one.access_token, column="access_token", **place)
    return vault.open(one.client_secret, column="client_secret", **place), token


async def register(tx: Transaction, one: DevStore) -> bool:
    """Put a shop into the pool, or its new keys in the place of the old; not once it was handed out."""
    changed = ", ".join(f"{name} = excluded.{name}" for name in POOL.columns)
    written = await tx.fetchval(
        f"{POOL.insert} ON CONFLICT (shop_domain) DO UPDATE SET {changed}"
        " WHERE NOT EXISTS (SELECT FROM devstore_claims c WHERE c.shop_domain = excluded.shop_domain)"
        " RETURNING shop_domain",
        *POOL.values_of(one),
    )
    return written is not None


async def available(database: Database, limit: int) -> Sequence[DevStore]:
    """List shops that nobody has and that let us in when they were last tried, the oldest first."""
    rows = await database.fetch(
        f"SELECT {POOL.selected} FROM devstore_pool p"  # noqa: S608 - names of our own table
        " WHERE refused IS NULL"
        " AND NOT EXISTS (SELECT FROM devstore_claims c WHERE c.shop_domain = p.shop_domain)"
        " ORDER BY registered_at, shop_domain LIMIT $1",
        limit,
    )
    return [POOL.read(row) for row in rows]


async def refuse(database: Database, shop_domain: str, why: str) -> None:
    """Hand out a shop to nobody until its keys are registered anew."""
    await database.execute(
        "UPDATE devstore_pool SET refused = $2 WHERE shop_domain = $1", shop_domain, why
    )


async def holdings(database: Database, store_ids: Sequence[str]) -> Mapping[str, DevStoreHolding]:
    """Read what stores have of the pool; one that has nothing is absent."""
    claims = await database.fetch(
        f"SELECT {CLAIMS.selected} FROM devstore_claims WHERE store_id = ANY($1::text[])",  # noqa: S608 - names of our own table
        list(store_ids),
    )
    if not claims:
        return {}
    transfers = await database.fetch(
        f"SELECT {TRANSFERS.selected} FROM devstore_transfers WHERE store_id = ANY($1::text[])",  # noqa: S608 - names of our own table
        [row["store_id"] for row in claims],
    )
    asked = {row["store_id"]: TRANSFERS.read(row) for row in transfers}
    return {
        row["store_id"]: DevStoreHolding(
            claim=CLAIMS.read(row), transfer=asked.get(row["store_id"])
        )
        for row in claims
    }


async def awaited(database: Database) -> list[str]:
    """List the stores whose shops are to become their merchants' own."""
    rows = await database.fetch(
        "SELECT store_id FROM devstore_transfers WHERE state = 'TRANSFER_REQUESTED'"
        " ORDER BY store_id"
    )
    return [row["store_id"] for row in rows]


@dataclass(frozen=True, slots=True, kw_only=True)
class PooledStore:
    """A shop of the pool as operators see it."""

    shop_domain: str
    state: DevStoreState
    is_static: bool
    plan_name: str | None
    refused: str | None
    registered_at: datetime
    store_id: str | None
    organization_id: str | None
    claimed_at: datetime | None
    email: str | None
    requested_at: datetime | None
    expires_at: datetime | None
    transferred_at: datetime | None


async def pool(
    database: Database,
    state: DevStoreState | None,
    *,
    after: str,
    limit: int,
    shop_domain: str | None = None,
) -> Sequence[PooledStore]:
    """List the pool by the shops' domains, or find one of them."""
    rows: Sequence[Row] = await database.fetch(
        """
        SELECT * FROM (
            SELECT p.shop_domain, p.access_token IS NOT NULL AS is_static, p.plan_name, p.refused,
                   p.registered_at, c.store_id, c.organization_id, c.claimed_at, t.email,
                   t.requested_at, t.expires_at, t.transferred_at,
                   CASE WHEN c.store_id IS NULL THEN 'AVAILABLE'
                        ELSE coalesce(t.state, 'CLAIMED') END AS state
            FROM devstore_pool p
            LEFT JOIN devstore_claims c ON c.shop_domain = p.shop_domain
            LEFT JOIN devstore_transfers t ON t.store_id = c.store_id
            WHERE p.shop_domain > $1 AND ($4::text IS NULL OR p.shop_domain = $4)
        ) AS pooled
        WHERE $2::text IS NULL OR state = $2 ORDER BY shop_domain LIMIT $3
        """,
        after,
        state,
        limit,
        shop_domain,
    )
    found: list[dict[str, Any]] = [dict(row) for row in rows]
    return [PooledStore(**{**one, "state": DevStoreState(one["state"])}) for one in found]
