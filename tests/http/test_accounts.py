from datetime import timedelta
from http.cookies import SimpleCookie
from typing import Any

import pytest

from tests.http.people import Browser, Clock, SignUp, settings_of
from tolsey.http.web.context import Service
from tolsey.settings import Settings
from tolsey.storage.database import Database
from tolsey.storage.people import administrators, tokens

PASSWORD = "correct horse battery"
SIGNUP = "/api/auth/signup"
LOGIN = "/api/auth/login"
SESSION = "/api/auth/session"


def signup_body(email: str) -> dict[str, str]:
    return {"email": email, "password": PASSWORD, "organizationName": "Shop"}


async def test_signing_up_makes_a_user_an_organization_and_a_session(sign_up: SignUp) -> None:
    ann = await sign_up("Ann@Example.com")
    answer = (await ann.browser.get(SESSION)).json()
    assert answer["user"] == {"id": ann.user_id, "email": "ann@example.com"}
    assert [(o["id"], o["role"], o["plan"]) for o in answer["organizations"]] == [
        (ann.organization_id, "owner", "free")
    ]


async def test_the_session_cookie_is_for_this_host_and_no_script(browser: Browser) -> None:
    response = await browser().post(SIGNUP, json=signup_body("a@example.com"))
    jar = SimpleCookie(response.headers["set-cookie"])
    cookie = jar["session"]
    assert cookie["httponly"]
    assert cookie["samesite"] == "Lax"
    assert cookie["path"] == "/"
    assert not cookie["domain"]
    assert not cookie["secure"]
    assert int(cookie["max-age"]) == 30 * 86_400
    assert len(cookie.value) >= 43


class TestOnHttps:
    @pytest.fixture
    def settings(self) -> Settings:
        return settings_of(base_url="https://shop.example.com", encryption_keys="k:" + "A" * 43)

    async def test_the_cookie_and_the_headers_are_the_strict_ones(self, browser: Browser) -> None:
        client = browser(Origin="https://shop.example.com", Host="shop.example.com")
        response = await client.post(SIGNUP, json=signup_body("a@example.com"))
        cookie = SimpleCookie(response.headers["set-cookie"])["__Host-session"]
        assert cookie["secure"]
        assert cookie["path"] == "/"
        assert not cookie["domain"]
        assert response.headers["strict-transport-security"].startswith("max-age=31536000")

    async def test_loopback_is_no_origin_of_a_public_service(self, browser: Browser) -> None:
        client = browser(Host="shop.example.com")
        response = await client.post(SIGNUP, json=signup_body("a@example.com"))
        assert response.status_code == 403
        assert response.json()["code"] == "foreign_origin"


async def test_a_session_is_kept_as_a_hash(sign_up: SignUp, database: Database) -> None:
    ann = await sign_up()
    token = ann.browser.cookies["session"]
    rows = await database.fetch("SELECT encode(token_hash, 'hex') AS hash FROM sessions")
    assert len(rows) == 1
    assert token not in rows[0]["hash"]


async def test_login_ends_the_session_it_came_with(sign_up: SignUp, browser: Browser) -> None:
    ann = await sign_up()
    former = ann.browser.cookies["session"]
    response = await ann.browser.post(LOGIN, json={"email": ann.email, "password": PASSWORD})
    assert response.status_code == 200
    assert ann.browser.cookies["session"] != former
    thief = browser(Cookie=f"session={former}")
    assert (await thief.get(SESSION)).status_code == 401


async def test_a_token_that_was_planted_is_not_the_one_that_signs_in(
    browser: Browser, sign_up: SignUp
) -> None:
    ann = await sign_up()
    victim = browser()
    victim.cookies.set("session", "planted")
    response = await victim.post(LOGIN, json={"email": ann.email, "password": PASSWORD})
    assert response.status_code == 200
    assert (await browser(Cookie="session=planted").get(SESSION)).status_code == 401


async def test_a_session_is_over_after_logout(sign_up: SignUp, browser: Browser) -> None:
    ann = await sign_up()
    token = ann.browser.cookies["session"]
    response = await ann.browser.post("/api/auth/logout")
    assert response.status_code == 204
    assert "session" not in ann.browser.cookies
    assert (await browser(Cookie=f"session={token}").get(SESSION)).status_code == 401


async def test_a_session_is_over_after_thirty_days(sign_up: SignUp, clock: Clock) -> None:
    ann = await sign_up()
    for _ in range(3):  # used all the while
        clock.advance((tokens.SESSION_LIFETIME - timedelta(seconds=1)) / 3)
        assert (await ann.browser.get(SESSION)).status_code == 200
    clock.advance(timedelta(seconds=1))
    assert (await ann.browser.get(SESSION)).status_code == 401


