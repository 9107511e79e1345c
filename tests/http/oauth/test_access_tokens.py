"""Whoever may no longer work with a store finds its door closed at the next call, not a moment later."""

import asyncio
import json
from datetime import timedelta
from typing import Any

import anyio
import pytest

from tests.http.oauth.client import CSRF, Client
from tests.http.oauth.conftest import Connect
from tests.http.people import PASSWORD, Clock, Person, SignUp, add_member
from tolsey.http.web.context import Service
from tolsey.storage.database import Database
from tolsey.storage.people import administrators

pytestmark = pytest.mark.anyio


async def joined(database: Database, ann: Person, sign_up: SignUp, role: str) -> Person:
    """Let bob join ann's organization."""
    bob = await sign_up("bob@example.com")
    await add_member(database, ann.organization_id, bob.email, role)
    return bob


async def working(client: Client, person: Person, **asked: str) -> str:
    """Let a person's agent in, and have it call once, so that it is remembered."""
    token: str = (await client.tokens(person, **asked))["access_token"]
    assert (await client.call(token)).status_code == 200
    return token


async def ends(database: Database) -> list[tuple[Any, ...]]:
    """List how grants ended: who ended them, in which organization, of which client and store, why."""
    rows = await database.fetch(
        "SELECT actor, organization_id, metadata FROM audit_log WHERE event = 'agent.ended' ORDER BY id"
    )
    answered = [(row["actor"], row["organization_id"], json.loads(row["metadata"])) for row in rows]
    return [(*head, said["client"], said["store"], said["why"]) for *head, said in answered]


async def is_over(client: Client, given: dict[str, Any]) -> bool:
    """Tell whether nothing that a client was given is worth anything."""
    called = await client.call(given["access_token"])
    refreshed = await client.refresh(given["refresh_token"], client_secret=client.secret)
    assert called.status_code in {200, 401}
    return (called.status_code, refreshed.json().get("error")) == (401, "invalid_grant")


@pytest.mark.parametrize("by", ["ann", "bob"])
async def test_the_agent_of_a_member_who_leaves_is_out(
    connect: Connect, sign_up: SignUp, database: Database, by: str
) -> None:
    client, ann = await connect()
    bob = await joined(database, ann, sign_up, "member")
    his, hers = await working(client, bob), await working(client, ann)

    path = f"/api/organizations/{ann.organization_id}/members/{bob.user_id}"
    removed = await (ann if by == "ann" else bob).browser.delete(path)

    assert removed.status_code == 204, removed.text
    assert (await client.call(his)).status_code == 401
    assert (await client.call(hers)).status_code == 200


async def test_the_agent_of_a_member_who_may_less_may_less(
    connect: Connect, sign_up: SignUp, database: Database, service: Service
) -> None:
    client, ann = await connect()
    bob = await joined(database, ann, sign_up, "admin")
    token = await working(client, bob, scope="orders:write")

    members = f"/api/organizations/{ann.organization_id}/members"
    answer = await ann.browser.post(members, json={"email": bob.email, "role": "member"})
    assert answer.status_code == 200, answer.text

    admitted = await service.agents.access_tokens.find(token)
    assert admitted is not None
    assert admitted.role == "member"


async def test_agents_of_a_deleted_store_are_out(connect: Connect) -> None:
    client, ann = await connect()
    token = await working(client, ann)

    deleted = await ann.browser.delete(f"/api/stores/{client.store_id}")

    assert deleted.status_code == 204, deleted.text
    assert (await client.call(token)).status_code == 401


async def test_a_new_password_set_by_the_operator_ends_every_agent(
    connect: Connect, database: Database
) -> None:
    client, ann = await connect()
    other, eve = await connect("eve@example.com")
    hers, theirs = await client.tokens(ann), await other.tokens(eve)

    await administrators.create_administrator(database, ann.email, PASSWORD)

    assert (await client.call(hers["access_token"])).status_code == 401
    answered = await client.refresh(hers["refresh_token"])
    assert answered.json()["error"] == "invalid_grant"
    assert (await other.call(theirs["access_token"])).status_code == 200


async def test_a_member_who_comes_back_consents_again(
    connect: Connect, sign_up: SignUp, database: Database
) -> None:
    client, ann = await connect()
    bob = await joined(database, ann, sign_up, "admin")
    his, hers = await client.tokens(bob), await client.tokens(ann)
    waiting = (await client.decided(bob))["code"]

    path = f"/api/organizations/{ann.organization_id}/members/{bob.user_id}"
    assert (await ann.browser.delete(path)).status_code == 204
    assert "Robo" not in (await bob.browser.get("/account/agents")).text
    await add_member(database, ann.organization_id, bob.email, "admin")

    assert await is_over(client, his)
    assert (await client.redeem(waiting)).json()["error"] == "invalid_grant"
    assert not await is_over(client, hers)
    end = ("system", ann.organization_id, client.client_id, client.store_id, "member")
    assert await ends(database) == [end, end]
    assert (await client.call((await client.tokens(bob))["access_token"])).status_code == 200


