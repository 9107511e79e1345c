"""People sign up, in and out without a script."""

import hashlib

import httpx
import pytest

from tests.http.people import PASSWORD
from tests.pages.chromium import Page
from tests.pages.conftest import ServedSite
from tolsey.http.layout.assets import STYLE_ADDRESS

ANN = {"email": "ann@example.com", "password": PASSWORD, "organizationName": "Ann's <Ceramics>"}
ELSEWHERE = (
    "https://evil.example",
    "//evil.example",
    "///evil.example",
    "/\\evil.example",
    "/\t/evil.example",
    "/\n//evil.example",
    "\\\\evil.example",
    "javascript:alert(1)",
    "evil.example",
    " /billing",
    "/" + "a" * 3000,
    "",
)


async def sign_up(visitor: httpx.AsyncClient, **changed: str) -> httpx.Response:
    return await visitor.post("/signup", data={**ANN, **changed})


async def test_a_person_signs_up_out_and_in_again(live_site: ServedSite, page: Page) -> None:
    await page.open(f"{live_site.url}/signup")
    assert await page.read("document.activeElement.tagName") == "BODY"
    for name, value in ANN.items():
        await page.write(f"#{name}", value)
    await page.click("main button")
    assert await page.address() == "/"
    assert "ann@example.com" in await page.text("header")

    await page.click("header button")
    assert await page.address() == "/login"
    await page.open(f"{live_site.url}/billing")
    assert await page.address() == "/login?next=/billing"

    await page.write("#email", " Ann@Example.com ")
    await page.write("#password", PASSWORD)
    await page.click("main button")
    assert (await page.address()).startswith("/billing")
    assert page.problems == []


async def test_what_is_wrong_is_said_beside_its_field_and_the_rest_is_kept(
    live_site: ServedSite, page: Page
) -> None:
    await page.open(f"{live_site.url}/signup")
    await page.write("#email", "ann@example")
    await page.write("#password", "short")
    await page.write("#organizationName", "Ann's <Ceramics>")
    await page.read("document.querySelector('main form').noValidate = true")
    await page.click("main button")

    assert await page.text("#email-error") == "Enter an e-mail address, such as ann@example.com."
    assert "12" in await page.text("#password-error")
    described = "document.querySelector('#email').getAttribute('aria-describedby')"
    assert await page.read(described) == "email-error"
    assert await page.read("document.querySelector('#email').value") == "ann@example"
    assert (
        await page.read("document.querySelector('#organizationName').value")
        == ANN["organizationName"]
    )
    assert await page.read("document.querySelector('#password').value") == ""


async def test_every_field_has_a_label_and_a_phone_needs_no_scrolling_sideways(
    live_site: ServedSite, page: Page
) -> None:
    for path in ("/signup", "/login"):
        await page.open(live_site.url + path, width=320)
        unlabelled = "[...document.querySelectorAll('input:not([type=hidden])')].filter(one => !one.labels.length).length"
        assert await page.read(unlabelled) == 0
        assert await page.read("document.documentElement.scrollWidth") == 320
    assert page.problems == []


async def test_signing_in_goes_on_to_where_the_person_was_going(
    visitor: httpx.AsyncClient,
) -> None:
    wanted = "/billing?organizationId=org_1&from=checkout"
    sent = await visitor.get(wanted)
    assert sent.status_code == 303
    form = await visitor.get(sent.headers["location"])
    assert 'name="next" value="/billing?organizationId=org_1&amp;from=checkout"' in form.text
    assert (await sign_up(visitor, next=wanted)).headers["location"] == wanted
    again = await visitor.get(sent.headers["location"])
    assert (again.status_code, again.headers["location"]) == (303, wanted)


@pytest.mark.parametrize("wanted", ELSEWHERE)
async def test_nobody_is_led_to_another_site(visitor: httpx.AsyncClient, wanted: str) -> None:
    made = await sign_up(visitor, next=wanted)
    assert (made.status_code, made.headers["location"]) == (303, "/")
    login = {"email": ANN["email"], "password": PASSWORD, "next": wanted}
    signed_in = await visitor.post("/login", data=login)
    assert (signed_in.status_code, signed_in.headers["location"]) == (303, "/")
    shown = await visitor.get("/login", params={"next": wanted})
    assert shown.headers["location"] == "/"


