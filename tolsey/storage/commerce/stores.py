"""SQL for stores."""

import base64
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from tolsey.storage.conditions import Conditions
from tolsey.storage.database import Database, Reader, Row, Transaction
from tolsey.storage.lookups import records
from tolsey.storage.records.commerce.shops import ShopKey, ShopOfStore, later_key
from tolsey.storage.records.commerce.stores import NOT_HELD, StoreRecord
from tolsey.storage.sealing.sealed import SealBroken, Vault
from tolsey.storage.tables import table_of

SALT_BYTES: Final = 32
REST: Final = timedelta(days=1)
"""How long a deleted store is left alone, for what was under way to end."""
STORES: Final = table_of(StoreRecord)
SHOPS: Final = table_of(ShopOfStore)

FIND_FOR: Final = """
SELECT stores.id, stores.organization_id, stores.name, stores.created_at, members.role
FROM stores
JOIN members ON members.organization_id = stores.organization_id
JOIN users ON users.id = members.user_id
WHERE stores.id = $1 AND stores.deleted_at IS NULL AND members.user_id = $2
  AND NOT users.banned AND users.deletion_requested_at IS NULL
"""
SALT: Final = """
SELECT coalesce(k.shop_key, s.id) AS shop_key,
    CASE WHEN k.shop_key <> s.id THEN coalesce(k.sealed_salt, '') ELSE s.sealed_salt END AS sealed_salt
FROM stores s LEFT JOIN shops_of_stores k ON k.store_id = s.id AND k.shop_domain = $2 WHERE s.id = $1
"""
HOLD_FOR: Final = f"{FIND_FOR}FOR SHARE"


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreRow:
    """A store that is not deleted."""

    id: str
    organization_id: str
    name: str
    created_at: datetime


@dataclass(frozen=True, slots=True)
class OrganizationStores:
    """What an organization may own and what it owns."""

    plan: str
    stores_contracted: int | None
    stores: tuple[StoreRecord, ...]


def seal_salt(vault: Vault, store_id: str, salt: bytes) -> str:
    """Seal a store's salt for its row."""
    text = base64.b64encode(salt).decode()
    return vault.seal(text, table="stores", column="sealed_salt", row=store_id, tenant=store_id)


def seal_salt_of_shop(vault: Vault, store_id: str, shop_domain: str, salt: bytes) -> str:
    """Seal the salt of a shop that is not a store's first, for its row."""
    text = base64.b64encode(salt).decode()
    key = later_key(store_id, shop_domain)
    return vault.seal(text, table=SHOPS.name, column="sealed_salt", row=key, tenant=store_id)


def open_salt(vault: Vault, store_id: str, sealed: str, shop_key: str | None = None) -> bytes:
    """Open the salt of a store's first shop, or of the shop that a key is of.

    The pseudonyms of the shop's customers are derived from it.
    """
    row = shop_key or store_id
    table = STORES.name if row == store_id else SHOPS.name
    text = vault.open(sealed, table=table, column="sealed_salt", row=row, tenant=store_id)
    return base64.b64decode(text)


async def salt_of(
    database: Database, vault: Vault, store_id: str, shop_domain: str
) -> bytes | None:
    """Read the salt of a store's pseudonyms at a shop; None when it is gone or cannot be opened."""
    row = await database.fetchrow(SALT, store_id, shop_domain)
    if row is None:
        return None
    try:
        return open_salt(vault, store_id, row["sealed_salt"], row["shop_key"])
    except SealBroken:
        return None


async def salt_of_key(database: Reader, vault: Vault, shop_key: ShopKey) -> bytes | None:
    """Read the salt of the shop that a key is of; None when it is gone for good. Raises SealBroken."""
    store_id = shop_key.partition("@")[0]
    row = await database.fetchrow(
        """
        SELECT CASE WHEN s.id = $2 THEN s.sealed_salt ELSE k.sealed_salt END AS sealed_salt
        FROM stores s LEFT JOIN shops_of_stores k ON k.store_id = s.id AND k.shop_key = $2 WHERE s.id = $1
        """,
        store_id,
        shop_key,
    )
    sealed = row["sealed_salt"] if row else None
    return open_salt(vault, store_id, sealed, shop_key) if sealed else None


