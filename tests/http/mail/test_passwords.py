"""People who forgot their password, change it, and look where they are signed in."""

import re
from datetime import timedelta
from typing import Any

import anyio
import httpx
import pytest
from structlog.testing import capture_logs

from tests.http.mail.post import Post
from tests.http.people import PASSWORD, Browser, Clock, Person, SignUp
from tolsey.service import Running
from tolsey.storage.people import tokens

NEW = "another correct horse"
FORGOT, RESET, CHANGE = (f"/api/auth/password{path}" for path in ("/forgot", "/reset", ""))
SESSIONS, SESSION = "/api/auth/sessions", "/api/auth/session"
TOKEN = re.compile(r"/password/reset\?token=(reset_[\w-]+)")


async def asked(live: Running, browser: httpx.AsyncClient, email: str) -> httpx.Response:
    """Ask for a link, and wait until the service has seen to it."""
    answer = await browser.post(FORGOT, json={"email": email})
    with anyio.fail_after(60):
        while await live.service.database.fetchrow("SELECT 1 AS n FROM outbox"):
            live.service.runtime.slots.wake_outbox()
            await anyio.sleep(0.02)
    return answer


async def link(live: Running, post: Post, browser: httpx.AsyncClient, email: str) -> str:
    """Forget a password, and read the token in the mail."""
    before = len(post.mails)
    assert (await asked(live, browser, email)).status_code == 202
    mail = await post.received(before + 1)
    body = mail.get_body(("plain",))
    assert body is not None
    found = TOKEN.search(body.get_content())
    assert found is not None
    return found[1]


async def signed_in(browser: httpx.AsyncClient, password: str, email: str) -> int:
    body = {"email": email, "password": password}
    return (await browser.post("/api/auth/login", json=body)).status_code


async def test_a_link_sets_a_password_once_and_ends_every_session(
    live: Running, post: Post, sign_up: SignUp, browser: Browser
) -> None:
    ann = await sign_up()
    with capture_logs() as logs:
        token = await link(live, post, browser(), ann.email)
        other = browser()
        done = await other.post(RESET, json={"token": token, "password": NEW})
    assert done.status_code == 204
    assert (await ann.browser.get(SESSION)).status_code == 401
    assert await signed_in(browser(), PASSWORD, ann.email) == 401
    assert await signed_in(browser(), NEW, ann.email) == 200
    again = await other.post(RESET, json={"token": token, "password": PASSWORD})
    assert (again.status_code, again.json()["code"]) == (400, "invalid_token")
    kept = await live.service.database.fetch("SELECT metadata::text AS said FROM audit_log")
    assert token not in str(logs) + str([row["said"] for row in kept])


async def test_a_link_is_over_after_an_hour(
    live: Running, post: Post, sign_up: SignUp, browser: Browser, clock: Clock
) -> None:
    ann = await sign_up()
    token = await link(live, post, browser(), ann.email)
    clock.advance(timedelta(minutes=59, seconds=59))
    assert (await browser().get("/password/reset", params={"token": token})).status_code == 200
    clock.advance(timedelta(seconds=1))
    late = await browser().post(RESET, json={"token": token, "password": NEW})
    assert (late.status_code, late.json()["code"]) == (400, "invalid_token")
    assert (await browser().get("/password/reset", params={"token": token})).status_code == 400
    assert await signed_in(browser(), PASSWORD, ann.email) == 200


async def test_nobody_learns_who_has_an_account(
    live: Running, post: Post, sign_up: SignUp, browser: Browser
) -> None:
    """The answers are one, and so is the work: who asks waits for one row, whoever it is about."""
    ann = await sign_up()
    visitor = browser()
    answers = []
    for email in (ann.email, "nobody@example.com"):
        headers = {"X-Request-Id": "same"}
        answers.append(await visitor.post(FORGOT, json={"email": email}, headers=headers))
    known, unknown = answers
    assert (known.status_code, known.content) == (unknown.status_code, unknown.content)
    assert known.headers.keys() == unknown.headers.keys()
    mail = await post.received()
    assert mail["To"] == ann.email
    await asked(live, visitor, "nobody@example.com")
    assert len(post.mails) == 1


async def test_there_is_one_mail_an_hour(
    live: Running, post: Post, sign_up: SignUp, browser: Browser, clock: Clock
) -> None:
    ann = await sign_up()
    await link(live, post, browser(), ann.email)
    await asked(live, browser(), ann.email)
    assert len(post.mails) == 1
    clock.advance(timedelta(minutes=61))
    await link(live, post, browser(), ann.email)


async def test_asking_and_guessing_are_limited(live: Running, browser: Browser) -> None:
    visitor = browser()
    asks = [await visitor.post(FORGOT, json={"email": "a@example.com"}) for _ in range(21)]
    assert [one.status_code for one in asks] == [202] * 20 + [429]
    guess = {"token": "reset_guessed", "password": NEW}
    guesses = [await visitor.post(RESET, json=guess) for _ in range(31)]
    assert [one.status_code for one in guesses] == [400] * 30 + [429]


