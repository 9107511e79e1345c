"""How fast buyers are moved from the older global digest to the pseudonyms of their store, and how that grows.

Ours is the service's own move (`tolsey rehash-identities`): pages of digests, the HMAC in the process, so that no
key goes to PostgreSQL, all four columns of a page in one transaction, kept sums with it by their triggers. Beside it
a plain UPDATE for each column that computes the same HMAC with PostgreSQL's sha256(), in one transaction, with
the key in the statement, under the same triggers; and how long its longest transaction holds its rows. Each run has a copy of the same database.
"""

import argparse
import asyncio
import secrets
import statistics
from collections.abc import Iterator
from contextlib import aclosing, contextmanager
from time import perf_counter
from urllib.parse import urlsplit, urlunsplit

import asyncpg

from bench import measure
from tolsey.actors.store.deliveries.identity import LABEL, PURPOSE
from tolsey.actors.store.rehashing.effects import PAGE_SIZE, Rehashing
from tolsey.storage.commerce import identities, stores
from tolsey.storage.commerce.stores import seal_salt
from tolsey.storage.database import Database
from tolsey.storage.migrate import migrate
from tolsey.storage.records.commerce.shops import ShopKey
from tolsey.storage.sealing.sealed import Vault

STORE = ShopKey("store_bench")
SIZES = (10_000, 40_000)
ROUNDS = 3
BLOCK_BYTES = 64
"""Of SHA-256 (FIPS 180-4); an HMAC pads its key to it (RFC 2104, section 2)."""
PLANT = """
INSERT INTO commerce_orders (store_id, order_id, updated_at, test, metadata, customer_hash, processed_at,
    currency, total_minor, current_total_minor, financial_status)
SELECT $1, n, now(), false, '{}', encode(sha256(('buyer' || n % ($2 / 3 + 1))::bytea), 'hex'),
    now() - n % 365 * interval '1 day', 'USD', 100, 100, 'paid'
FROM generate_series(1, $2) n
"""
CUSTOMERS = """
INSERT INTO commerce_customers (store_id, customer_id, updated_at, email_hash)
SELECT $1, row_number() OVER (), now(), customer_hash FROM (SELECT DISTINCT customer_hash FROM commerce_orders) b
"""
TOUCHES = """
INSERT INTO attribution_touches (store_id, order_id, updated_at, session_id)
SELECT store_id, order_id, updated_at, customer_hash FROM commerce_orders WHERE order_id % 4 = 0
"""


@contextmanager
def copy_of(template: str) -> Iterator[str]:
    """Give a copy of a database that nobody is connected to, dropped at the end."""
    parts = urlsplit(template)
    name = f"tolsey_bench_{secrets.token_hex(4)}"
    administrator = urlunsplit(parts._replace(path="/postgres"))

    async def run(statement: str) -> None:
        connection = await asyncpg.connect(administrator)
        try:
            await connection.execute(statement)
        finally:
            await connection.close()

    measure.in_thread(run(f"CREATE DATABASE {name} TEMPLATE {parts.path[1:]}"))
    try:
        yield urlunsplit(parts._replace(path=f"/{name}"))
    finally:
        measure.in_thread(run(f"DROP DATABASE {name} WITH (FORCE)"))


async def plant(database_url: str, vault: Vault, orders: int) -> int:
    """Fill a database with a store's rows of before; answer how many hold an older digest."""
    await migrate(database_url)
    database = Database(database_url)
    await database.open()
    try:
        async with database.transaction() as tx:
            await tx.execute("SET LOCAL statement_timeout = 0")
            await tx.execute(
                "INSERT INTO organizations (id, name, created_at) VALUES ('org_b', 'B', now())"
            )
            await tx.execute(
                "INSERT INTO stores (id, organization_id, name, sealed_salt, created_at)"
                " VALUES ($1, 'org_b', 'B', $2, now())",
                STORE,
                seal_salt(vault, STORE, b"s" * 32),
            )
            for sql, args in ((PLANT, (STORE, orders)), (CUSTOMERS, (STORE,)), (TOUCHES, ())):
                await tx.execute(sql, *args, timeout=3600)
        for one in identities.COLUMNS:
            await database.execute(f"VACUUM ANALYZE {one.table}")
        waiting = await identities.waiting(database)
        return sum(identities.by_column(waiting).values())
    finally:
        await database.close()