@pytest.mark.parametrize(
    ("email", "password"), [("ann@example.com", "wrong"), ("bob@example.com", PASSWORD)]
)
async def test_a_wrong_pair_says_no_more_than_that(
    sign_up: SignUp, browser: Browser, email: str, password: str
) -> None:
    await sign_up()
    response = await browser().post(LOGIN, json={"email": email, "password": password})
    assert response.status_code == 401
    assert response.json()["code"] == "invalid_credentials"
    assert "set-cookie" not in response.headers


async def test_a_ban_ends_every_session(
    sign_up: SignUp, browser: Browser, database: Database
) -> None:
    ann = await sign_up()
    await database.execute("UPDATE users SET banned = true WHERE id = $1", ann.user_id)
    assert (await ann.browser.get(SESSION)).status_code == 401
    response = await browser().post(LOGIN, json={"email": ann.email, "password": PASSWORD})
    assert response.status_code == 403
    assert response.json()["code"] == "banned"
    assert await database.fetchrow("SELECT FROM sessions") is None


async def test_an_account_in_deletion_cannot_sign_in(
    sign_up: SignUp, browser: Browser, database: Database
) -> None:
    ann = await sign_up()
    await database.execute("UPDATE users SET deletion_requested_at = now()")
    assert (await ann.browser.get(SESSION)).status_code == 401
    response = await browser().post(LOGIN, json={"email": ann.email, "password": PASSWORD})
    assert (response.status_code, response.json()["code"]) == (403, "account_deleted")


async def test_an_address_makes_five_accounts_a_day(browser: Browser) -> None:
    client = browser("203.0.113.9")
    for number in range(5):
        client.cookies.clear()
        response = await client.post(SIGNUP, json=signup_body(f"u{number}@example.com"))
        assert response.status_code == 201
        assert response.headers["ratelimit-policy"] == '"account-creation";q=5;w=86400'
        assert response.headers["ratelimit"].startswith(f'"account-creation";r={4 - number};t=')
    client.cookies.clear()
    response = await client.post(SIGNUP, json=signup_body("u5@example.com"))
    assert response.status_code == 429
    assert response.headers["content-type"] == "application/problem+json"
    assert 86_000 < int(response.headers["retry-after"]) <= 86_400
    elsewhere = browser("203.0.113.10")
    assert (await elsewhere.post(SIGNUP, json=signup_body("u5@example.com"))).status_code == 201


async def test_a_made_up_forwarding_header_gains_no_accounts(browser: Browser) -> None:
    for number in range(6):
        client = browser("203.0.113.9", **{"X-Forwarded-For": f"192.0.2.{number}"})
        response = await client.post(SIGNUP, json=signup_body(f"u{number}@example.com"))
    assert response.status_code == 429


async def test_signing_up_twice_with_an_address_is_refused(
    sign_up: SignUp, browser: Browser
) -> None:
    await sign_up()
    response = await browser().post(SIGNUP, json=signup_body("ANN@example.com"))
    assert (response.status_code, response.json()["code"]) == (409, "email_taken")


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"password": "short"}, "password"),
        ({"email": "nobody"}, "email"),
        ({"organizationName": "  "}, "organizationName"),
        ({"extra": 1}, "extra"),
    ],
)
async def test_a_body_of_another_shape_names_the_field(
    browser: Browser, change: dict[str, Any], field: str
) -> None:
    response = await browser().post(SIGNUP, json={**signup_body("a@example.com"), **change})
    assert response.status_code == 422
    problem = response.json()
    assert problem["code"] == "invalid_request"
    assert [error["field"] for error in problem["errors"]] == [field]
    assert PASSWORD not in response.text


async def test_every_login_is_in_the_audit_log(sign_up: SignUp, database: Database) -> None:
    ann = await sign_up()
    await ann.browser.post("/api/auth/logout")
    rows = await database.fetch("SELECT event, actor FROM audit_log ORDER BY id")
    assert [row["event"] for row in rows] == [
        "organization.created",
        "user.signed_up",
        "user.signed_out",
    ]
    assert {row["actor"] for row in rows} == {ann.user_id}


async def test_the_first_administrator_gets_an_organization_to_administer(
    browser: Browser, service: Service
) -> None:
    made = await administrators.create_administrator(service.database, "Op@example.com", PASSWORD)
    again = await administrators.create_administrator(service.database, "b@example.com", PASSWORD)
    assert made.is_new
    assert again.organization_id == made.organization_id
    assert await administrators.organization_id(service.database, None) == made.organization_id
    response = await browser().post(LOGIN, json={"email": "op@example.com", "password": PASSWORD})
    assert response.status_code == 200