async def test_a_banned_user_gets_no_link_and_can_use_none(
    live: Running, post: Post, sign_up: SignUp, browser: Browser
) -> None:
    ann = await sign_up()
    token = await link(live, post, browser(), ann.email)
    await live.service.database.execute("UPDATE users SET banned = true")
    refused = await browser().post(RESET, json={"token": token, "password": NEW})
    assert refused.status_code == 400
    await live.service.database.execute("DELETE FROM password_resets")
    await asked(live, browser(), ann.email)
    assert len(post.mails) == 1


async def test_a_change_asks_for_the_old_password_and_ends_the_other_sessions(
    live: Running, sign_up: SignUp, browser: Browser
) -> None:
    ann = await sign_up()
    elsewhere = browser()
    assert await signed_in(elsewhere, PASSWORD, ann.email) == 200
    wrong = await ann.browser.post(CHANGE, json={"current": "wrong", "password": NEW})
    assert (wrong.status_code, wrong.json()["code"]) == (401, "invalid_credentials")
    short = await ann.browser.post(CHANGE, json={"current": PASSWORD, "password": "short"})
    assert short.status_code == 422
    done = await ann.browser.post(CHANGE, json={"current": PASSWORD, "password": NEW})
    assert done.status_code == 204
    assert (await ann.browser.get(SESSION)).status_code == 200
    assert (await elsewhere.get(SESSION)).status_code == 401
    assert await signed_in(browser(), NEW, ann.email) == 200
    tries = [
        (await ann.browser.post(CHANGE, json={"current": "guess", "password": NEW})).status_code
        for _ in range(10)
    ]
    assert tries[-1] == 429


async def listed(person: Person) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = (await person.browser.get(SESSIONS)).json()["items"]
    return items


async def test_people_see_their_sessions_and_end_them(
    live: Running, sign_up: SignUp, browser: Browser, clock: Clock
) -> None:
    ann, bob = await sign_up(), await sign_up("bob@example.com")
    phone = browser("203.0.113.7", **{"User-Agent": "Phone/1"})
    clock.advance(timedelta(minutes=1))
    assert await signed_in(phone, PASSWORD, ann.email) == 200
    clock.advance(timedelta(hours=2))
    assert (await phone.get(SESSION)).status_code == 200
    of_phone, own = await listed(ann)
    assert (of_phone["device"], of_phone["place"]) == ("Phone/1", "203.0.113.7")
    assert (of_phone["current"], own["current"]) == (False, True)
    assert of_phone["lastUsedAt"] > of_phone["createdAt"]
    assert (await bob.browser.delete(f"{SESSIONS}/{of_phone['id']}")).status_code == 404
    assert (await ann.browser.delete(f"{SESSIONS}/{of_phone['id']}")).status_code == 204
    assert (await phone.get(SESSION)).status_code == 401
    assert (await ann.browser.delete(f"{SESSIONS}/{of_phone['id']}")).status_code == 404
    assert [one["current"] for one in await listed(ann)] == [True]


@pytest.mark.parametrize(
    ("steps", "ends"), [([13, 13], False), ([15], True), ([10, 10, 9], False), ([10, 10, 10], True)]
)
async def test_a_session_ends_after_14_days_unused_and_after_30_in_all(
    live: Running, sign_up: SignUp, clock: Clock, steps: list[int], ends: bool
) -> None:
    ann = await sign_up()
    answer = await ann.browser.get(SESSION)
    for days in steps:
        clock.advance(timedelta(days=days))
        answer = await ann.browser.get(SESSION)
    assert (answer.status_code == 401) is ends


async def test_a_session_of_the_release_before_lives_on(
    live: Running, sign_up: SignUp, clock: Clock
) -> None:
    ann = await sign_up()
    await live.service.database.execute("UPDATE sessions SET used_at = NULL, device = NULL")
    assert (await ann.browser.get(SESSION)).status_code == 200
    assert len(await listed(ann)) == 1
    clock.advance(tokens.IDLE_LIFETIME)
    assert (await ann.browser.get(SESSION)).status_code == 401


async def test_a_password_is_chosen_anew_in_a_browser(
    live: Running, post: Post, sign_up: SignUp, browser: Browser
) -> None:
    ann = await sign_up()
    visitor = browser()
    assert "/password/forgot" in (await visitor.get("/login")).text
    unread = await visitor.post("/password/forgot", data={"email": "nobody"})
    assert unread.status_code == 422
    said = await visitor.post("/password/forgot", data={"email": ann.email})
    assert "a link is on its way" in said.text
    mail = await post.received()
    body = mail.get_body(("plain",))
    assert body is not None
    found = TOKEN.search(body.get_content())
    assert found is not None
    form = await visitor.get(found[0])
    assert form.status_code == 200
    assert form.headers["referrer-policy"] == "same-origin"
    short = await visitor.post("/password/reset", data={"token": found[1], "password": "x"})
    assert short.status_code == 422
    done = await visitor.post("/password/reset", data={"token": found[1], "password": NEW})
    assert (done.status_code, done.headers["location"]) == (303, "/login")
    assert await signed_in(visitor, NEW, ann.email) == 200
    assert (await visitor.get(found[0])).status_code == 400
