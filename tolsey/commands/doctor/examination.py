"""What `tolsey doctor` finds: settings, servers, migrations, keys, clocks, disks and subscriptions of a service."""

import shutil
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from typing import Final
from urllib.parse import urlsplit

import anyio

from tolsey.actors.ports import MEASURED_SINCE, measures_revenue
from tolsey.commands.doctor import database_checks
from tolsey.commands.doctor.findings import Finding, of_clock
from tolsey.commands.doctor.setting_notes import UNREAD, wanted
from tolsey.http.clients import smtp
from tolsey.http.operators.measures.footing import FULL_BYTES, FULL_SHARE
from tolsey.settings import Settings
from tolsey.storage.backing import addresses
from tolsey.storage.cache import Cache, CacheUnavailable
from tolsey.storage.errors import StorageError

CONNECT_SECONDS: Final = 5.0
PORTS: Final = {"http": 80, "https": 443, **smtp.PORTS}
ADDRESSES: Final = (
    "PAYMENTS_API_BASE",
    "LLM_BASE_URL",
    "VECTOR_URL",
    "MAIL_URL",
    "QUEUE_URL",
    "OTEL_EXPORTER_OTLP_ENDPOINT",
    "LAUNCH_THEME_URL",
    "STOREFRONT_URL",
    "ESIGN_API_URL",
    "ESCROW_API_URL",
)
"""Others' services that are connected to once they are set."""
WITH_KEY: Final = {
    "TRAFFIC_URL": "traffic_api_key",
    "SOCIAL_URL": "social_api_key",
    "ADS_URL": "ads_api_key",
    "DATASET_URL": "dataset_token",
}
"""Those that have an address in any case, and are connected to once their key is set."""


def of_settings(settings: Settings) -> list[Finding]:
    """Say of each setting whether it is set, and what is so because of that."""
    given = {name.upper() for name in settings.model_fields_set if getattr(settings, name)}
    return [
        *(
            Finding("set", name, told.does)
            if name in given
            else Finding("MISSING" if needed else "default", name, told.without)
            for name, told, needed in wanted(settings)
        ),
        *(
            Finding("unread", name, "is set, but nothing that is built reads it")
            for name in UNREAD
            if name in given
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
            async for finding in database_checks.examined(database_url, settings):
                yield finding
        if redis_url:
            cache = Cache(redis_url)
            stack.push_async_callback(cache.close)
            for finding in await _of_cache(cache):
                yield finding
    for finding in _of_disk(settings):
        yield finding
    for variable, address in _addresses(settings):
        yield await _of_address(variable, address)


def _addresses(settings: Settings) -> Iterator[tuple[str, str]]:
    """Name the services of others that are set, and where they are."""
    for variable in ADDRESSES:
        if address := getattr(settings, variable.lower()):
            yield variable, address
    for variable, key in WITH_KEY.items():
        if getattr(settings, key):
            yield variable, getattr(settings, variable.lower())


async def _of_cache(cache: Cache) -> list[Finding]:
    before = datetime.now(UTC).timestamp()
    try:
        seconds = await cache.seconds()
    except CacheUnavailable:
        return [Finding("FAILED", "REDIS_URL", "Redis is out of reach")]
    after = datetime.now(UTC).timestamp()
    answers = Finding("reached", "REDIS_URL", "Redis answers")
    return [answers, of_clock("Redis", (before + after) / 2 - seconds, after - before)]


def _of_disk(settings: Settings) -> list[Finding]:
    folder = settings.data_dir.absolute()
    if not folder.exists():
        return []
    disk = shutil.disk_usage(folder)
    left = f"{disk.free >> 20} MB are left on its disk"
    if disk.free < min(FULL_BYTES, FULL_SHARE * disk.total):
        return [Finding("FAILED", "DATA_DIR", f"{left}: make room")]
    return [Finding("reached", "DATA_DIR", left)]


async def _of_address(variable: str, address: str) -> Finding:
    parts = urlsplit(address)
    host, port = parts.hostname or "", parts.port or PORTS[parts.scheme]
    try:
        with anyio.fail_after(CONNECT_SECONDS):
            async with await anyio.connect_tcp(host, port):
                return Finding("reached", variable, f"{host}:{port} takes connections")
    except (OSError, TimeoutError):
        return Finding("FAILED", variable, f"{host}:{port} takes no connection")
