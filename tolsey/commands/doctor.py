"""What `tolsey doctor` finds: settings, connections and keys of a service before it runs."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack
from typing import Literal, NamedTuple, TypeAlias
from urllib.parse import urlsplit

import anyio
import stripe

from tolsey.actors.ports import MEASURED_SINCE, measures_revenue
from tolsey.http.clients import smtp
from tolsey.settings import Settings
from tolsey.storage.backing import addresses
from tolsey.storage.cache import Cache
from tolsey.storage.database import Database
from tolsey.storage.errors import StorageError
from tolsey.storage.sealing import keys

CONNECT_SECONDS = 5.0
LAST_VERSION = """
    SELECT api_version FROM payment_events WHERE api_version IS NOT NULL
    ORDER BY received_at DESC LIMIT 1
"""
PORTS = {"http": 80, "https": 443, **smtp.PORTS}

Word: TypeAlias = Literal["set", "default", "unread", "reached", "MISSING", "FAILED"]


class Finding(NamedTuple):
    """One line of what was found."""

    word: Word
    name: str
    what: str

    @property
    def is_bad(self) -> bool:
        """Whether something that is needed is not there."""
        return self.word.isupper()


NEEDED: Mapping[str, tuple[str, str]] = {
    "CRON_SECRET": ("opens /api/cron/*", "/api/cron/* answers 503 without it"),
    "PAYMENTS_SECRET_KEY": ("opens payment routes", "payment routes answer 503 without it"),
    "PAYMENTS_WEBHOOK_SECRET": (
        "verifies /api/webhooks/payments",
        "/api/webhooks/payments answers 503 without it",
    ),
    **{
        f"PAYMENTS_PRICE_{plan}_{cadence}": (
            "is sold at a checkout",
            "a checkout of it answers 503 without it",
        )
        for plan in ("PRO", "MAX5", "MAX20")
        for cadence in ("MONTHLY", "YEARLY")
    },
    "LLM_BASE_URL": ("answers /api/chat", "/api/chat answers 503 without it"),
    "LLM_MODEL": ("answers /api/chat", "/api/chat answers 503 without it"),
}
"""What each setting does, and what is so without it."""

OPTIONAL: Mapping[str, tuple[str, str]] = {
    "EMBEDDING_MODEL": (
        "finds what stores remember by its meaning",
        "memory is found by its words alone without it",
    ),
    "DATABASE_URL": ("the database", "an embedded PostgreSQL under DATA_DIR"),
    "REDIS_URL": ("the cache", "an embedded Redis under DATA_DIR"),
    "OBJECTS_URL": ("where files are", "files are in a folder under DATA_DIR"),
    "ENCRYPTION_KEYS": ("seal secrets", "made once and kept in DATA_DIR (loopback only)"),
    "TRUSTED_PROXIES": (
        "their x-forwarded-for is believed",
        "behind a proxy all visitors count as one, unless BASE_URL is loopback",
    ),
    **{
        name: (
            f"closes deals by /api/webhooks/{kind}",
            f"/api/webhooks/{kind} answers 503 without it",
        )
        for kind, names in (
            ("esign", ("ESIGN_WEBHOOK_SECRET", "ESIGN_API_URL", "ESIGN_API_KEY")),
            ("escrow", ("ESCROW_API_URL", "ESCROW_API_LOGIN", "ESCROW_API_KEY")),
        )
        for name in names
    },
    "QUEUE_TOKEN": ("queues scans of storefronts", "a tick scans three of them itself"),
    "TRAFFIC_API_KEY": ("reads visits of storefronts", "scans name the variable instead"),
    "SOCIAL_API_KEY": ("reads their followers", "scans name the variable instead"),
    "ADS_API_KEY": ("reads their advertisements", "scans name the variable instead"),
    "DATASET_TOKEN": ("reads the external data set", "none is read"),
    "VECTOR_URL": (
        "counts and purges vectors; the chat reads those in our database only",
        "pgvector in our own database, the only one that the chat reads",
    ),
}

UNREAD = ("COMMERCE_CLIENT_ID", "COMMERCE_CLIENT_SECRET", "OPERATOR_EMAIL")
"""Settings of what is not built yet: setting them changes nothing."""


def of_settings(settings: Settings) -> list[Finding]:
    """Say of each setting whether it is set, and what is so because of that."""
    needed, optional = dict(NEEDED), dict(OPTIONAL)
    metrics = ("opens /metrics", "/metrics answers 503 without it")
    if settings.is_local:
        optional["METRICS_TOKEN"] = metrics[0], "/metrics answers this machine only"
    else:
        needed["METRICS_TOKEN"] = metrics
    mail = "sends mail", "mails are kept and sent to no one"
    if settings.is_local:
        optional["MAIL_URL"] = mail[0], f"{mail[1]}: /mail shows them"
    else:
        needed["MAIL_URL"] = mail[0], f"{mail[1]}; invitations and new passwords answer 503"
    if settings.mail_url:
        needed["MAIL_FROM"] = "names the sender of mails", "mails are kept and sent to no one"
    if settings.vector_url:
        needed["VECTOR_TOKEN"] = "goes with VECTOR_URL", "uses of VECTOR_URL answer 503 without it"
    given = {name.upper() for name, value in settings if value}
    words: Sequence[tuple[Word, Mapping[str, tuple[str, str]]]]
    words = (("default", optional), ("MISSING", needed))
    return [
        *(
            Finding("set", variable, texts[0])
            if variable in given
            else Finding(unset, variable, texts[1])
            for unset, described in words
            for variable, texts in described.items()
        ),
        *(
            Finding("unread", variable, "is set, but nothing that is built reads it")
            for variable in UNREAD
            if variable in given
        ),
        *_of_api_version(settings.commerce_api_version),
    ]


def _of_api_version(version: str) -> Sequence[Finding]:
    """Say that an API version is too old for what is built, if it is."""
    # Orders have the fields that revenue is measured with from then on (rules/shops#api-version).
    if measures_revenue(version):
        return ()
    what = f"{version} is too old: verification answers 422 api_version_too_old before {MEASURED_SINCE}"
    return (Finding("FAILED", "COMMERCE_API_VERSION", what),)


async def of_connections(settings: Settings) -> AsyncIterator[Finding]:
    """Connect to all that is set, and to embedded servers that were made; nothing is changed there.

    Other people's services are sent nothing: that they take a connection is all that is asked.
    """
    async with AsyncExitStack() as stack:
        database_url, redis_url = settings.database_url, settings.redis_url
        if (settings.data_dir / "servers").is_dir():
            try:
                database_url, redis_url = await stack.enter_async_context(addresses(settings))
            except StorageError as error:
                yield Finding("FAILED", "DATA_DIR", str(error))
        if database_url:
            yield await _of_database(database_url, settings)
            async for finding in _of_endpoint(database_url):
                yield finding
        if redis_url:
            cache = Cache(redis_url)
            stack.push_async_callback(cache.close)
            answers = await cache.ping()
            yield Finding(
                "reached" if answers else "FAILED",
                "REDIS_URL",
                "Redis answers" if answers else "Redis is out of reach",
            )
    for variable in ("PAYMENTS_API_BASE", "LLM_BASE_URL", "VECTOR_URL", "MAIL_URL"):
        address = getattr(settings, variable.lower())
        if address:
            yield await _of_address(variable, address)


async def _of_database(url: str, settings: Settings) -> Finding:
    database = Database(url)
    try:
        await database.open()
        try:
            sealed = await database.fetchrow("SELECT to_regclass('encryption_keys') AS known")
            trouble = await keys.trouble(database, settings) if sealed and sealed["known"] else ""
        finally:
            await database.close()
    except StorageError as error:
        return Finding("FAILED", "DATABASE_URL", f"PostgreSQL is out of reach: {error}")
    if trouble:
        return Finding("FAILED", "ENCRYPTION_KEYS", trouble)
    return Finding("reached", "DATABASE_URL", "PostgreSQL answers")


async def _of_endpoint(url: str) -> AsyncIterator[Finding]:
    """Say that the payment processor's endpoint speaks another version than the package, if it does.

    The version is the endpoint's and stands in every event of it: the last one says which.
    """
    database = Database(url)
    try:
        await database.open()
        try:
            kept = await database.fetchrow("SELECT to_regclass('payment_events') AS known")
            last = kept and kept["known"] and await database.fetchrow(LAST_VERSION)
        finally:
            await database.close()
    except StorageError:
        return  # which is told already
    if last and last["api_version"] != stripe.api_version:
        what = f"the endpoint sends {last['api_version']}, the package is of {stripe.api_version}"
        yield Finding("FAILED", "PAYMENTS_WEBHOOK_SECRET", f"{what}: make the endpoint anew")


async def _of_address(variable: str, address: str) -> Finding:
    parts = urlsplit(address)
    host, port = parts.hostname or "", parts.port or PORTS[parts.scheme]
    try:
        with anyio.fail_after(CONNECT_SECONDS):
            async with await anyio.connect_tcp(host, port):
                return Finding("reached", variable, f"{host}:{port} takes connections")
    except (OSError, TimeoutError):
        return Finding("FAILED", variable, f"{host}:{port} takes no connection")