async def ours(database_url: str, vault: Vault) -> tuple[float, float]:
    """Move everything as the command does; answer the seconds, and those of the longest page."""
    database = Database(database_url)
    await database.open()
    try:
        began = at = perf_counter()
        longest = 0.0
        async with aclosing(Rehashing(database, vault).of_shop(STORE, PAGE_SIZE)) as pages:
            async for _ in pages:
                longest = max(longest, perf_counter() - at)
                at = perf_counter()
        took = perf_counter() - began
        assert not await identities.waiting(database)
        return took, longest
    finally:
        await database.close()


def hmac_in_sql(key: bytes, column: str) -> str:
    """Write the HMAC of RFC 2104 by PostgreSQL's sha256()."""
    padded = key.ljust(BLOCK_BYTES, b"\0")
    inner, outer = (bytes(one ^ pad for one in padded).hex() for pad in (0x36, 0x5C))
    text = f"convert_to('{LABEL.decode()}' || {column}, 'UTF8')"
    return f"'s1:' || encode(sha256('\\x{outer}'::bytea || sha256('\\x{inner}'::bytea || {text})), 'hex')"


async def plain(database_url: str, vault: Vault) -> tuple[float, float]:
    """Update each column by one statement; answer the seconds, all of them in one transaction."""
    database = Database(database_url)
    await database.open()
    try:
        salt = await stores.salt_of_key(database, vault, STORE)
        assert salt is not None
        key = vault.subkey(salt, PURPOSE)
        began = perf_counter()
        async with database.transaction() as tx:
            await tx.execute("SET LOCAL statement_timeout = 0")
            for one in identities.COLUMNS:
                await tx.execute(
                    f"UPDATE {one.table} SET {one.column} = {hmac_in_sql(key, one.column)}"  # noqa: S608 - our own names
                    f" WHERE store_id = $1 AND {one.column} NOT LIKE 's1:%'",
                    STORE,
                    timeout=3600,
                )
        took = perf_counter() - began
        assert not await identities.waiting(database)
        return took, took
    finally:
        await database.close()


def names_of(database_url: str) -> str:
    """Digest what a run left, so that both are seen to leave the same."""

    async def read() -> str:
        connection = await asyncpg.connect(database_url)
        try:
            found: str = await connection.fetchval(
                "SELECT md5(string_agg(customer_hash, ',' ORDER BY order_id)) FROM commerce_orders"
            )
            return found
        finally:
            await connection.close()

    return measure.in_thread(read())  # type: ignore[no-any-return]  # what the coroutine answers


def measured(server_url: str, orders: int, rounds: int) -> list[object]:
    """Let both take turns on copies of one database; answer a line of the table."""
    vault = Vault.from_keys("t1:" + "A" * 43)
    contestants = {"ours": ours, "plain": plain}
    seconds: dict[str, list[float]] = {name: [] for name in contestants}
    held: dict[str, list[float]] = {name: [] for name in contestants}
    left: set[str] = set()
    with measure.database(server_url) as template:
        rows: int = measure.in_thread(plant(template, vault, orders))
        measure.say(f"{rows:,} rows are planted")
        for number in range(rounds):
            for name in contestants if number % 2 == 0 else reversed(contestants):
                with copy_of(template) as url:
                    took, longest = asyncio.run(contestants[name](url, vault))
                    left.add(names_of(url))
                seconds[name].append(took)
                held[name].append(longest)
                measure.say(f"round {number + 1} of {rounds}: {name}: {rows / took:,.0f} rows/s")
    assert len(left) == 1, "the two leave different names"
    speed = {name: rows / statistics.median(took) for name, took in seconds.items()}
    holds = {name: statistics.median(longest) * 1000 for name, longest in held.items()}
    return [
        f"{rows:,}",
        *(speed["ours"], speed["plain"], speed["ours"] / speed["plain"]),
        *(holds["ours"], holds["plain"]),
    ]


def main() -> None:
    asked = measure.arguments(__doc__ or "")
    asked.add_argument(
        "--orders", type=int, nargs="+", default=None, help="orders of the store, step by step"
    )
    given: argparse.Namespace = asked.parse_args()
    sizes = given.orders or (SIZES[:1] if given.quick else SIZES)
    measure.machine("asyncio")
    with measure.servers() as (server_url, _):
        lines = [measured(server_url, one, 1 if given.quick else ROUNDS) for one in sizes]
    measure.table(
        f"older identities moved (medians of {1 if given.quick else ROUNDS})",
        [
            "rows",
            "ours rows/s",
            "UPDATE rows/s",
            "ratio",
            "ours holds rows ms",
            "UPDATE holds rows ms",
        ],
        lines,
    )


if __name__ == "__main__":
    main()
