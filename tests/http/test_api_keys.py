"""Programs read by a key: shown once, kept as a hash, and worth nothing without what it stands on."""

import asyncio
from datetime import timedelta
from typing import Any

import httpx
import pytest
from structlog.testing import capture_logs

from tests.http.people import NOON, PASSWORD, Browser, Clock, Person, SignUp, add_member
from tolsey.http.app import create_app
from tolsey.http.intelligence import routes as intelligence
from tolsey.http.people import api_keys as own_keys
from tolsey.http.people import auth, organizations
from tolsey.http.web import policies
from tolsey.http.web.context import Service
from tolsey.http.web.edge import Edge
from tolsey.logs import mask
from tolsey.storage.database import Database
from tolsey.storage.people import administrators, api_keys, resets

KEYS = "/api/account/api-keys"
READ, WRITE = "intelligence:read", "intelligence:write"
STORES, SCANS = "/api/intelligence/stores", "/api/intelligence/scans"
OPENED = (200, "ok")
REFUSED = (401, "unauthorized")


@pytest.fixture
def edge(service: Service) -> Edge:
    routes = [auth.routes, organizations.routes, own_keys.routes, intelligence.routes]
    return create_app(service, routes, {})


async def asked(person: Person, *scopes: str, **given: Any) -> httpx.Response:
    body = {"organizationId": person.organization_id, "scopes": scopes or (READ,), **given}
    return await person.browser.post(KEYS, json=body)


async def made(person: Person, *scopes: str, **given: Any) -> dict[str, Any]:
    answer = await asked(person, *scopes, **given)
    assert answer.status_code == 201, answer.text
    found: dict[str, Any] = answer.json()
    return found