async def test_grants_end_with_their_store(connect: Connect, database: Database) -> None:
    client, ann = await connect()
    tokens, waiting = await client.tokens(ann), (await client.decided(ann))["code"]

    deleted = await ann.browser.delete(f"/api/stores/{client.store_id}")

    assert deleted.status_code == 204, deleted.text
    assert await is_over(client, tokens)
    assert (await client.redeem(waiting)).json()["error"] == "invalid_grant"
    assert "Robo" not in (await ann.browser.get("/account/agents")).text
    end = ("system", ann.organization_id, client.client_id, client.store_id, "store")
    assert await ends(database) == [end, end]


@pytest.mark.parametrize(
    ("gone", "back", "why"),
    [
        ("banned = true", "banned = false", "ban"),
        ("deletion_requested_at = now()", "deletion_requested_at = NULL", "deletion"),
    ],
)
async def test_nothing_wakes_when_a_user_is_welcome_again(
    connect: Connect, database: Database, gone: str, back: str, why: str
) -> None:
    client, ann = await connect(token_endpoint_auth_method="client_secret_post")
    code, waiting = [(await client.decided(ann))["code"] for _ in range(2)]
    tokens = (await client.redeem(code, client_secret=client.secret)).json()

    await database.execute(f"UPDATE users SET {gone}")  # noqa: S608 - of this file
    refused = await client.redeem(waiting, client_secret=client.secret)
    proof = {"client_id": client.client_id, "client_secret": client.secret}
    asked = {**proof, "token": tokens["access_token"]}
    answered = await client.web.post("/oauth/introspect", data=asked)
    await database.execute(f"UPDATE users SET {back}")  # noqa: S608 - of this file

    assert refused.json()["error"] == "invalid_grant"
    assert answered.json() == {"active": False}
    assert await is_over(client, tokens)
    end = ("system", ann.organization_id, client.client_id, client.store_id, why)
    assert await ends(database) == [end, end]


async def test_nobody_lets_an_agent_in_while_they_are_removed(
    connect: Connect, sign_up: SignUp, database: Database
) -> None:
    client, ann = await connect()
    bob = await joined(database, ann, sign_up, "admin")
    page = await client.consent_page(bob)
    csrf = CSRF.search(page.text)
    assert csrf
    form = {"csrf": csrf[1], "decision": "allow"}

    async with database.transaction() as tx:
        await tx.execute("DELETE FROM members WHERE user_id = $1", bob.user_id)
        allowing = asyncio.create_task(bob.browser.post(page.request.url.path, data=form))
        with anyio.fail_after(60):
            while not await database.fetch("SELECT FROM pg_locks WHERE NOT granted"):
                assert not allowing.done()

    answer = await allowing
    assert "error=invalid_target" in answer.headers["location"]
    assert await database.fetch("SELECT id FROM oauth_grants") == []


async def test_every_end_is_told_to_the_organization(
    connect: Connect, database: Database, clock: Clock
) -> None:
    client, ann = await connect()
    causes = {"client": client.client_id, "reuse": "platform", "user": ann.user_id}

    revoked = await client.tokens(ann)
    form = {"client_id": client.client_id, "token": revoked["access_token"]}
    await client.web.post("/oauth/revoke", data=form)
    reused = await client.tokens(ann)
    for _ in range(2):
        await client.refresh(reused["refresh_token"])
        clock.advance(timedelta(seconds=11))
    await client.tokens(ann)
    page = (await ann.browser.get("/account/agents")).text
    action, csrf = (
        page.partition('action="/account/agents/')[2].partition('"')[0],
        CSRF.search(page),
    )
    assert csrf
    await ann.browser.post(f"/account/agents/{action}", data={"csrf": csrf[1]})
    await client.tokens(ann)
    await administrators.create_administrator(database, ann.email, PASSWORD)

    assert await ends(database) == [
        (actor, ann.organization_id, client.client_id, client.store_id, why)
        for why, actor in [*causes.items(), ("password", "operator")]
    ]


@pytest.mark.parametrize("path", ["/logout", "/api/auth/logout"])
async def test_agents_end_when_their_person_signs_out(
    connect: Connect, database: Database, path: str
) -> None:
    client, ann = await connect()
    other, eve = await connect("eve@example.com")
    hers, theirs = await client.tokens(ann), await other.tokens(eve)
    assert "Signing out ends them all" in (await ann.browser.get("/account/agents")).text
    assert "when you sign out" in (await client.consent_page(ann)).text

    assert (await ann.browser.post(path)).status_code in {204, 303}

    assert await is_over(client, hers)
    assert not await is_over(other, theirs)
    assert await ends(database) == [
        (ann.user_id, ann.organization_id, client.client_id, client.store_id, "logout")
    ]


async def test_agents_outlive_a_session_that_another_follows(connect: Connect) -> None:
    client, ann = await connect()
    tokens = await client.tokens(ann)

    body = {"email": ann.email, "password": PASSWORD}
    assert (await ann.browser.post("/api/auth/login", json=body)).status_code == 200

    assert not await is_over(client, tokens)