async def to_erase(database: Database, deleted_before: datetime) -> dict[str, list[str]]:
    """List deleted stores of which something is kept, each with the keys of its shops' rows."""
    rows = await database.fetch(
        """
        SELECT s.id, array_remove(array_agg(DISTINCT k.shop_key), NULL) AS keys
        FROM stores s LEFT JOIN shops_of_stores k ON k.store_id = s.id
        WHERE s.deleted_at < $1 AND s.deleted_at IS NOT NULL AND s.name <> '' GROUP BY s.id
        """,
        deleted_before,
    )
    return {row["id"]: [row["id"], *row["keys"]] for row in rows}


async def load(
    database: Database, organization_ids: Sequence[str]
) -> dict[str, OrganizationStores]:
    """Read what organizations own, deleted stores included; an unknown organization is absent."""
    organizations = await database.fetch(
        "SELECT id, plan, stores_contracted FROM organizations WHERE id = ANY($1::text[])",
        list(organization_ids),
    )
    where = "organization_id = ANY($1::text[]) ORDER BY id"
    owned: dict[str, list[StoreRecord]] = defaultdict(list)
    for one in await records(database, STORES, where, list(organization_ids)):
        owned[one.organization_id].append(replace(one, sealed_salt=NOT_HELD))
    return {
        row["id"]: OrganizationStores(
            row["plan"], row["stores_contracted"], tuple(owned[row["id"]])
        )
        for row in organizations
    }


async def find(reader: Reader, store_id: str) -> StoreRow | None:
    """Find a store whoever asks; None when it is deleted or never was."""
    row = await reader.fetchrow(
        "SELECT id, organization_id, name, created_at FROM stores WHERE id = $1 AND deleted_at IS NULL",
        store_id,
    )
    return StoreRow(**row) if row else None


async def find_for(database: Database, store_id: str, user_id: str) -> tuple[StoreRow, str] | None:
    """Find a store and a user's role over it; None when they have none, or it is not there."""
    return _with_role(await database.fetchrow(FIND_FOR, store_id, user_id))


async def hold_for(tx: Transaction, store_id: str, user_id: str) -> tuple[StoreRow, str] | None:
    """Find as `find_for` does; until the transaction ends the store, the role and the user stay."""
    return _with_role(await tx.fetchrow(HOLD_FOR, store_id, user_id))


def _with_role(row: Row | None) -> tuple[StoreRow, str] | None:
    if row is None:
        return None
    store = StoreRow(
        id=row["id"],
        organization_id=row["organization_id"],
        name=row["name"],
        created_at=row["created_at"],
    )
    return store, row["role"]


async def stores_for(
    database: Database, user_id: str, organization_id: str | None, after: str, limit: int
) -> list[StoreRow]:
    """List the stores a user has a role over, by id; of one organization when it is named."""
    wanted = Conditions(user_id, after, limit)
    wanted.add("stores.organization_id = {}", organization_id)
    rows = await database.fetch(
        f"""
        SELECT stores.id, stores.organization_id, stores.name, stores.created_at
        FROM stores
        JOIN members ON members.organization_id = stores.organization_id
        WHERE members.user_id = $1 AND stores.deleted_at IS NULL
          AND stores.id > $2 AND {wanted}
        ORDER BY stores.id LIMIT $3
        """,  # noqa: S608 - conditions of this function
        *wanted.args,
    )
    return [StoreRow(**row) for row in rows]


async def version(database: Reader, store_ids: Sequence[str]) -> str:
    """Name how stores stand, by what is put on record of them: another text once anything of them moved."""
    (row,) = await database.fetch(
        """
        SELECT md5(concat(string_agg(concat_ws(' ', s.id,
            (SELECT max(a.id) FROM audit_log a WHERE a.subject = s.id),
            (SELECT h.subscribed_at FROM store_shops h WHERE h.store_id = s.id),
            (SELECT string_agg(concat_ws(' ', i.state, i.orders, i.changed_at), ',') FROM order_imports i
                WHERE i.store_id = s.id),
            (SELECT concat_ws(' ', l.reason, l.changed_at) FROM store_launches l WHERE l.store_id = s.id),
            (SELECT string_agg(concat_ws(' ', o.operation_id, o.state), ',') FROM agent_operations o
                WHERE o.store_id = s.id AND o.finished_at IS NULL)
        ), ',' ORDER BY s.id))) AS version
        FROM unnest($1::text[]) AS s(id)
        """,
        list(store_ids),
    )
    return str(row["version"])
