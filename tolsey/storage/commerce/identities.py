"""SQL of the move from older global digests of buyers to the pseudonyms of each store (rules/shops#customers)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from tolsey.storage.database import Database, Reader, Transaction
from tolsey.storage.records.commerce.shops import ShopKey


@dataclass(frozen=True, slots=True)
class IdentityColumn:
    """Where a buyer stands under a name of the store's own; `name` is what the outside calls it."""

    name: str
    table: str
    column: str

    @property
    def older(self) -> str:
        """SQL of the rows that hold an older digest, as their index has it."""
        return f"{self.table} WHERE {self.column} NOT LIKE 's1:%'"


COLUMNS: Final = (
    IdentityColumn("CommerceOrder.customerHash", "commerce_orders", "customer_hash"),
    IdentityColumn("CommerceCustomer.emailHash", "commerce_customers", "email_hash"),
    IdentityColumn("AttributionTouch.sessionId", "attribution_touches", "session_id"),
    IdentityColumn("CustomerRedaction.emailHash", "customer_redactions", "email_hash"),
)
REDACTIONS: Final = COLUMNS[-1].table

_EACH: Final = " UNION ALL ".join(
    f"(SELECT {one.column} AS known FROM {one.older} AND store_id = $1 AND {one.column} > $2"  # noqa: S608 - our own names
    f" ORDER BY {one.column} LIMIT $3)"
    for one in COLUMNS
)
DIGESTS: Final = f"""
SELECT DISTINCT known FROM (SELECT known FROM ({_EACH}) AS rows ORDER BY known LIMIT $3) AS part ORDER BY known
"""  # noqa: S608 - as above
"""The digests of a shop's next rows: a buyer's rows go together, however many they are."""

REPEATED: Final = """
DELETE FROM customer_redactions r USING unnest($2::text[], $3::text[]) AS told(known, pseudonym)
WHERE r.store_id = $1 AND r.email_hash = told.known AND EXISTS (
    SELECT FROM customer_redactions s WHERE s.request_id = r.request_id AND s.store_id = r.store_id
      AND s.email_hash = told.pseudonym AND s.subject_key = replace(r.subject_key, told.known, told.pseudonym))
"""
"""What a request says of a customer under both names it says once."""

WAIT_MS: Final = 200
"""How long a row is waited for that another transaction holds: PostgreSQL looks for deadlocks after a second, so
whoever waits for the move is never the one that it ends."""


def _move(one: IdentityColumn) -> str:
    embedded = ""
    if one.table == REDACTIONS:
        embedded = ", subject_key = replace(subject_key, told.known, told.pseudonym)"
    return (
        f"UPDATE {one.table} AS kept SET {one.column} = told.pseudonym{embedded}"  # noqa: S608 - our own names
        " FROM unnest($2::text[], $3::text[]) AS told(known, pseudonym)"
        f" WHERE kept.store_id = $1 AND kept.{one.column} = told.known"
    )


MOVES: Final = tuple(_move(one) for one in COLUMNS)


async def waiting(
    database: Reader, store_ids: Sequence[str] | None = None
) -> dict[ShopKey, Mapping[str, int]]:
    """Count the rows that hold older digests, by the shop's key and the column; of some stores when named."""
    found: dict[ShopKey, dict[str, int]] = {}
    for one in COLUMNS:
        for row in await database.fetch(
            f"SELECT store_id, count(*) AS n FROM {one.older}"  # noqa: S608 - our own names
            " AND ($1::text[] IS NULL OR split_part(store_id, '@', 1) = ANY($1)) GROUP BY store_id",
            None if store_ids is None else list(store_ids),
        ):
            found.setdefault(ShopKey(row["store_id"]), {})[one.name] = row["n"]
    return dict(sorted(found.items()))


def by_column(waiting: Mapping[ShopKey, Mapping[str, int]]) -> dict[str, int]:
    """Add up what is left of each shop, by the columns' names."""
    return {
        one.name: sum(counted.get(one.name, 0) for counted in waiting.values()) for one in COLUMNS
    }


async def any_older(database: Reader, shop_keys: Sequence[str]) -> bool:
    """Tell whether a row of these shops still holds an older digest in place of a pseudonym."""
    asked = " OR ".join(
        f"EXISTS (SELECT FROM {one.older} AND store_id = ANY($1::text[]))" for one in COLUMNS
    )
    row = await database.fetchrow(f"SELECT {asked} AS found", list(shop_keys))
    return bool(row and row["found"])


async def digests(
    database: Database, shop_key: ShopKey, *, after: str, page_size: int
) -> list[str]:
    """List the older digests of a page of a shop's rows, in order, after one."""
    async with database.transaction(readonly=True) as tx:
        # Statistics of before would have a table read whole for its last rows.
        await tx.execute("SET LOCAL enable_seqscan = off")
        rows = await tx.fetch(DIGESTS, shop_key, after, page_size)
    return [row["known"] for row in rows]


async def move(tx: Transaction, shop_key: ShopKey, pseudonyms: Mapping[str, str]) -> int:
    """Put pseudonyms in place of a shop's older digests, in all four columns; answer how many rows it was."""
    await tx.execute(f"SET LOCAL lock_timeout = {WAIT_MS}")
    await tx.execute("SET LOCAL enable_seqscan = off")
    told = (shop_key, list(pseudonyms), list(pseudonyms.values()))
    moved = 0
    for sql in (REPEATED, *MOVES):
        moved += int((await tx.execute(sql, *told)).rsplit(" ", 1)[-1])
    return moved
