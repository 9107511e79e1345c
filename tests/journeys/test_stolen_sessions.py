"""Thieves, other sites' pages and banned users try to use a session."""

import re
from collections.abc import AsyncIterator

import httpx
import pytest

from tests.http.people import PASSWORD, Person
from tests.journeys.conftest import Seller
from tests.journeys.strangers import (
    browsing,
    digest,
    person,
)
from tolsey.service import Running, running
from tolsey.settings import Settings


@pytest.fixture
async def owner(browser: httpx.AsyncClient) -> Person:
    return await person(browser, "owner@example.com")


@pytest.fixture
async def stranger(live: Running) -> AsyncIterator[Person]:
    async with browsing(live) as client:
        yield await person(client, "stranger@example.com")


async def test_a_session_planted_before_the_login_is_worth_nothing_after_it(
    live: Running, owner: Person
) -> None:
    planted = "A" * 43
    async with browsing(live) as victim:
        victim.cookies.set("session", planted)
        login = {"email": owner.email, "password": PASSWORD}
        answer = await victim.post("/api/auth/login", json=login)
        assert answer.status_code == 200
        given = answer.cookies["session"]
    async with browsing(live) as thief:
        thief.cookies.set("session", planted)
        assert (await thief.get("/api/auth/session")).status_code == 401
    assert given != planted
    assert len(given) >= 43


async def test_a_login_ends_the_session_it_came_with(live: Running, owner: Person) -> None:
    former = owner.browser.cookies["session"]
    login = {"email": owner.email, "password": PASSWORD}
    assert (await owner.browser.post("/api/auth/login", json=login)).status_code == 200
    async with browsing(live) as thief:
        thief.cookies.set("session", former)
        assert (await thief.get("/api/auth/session")).status_code == 401
    assert (await owner.browser.get("/api/auth/session")).status_code == 200


async def test_a_session_is_over_after_logout(live: Running, owner: Person) -> None:
    token = owner.browser.cookies["session"]
    out = await owner.browser.post("/api/auth/logout")
    assert out.status_code == 204
    async with browsing(live) as thief:
        thief.cookies.set("session", token)
        assert (await thief.get("/api/auth/session")).status_code == 401
    assert await live.service.database.fetch("SELECT 1 FROM sessions") == []


async def test_a_banned_users_sessions_and_logins_are_over(live: Running, owner: Person) -> None:
    await live.service.database.execute("UPDATE users SET banned = true")
    assert (await owner.browser.get("/api/auth/session")).status_code == 401
    assert (await owner.browser.get("/api/stores")).status_code == 401
    login = {"email": owner.email, "password": PASSWORD}
    refused = await owner.browser.post("/api/auth/login", json=login)
    assert (refused.status_code, refused.json()["code"]) == (403, "banned")
    # who does not know the password does not learn of the ban
    guessed = await owner.browser.post("/api/auth/login", json={**login, "password": "x" * 12})
    assert (guessed.status_code, guessed.json()["code"]) == (401, "invalid_credentials")
    await live.service.database.execute("UPDATE users SET banned = false")
    assert (await owner.browser.get("/api/auth/session")).status_code == 401


@pytest.mark.parametrize("https", [True, False])
async def test_every_session_cookie_is_out_of_reach(settings: Settings, https: bool) -> None:
    base_url = "https://tolsey.example" if https else settings.base_url
    public = settings.model_copy(update={"base_url": base_url})
    seen: list[str] = []

    async def note(answer: httpx.Response) -> None:
        seen.extend(answer.headers.get_list("set-cookie"))

    async with running(public, timers=False) as live, browsing(live) as client:
        client.event_hooks["response"] = [note]
        await person(client, "owner@example.com")
        login = {"email": "owner@example.com", "password": PASSWORD}
        await client.post("/api/auth/login", json=login)
        await client.post("/api/auth/login", json={**login, "password": "x" * 12})
        await client.get("/api/organizations")
        await client.post("/api/auth/logout")

    assert len(seen) == 3
    for cookie in seen:
        name, *attributes = re.split(r";\s*", cookie)
        said = {attribute.partition("=")[0].lower() for attribute in attributes}
        assert name.split("=")[0] == ("__Host-session" if https else "session")
        assert {"httponly", "path", "samesite"} <= said
        assert ("secure" in said) is https
        assert "domain" not in said
        assert re.search(r"SameSite=Lax", cookie)
        assert re.search(r"Path=/(;|$)", cookie)


@pytest.mark.parametrize(
    "origin",
    [
        "null",
        "https://evil.example",
        "http://127.0.0.1.evil.example:8000",
        "http://127.0.0.1:8001",
        "https://127.0.0.1:8000",
        "HTTP://127.0.0.1:8000",
        "http://127.0.0.1:8000/",
        "http://127.0.0.1:8000@evil.example",
        "",
    ],
)
async def test_no_foreign_page_uses_a_session(live: Running, seller: Seller, origin: str) -> None:
    before = await digest(live)
    calls = [
        ("POST", "/api/stores", {"organizationId": seller.organization_id, "name": "Theirs"}),
        ("DELETE", f"/api/stores/{seller.store_id}", None),
        ("PUT", f"/api/organizations/{seller.organization_id}", {"name": "Theirs"}),
        ("POST", "/api/auth/logout", None),
    ]
    for method, path, body in calls:
        for site in ("cross-site", "same-site", "none", "same-origin"):
            headers = {"Origin": origin, "Sec-Fetch-Site": site, "Authorization": "Bearer x"}
            answer = await seller.browser.request(method, path, json=body, headers=headers)
            assert answer.status_code == 403, f"{method} {path} {site}"
            assert answer.json()["code"] == "foreign_origin"
    assert await digest(live) == before
