"""What agents leave behind is let go of when it has served its time."""

import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tolsey.storage.database import Database
from tolsey.storage.lifecycle import retention
from tolsey.storage.migrate import MIGRATIONS, migrate
from tolsey.storage.oauth import clients
from tolsey.storage.oauth.clients import ClientRow

pytestmark = pytest.mark.anyio

NOW = datetime.now(UTC)
ROBO = ClientRow(
    id="client_robo",
    name="Robo",
    redirect_uris=["https://agent.example/cb"],
    auth_method="none",
    secret_hash=None,
)


def hashed(name: str) -> bytes:
    return name.encode().ljust(32, b".")


async def client(database: Database, id: str, registered: int, used: int) -> None:
    """Keep a client that registered and was last used so many days ago."""
    await database.execute(
        """
        INSERT INTO oauth_clients (id, name, redirect_uris, auth_method, created_at, used_at)
        VALUES ($1, 'Robo', '{}', 'none', $2, $3)
        """,
        *(id, NOW - timedelta(days=registered), NOW - timedelta(days=used)),
    )


async def grant(database: Database, id: str, *, began: int, ended: int | None = None) -> None:
    """Keep a grant that began so many days ago, and perhaps ended."""
    await database.execute(
        """
        INSERT INTO oauth_grants (id, user_id, client_id, client_name, redirect_uri,
            organization_id, store_id, resource, scopes, created_at, ended_at, why, review_at)
        VALUES ($1, 'usr_1', 'c', 'Robo', 'r', 'org_1', 'store_1', 'r', '{}', $2, $3, $4,
            $2::timestamptz + interval '30 days')
        """,
        *(id, NOW - timedelta(days=began)),
        *((None, None) if ended is None else (NOW - timedelta(days=ended), "user")),
    )


async def token(database: Database, id: str, grant_id: str, *, expired: int) -> None:
    """Keep a token that expired so many days ago."""
    await database.execute(
        """
        INSERT INTO oauth_tokens (token_hash, grant_id, kind, scopes, expires_at)
        VALUES ($1, $2, 'refresh', '{}', $3)
        """,
        *(hashed(id), grant_id, NOW - timedelta(days=expired)),
    )


async def swept(database: Database, name: str) -> int:
    return await retention.sweep(database, retention.SWEPT[name], 100)


async def left(database: Database, table: str, column: str = "id") -> set[str]:
    rows = await database.fetch(f"SELECT {column}::text AS id FROM {table}")  # noqa: S608 - names of this file
    return {row["id"] for row in rows}


@pytest.fixture
async def user(database: Database) -> None:
    await database.execute(
        "INSERT INTO users (id, email, password_hash) VALUES ('usr_1', 'ann@example.com', 'x')"
    )


SLEEPING = """
INSERT INTO organizations (id, name) VALUES ('org_1', 'Ours'), ('org_2', 'Theirs');
INSERT INTO stores (id, organization_id, name, sealed_salt, created_at, deleted_at) VALUES
    ('open', 'org_1', 'S', '', now(), NULL), ('gone', 'org_1', 'S', '', now(), now()),
    ('left', 'org_2', 'S', '', now(), NULL);
INSERT INTO users (id, email, password_hash, banned) VALUES
    ('ann', 'ann@example.com', 'x', false), ('eve', 'eve@example.com', 'x', true);
INSERT INTO members (organization_id, user_id, role) VALUES
    ('org_1', 'ann', 'owner'), ('org_1', 'eve', 'admin');
INSERT INTO oauth_grants (id, user_id, client_id, client_name, redirect_uri, organization_id,
    store_id, resource, scopes, created_at)
SELECT concat_ws('-', u.id, s.id), u.id, 'c', 'Robo', 'r', s.organization_id, s.id, 'r', '{}', now()
FROM users u, stores s WHERE u.id = 'ann' OR s.id = 'open'
"""


async def test_grants_that_slept_before_end_with_the_migration(
    empty_database_url: str, tmp_path: Path
) -> None:
    for file in MIGRATIONS.glob("*.sql"):
        if file.name < "0020":
            shutil.copy(file, tmp_path)
    await migrate(empty_database_url, tmp_path)
    opened = Database(empty_database_url)
    await opened.open()
    try:
        await opened.execute(SLEEPING)
        await migrate(empty_database_url)
        grants = await opened.fetch("SELECT id, why FROM oauth_grants")
        answered = await opened.fetch("SELECT subject FROM audit_log WHERE event = 'agent.ended'")
    finally:
        await opened.close()

    ended = {"ann-gone": "store", "ann-left": "member", "eve-open": "ban"}
    assert {row["id"]: row["why"] for row in grants} == {"ann-open": None, **ended}
    assert {row["subject"] for row in answered} == ended.keys()


async def test_clients_go_that_nobody_uses(database: Database) -> None:
    await client(database, "never-used", registered=2, used=2)
    await client(database, "new", registered=0, used=0)
    await client(database, "left", registered=200, used=91)
    await client(database, "in-use", registered=200, used=89)

    assert await swept(database, "agentClients") == 2
    assert await left(database, "oauth_clients") == {"new", "in-use"}


async def test_a_client_that_is_used_at_once_is_not_taken_for_one_that_never_was(
    database: Database,
) -> None:
    registered = NOW - timedelta(days=2)
    await clients.add(database, ROBO, registered)
    async with database.transaction() as tx:
        await clients.use(tx, ROBO.id, registered + timedelta(seconds=20))

    assert await swept(database, "agentClients") == 0


@pytest.mark.usefixtures("user")
async def test_grants_go_that_ended_long_ago_or_of_which_no_token_is_left(
    database: Database,
) -> None:
    await grant(database, "ended-long-ago", began=200, ended=91)
    await grant(database, "ended", began=200, ended=89)
    await grant(database, "lapsed", began=61)
    await grant(database, "asleep", began=61)
    await grant(database, "begun", began=0)
    await token(database, "1", "ended-long-ago", expired=0)
    await token(database, "2", "ended", expired=0)
    await token(database, "3", "lapsed", expired=31)
    await token(database, "4", "asleep", expired=29)

    assert await swept(database, "agentTokens") == 1
    assert await swept(database, "agentGrants") == 1
    assert await swept(database, "agentGrantsReviewed") == 2
    assert await swept(database, "agentGrantsReviewed") == 0  # one went, one is looked at tomorrow
    assert await left(database, "oauth_grants") == {"ended", "asleep", "begun"}
    assert await left(database, "oauth_tokens", "grant_id") == {"ended", "asleep"}


@pytest.mark.usefixtures("user")
async def test_codes_and_requests_go_after_a_day(database: Database) -> None:
    await grant(database, "begun", began=2)
    for days in (0, 2):
        expires_at = NOW - timedelta(days=days)
        await database.execute(
            """
            INSERT INTO oauth_codes (code_hash, grant_id, code_challenge, expires_at)
            VALUES ($1, 'begun', $2, $3)
            """,
            *(hashed(str(days)), str(days), expires_at),
        )
        await database.execute(
            """
            INSERT INTO oauth_requests (id_hash, client_id, client_name, redirect_uri,
                code_challenge, resource, store_id, scopes, expires_at)
            VALUES ($1, 'c', 'Robo', 'r', $2, 'r', 'store_1', '{}', $3)
            """,
            *(hashed(str(days)), str(days), expires_at),
        )

    assert await swept(database, "agentCodes") == 1
    assert await swept(database, "agentRequests") == 1
    assert await left(database, "oauth_codes", "code_challenge") == {"0"}
    assert await left(database, "oauth_requests", "code_challenge") == {"0"}