def said(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json().get("code", "ok")


@pytest.fixture
def program(browser: Browser) -> httpx.AsyncClient:
    """A program somewhere, which has no cookie and no origin."""
    client = browser()
    del client.headers["Origin"]
    return client


async def called(
    program: httpx.AsyncClient, key: str, path: str = STORES, method: str = "GET"
) -> tuple[int, str]:
    headers = {"Authorization": f"Bearer {key}"}
    return said(await program.request(method, path, headers=headers))


async def ends(database: Database) -> list[tuple[str, str]]:
    rows = await database.fetch(
        """
        SELECT actor, metadata::jsonb ->> 'why' AS why FROM audit_log WHERE event = 'api_key.ended'
        """
    )
    return [(row["actor"], row["why"]) for row in rows]


async def test_a_key_is_shown_once_and_kept_as_a_hash(
    sign_up: SignUp, program: httpx.AsyncClient, database: Database
) -> None:
    ann = await sign_up()
    with capture_logs() as logs:
        key = await made(ann, READ, WRITE, name="Nightly report")
        await called(program, key["value"])
    assert key["value"].startswith(key["prefix"])
    assert len(key["value"]) == 4 + 8 + 32 + 6
    listed = (await ann.browser.get(KEYS)).json()
    (again,) = listed["items"]
    assert listed["nextCursor"] is None
    assert "value" not in again
    assert key["value"] not in str(listed)
    assert (again["name"], again["scopes"]) == ("Nightly report", [READ, WRITE])
    assert again["organizationId"] == ann.organization_id
    assert key["value"] not in str(logs)
    assert mask(None, "", {"said": f"by {key['value']}"}) == {"said": "by [masked]"}
    for table in await database.fetch(
        "SELECT tablename FROM pg_tables WHERE schemaname = 'public'"
    ):
        rows = await database.fetch(f"SELECT t::text AS row FROM {table['tablename']} t")  # noqa: S608 - our tables
        assert not any(key["value"] in row["row"] for row in rows), table
    events = await database.fetch("SELECT event, subject, actor FROM audit_log ORDER BY id")
    assert ("api_key.created", key["id"], ann.user_id) in [tuple(row.values()) for row in events]


async def test_both_ways_of_sending_a_key_open_the_intelligence_api(
    sign_up: SignUp, program: httpx.AsyncClient
) -> None:
    key = (await made(await sign_up()))["value"]
    borne, named = {"Authorization": f"Bearer {key}"}, {"X-Api-Key": key}
    for headers in (borne, named):
        assert said(await program.get(STORES, headers=headers)) == OPENED
    both = await program.get(STORES, headers={**borne, **named})
    assert said(both) == (400, "bad_request")


@pytest.mark.parametrize(
    "path",
    [
        "/stores",
        "/stores/shop.example",
        "/stores/shop.example/products",
        "/stores/shop.example/snapshots",
        "/stores/shop.example/velocity",
        "/stores/shop.example/technologies",
        "/compare?domains=a.example,b.example",
        "/changes?since=2026-01-01T00:00:00Z",
        "/scans/scan_1",
        "/usage",
    ],
)
async def test_every_route_of_the_api_wants_a_key_and_its_scope(
    sign_up: SignUp, program: httpx.AsyncClient, path: str
) -> None:
    ann = await sign_up()
    path = f"/api/intelligence{path}"
    refused = await program.get(path)
    assert said(refused) == REFUSED
    assert refused.headers["www-authenticate"] == 'Bearer realm="tolsey"'
    assert said(await ann.browser.get(path)) == REFUSED  # a session is no key
    opened = await called(program, (await made(ann, READ))["value"], path)
    assert opened in {OPENED, (404, "not_found")}
    lacking = await called(program, (await made(ann, WRITE))["value"], path)
    assert lacking == (403, "missing_scope")


async def test_scans_want_the_scope_that_writes(
    sign_up: SignUp, program: httpx.AsyncClient
) -> None:
    ann = await sign_up()
    reads, writes = await made(ann, READ), await made(ann, WRITE)
    headers = {"X-Api-Key": reads["value"]}
    refused = await program.post(SCANS, headers=headers, json={"domain": "shop.example"})
    assert (*said(refused), refused.json()["scope"]) == (403, "missing_scope", WRITE)
    opened, _ = await called(program, writes["value"], SCANS, "POST")
    assert opened == 422  # it says nothing of what is to be scanned


@pytest.mark.parametrize(
    "change",
    [
        lambda _: "",
        lambda _: "bei_",
        lambda value: value[:-1],
        lambda value: value + "A",
        lambda value: value[:-1] + ("A" if value[-1] != "A" else "B"),
        lambda value: value[:20] + ("A" if value[20] != "A" else "B") + value[21:],
        lambda value: value.upper(),
        lambda _: "bei_" + "\u00e9" * 46,
        lambda _: api_keys.make_value(),
        lambda _: "x" * 9_000,
    ],
)
async def test_a_key_that_is_none_is_refused_like_no_key(
    sign_up: SignUp, program: httpx.AsyncClient, change: Any
) -> None:
    value = (await made(await sign_up()))["value"]
    headers = [(b"authorization", f"Bearer {change(value)}".encode())]
    refused = await program.get(STORES, headers=[*headers, (b"x-request-id", b"same")])
    none = await program.get(STORES, headers={"X-Request-Id": "same"})
    assert said(refused) == REFUSED
    assert refused.content == none.content


async def test_a_key_opens_nothing_else(sign_up: SignUp, program: httpx.AsyncClient) -> None:
    ann = await sign_up()
    key = (await made(ann, READ, WRITE))["value"]
    for headers in ({"Authorization": f"Bearer {key}"}, {"X-Api-Key": key}):
        for method, path in (
            ("GET", "/api/auth/session"),
            ("GET", KEYS),
            ("POST", KEYS),
            ("GET", f"/api/organizations/{ann.organization_id}"),
            ("GET", "/api/auth/sessions"),
        ):
            answer = await program.request(method, path, headers=headers, json={})
            assert answer.status_code in {401, 422}, path
            assert "example.com" not in answer.text
    assert said(await program.get(STORES, params={"key": key})) == REFUSED
    assert said(await program.get(STORES, headers={"Cookie": f"session={key}"})) == REFUSED


async def test_a_key_ends_at_once_when_its_user_ends_it(
    sign_up: SignUp, program: httpx.AsyncClient, database: Database
) -> None:
    ann, bob = await sign_up(), await sign_up("bob@example.com")
    key = await made(ann)
    assert (await bob.browser.delete(f"{KEYS}/{key['id']}")).status_code == 404
    assert await called(program, key["value"]) == OPENED
    assert (await ann.browser.delete(f"{KEYS}/{key['id']}")).status_code == 204
    assert await called(program, key["value"]) == REFUSED
    assert (await ann.browser.delete(f"{KEYS}/{key['id']}")).status_code == 404
    assert (await ann.browser.get(KEYS)).json()["items"] == []
    assert await ends(database) == [(ann.user_id, "user")]


@pytest.mark.parametrize("given", [{}, {"lifetimeDays": 30}])
async def test_a_key_expires(
    sign_up: SignUp, program: httpx.AsyncClient, clock: Clock, given: dict[str, int]
) -> None:
    ann = await sign_up()
    key = await made(ann, **given)
    clock.advance(timedelta(days=given.get("lifetimeDays", 365), seconds=-1))
    assert await called(program, key["value"]) == OPENED
    clock.advance(timedelta(seconds=1))
    assert await called(program, key["value"]) == REFUSED


async def test_a_key_ends_with_the_membership_and_does_not_wake(
    sign_up: SignUp, program: httpx.AsyncClient, database: Database
) -> None:
    ann, bob = await sign_up(), await sign_up("bob@example.com")
    await add_member(database, ann.organization_id, bob.email, "member")
    there = Person(bob.browser, bob.user_id, ann.organization_id, bob.email)
    lost, kept = await made(there), await made(bob)
    path = f"/api/organizations/{ann.organization_id}/members/{bob.user_id}"
    assert (await ann.browser.delete(path)).status_code == 204
    assert await called(program, lost["value"]) == REFUSED
    await add_member(database, ann.organization_id, bob.email, "owner")
    assert await called(program, lost["value"]) == REFUSED
    assert await called(program, kept["value"]) == OPENED
    assert await ends(database) == [("system", "member")]


@pytest.mark.parametrize(
    ("statement", "undone", "why"),
    [
        ("banned = true", "banned = false", "ban"),
        ("deletion_requested_at = now()", "deletion_requested_at = NULL", "deletion"),
    ],
)
async def test_a_key_ends_with_the_account(
    sign_up: SignUp,
    program: httpx.AsyncClient,
    database: Database,
    *,
    statement: str,
    undone: str,
    why: str,
) -> None:
    key = await made(await sign_up())
    await database.execute(f"UPDATE users SET {statement}")  # noqa: S608 - of this test
    assert await called(program, key["value"]) == REFUSED
    await database.execute(f"UPDATE users SET {undone}")  # noqa: S608 - of this test
    assert await called(program, key["value"]) == REFUSED
    assert await ends(database) == [("system", why)]


async def test_a_key_ends_with_the_organization(
    sign_up: SignUp, program: httpx.AsyncClient, database: Database
) -> None:
    key = await made(await sign_up())
    await database.execute("DELETE FROM organizations")
    assert await called(program, key["value"]) == REFUSED


async def test_a_password_set_by_the_operator_ends_keys(
    sign_up: SignUp, program: httpx.AsyncClient, database: Database
) -> None:
    ann, bob = await sign_up(), await sign_up("bob@example.com")
    hers, his = await made(ann), await made(bob)
    await administrators.create_administrator(database, ann.email, PASSWORD)
    assert await called(program, hers["value"]) == REFUSED
    assert await called(program, his["value"]) == OPENED
    assert await ends(database) == [("operator", "password")]


async def test_a_password_chosen_by_a_link_ends_keys(
    sign_up: SignUp, program: httpx.AsyncClient, database: Database, clock: Clock
) -> None:
    ann = await sign_up()
    key = await made(ann)
    async with database.transaction() as tx:
        token = await resets.begin(tx, ann.email, clock())
    body = {"token": token, "password": "another horse battery"}
    assert (await program.post("/api/auth/password/reset", json=body)).status_code == 204
    assert await called(program, key["value"]) == REFUSED


@pytest.mark.parametrize(
    "body",
    [
        {"scopes": []},
        {"scopes": ["orders:read"]},
        {"scopes": READ},
        {"lifetimeDays": 0},
        {"lifetimeDays": 366},
        {"lifetimeDays": "30"},
        {"name": "x" * 101},
        {"userId": "usr_1"},
    ],
)
async def test_a_key_of_another_shape_is_not_made(sign_up: SignUp, body: dict[str, Any]) -> None:
    ann = await sign_up()
    given = {"organizationId": ann.organization_id, "scopes": [READ], **body}
    assert said(await ann.browser.post(KEYS, json=given)) == (422, "invalid_request")


async def test_nobody_makes_a_key_for_a_foreign_organization(
    sign_up: SignUp, database: Database
) -> None:
    ann, bob = await sign_up(), await sign_up("bob@example.com")
    foreign = {"organizationId": ann.organization_id}
    headers = {"X-Request-Id": "same"}
    bodies = [{**foreign, "scopes": [READ]}, {"organizationId": "org_0", "scopes": [READ]}]
    answers = [await bob.browser.post(KEYS, json=one, headers=headers) for one in bodies]
    assert said(answers[0]) == (404, "not_found")
    assert answers[0].content == answers[1].content
    await made(ann)
    assert (await bob.browser.get(KEYS)).json()["items"] == []
    assert len(await database.fetch("SELECT FROM api_keys")) == 1


async def test_a_repeat_has_the_key_and_not_its_value(sign_up: SignUp, database: Database) -> None:
    ann = await sign_up()
    body = {"organizationId": ann.organization_id, "scopes": [READ]}
    headers = {"Idempotency-Key": "once"}
    first, second = [await ann.browser.post(KEYS, json=body, headers=headers) for _ in range(2)]
    assert (first.status_code, second.status_code) == (201, 201)
    assert second.json() == {**first.json(), "value": None}
    (row,) = await database.fetch("SELECT answer::text AS answer FROM idempotency_keys")
    assert first.json()["value"] not in row["answer"]


async def test_calls_count_against_the_plan_whichever_key_makes_them(
    sign_up: SignUp, program: httpx.AsyncClient, database: Database
) -> None:
    ann, bob = await sign_up(), await sign_up("bob@example.com")
    first, second, other = await made(ann), await made(ann, READ, WRITE), await made(bob)
    answer = await program.get(STORES, headers={"X-Api-Key": first["value"]})
    assert answer.headers["ratelimit-policy"] == (
        '"intelligence-min";q=10;w=60, "intelligence-day";q=200;w=86400'
    )
    for _ in range(9):
        assert await called(program, second["value"]) == OPENED
    for key in (first, second):
        refused = await program.get(STORES, headers={"X-Api-Key": key["value"]})
        assert said(refused) == (429, "too_many_requests")
        assert int(refused.headers["retry-after"]) <= 60
    assert await called(program, other["value"]) == OPENED
    await database.execute("UPDATE organizations SET plan = 'pro'")
    assert await called(program, first["value"]) == OPENED


async def test_so_many_keys_live_and_no_more(sign_up: SignUp, database: Database) -> None:
    ann = await sign_up()
    await database.execute(
        """
        INSERT INTO api_keys (id, key_hash, prefix, organization_id, user_id, name, scopes,
            created_at, expires_at)
        SELECT 'key_' || n, sha256(n::text::bytea), 'bei_', $1, $2, '', '{intelligence:read}', $4::timestamptz,
            $4::timestamptz + interval '1 day' FROM generate_series(1, $3) n
        """,
        ann.organization_id,
        ann.user_id,
        api_keys.MOST_LIVE - 1,
        NOON,
    )
    answers = await asyncio.gather(asked(ann), asked(ann))
    assert sorted(one.status_code for one in answers) == [201, 409]
    assert said(await asked(ann)) == (409, "too_many_keys")


async def test_making_keys_is_limited(sign_up: SignUp, database: Database) -> None:
    ann = await sign_up()
    for _ in range(policies.API_KEYS.limit):
        await made(ann)
    assert said(await asked(ann)) == (429, "too_many_requests")


async def test_the_last_use_is_known_to_the_hour(
    sign_up: SignUp, program: httpx.AsyncClient, clock: Clock
) -> None:
    ann = await sign_up()
    key = await made(ann)
    assert key["lastUsedAt"] is None
    await called(program, key["value"])
    clock.advance(timedelta(hours=2))
    await called(program, key["value"])
    (listed,) = (await ann.browser.get(KEYS)).json()["items"]
    assert listed["lastUsedAt"] == clock().isoformat(timespec="milliseconds").replace("+00:00", "Z")


def test_a_value_tells_a_typing_error_from_a_key() -> None:
    value = api_keys.make_value()
    assert api_keys.is_well_formed(value)
    for place in range(len(value)):
        other = "A" if value[place] != "A" else "B"
        assert not api_keys.is_well_formed(value[:place] + other + value[place + 1 :])
