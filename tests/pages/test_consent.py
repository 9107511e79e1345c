"""A person lets an agent in, says no to one, and ends what they allowed, in a real browser."""

from dataclasses import dataclass

import httpx
import pytest

from tests.http.oauth.client import Client, said
from tests.http.people import PASSWORD
from tests.journeys.conftest import free_port
from tests.pages.chromium import Page
from tests.pages.conftest import OtherSite, ServedSite
from tolsey.http.layout.assets import STYLE_ADDRESS

ANN = {"email": "ann@example.com", "password": PASSWORD, "organizationName": "Ann's"}
WIDE = "orders:write orders:read store:read"
UNTICK = """[...document.querySelectorAll("input[name=scope]:checked")].forEach(
    box => box.value === "store:read" || box.value.startsWith("orders:") || box.click())"""


@dataclass
class Shopkeeper:
    """A person at a browser, and the agent that they want to let in."""

    live_site: ServedSite
    page: Page
    client: Client
    callback: str

    async def asked(self, **changed: str) -> None:
        """Come from the agent, and meet what is met."""
        asked = self.client.asked(resource=self.resource, **changed)
        await self.page.open(self.live_site.url + asked)

    @property
    def resource(self) -> str:
        return f"{self.live_site.url}/api/mcp/v1/{self.client.store_id}"

    async def came_back(self) -> dict[str, str]:
        """Read what the agent is told at the end."""
        address: str = await self.page.read("location.href")
        assert address.startswith(self.callback)
        return said(address)

    async def redeemed(self) -> httpx.Response:
        """Let the agent bring its code."""
        code = (await self.came_back())["code"]
        return await self.client.redeem(code, resource=self.resource)


@pytest.fixture
async def keeper(
    live_site: ServedSite, page: Page, visitor: httpx.AsyncClient, other_site: OtherSite
) -> Shopkeeper:
    """Make a shopkeeper, who is not signed in yet in their browser."""
    other_site.body = "<h1>You can close this window</h1>"
    made = (await visitor.post("/api/auth/signup", json=ANN)).json()
    body = {"organizationId": made["organization"]["id"], "name": "Corner <shop>"}
    store = (await visitor.post("/api/stores", json=body)).json()
    port = other_site.url.rpartition(":")[2]
    callback = f"http://127.0.0.1:{port}/callback"
    client = Client(visitor, store["id"], redirect_uri=callback)
    assert (await client.register(client_name="Robo & sons")).status_code == 201
    return Shopkeeper(live_site, page, client, callback)


async def signed_in(page: Page) -> None:
    """Sign in where one is asked to."""
    await page.write("#email", ANN["email"])
    await page.write("#password", PASSWORD)
    await page.click("main button")


async def test_a_person_signs_in_lets_an_agent_in_and_ends_it(keeper: Shopkeeper) -> None:
    page = keeper.page
    await keeper.asked(scope=WIDE)
    assert (await page.address()).startswith("/login?next=/oauth/consent/")
    await signed_in(page)

    assert (await page.address()).startswith("/oauth/consent/")
    shown = await page.text("main")
    for reported in (
        "Let Robo & sons work with Corner <shop>?",
        ANN["email"],
        keeper.callback.removeprefix("http://").partition("/")[0],
        "any program there can call itself Robo & sons",
        "It could change things",
        "Add notes and tags to orders",
        "It could look at things",
        "See orders and sales",
    ):
        assert reported in shown
    assert shown.index("Add notes") < shown.index("See orders")

    await page.read(UNTICK)
    await page.click("button[value=allow]")
    answer = await keeper.redeemed()
    assert answer.status_code == 200, answer.text
    assert answer.json()["scope"] == "store:read orders:read orders:write"

    await page.open(f"{keeper.live_site.url}/account/agents")
    assert "Robo & sons · Corner <shop>" in await page.text("main")
    await page.click("button.danger")
    assert await page.address() == "/account/agents"
    assert "You have let no app in." in await page.text("main")
    refused = await keeper.client.refresh(answer.json()["refresh_token"], resource=keeper.resource)
    assert refused.json()["error"] == "invalid_grant"
    assert page.problems == []


async def test_a_person_says_no_and_the_agent_hears_it(keeper: Shopkeeper) -> None:
    await keeper.asked()
    await signed_in(keeper.page)
    await keeper.page.click("button[value=deny]")
    reported = await keeper.came_back()
    assert (reported["error"], reported["iss"]) == ("access_denied", keeper.live_site.url)
    await keeper.page.open(f"{keeper.live_site.url}/account/agents")
    assert "You have let no app in." in await keeper.page.text("main")
    assert keeper.page.problems == []


