"""People look where they are signed in, change their password, and make keys for their programs."""

import re
from collections.abc import AsyncIterator

import httpx
import pytest

from tests.http.people import PASSWORD
from tests.pages.chromium import Page
from tests.pages.conftest import ServedSite
from tests.pages.test_badge import READABLE, contrast
from tests.pages.test_billing import TEXTS
from tests.pages.test_gallery import UNNAMED
from tests.pages.test_people import signed_up
from tolsey.http.people.credential_pages import spoken_device

ANN = "ann@example.com"
VALUE = re.compile(r"<code>(bei_[0-9A-Za-z]{46})</code>")
SESSIONS, KEYS = "/account/sessions", "/account/keys"
CHROME = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/130.0 Safari/537.36"


@pytest.fixture
async def elsewhere(live_site: ServedSite) -> AsyncIterator[httpx.AsyncClient]:
    """Another browser of the same person."""
    headers = {"Origin": live_site.url, "User-Agent": CHROME}
    async with httpx.AsyncClient(base_url=live_site.url, headers=headers) as client:
        yield client


async def signed_in(client: httpx.AsyncClient, password: str = PASSWORD) -> int:
    answer = await client.post("/api/auth/login", json={"email": ANN, "password": password})
    return answer.status_code


@pytest.mark.parametrize(
    ("agent", "said"),
    [
        (CHROME, "Chrome on Linux"),
        (f"{CHROME} Edg/130.0", "Edge on Linux"),
        (
            (
                "Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like"
                " Gecko) Version/18.0 Mobile/15E148 Safari/604.1"
            ),
            "Safari on iPhone",
        ),
        (
            "Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:132.0) Gecko/20100101 Firefox/132.0",
            "Firefox on Windows",
        ),
        ("curl/8.5.0", "curl"),
        ("<script>", "<script>"),
        ("", "Unknown device"),
    ],
)
def test_a_session_says_by_what_it_was_begun(agent: str, said: str) -> None:
    assert spoken_device(agent) == said


async def test_a_session_that_one_does_not_know_is_ended(
    visitor: httpx.AsyncClient, elsewhere: httpx.AsyncClient
) -> None:
    await signed_up(visitor, ANN)
    assert await signed_in(elsewhere) == 200
    shown = await visitor.get(SESSIONS)
    assert "Chrome on Linux" in shown.text
    assert "python-httpx" in shown.text
    assert "This one" in shown.text
    (act,) = re.findall(rf'action="({SESSIONS}/\w+/end)"', shown.text)
    done = await visitor.post(act)
    assert done.headers["location"] == f"{SESSIONS}?done=ended"
    assert (await elsewhere.get("/api/auth/session")).status_code == 401
    assert (await visitor.post(act)).status_code == 404
    other = await elsewhere.get(SESSIONS)
    assert other.headers["location"] == f"/login?next={SESSIONS}"


async def test_a_password_is_changed_and_other_sessions_end(
    visitor: httpx.AsyncClient, elsewhere: httpx.AsyncClient
) -> None:
    await signed_up(visitor, ANN)
    assert await signed_in(elsewhere) == 200
    new = "another horse battery"
    wrong = await visitor.post("/account/password", data={"current": "no", "password": new})
    assert wrong.status_code == 401
    assert "The current password is incorrect. Check it and try again." in wrong.text
    short = await visitor.post("/account/password", data={"current": PASSWORD, "password": "x"})
    assert short.status_code == 422
    assert "Use 12 to 256 characters." in short.text
    done = await visitor.post("/account/password", data={"current": PASSWORD, "password": new})
    assert done.headers["location"] == f"{SESSIONS}?done=password"
    assert "Your other sessions have ended." in (await visitor.get(done.headers["location"])).text
    assert (await elsewhere.get("/api/auth/session")).status_code == 401
    assert (await signed_in(elsewhere), await signed_in(elsewhere, new)) == (401, 200)


async def test_a_key_is_made_shown_once_and_ended(
    visitor: httpx.AsyncClient, live_site: ServedSite
) -> None:
    made = await signed_up(visitor, ANN)
    form = {"organizationId": made["organization"]["id"], "name": "<Nightly>"}
    several = {**form, "scope": ["intelligence:read", "intelligence:write"], "lifetimeDays": "30"}
    shown = await visitor.post(KEYS, data=several)
    assert shown.status_code == 201
    value = VALUE.search(shown.text)
    assert value
    assert shown.headers["cache-control"] == "no-store"
    again = await visitor.get(KEYS)
    assert value[1] not in again.text
    assert value[1][:12] in again.text
    assert "<bdi>&lt;Nightly&gt;</bdi>" in again.text
    async with httpx.AsyncClient(base_url=live_site.url) as program:
        headers = {"X-Api-Key": value[1]}
        assert (await program.get("/api/intelligence/usage", headers=headers)).status_code == 200
        (act,) = re.findall(rf'action="({KEYS}/\w+/end)"', again.text)
        assert (await visitor.post(act)).headers["location"] == KEYS
        assert (await program.get("/api/intelligence/usage", headers=headers)).status_code == 401
    assert value[1][:12] not in (await visitor.get(KEYS)).text


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"scope": []}, "Tick at least one thing that the key may do."),
        ({"name": "x" * 101}, "Use 100 characters at most."),
        ({"scope": "orders:read"}, "Tick at least one thing"),
        ({"lifetimeDays": "9999"}, "Fill the form in again."),
    ],
)
async def test_what_is_wrong_with_a_key_is_said_and_none_is_made(
    visitor: httpx.AsyncClient, change: dict[str, object], said: str
) -> None:
    made = await signed_up(visitor, ANN)
    form = {"organizationId": made["organization"]["id"], "scope": "intelligence:read"}
    shown = await visitor.post(KEYS, data={**form, "name": "", "lifetimeDays": "30", **change})
    assert shown.status_code == 422
    assert said in shown.text
    assert (await visitor.get("/api/account/api-keys")).json()["items"] == []


async def test_a_foreign_page_makes_and_ends_nothing(visitor: httpx.AsyncClient) -> None:
    await signed_up(visitor, ANN)
    for form in (KEYS, f"{KEYS}/key_1/end", f"{SESSIONS}/1/end", "/account/password"):
        answer = await visitor.post(form, headers={"Origin": "https://evil.example"})
        assert answer.status_code == 403, form


@pytest.mark.parametrize("width", [1280, 390])
async def test_the_pages_of_credentials_are_readable_and_fit(
    live_site: ServedSite, page: Page, visitor: httpx.AsyncClient, width: int
) -> None:
    await signed_up(visitor, ANN)
    await page.open(f"{live_site.url}/login?next={KEYS}", width=width)
    await page.write("#email", ANN)
    await page.write("#password", PASSWORD)
    await page.click("main button")
    await page.write("#name", "W" * 100)
    await page.click("main form[action='/account/keys'] button")
    assert (await page.text("code")).startswith("bei_")
    for address in (None, SESSIONS):
        if address:
            await page.open(live_site.url + address, width=width)
        texts = await page.read(TEXTS)
        assert [one for one in texts if contrast(one[1], one[2]) < READABLE] == []
        assert await page.read("document.documentElement.scrollWidth") == width
        assert await page.read(UNNAMED) == []
    assert page.problems == []
