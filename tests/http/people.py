"""Who uses the service in these tests, and how."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, TypeAlias

import httpx
from pydantic_settings import InitSettingsSource

from tolsey.settings import Settings
from tolsey.storage.database import Database
from tolsey.storage.people import administrators

KEYRING = "t1:" + "A" * 43
PASSWORD = "correct horse battery"


NOON = datetime(2036, 6, 15, 12, 0, 0, 500_000, tzinfo=UTC)
"""When tests begin: the same instant at every hour, on every day, so that none of them depends on these.

It is long after PostgreSQL's clock, by which messages fall due: what is put off never comes by itself.
"""


@dataclass
class Clock:
    """A clock that only moves when a test says so."""

    now: datetime = NOON

    def __call__(self) -> datetime:
        return self.now

    def advance(self, by: timedelta) -> None:
        self.now += by


@dataclass
class Person:
    """Someone with a browser and an account."""

    browser: httpx.AsyncClient
    user_id: str
    organization_id: str
    email: str

    async def store(self, name: str = "Corner shop", **headers: str) -> httpx.Response:
        body = {"organizationId": self.organization_id, "name": name}
        return await self.browser.post("/api/stores", json=body, headers=headers)


Browser: TypeAlias = Callable[..., httpx.AsyncClient]
SignUp: TypeAlias = Callable[..., Awaitable[Person]]


def settings_of(**given: Any) -> Settings:
    """Settings that neither the environment nor a file has a say in, with a lease that a busy machine can keep.

    To look through both for every field takes 15 ms, at the start of every service.
    """
    options = {"encryption_keys": KEYRING, "lease_seconds": 60, **given}
    given_alone = InitSettingsSource(Settings, init_kwargs=options)
    return Settings(_build_sources=((given_alone,), options))  # type: ignore[call-arg]  # not declared to checkers


async def add_member(database: Database, organization_id: str, email: str, role: str) -> None:
    """Let someone belong to an organization, as if they had accepted an invitation."""
    await database.execute(
        """
        INSERT INTO members (organization_id, user_id, role)
        SELECT $1, id, $3 FROM users WHERE email = $2
        """,
        organization_id,
        email,
        role,
    )


async def made_operator(database: Database, person: Person) -> Person:
    """Give someone the operators' role, and sign them in: becoming one ends every session."""
    await administrators.create_administrator(database, person.email, PASSWORD)
    login = {"email": person.email, "password": PASSWORD}
    assert (await person.browser.post("/api/auth/login", json=login)).status_code == 200
    return person
