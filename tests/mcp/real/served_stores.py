"""The whole service on a port, with two people who have a store each, for real clients to call."""

import re
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import anyio
import httpx

from tests.http.oauth.client import Client, boxes, said
from tests.http.people import PASSWORD
from tests.pages.conftest import ServedSite

CSRF = re.compile(r'name="csrf" value="([0-9a-f]+)"')
CALLBACK = "http://127.0.0.1:3000/callback"
ON_REQUEST_TOOLS = ("list_deals", "get_deal", "list_offers", "draft_offer_reply")


@dataclass
class Keeper:
    """Someone signed in, and the store that is theirs."""

    browser: httpx.AsyncClient
    store_id: str
    address: str
    """Where agents call the store."""
    consents: int = 0

    ticks_all: bool = False
    """Whether they tick every box of a consent page; else the boxes stay as they are."""

    async def visit(self, address: str) -> None:
        """Allow what an agent asks for, and let the browser follow to where it listens."""
        sent = await self.decide(address)
        async with httpx.AsyncClient() as web:
            with anyio.fail_after(30):
                while True:  # some listen only after they have sent their user away
                    with suppress(httpx.ConnectError):
                        await web.get(sent)
                        return
                    await anyio.sleep(0.05)

    async def decide(self, address: str) -> str:
        """Come to the consent page as an agent's visitor and allow; answers where one is sent."""
        self.consents += 1
        asked = await self.browser.get(address)
        page = await self.browser.get(asked.headers["location"])
        found = CSRF.search(page.text)
        assert found, page.text
        chosen = [
            name for name, is_ticked in boxes(page.text).items() if is_ticked or self.ticks_all
        ]
        form = {"csrf": found[1], "decision": "allow", "scope": chosen}
        decided = await self.browser.post(str(page.url), data=form)
        assert decided.status_code == 303, decided.text
        sent: str = decided.headers["location"]
        return sent

    async def token(self, scope: str = "store:read", callback: str = CALLBACK) -> str:
        """Get an access token as a client that was written by hand does."""
        client = await self.registered(callback)
        address = client.asked(resource=self.address, scope=scope)
        code = said(await self.decide(address))["code"]
        answer = await client.redeem(code, resource=self.address)
        token: str = answer.json()["access_token"]
        return token

    async def registered(self, callback: str = CALLBACK) -> Client:
        """Register a client for the store."""
        client = Client(self.browser, self.store_id, redirect_uri=callback)
        assert (await client.register()).status_code == 201
        return client


@dataclass
class ServedStores:
    """The service, and the two of its people."""

    live_site: ServedSite
    ann: Keeper
    eve: Keeper

    @property
    def url(self) -> str:
        return self.live_site.url


async def settled(live_site: ServedSite, browser: httpx.AsyncClient, email: str) -> Keeper:
    """Sign someone up, and give them a store."""
    account = {"email": email, "password": PASSWORD, "organizationName": email}
    made: dict[str, Any] = (await browser.post("/api/auth/signup", json=account)).json()
    body = {"organizationId": made["organization"]["id"], "name": f"Shop of {email}"}
    store = (await browser.post("/api/stores", json=body)).json()
    assert urlsplit(live_site.url).hostname == "127.0.0.1"
    return Keeper(browser, store["id"], f"{live_site.url}/api/mcp/v1/{store['id']}")
