"""Sealing again, with the first key of the ring, what other keys sealed (rules/service#encryption-keys: `rotate-keys`)."""

from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from tolsey.storage.commerce import connections
from tolsey.storage.database import Database, Reader, Transaction
from tolsey.storage.sealing.sealed import VERSION, SealBroken, Vault
from tolsey.storage.selling import listings

PORTION: Final = 500
"""Rows that are sealed again in one transaction."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SealedColumn:
    """Where sealed texts are kept, and what each is bound to: its row and its tenant."""

    table: str
    column: str
    """As the seal calls it."""
    key: tuple[str, ...]
    row: Callable[[Mapping[str, Any]], str]
    tenant: str
    value: str
    """SQL of the sealed text."""
    change: str
    """SQL that puts another in its place, given as `{}`."""


def _plain(
    table: str, column: str, *key: str, row: Callable[[Mapping[str, Any]], str], tenant: str
) -> SealedColumn:
    return SealedColumn(
        table=table,
        column=column,
        key=key,
        row=row,
        tenant=tenant,
        value=column,
        change=f"{column} = {{}}",
    )


def _in_metadata(table: str, column: str, *key: str, tenant: str) -> SealedColumn:
    field = column.removeprefix("metadata.")
    return SealedColumn(
        table=table,
        column=column,
        key=key,
        row=lambda one: str(one[key[0]]),
        tenant=tenant,
        value=f"metadata->>'{field}'",
        change=f"metadata = jsonb_set(metadata, '{{{{{field}}}}}', to_jsonb({{}}::text))",
    )


COLUMNS: Final = (
    _plain(
        *("stores", "sealed_salt", "id"),
        row=lambda one: str(one["id"]),
        tenant="id",
    ),
    _plain(
        *("shops_of_stores", "sealed_salt", "store_id", "shop_key"),
        row=lambda one: str(one["shop_key"]),
        tenant="store_id",
    ),
    _plain(
        *(connections.TABLE, connections.TOKEN, "store_id", "provider"),
        row=lambda one: str(one["store_id"]),
        tenant="store_id",
    ),
    _in_metadata(
        *(connections.TABLE, connections.SECRET, "store_id", "provider"), tenant="store_id"
    ),
    _plain(
        *("revenue_sources", "sealed_secret", "listing_id", "provider"),
        row=lambda one: listings.sealed_row(one["listing_id"], one["provider"]),
        tenant="listing_id",
    ),
    _plain(
        *("agent_operations", "intent", "store_id", "operation_id"),
        row=lambda one: str(one["operation_id"]),
        tenant="store_id",
    ),
    _plain(
        *("outbound_mail", "sealed_content", "id"),
        row=lambda one: str(one["id"]),
        tenant="id",
    ),
)
"""Every column that keeps sealed texts. A shop's first salt has the store's row, or none, in `shops_of_stores`."""


@dataclass(frozen=True, slots=True)
class Portion:
    """What became of a portion of rows: how many are sealed anew, and how many no key at hand opens."""

    column: SealedColumn
    sealed: int
    unopened: int


async def waiting(database: Reader, key_id: str, column: SealedColumn) -> int:
    """Count the texts of a column that another key than this sealed."""
    row = await database.fetchrow(
        f"SELECT count(*) AS n FROM {column.table} WHERE {_others(column, 1)}",  # noqa: S608 - our names
        key_id,
    )
    return int(row["n"]) if row else 0


async def is_in_use(database: Reader, key_id: str) -> bool:
    """Tell whether anything that is kept was sealed with a key."""
    for column in COLUMNS:
        found = await database.fetchrow(
            f"SELECT 1 FROM {column.table} WHERE {column.value} LIKE $1 LIMIT 1",  # noqa: S608 - our names
            f"{VERSION}.{_escaped(key_id)}.%",
        )
        if found is not None:
            return True
    return False


async def rotate(database: Database, vault: Vault) -> AsyncIterator[Portion]:
    """Seal again what other keys sealed, in portions; stopped, it goes on with what is left.

    What somebody else wrote meanwhile stays as they wrote it.
    """
    for column in COLUMNS:
        after: tuple[str, ...] | None = None
        while True:
            async with database.transaction() as tx:
                rows = await _next(tx, vault, column, after)
                done = [await _seal_again(tx, vault, column, one) for one in rows]
            if not rows:
                break
            after = tuple(rows[-1][name] for name in column.key)
            yield Portion(column, sum(done), len(done) - sum(done))


async def _next(
    tx: Transaction, vault: Vault, column: SealedColumn, after: tuple[str, ...] | None
) -> list[Any]:
    keys = ", ".join(column.key)
    places = ", ".join(f"${at}" for at in range(3, 3 + len(column.key)))
    beyond = f"AND ({keys}) > ({places})" if after else ""
    tenant = "" if column.tenant in column.key else f", {column.tenant}"
    return await tx.fetch(
        f"""
        SELECT {keys}{tenant}, {column.value} AS sealed FROM {column.table}
        WHERE {_others(column, 1)} {beyond} ORDER BY {keys} LIMIT $2
        """,  # noqa: S608 - names of our own tables
        vault.key_ids[0],
        PORTION,
        *(after or ()),
    )


async def _seal_again(tx: Transaction, vault: Vault, column: SealedColumn, row: Any) -> bool:
    place = {
        "table": column.table,
        "column": column.column,
        "row": column.row(row),
        "tenant": row[column.tenant],
    }
    try:
        again = vault.seal(vault.open(row["sealed"], **place), **place)
    except SealBroken:
        return False
    own = " AND ".join(f"{name} = ${at}" for at, name in enumerate(column.key, 3))
    await tx.execute(
        f"UPDATE {column.table} SET {column.change.format('$1')} WHERE {column.value} = $2 AND {own}",  # noqa: S608 - as above
        again,
        row["sealed"],
        *(row[name] for name in column.key),
    )
    return True


def _others(column: SealedColumn, place: int) -> str:
    """Say that a text was sealed, and with another key than the one at this place of the arguments."""
    value = column.value
    return f"{value} LIKE '{VERSION}.%' AND split_part({value}, '.', 2) <> ${place}"


def _escaped(key_id: str) -> str:
    return key_id.replace("_", r"\_")
