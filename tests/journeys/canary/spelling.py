"""People whom nobody else is named like, how they may be spelled, and everywhere that something is kept."""

import asyncio
import base64
import functools
import gzip
import hashlib
import html
import json
from collections.abc import AsyncIterator, Iterator, Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, quote_plus

import redis.asyncio

from tests.journeys.conftest import SHOP
from tolsey.service import Running
from tolsey.storage.database import Database
from tolsey.storage.embedded import binaries

DIGESTS: Final = (hashlib.sha256, hashlib.sha1, hashlib.md5, hashlib.sha512)

CANARY: Final = {
    "email": "Cnry.Buyer+Tag@Example.org",
    "contact_email": "cnry.contact@example.org",
    "phone": "+15550142357",
    "first_name": "Cnryfirstname",
    "last_name": "Cnrylastname",
    "address1": "17 Cnrystreet",
    "browser_ip": "198.51.100.237",
    "tracking_number": "CNRYTRACK0042",
}
"""A buyer, as far as the platform tells of one."""


def someone(name: str, number: int) -> dict[str, str]:
    """Make up a buyer of whom people also write."""
    return {
        "email": f"{name.title()}.Quill+Tag@{name}.example.org",
        "contact_email": f"{name}.contact@example.org",
        "phone": f"+1555014{number:04}",
        "first_name": f"{name.title()}first",
        "last_name": f"{name.title()}last",
        "address1": f"{number} {name.title()}street",
        "browser_ip": f"198.51.100.{number % 250}",
        "tracking_number": f"{name.upper()}TRACK{number}",
        "words": f"Prefers to be called {name.title()}dear and fears dogs",
    }


def forms(canary: str) -> Iterator[bytes]:
    """Spell a canary every way it may have been written down, in lower case."""
    for text in {
        canary,
        canary.lower(),
        canary.strip().lower(),
        canary.upper(),
        canary.lstrip("+"),
    }:
        raw = text.encode()
        yield raw.lower()
        yield raw.hex().encode()
        yield from (one(text).lower().encode() for one in (quote, quote_plus, html.escape))
        yield json.dumps(text)[1:-1].lower().encode()
        for digest in (one(raw).digest() for one in DIGESTS):
            yield digest.hex().encode()
            yield base64.b64encode(digest).rstrip(b"=").lower()
            yield base64.urlsafe_b64encode(digest).rstrip(b"=").lower()
        for shift in range(3):
            # of what lies at any place of an encoded text, the middle is always spelled like this
            encoded = base64.b64encode(b"\0" * shift + raw)[4:-4]
            if len(encoded) >= 12:
                yield encoded.lower()
                yield base64.urlsafe_b64encode(b"\0" * shift + raw)[4:-4].lower()


@functools.cache
def spellings(*canaries: str) -> frozenset[bytes]:
    """Write canaries down in every form, in lower case."""
    return frozenset(form for canary in canaries for form in forms(canary))


def found_in(kept: bytes, *canaries: str) -> set[str]:
    """Look for canaries however they are spelled; a form at a time, which is far quicker than any of many."""
    lowered = kept.lower()
    return {form.decode() for form in spellings(*canaries) if form in lowered}


def personal(person: Mapping[str, str], body: Mapping[str, Any]) -> bytes:
    """Put a person into every place where the platform puts one."""
    address = {
        "first_name": person["first_name"],
        "last_name": person["last_name"],
        "name": f"{person['first_name']} {person['last_name']}",
        "address1": person["address1"],
        "phone": person["phone"],
        "email": person["email"],
    }
    everywhere = {
        "email": person["email"],
        "contact_email": person["contact_email"],
        "phone": person["phone"],
        "first_name": person["first_name"],
        "last_name": person["last_name"],
        "browser_ip": person["browser_ip"],
        "client_details": {"browser_ip": person["browser_ip"]},
        "customer": {"id": 7, **address, "default_address": address},
        "billing_address": address,
        "shipping_address": address,
        "addresses": [address],
        "default_address": address,
        "customer_email": person["email"],
        "shop_owner": person["last_name"],
        "destination": address,
        "receipt": {"email": person["email"], "tracking": person["tracking_number"]},
        "tracking_number": person["tracking_number"],
        "tracking_numbers": [person["tracking_number"]],
        "tracking_url": f"https://post.example/{person['tracking_number']}",
        "note": f"for {person['first_name']}",
        "landing_site": f"/?email={quote(person['email'])}",
        "fulfillments": [{"destination": address, "email": person["email"]}],
        "unknown_field": address,
        person["email"]: "as a name",
    }
    return json.dumps({**everywhere, **body}).encode()


