"""Whoever asks with a browser reads a page where something is refused; programs read the problem."""

import pytest

from tests.http.people import Browser, SignUp
from tests.http.test_edge import FAULTS, probes
from tolsey.http.app import create_app
from tolsey.http.people import auth
from tolsey.http.stores import routes as stores
from tolsey.http.web.context import Service
from tolsey.http.web.edge import Edge

CHROMIUM = "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8"
PROGRAMS = ("*/*", "application/json", "application/problem+json", "text/html;q=0.5,*/*", "")
HEADINGS = {
    "/nothing/at/all": (404, "There is nothing here"),
    "/api/stores/store_1": (401, "Sign in first"),
    "/api/auth/logout": (405, "That did not work"),
    "/fault/refused": (409, "That did not work"),
    "/fault/overloaded": (503, "We could not do that just now"),
    "/fault/bug": (500, "We could not do that just now"),
}


@pytest.fixture
def edge(service: Service) -> Edge:
    return create_app(service, [auth.routes, stores.routes, probes()], {})


@pytest.mark.parametrize("path", HEADINGS)
async def test_a_browser_reads_a_page_and_a_program_the_problem(
    browser: Browser, path: str
) -> None:
    status, heading = HEADINGS[path]
    page = await browser().get(path, headers={"Accept": CHROMIUM})
    assert (page.status_code, page.headers["content-type"]) == (status, "text/html; charset=utf-8")
    assert f"<h1>{heading}</h1>" in page.text
    assert f"<title>{heading} · tolsey</title>" in page.text
    assert "secret" not in page.text
    assert page.headers["vary"] == "Accept"
    assert "script-src" not in page.headers["content-security-policy"]
    for accepted in PROGRAMS:
        problem = await browser().get(path, headers={"Accept": accepted})
        assert problem.headers["content-type"] == "application/problem+json"
        assert problem.status_code == problem.json()["status"] == status
        assert problem.headers["vary"] == "Accept"


async def test_a_page_of_a_refusal_keeps_the_headers_of_the_problem(browser: Browser) -> None:
    someone = browser(Accept=CHROMIUM)
    assert "POST" in (await someone.get("/api/auth/logout")).headers["allow"]
    assert (await someone.get("/api/stores")).headers["www-authenticate"] == "Session"
    assert (await someone.get("/fault/overloaded")).headers["retry-after"] == "3"


@pytest.mark.parametrize("name", FAULTS)
async def test_a_page_of_a_fault_says_the_number_that_finds_it_and_no_cause(
    browser: Browser, name: str
) -> None:
    answer = await browser(Accept=CHROMIUM).get(f"/fault/{name}", headers={"X-Request-Id": "r-1"})
    assert answer.status_code == FAULTS[name][1]
    assert "secret" not in answer.text
    assert ("r-1" in answer.text) == (answer.status_code == 500)


@pytest.mark.parametrize(
    "name",
    [
        "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)",
        "Mozilla/5.0 AppleWebKit/537.36 (compatible; GPTBot/1.2; +https://openai.com/gptbot)",
        "Baiduspider",
        "my-crawler/1.0",
    ],
)
async def test_a_bot_that_is_not_signed_in_is_refused_where_people_sign_in(
    browser: Browser, sign_up: SignUp, name: str
) -> None:
    answer = await browser(**{"User-Agent": name}).get("/api/stores")
    assert (answer.status_code, answer.json()["code"]) == (403, "bot_refused")
    assert (await browser(**{"User-Agent": name}).get("/api/auth/session")).status_code == 403
    person = await sign_up()
    person.browser.headers["User-Agent"] = name
    assert (await person.browser.get("/api/stores")).status_code == 200


@pytest.mark.parametrize(
    "name",
    ["", "curl/8.5.0", "python-httpx/0.28", "Mozilla/5.0 (Linux; Android 13; CUBOT KINGKONG 9)"],
)
async def test_who_is_no_bot_is_asked_to_sign_in(browser: Browser, name: str) -> None:
    assert (await browser(**{"User-Agent": name}).get("/api/stores")).status_code == 401
