"""Whoever may no longer work with a store finds its door closed at the next call, not a moment later."""

import pytest

from tests.http.oauth.client import Client
from tests.http.oauth.conftest import Connect
from tests.http.people import PASSWORD, Person, SignUp
from tolsey.http.context import Service
from tolsey.storage.database import Database
from tolsey.storage.people import administrators

pytestmark = pytest.mark.anyio


async def joined(ann: Person, sign_up: SignUp, role: str) -> Person:
    """Let bob join ann's organization."""
    bob = await sign_up("bob@example.com")
    await given(ann, role)
    return bob


async def given(ann: Person, role: str) -> None:
    """Give bob a role in ann's organization."""
    members = f"/api/organizations/{ann.organization_id}/members"
    answer = await ann.browser.post(members, json={"email": "bob@example.com", "role": role})
    assert answer.status_code == 201, answer.text


async def working(client: Client, person: Person, **asked: str) -> str:
    """Let a person's agent in, and have it call once, so that it is remembered."""
    token: str = (await client.tokens(person, **asked))["access_token"]
    assert (await client.call(token)).status_code == 200
    return token


@pytest.mark.parametrize("by", ["ann", "bob"])
async def test_the_agent_of_a_member_who_leaves_is_out(
    connect: Connect, sign_up: SignUp, by: str
) -> None:
    client, ann = await connect()
    bob = await joined(ann, sign_up, "member")
    his, hers = await working(client, bob), await working(client, ann)

    path = f"/api/organizations/{ann.organization_id}/members/{bob.user_id}"
    removed = await (ann if by == "ann" else bob).browser.delete(path)

    assert removed.status_code == 204, removed.text
    assert (await client.call(his)).status_code == 401
    assert (await client.call(hers)).status_code == 200


async def test_the_agent_of_a_member_who_may_less_may_less(
    connect: Connect, sign_up: SignUp, service: Service
) -> None:
    client, ann = await connect()
    bob = await joined(ann, sign_up, "admin")
    token = await working(client, bob, scope="orders:write")

    await given(ann, "member")

    admitted = await service.agents.guests.find(token)
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
    told = await client.refresh(hers["refresh_token"])
    assert told.json()["error"] == "invalid_grant"
    assert (await other.call(theirs["access_token"])).status_code == 200
