"""Sealing again, with the first key of the ring, what other keys sealed (rules/service#encryption-keys: `rotate-keys`)."""

from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import KW_ONLY, dataclass
from operator import itemgetter
from typing import Any, Final

from tolsey.storage.commerce import connections
from tolsey.storage.database import Database, Reader, Transaction
from tolsey.storage.runtime import journal_turns
from tolsey.storage.sealing.sealed import VERSION, SealBroken, Vault
from tolsey.storage.selling import listings

PORTION: Final = 100
"""Rows that are sealed again in one transaction; so long it holds up turns of their actors, and what commits with them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SealedColumn:
    """Where sealed texts are kept, and what each is bound to: its row and its tenant."""

    table: str
    column: str
    """As the seal calls it; `metadata.x` is the field of an object."""
    key: tuple[str, ...]
    _: KW_ONLY
    row: Callable[[Mapping[str, Any]], str]
    tenant: str
    kept_as: str = ""
    """Where it stands, if that is not the column that it was sealed for."""
    held_by: str = ""
    """The kind of actor that has it in memory, its key the tenant, and writes it back with its row."""

    @property
    def place(self) -> str:
        """Where it stands."""
        return self.kept_as or self.column

    @property
    def value(self) -> str:
        """SQL of the sealed text."""
        kept, _, field = self.place.partition(".")
        return f"{kept}->>'{field}'" if field else kept

    @property
    def change(self) -> str:
        """SQL that puts another in its place, given as `{}`."""
        kept, _, field = self.place.partition(".")
        changed = f"jsonb_set({kept}, '{{{{{field}}}}}', to_jsonb({{}}::text))" if field else "{}"
        return f"{kept} = {changed}"


def _source(one: Mapping[str, Any]) -> str:
    return listings.sealed_row(one["listing_id"], one["provider"])


STORE: Final = itemgetter("store_id")
CONNECTION: Final = ("store_id", "provider")
COLUMNS: Final = (
    SealedColumn(
        table="stores", column="sealed_salt", key=("id",), row=itemgetter("id"), tenant="id"
    ),
    SealedColumn(
        table="shops_of_stores",
        column="sealed_salt",
        key=("store_id", "shop_key"),
        row=itemgetter("shop_key"),
        tenant="store_id",
        held_by="store",
    ),
    SealedColumn(
        table=connections.TABLE,
        column=connections.TOKEN,
        key=CONNECTION,
        row=STORE,
        tenant="store_id",
        held_by="store",
    ),
    SealedColumn(
        table=connections.TABLE,
        column=connections.SECRET,
        key=CONNECTION,
        row=STORE,
        tenant="store_id",
        held_by="store",
    ),
    SealedColumn(
        table=connections.TABLE,
        column=connections.SECRET,
        key=CONNECTION,
        row=STORE,
        tenant="store_id",
        held_by="store",
        kept_as="metadata.formerClientSecretEncrypted",
    ),
    *(
        SealedColumn(
            table="devstore_pool",
            column=column,
            key=("shop_domain",),
            row=itemgetter("shop_domain"),
            tenant="shop_domain",
        )
        for column in ("client_secret", "access_token")
    ),
    SealedColumn(
        table="revenue_sources",
        column="sealed_secret",
        key=("listing_id", "provider"),
        row=_source,
        tenant="listing_id",
        held_by="listing",
    ),
    SealedColumn(
        table="agent_operations",
        column="intent",
        key=("store_id", "operation_id"),
        row=itemgetter("operation_id"),
        tenant="store_id",
        held_by="store",
    ),
    SealedColumn(
        table="store_launches",
        column="storefront_password",
        key=("store_id",),
        row=STORE,
        tenant="store_id",
        held_by="store",
    ),
    SealedColumn(
        table="outbound_mail",
        column="sealed_content",
        key=("id",),
        row=itemgetter("id"),
        tenant="id",
    ),
    SealedColumn(
        table="status_webhooks",
        column="sealed_secret",
        key=("id",),
        row=itemgetter("id"),
        tenant="id",
    ),
    SealedColumn(
        table="provider_events",
        column="sealed_body",
        key=("provider", "event_id"),
        row=itemgetter("event_id"),
        tenant="provider",
    ),
)
"""Every column that keeps sealed texts. A shop's first salt has the store's row, or none, in `shops_of_stores`."""


ON_THE_WAY: Final = {
    "outbox": "payload::text LIKE $1",
    "dead_letters": "status = 'dead' AND payload::text LIKE $1",
}
"""What holds sealed texts on their way to a column: it is opened when its turn comes, and not sealed anew."""


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
    sealed = f"{VERSION}.{_escaped(key_id)}.%"
    places = [(column.table, f"{column.value} LIKE $1", sealed) for column in COLUMNS]
    places += [(table, holds, f'%"{sealed}') for table, holds in ON_THE_WAY.items()]
    for table, holds, pattern in places:
        sql = f"SELECT 1 FROM {table} WHERE {holds} LIMIT 1"  # noqa: S608 - our names
        if await database.fetchrow(sql, pattern) is not None:
            return True
    return False


async def on_the_way(database: Reader, key_id: str) -> Mapping[str, int]:
    """Count what waits, by table, with something in it that a key sealed; only tables where anything does."""
    counted = {}
    for table, holds in ON_THE_WAY.items():
        sql = f"SELECT count(*) AS n FROM {table} WHERE {holds}"  # noqa: S608 - our names
        row = await database.fetchrow(sql, f'%"{VERSION}.{_escaped(key_id)}.%')
        if row is not None and row["n"]:
            counted[table] = int(row["n"])
    return counted


async def rotate(database: Database, vault: Vault) -> AsyncIterator[Portion]:
    """Seal again what other keys sealed, in portions; stopped, it goes on with what is left.

    What somebody else wrote meanwhile stays as they wrote it, and what actors have in memory they read anew.
    """
    for column in COLUMNS:
        after: tuple[str, ...] | None = None
        while True:
            async with database.transaction() as tx:
                rows = await _next(tx, vault, column, after)
                if column.held_by:
                    tenants = [one[column.tenant] for one in rows]
                    await journal_turns.outdate(tx, column.held_by, tenants, "rotate-keys")
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