async def test_an_app_that_asks_wrongly_hears_it_after_its_person_signed_in(
    keeper: Shopkeeper,
) -> None:
    page = keeper.page
    await keeper.asked(response_type="token")
    assert (await page.address()).startswith("/login?next=/oauth/consent/")
    await signed_in(page)
    assert "did not ask for it in a way that can be answered" in await page.text("main")
    await page.click("main button")
    assert (await keeper.came_back())["error"] == "unsupported_response_type"

    await keeper.asked(response_type="token")
    assert (await keeper.came_back())["error"] == "unsupported_response_type"
    assert [one for one in page.problems if "status of 403" not in one] == []


async def test_a_person_without_an_account_makes_one_and_hears_that_the_store_is_not_theirs(
    keeper: Shopkeeper,
) -> None:
    page = keeper.page
    await keeper.asked()
    await page.click("main a[href^='/signup']")
    for name, value in {**ANN, "email": "eve@example.com"}.items():
        await page.write(f"#{name}", value)
    await page.click("main button")
    shown = await page.text("main")
    assert "is not one of yours" in shown
    assert "Corner" not in shown
    await page.click("main button")
    assert (await keeper.came_back())["error"] == "invalid_target"
    assert [one for one in page.problems if "status of 403" not in one] == []


async def test_an_answer_is_given_once_even_by_going_back(keeper: Shopkeeper) -> None:
    page = keeper.page
    await keeper.asked()
    await signed_in(page)
    consent = await page.address()
    await page.click("button[value=allow]")
    assert "code" in await keeper.came_back()
    await page.open(keeper.live_site.url + consent)
    assert "has expired or was already answered" in await page.text("main")
    assert await page.read("document.querySelectorAll('main form').length") == 0


async def test_an_app_that_did_not_register_its_address_gets_no_visitor(
    keeper: Shopkeeper,
) -> None:
    await keeper.asked(redirect_uri=f"http://127.0.0.1:{free_port()}/elsewhere")
    assert (await keeper.page.address()).startswith("/oauth/authorize")
    assert "Register it, or use a registered one." in await keeper.page.text("main")


async def test_the_question_stands_in_no_frame(keeper: Shopkeeper, other_site: OtherSite) -> None:
    page = keeper.page
    await keeper.asked()
    await signed_in(page)
    consent = keeper.live_site.url + await page.address()
    other_site.frame(consent)
    await page.open(other_site.url)
    assert "frame-ancestors" in " ".join(page.problems) or "blocked" in " ".join(page.problems)
    drawn = "document.querySelector('button') === null"
    assert await page.read(drawn, frame=0 if page.frames else None)


async def test_a_foreign_page_cannot_answer_for_its_visitor(
    keeper: Shopkeeper, other_site: OtherSite
) -> None:
    page = keeper.page
    await keeper.asked()
    await signed_in(page)
    consent = keeper.live_site.url + await page.address()
    csrf = await page.read("document.querySelector('[name=csrf]').value")
    other_site.body = (
        f'<form method="post" action="{consent}"><input name="csrf" value="{csrf}">'
        '<button name="decision" value="allow">Win</button></form>'
    )
    await page.open(other_site.url)
    await page.click("button")
    assert "code=" not in await page.read("location.href")
    await page.open(f"{keeper.live_site.url}/account/agents")
    assert "Robo" not in await page.text("main")


@pytest.mark.parametrize("width", [320, 1000])
async def test_the_question_needs_no_script_no_style_of_elsewhere_and_no_scrolling_sideways(
    keeper: Shopkeeper, width: int
) -> None:
    page, long = keeper.page, "https://agent.example/" + "a" * 200
    await keeper.client.register(client_name="W" * 100, redirect_uris=[keeper.callback, long])
    await page.call("Emulation.setScriptExecutionDisabled", value=True)
    await keeper.asked(redirect_uri=long, scope="store:read audit:read catalog:write")
    await page.call("Emulation.setScriptExecutionDisabled", value=False)
    await signed_in(page)
    page.requests.clear()
    address = await page.address()
    await page.open(keeper.live_site.url + address, width=width)
    assert await page.read("document.documentElement.scrollWidth") == width
    assert {one for one in page.requests if not one.startswith("data:")} == {
        keeper.live_site.url + address,
        keeper.live_site.url + STYLE_ADDRESS,
    }
    named = "[...document.querySelectorAll('button')].filter(one => !one.innerText.trim()).length"
    assert await page.read(named) == 0
    assert page.problems == []
