"""An agent that may no longer work with a store is out in every process, whichever heard of it."""

import re
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass

import httpx
import pytest

from tests.http.oauth.client import CSRF, Client, boxes, said
from tests.journeys.conftest import Seller, sign_up
from tests.journeys.neighbours import browsing
from tolsey.service import Running


@dataclass
class Hosts:
    """An agent that one process let in, and its person, who is served by the other."""

    agent: Client
    token: str
    person: Seller

    async def status(self) -> int:
        """Call where the agent is remembered."""
        return (await self.agent.call(self.token)).status_code


@pytest.fixture
async def hosts(pair: tuple[Running, Running]) -> AsyncIterator[Hosts]:
    async with AsyncExitStack() as stack:
        here, there = [await stack.enter_async_context(browsing(one)) for one in pair]
        person = await sign_up(here)
        agent = Client(there, person.store_id)
        assert (await agent.register()).status_code == 201
        asked = await person.browser.get(agent.asked())
        page = await person.browser.get(asked.headers["location"])
        found = CSRF.search(page.text)
        assert found, page.text
        ticked = [name for name, is_ticked in boxes(page.text).items() if is_ticked]
        form = {"csrf": found[1], "decision": "allow", "scope": ticked}
        decided = await person.browser.post(page.request.url.path, data=form)
        answer = await agent.redeem(said(decided.headers["location"])["code"])
        made = Hosts(agent, answer.json()["access_token"], person)
        assert await made.status() == 200
        yield made


async def test_an_agent_that_its_person_ends_is_out_everywhere(hosts: Hosts) -> None:
    page: httpx.Response = await hosts.person.browser.get("/account/agents")
    action = re.search(r'action="(/account/agents/[^"]+)"', page.text)
    csrf = CSRF.search(page.text)
    assert action
    assert csrf
    ended = await hosts.person.browser.post(action[1], data={"csrf": csrf[1]})
    assert ended.status_code == 303
    assert await hosts.status() == 401


async def test_the_agents_of_a_deleted_store_are_out_everywhere(hosts: Hosts) -> None:
    deleted = await hosts.person.browser.delete(f"/api/stores/{hosts.person.store_id}")
    assert deleted.status_code == 204, deleted.text
    assert await hosts.status() == 401


async def test_the_agents_of_who_signs_out_are_out_everywhere(hosts: Hosts) -> None:
    assert (await hosts.person.browser.post("/logout")).status_code == 303
    assert await hosts.status() == 401