AT = "2026-07-01T10:00:00Z"
DELIVERIES: list[tuple[str, dict[str, Any]]] = [
    *(
        (topic, {"id": 1, "currency": "USD", "total_price": "1.00", "updated_at": AT})
        for topic in (
            *("orders/create", "orders/updated", "orders/paid", "orders/cancelled"),
            *("orders/fulfilled", "orders/partially_fulfilled"),
        )
    ),
    ("orders/edited", {"order_edit": {"id": 1, "order_id": 1}}),
    ("orders/delete", {"id": 2}),
    ("refunds/create", {"id": 3, "order_id": 1, "transactions": []}),
    ("fulfillments/create", {"id": 4, "order_id": 1, "status": "success"}),
    ("fulfillments/update", {"id": 4, "order_id": 1, "status": "success"}),
    ("products/create", {"id": 5, "title": "A thing", "variants": []}),
    ("products/update", {"id": 5, "title": "A thing", "variants": []}),
    ("products/delete", {"id": 14}),
    ("inventory_levels/update", {"inventory_item_id": 6, "location_id": 7, "available": 1}),
    ("customers/create", {"id": 7, "updated_at": AT}),
    ("customers/update", {"id": 7, "updated_at": AT}),
    ("customers/delete", {"id": 8}),
    ("shop/update", {"id": 9, "name": "A shop", "currency": "USD"}),
    ("domains/create", {"id": 10, "host": "shop.example"}),
    ("themes/publish", {"id": 11, "name": "Dawn", "role": "main"}),
    ("bulk_operations/finish", {"admin_graphql_api_id": "gid://shopify/BulkOperation/1"}),
    ("customers/redact", {"shop_id": 9, "shop_domain": SHOP}),
    ("customers/data_request", {"shop_id": 9, "shop_domain": SHOP}),
    ("checkouts/create", {"id": 12}),
    ("orders/create", {"id": "not a number", "currency": "no currency"}),  # unreadable
    ("app/scopes_update", {"id": 13, "current": ["read_orders"]}),
]


BY_COLUMN: Final = """
SELECT said.key AS name, string_agg(said.value, E'\n') AS told
FROM {table} AS row, jsonb_each_text(to_jsonb(row)) AS said WHERE said.value IS NOT NULL GROUP BY 1
"""


async def columns(database: Database) -> AsyncIterator[tuple[str, bytes]]:
    """Read every column of every table, bytes as hexadecimal digits."""
    tables = await database.fetch(
        "SELECT c.oid::regclass::text AS name FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace"
        " WHERE c.relkind IN ('r', 'p', 'm') AND n.nspname NOT IN ('pg_catalog', 'information_schema', 'pg_toast')"
    )
    for table in sorted(row["name"] for row in tables):
        for row in await database.fetch(BY_COLUMN.format(table=table)):
            yield f"table {table}.{row['name']}", row["told"].encode()


async def entries(url: str) -> AsyncIterator[tuple[str, bytes]]:
    """Read every key of Redis, and what stands there."""
    client: Any = redis.asyncio.from_url(url)
    async for key in client.scan_iter():
        match await client.type(key):
            case b"string":
                told = await client.get(key)
            case b"hash":
                told = await client.hgetall(key)
            case b"list":
                told = await client.lrange(key, 0, -1)
            case b"set":
                told = await client.smembers(key)
            case b"zset":
                told = await client.zrange(key, 0, -1)
            case b"stream":
                told = await client.xrange(key)
            case kind:
                raise AssertionError(kind)
        yield (
            f"redis {key.decode()}",
            key + b" " + (told if isinstance(told, bytes) else repr(told).encode()),
        )
    await client.aclose()


def files(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Read every file below a folder, its name too, and what is packed in it."""
    for file in sorted(folder.rglob("*")):
        if file.is_file():
            raw = file.read_bytes()
            packed = gzip.decompress(raw) if raw.startswith(b"\x1f\x8b") else b""
            yield f"file {file.relative_to(folder)}", str(file).encode() + raw + packed


async def dump(url: str) -> bytes:
    """Dump a database as an operator's backup does."""
    found = binaries.postgres(None).programs / "pg_dump"
    made = await asyncio.create_subprocess_exec(
        found, "--dbname", url, stdout=asyncio.subprocess.PIPE
    )
    told, _ = await made.communicate()
    assert made.returncode == 0
    return told


async def everything(
    live: Running, database_url: str, log: str
) -> AsyncIterator[tuple[str, bytes]]:
    """Read all that the service keeps anywhere, and what it logged."""
    async for found in columns(live.service.database):
        yield found
    settings = live.service.settings
    assert settings.redis_url is not None
    async for found in entries(settings.redis_url):
        yield found
    for found in files(settings.data_dir):
        yield found
    yield "log", log.encode()
    yield "dump", await dump(database_url)


async def pass_time(database: Database, days: int) -> None:
    """Let everything that was ever written down have happened so many days earlier."""
    rows = await database.fetch(
        "SELECT c.relname AS name, a.attname AS column FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid"
        " WHERE c.relkind = 'r' AND c.relnamespace = 'public'::regnamespace AND a.attgenerated = ''"
        " AND a.atttypid = 'timestamptz'::regtype AND NOT a.attisdropped"
        " AND NOT EXISTS (SELECT FROM pg_trigger t JOIN pg_proc p ON p.oid = t.tgfoid"
        " WHERE t.tgrelid = c.oid AND p.proname = 'refuse_change')"  # evidence, which nobody changes
    )
    moments: dict[str, list[str]] = {}
    for row in rows:
        moments.setdefault(row["name"], []).append(row["column"])
    for table, names in moments.items():
        earlier = ", ".join(f"{name} = {name} - interval '{days} days'" for name in names)
        await database.execute(f"UPDATE {table} SET {earlier}")  # noqa: S608 - names of our own tables


async def places(
    live: Running, database_url: str, log: str, *people: Mapping[str, str]
) -> list[dict[str, set[str]]]:
    """Tell where each of some people is found, however they are spelled, and what of them."""
    found: list[dict[str, set[str]]] = [{} for _ in people]
    async for place, said in everything(live, database_url, log):
        for person, where in zip(people, found, strict=True):
            if hits := found_in(said, *person.values()):
                where[place] = hits
    return found
