"""`tolsey doctor` speaks of every setting, and names what was broken on purpose."""

import re
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import stripe

from tests.http.people import settings_of
from tolsey.commands.doctor import examination
from tolsey.commands.doctor.findings import Finding, of_clock
from tolsey.commands.doctor.setting_notes import BY_ANOTHER, NEEDED, OPTIONAL, UNREAD
from tolsey.settings import Settings
from tolsey.storage.cache import Cache
from tolsey.storage.database import Database
from tolsey.storage.migrate import migrations

CODE = Path(examination.__file__).parents[2]
ELSEWHERE = ("settings.py", "commands/doctor/examination.py", "commands/doctor/setting_notes.py")
FAMILIES = {
    "payment_prices": "PAYMENTS_PRICE_",
    "sold_prices": "PAYMENTS_PRICE_",
    "believed_proxies": "TRUSTED_PROXIES",
}
"""Fields that are read through a property of `Settings`."""


def variables() -> set[str]:
    """Name every variable of the service."""
    return {name.upper() for name in Settings.model_fields}


def test_something_is_said_of_every_setting_and_of_no_other() -> None:
    spoken = [*NEEDED, *OPTIONAL, *UNREAD, *BY_ANOTHER]
    assert len(spoken) == len(set(spoken))
    assert set(spoken) == variables()
    for local in ("http://127.0.0.1:8000", "https://tolsey.example"):
        settings = settings_of(base_url=local, encryption_keys="k1:" + "A" * 43)
        said = [one.name for one in examination.of_settings(settings)]
        assert {*said, *UNREAD} == variables(), local


def test_what_is_said_to_be_unread_is_read_nowhere_and_the_rest_is() -> None:
    text = "\n".join(
        path.read_text()
        for path in CODE.rglob("*.py")
        if str(path.relative_to(CODE)) not in ELSEWHERE
    )
    read = set(re.findall(r"(?:settings|read)\.(\w+)", text))
    named = set(re.findall(r'"([A-Z0-9_]+)"', text))
    for name in variables():
        through = [place for place, of in FAMILIES.items() if name.startswith(of)]
        is_read = (
            name.lower() in read or name in named or any(f".{place}" in text for place in through)
        )
        assert is_read == (name not in UNREAD), name


def test_what_is_set_is_told_apart_from_what_is_so_by_default() -> None:
    plain = {one.name: one.word for one in examination.of_settings(settings_of())}
    given = {
        one.name: one.word for one in examination.of_settings(settings_of(scan_pace_seconds=7.0))
    }
    assert (plain["SCAN_PACE_SECONDS"], given["SCAN_PACE_SECONDS"]) == ("default", "set")


@pytest.mark.parametrize(
    ("ahead", "bad", "said"),
    [
        (60.0, True, "60 seconds ahead of"),
        (-60.0, True, "60 seconds behind"),
        (0.4, False, "is that"),
    ],
)
def test_a_clock_that_is_off_is_named(ahead: float, bad: bool, said: str) -> None:
    found = of_clock("PostgreSQL", ahead, 0.01)
    assert (found.is_bad, found.name) == (bad, "clock")
    assert said in found.what


async def found(**given: Any) -> dict[str, Finding]:
    """Say what the doctor finds; of a clock what the last server says."""
    return {one.name: one async for one in examination.of_connections(settings_of(**given))}


async def test_a_healthy_service_is_told_to_be_one(
    database_url: str, redis_url: str, database: Database, tmp_path: Path
) -> None:
    del database
    said = await found(database_url=database_url, redis_url=redis_url, data_dir=tmp_path)
    assert not any(one.is_bad for one in said.values()), said
    assert said["migrations"].what == f"all {len(migrations())} are applied"
    assert {"DATABASE_URL", "REDIS_URL", "clock", "DATA_DIR"} <= said.keys()
    assert "subscriptions" not in said, "no shop is connected"


async def test_migrations_that_wait_or_ask_for_more_are_named(
    database: Database, database_url: str
) -> None:
    newest = migrations()[-1]
    await database.execute("DELETE FROM schema_migrations WHERE number = $1", newest.number)
    said = await found(database_url=database_url)
    assert said["migrations"].word == "waiting"
    assert newest.name in said["migrations"].what
    await database.execute(
        "INSERT INTO schema_migrations (number, name, compatible_from)"
        " VALUES ($1, $2, 20), (9002, '9002_narrow', 9001)",
        newest.number,
        newest.name,
    )
    said = await found(database_url=database_url)
    assert said["migrations"].is_bad
    assert "9002_narrow" in said["migrations"].what
    assert (await found(database_url=database_url))["DATABASE_URL"].word == "reached"


async def test_a_database_without_a_table_of_ours_is_no_fault(empty_database_url: str) -> None:
    said = await found(database_url=empty_database_url)
    assert said["migrations"].word == "waiting"
    assert not any(one.is_bad for one in said.values())


async def test_shops_that_refuse_topics_or_were_not_asked_are_named(
    database: Database, database_url: str
) -> None:
    await database.execute(
        """
        INSERT INTO organizations (id, name) VALUES ('org_1', 'One');
        INSERT INTO stores (id, organization_id, name, sealed_salt, created_at)
        SELECT 'store_' || n, 'org_1', 'S', '', now() FROM generate_series(1, 3) n;
        INSERT INTO integration_connections (store_id, provider, shop_domain, status, metadata, connected_at)
        SELECT 'store_' || n, 'commerce', n || '.example', 'active', '{}', now() FROM generate_series(1, 3) n;
        INSERT INTO store_shops (store_id, shop_domain, facts_at, subscriptions)
        VALUES ('store_1', '1.example', now(), '{"orders/create": "ok"}'),
            ('store_2', '2.example', now(), '{"orders/create": "ok", "products/update": "missing_scope"}')
        """
    )
    told = [
        (one.word, one.what)
        async for one in examination.of_connections(settings_of(database_url=database_url))
        if one.name == "subscriptions"
    ]
    assert told == [
        ("refused", "2.example (products/update) of 3 shops refuse topics"),
        ("waiting", "3.example of 3 shops were not subscribed to yet"),
    ]


@pytest.mark.parametrize(("version", "differs"), [("2024-06-20", True), (None, False)])
async def test_an_endpoint_of_another_version_than_the_package_is_said(
    database: Database, database_url: str, version: str | None, differs: bool
) -> None:
    await database.execute(
        "INSERT INTO payment_events (event_id, type, livemode, created_at, state, api_version)"
        " VALUES ('evt_1', 'invoice.paid', false, now(), 'ignored', $1)",
        version or stripe.api_version,
    )
    said = await found(database_url=database_url)
    assert ("PAYMENTS_WEBHOOK_SECRET" in said) == differs
    if differs:
        assert "2024-06-20" in said["PAYMENTS_WEBHOOK_SECRET"].what
        assert said["PAYMENTS_WEBHOOK_SECRET"].is_bad


async def test_a_server_whose_clock_is_off_and_a_full_disk_are_named(
    database_url: str, redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = Cache.seconds

    async def ahead(cache: Cache) -> float:
        return await real(cache) + timedelta(minutes=1).total_seconds()

    monkeypatch.setattr(Cache, "seconds", ahead)
    monkeypatch.setattr(examination, "FULL_SHARE", 1.1)
    monkeypatch.setattr(examination, "FULL_BYTES", 1 << 60)
    said = await found(database_url=database_url, redis_url=redis_url, data_dir=tmp_path)
    assert said["clock"].is_bad
    assert "60 seconds behind that of Redis" in said["clock"].what
    assert said["DATA_DIR"].is_bad
