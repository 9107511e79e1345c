"""What `tolsey doctor` finds in PostgreSQL: migrations, keys, its clock, and what shops and the processor deliver."""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from datetime import UTC, datetime
from typing import Final

import orjson
import stripe

from tolsey.commands.doctor.findings import Finding, of_clock
from tolsey.settings import Settings
from tolsey.storage.database import Database
from tolsey.storage.errors import StorageError
from tolsey.storage.migrate import migrations
from tolsey.storage.sealing import keys

NAMED: Final = 5
"""How many shops are named; of the others it is said how many there are."""
TAKEN: Final = frozenset({"ok", "created"})
LAST_VERSION: Final = """
SELECT api_version FROM payment_events WHERE api_version IS NOT NULL
ORDER BY received_at DESC LIMIT 1
"""
APPLIED: Final = "SELECT number, name, compatible_from FROM schema_migrations ORDER BY number"
KNOWN: Final = "SELECT to_regclass('schema_migrations') IS NOT NULL AS is_there"
SHOPS: Final = """
SELECT c.store_id, c.shop_domain, s.subscriptions::text AS subscriptions
FROM integration_connections c
LEFT JOIN store_shops s ON s.store_id = c.store_id AND s.shop_domain = c.shop_domain
WHERE c.provider = 'commerce' AND c.status = 'active' AND c.store_id > $1
ORDER BY c.store_id LIMIT 1000
"""


async def examined(url: str, settings: Settings) -> AsyncIterator[Finding]:
    """Say what is found in a database; it is left as it is."""
    database = Database(url)
    try:
        await database.open()
        try:
            async with aclosing(_found(database, settings)) as found:
                async for finding in found:
                    yield finding
        finally:
            await database.close()
    except StorageError as error:
        yield Finding("FAILED", "DATABASE_URL", f"PostgreSQL is out of reach: {error}")


async def _found(database: Database, settings: Settings) -> AsyncGenerator[Finding]:
    before = datetime.now(UTC)
    row = await database.fetchrow("SELECT clock_timestamp() AS at")
    after = datetime.now(UTC)
    if row is None:
        raise LookupError("PostgreSQL answers nothing")
    yield Finding("reached", "DATABASE_URL", "PostgreSQL answers")
    took = (after - before).total_seconds()
    ahead = (before - row["at"]).total_seconds() + took / 2
    yield of_clock("PostgreSQL", ahead, took)
    known = await database.fetchrow(KNOWN)
    if known is None or not known["is_there"]:
        yield Finding("waiting", "migrations", "none is applied: the first start applies all")
        return
    applied = await _of_migrations(database)
    yield applied
    sealed = await database.fetchrow("SELECT to_regclass('encryption_keys') AS known")
    if sealed and sealed["known"] and (trouble := await keys.trouble(database, settings)):
        yield Finding("FAILED", "ENCRYPTION_KEYS", trouble)
    if applied.word != "reached":
        return  # of what stands in tables that may not be there nothing is said
    async for finding in _of_shops(database):
        yield finding
    # The version is the endpoint's and stands in every event of it: the last one says which.
    last = await database.fetchrow(LAST_VERSION)
    if last and last["api_version"] != stripe.api_version:
        what = f"the endpoint sends {last['api_version']}, the package is of {stripe.api_version}"
        yield Finding("FAILED", "PAYMENTS_WEBHOOK_SECRET", f"{what}: make the endpoint anew")


async def _of_migrations(database: Database) -> Finding:
    applied = {row["number"]: row for row in await database.fetch(APPLIED)}
    known = migrations()
    newest = max(one.number for one in known)
    waiting = [one.name for one in known if one.number not in applied]
    asking = [row["name"] for row in applied.values() if row["compatible_from"] > newest]
    newer = [row["name"] for row in applied.values() if row["number"] > newest]
    if asking:
        what = f"the database has {asking[-1]}, which this version cannot work with"
        return Finding("FAILED", "migrations", f"{what}: run a newer one")
    if waiting:
        what = f"{len(waiting)} wait, from {waiting[0]} on: tolsey migrate applies them, or the next start"
        return Finding("waiting", "migrations", what)
    if newer:
        return Finding(
            "reached", "migrations", f"all are applied, and {len(newer)} of a newer version"
        )
    return Finding("reached", "migrations", f"all {len(known)} are applied")


async def _of_shops(database: Database) -> AsyncIterator[Finding]:
    """Say how many connected shops deliver what they should, and which do not."""
    count, refusing, unasked = 0, list[str](), list[str]()
    after = ""
    while rows := await database.fetch(SHOPS, after):
        after = rows[-1]["store_id"]
        for row in rows:
            count += 1
            told = orjson.loads(row["subscriptions"] or "{}")
            refused = sorted(topic for topic, became in told.items() if became not in TAKEN)
            if not told:
                unasked.append(row["shop_domain"])
            elif refused:
                refusing.append(f"{row['shop_domain']} ({', '.join(refused)})")
    if not count:
        return
    name = "subscriptions"
    if not refusing and not unasked:
        yield Finding("reached", name, f"{count} connected shops deliver every topic")
    if refusing:
        yield Finding("refused", name, f"{_some(refusing)} of {count} shops refuse topics")
    if unasked:
        yield Finding(
            "waiting", name, f"{_some(unasked)} of {count} shops were not subscribed to yet"
        )


def _some(names: list[str]) -> str:
    more = len(names) - NAMED
    return ", ".join(names[:NAMED]) + (f" and {more} more" if more > 0 else "")