async def test_a_foreign_page_can_neither_sign_in_nor_up_nor_out(
    live_site: ServedSite, visitor: httpx.AsyncClient
) -> None:
    await sign_up(visitor)
    for origin in ("https://evil.example", "null"):
        async with httpx.AsyncClient(base_url=live_site.url, headers={"Origin": origin}) as victim:
            login = {"email": ANN["email"], "password": PASSWORD}
            answers = [
                await victim.post("/login", data=login),
                await victim.post("/signup", data={**ANN, "email": "eve@example.com"}),
                await victim.post(
                    "/logout", headers={"Cookie": f"session={visitor.cookies['session']}"}
                ),
            ]
            assert [answer.status_code for answer in answers] == [403, 403, 403]
            assert all(answer.headers["content-type"].startswith("text/html") for answer in answers)
            assert not victim.cookies
    assert (await visitor.get("/api/auth/session")).status_code == 200


async def test_a_page_loads_its_stylesheet_alone_runs_nothing_and_stands_in_no_frame(
    visitor: httpx.AsyncClient,
) -> None:
    for path in ("/signup", "/login"):
        shown = await visitor.get(path)
        said = dict(
            part.strip().partition(" ")[::2]
            for part in shown.headers["content-security-policy"].split(";")
        )
        assert said["default-src"] == "'none'"
        assert said["frame-ancestors"] == "'none'"
        assert said["base-uri"] == "'none'"
        assert said["form-action"] == "'self'"
        assert said["style-src"] == "'self'"
        assert "script-src" not in said
        assert "<script" not in shown.text
        assert "style=" not in shown.text
        assert shown.text.count('rel="stylesheet"') == 1
        assert shown.headers["cache-control"] == "no-store"
        assert shown.headers["referrer-policy"] == "same-origin"


async def test_the_stylesheet_may_be_kept_for_good_under_the_hash_of_what_it_says(
    visitor: httpx.AsyncClient,
) -> None:
    assert f'href="{STYLE_ADDRESS}"' in (await visitor.get("/login")).text
    sheet = await visitor.get(STYLE_ADDRESS)
    assert sheet.headers["content-type"] == "text/css; charset=utf-8"
    assert sheet.headers["cache-control"] == "public, max-age=31536000, immutable"
    assert hashlib.sha256(sheet.content).hexdigest()[:16] in STYLE_ADDRESS
    for path in (
        "/assets/style.css",
        "/assets/style.0123456789abcdef.css",
        "/assets/..%2fwords.py",
    ):
        assert (await visitor.get(path)).status_code == 404


async def test_what_was_sent_is_shown_as_text_and_never_as_markup(
    visitor: httpx.AsyncClient,
) -> None:
    forged = '"><script>alert(1)</script>'
    shown = await visitor.post("/login", data={"email": forged, "password": forged})
    assert shown.status_code == 422
    assert "&#34;&gt;&lt;script&gt;" in shown.text
    assert "<script" not in shown.text
    for body in ({}, {**ANN, "email": "a\0@example.com"}, {**ANN, "role": "owner"}):
        assert (await visitor.post("/signup", data=body)).status_code == 422


async def test_a_wrong_pair_and_a_taken_address_say_so(visitor: httpx.AsyncClient) -> None:
    await sign_up(visitor)
    await visitor.post("/logout")
    for email in (ANN["email"], "nobody@example.com"):
        answer = await visitor.post("/login", data={"email": email, "password": "wrong"})
        assert answer.status_code == 401
        assert (
            "The email address or the password is incorrect. Check both and try again."
            in answer.text
        )
        assert 'wrong"' not in answer.text
    taken = await sign_up(visitor)
    assert taken.status_code == 409
    assert (
        "An account with this email address already exists. Sign in, or use another address."
        in taken.text
    )
    assert "set-cookie" not in taken.headers


async def test_the_pages_count_against_the_same_limits_as_the_api(
    visitor: httpx.AsyncClient,
) -> None:
    for n in range(5):
        body = {**ANN, "email": f"a{n}@example.com"}
        made = await (
            visitor.post("/signup", data=body)
            if n % 2
            else visitor.post("/api/auth/signup", json=body)
        )
        assert made.status_code in {201, 303}, made.text
    refused = await sign_up(visitor)
    assert refused.status_code == 429
    assert "Too many attempts. Try again in" in refused.text
    assert int(refused.headers["retry-after"]) > 3_600
    assert (await visitor.post("/api/auth/signup", json=ANN)).status_code == 429


async def test_the_session_of_before_ends_with_signing_in(
    live_site: ServedSite, visitor: httpx.AsyncClient
) -> None:
    await sign_up(visitor)
    former = visitor.cookies["session"]
    await visitor.post("/login", data={"email": ANN["email"], "password": PASSWORD})
    assert visitor.cookies["session"] != former
    async with httpx.AsyncClient(base_url=live_site.url, cookies={"session": former}) as thief:
        assert (await thief.get("/api/auth/session")).status_code == 401
