import pytest

from tests.http.people import PASSWORD, Browser, SignUp

BASE = "http://127.0.0.1:8000"
FOREIGN = (
    "null",
    "",
    "https://evil.example",
    "http://127.0.0.1:8001",
    "http://127.0.0.1:8000.evil.example",
    "http://evil-127.0.0.1:8000",
    "HTTP://127.0.0.1:8000",
    "https://127.0.0.1:8000",
    "http://localhost:8000",
    f"{BASE}/",
    f"{BASE}, https://evil.example",
)
SITES = (None, "same-origin", "same-site", "cross-site", "none")


@pytest.mark.parametrize("site", SITES)
async def test_only_our_own_pages_may_use_the_cookie(sign_up: SignUp, site: str | None) -> None:
    ann = await sign_up()
    del ann.browser.headers["Origin"]
    said = {"Sec-Fetch-Site": site} if site else {}
    path = f"/api/organizations/{ann.organization_id}"

    async def status(origin: str | None) -> int:
        headers = said if origin is None else {**said, "Origin": origin}
        answer = await ann.browser.put(path, json={"name": "New"}, headers=headers)
        if answer.status_code != 200:
            assert answer.json()["code"] == "foreign_origin"
        return answer.status_code

    assert await status(BASE) == 200
    assert await status(None) == (200 if site == "same-origin" else 403)
    accepted = [origin for origin in FOREIGN if await status(origin) != 403]
    assert accepted == []


async def test_reading_needs_no_origin(sign_up: SignUp) -> None:
    ann = await sign_up()
    response = await ann.browser.get(
        "/api/auth/session", headers={"Origin": "https://evil.example"}
    )
    assert response.status_code == 200


async def test_a_foreign_page_cannot_sign_a_visitor_in(browser: Browser) -> None:
    body = {"email": "a@example.com", "password": PASSWORD}
    response = await browser(Origin="https://evil.example").post("/api/auth/login", json=body)
    assert (response.status_code, response.json()["code"]) == (403, "foreign_origin")


async def test_a_program_without_a_browser_signs_in(sign_up: SignUp, browser: Browser) -> None:
    ann = await sign_up()
    program = browser()
    del program.headers["Origin"]
    body = {"email": ann.email, "password": PASSWORD}
    assert (await program.post("/api/auth/login", json=body)).status_code == 200


async def test_another_name_of_this_machine_is_own_when_the_request_went_there(
    sign_up: SignUp,
) -> None:
    ann = await sign_up()
    response = await ann.browser.post(
        "/api/auth/logout",
        headers={"Origin": "http://localhost:9000", "Host": "localhost:9000"},
    )
    assert response.status_code == 204
