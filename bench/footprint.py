"""Stores that were connected long ago and are asleep, and what a store and a delivery keep on disk.

A part of `bench/shards.py`. The stores are copies of a connected one under keys of their own. Sizes
are those of whole relations with their indexes, divided by rows.
"""

import json
import secrets
from pathlib import Path
from typing import Any

import asyncpg

from bench import measure, orders
from bench.shops_load import shop
from tolsey.runtime.ids import new_id
from tolsey.runtime.turns.mailbox import slot_of
from tolsey.storage.commerce import connections, stores
from tolsey.storage.sealing.sealed import Vault

OF_A_DELIVERY = ("audit_log", "commerce_orders", "commerce_webhook_events", "actor_journal")
OF_A_STORE = {
    "stores": "id",
    "integration_connections": "store_id",
    "store_shops": "store_id",
    "actors": "key",
}
"""The tables with a row for each connected store, and the column that names it."""

SIZE = "SELECT pg_total_relation_size($1::text::regclass)"

Link = Any
"""A connection to the database."""


async def add_sleepers(url: str, data_dir: Path, first: int, number: int) -> dict[str, float]:
    """Add so many connected stores, of shops from a number on; answer the bytes of each by table."""
    vault = Vault.load(data_dir)
    assert vault is not None
    connection = await asyncpg.connect(url)
    try:
        pattern = await connection.fetchrow(
            "SELECT store_id, metadata FROM integration_connections LIMIT 1"
        )
        assert pattern is not None
        metadata = json.loads(pattern["metadata"])
        made = [_sleeper(vault, n, metadata) for n in range(first, first + number)]
        sizes = {}
        for name, named_by in OF_A_STORE.items():
            before = await connection.fetchval(SIZE, name)
            await connection.execute(
                f"INSERT INTO {name} SELECT made.* FROM {name} one, unnest($2::jsonb[]) changed,"  # noqa: S608 - our own names
                f" LATERAL jsonb_populate_record(one, changed) made WHERE one.{named_by} = $1",
                pattern["store_id"],
                [json.dumps({**one, named_by: one["store_id"]}) for one in made],
            )
            await connection.execute(f"ANALYZE {name}")
            sizes[name] = (await connection.fetchval(SIZE, name) - before) / number
        return sizes
    finally:
        await connection.close()


def _sleeper(vault: Vault, number: int, metadata: dict[str, Any]) -> dict[str, Any]:
    id = new_id("store")
    secret = connections.seal_secret(vault, id, orders.SECRET)
    return {
        "store_id": id,
        "slot": slot_of(id),
        "shop_domain": shop(number),
        "sealed_salt": stores.seal_salt(vault, id, secrets.token_bytes(32)),
        "access_token": connections.seal_token(vault, id, secrets.token_urlsafe(24)),
        "metadata": {**metadata, "clientSecretEncrypted": secret},
    }


async def report(url: str, of_a_store: dict[str, float]) -> None:
    """Print how many bytes a delivery and a store take."""
    connection = await asyncpg.connect(url)
    try:
        of_a_delivery = {name: await _each(connection, name) for name in OF_A_DELIVERY}
    finally:
        await connection.close()
    for title, sizes in (("delivered order", of_a_delivery), ("connected store", of_a_store)):
        measure.table(
            f"Bytes on disk of a {title}, with indexes",
            ["table", "bytes"],
            [*sizes.items(), ("all", sum(sizes.values()))],
        )


async def _each(connection: Link, name: str) -> float:
    rows = int(await connection.fetchval(f"SELECT count(*) FROM {name}"))  # noqa: S608 - our own names
    return int(await connection.fetchval(SIZE, name)) / max(rows, 1)
