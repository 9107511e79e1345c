"""What clients call themselves, and what is made of it on the pages for people."""

import json
from typing import Any

import pytest

from tests.http.oauth.client import CALLBACK
from tests.http.oauth.conftest import Connect
from tolsey.storage.database import Database

pytestmark = pytest.mark.anyio

NAMELESS = (
    "",
    "   ",
    "\u3164\u2800",
    "\u0301",
    "Robo\x00",
    "Robo\nThe bank",
    "Robo\u202eknab",
    "\u2066Robo",
    "Ro\u200bbo",
    "Ro\u2028bo",
    "Robo\ud800",
)
"""Names that show nothing, or in which something hides or turns what is beside it."""


@pytest.mark.parametrize("name", [*NAMELESS, 7, "a" * 101])
async def test_a_name_that_cannot_be_shown_is_not_registered(connect: Connect, name: Any) -> None:
    client, _ = await connect()
    body = {"redirect_uris": [CALLBACK], "client_name": name}
    answer = await client.web.post(
        "/oauth/register",
        content=json.dumps(body),
        headers={"Content-Type": "application/json"},
    )
    assert (answer.status_code, answer.json()["error"]) == (400, "invalid_client_metadata")


@pytest.mark.parametrize(
    "name", ["Robo", " R\u00f6b\u00f6 ", "\u05e8\u05d5\u05d1\u05d5", "\u2764\ufe0f", "7"]
)
async def test_a_name_of_any_script_is_registered(connect: Connect, name: str) -> None:
    client, ann = await connect()
    assert (await client.register(client_name=name)).json()["client_name"] == name.strip()
    assert f"<bdi>{name.strip()}</bdi>" in (await client.consent_page(ann)).text


async def test_who_has_no_name_is_called_by_the_place_its_answers_go_to(
    connect: Connect, database: Database
) -> None:
    client, ann = await connect()
    await database.execute("UPDATE oauth_clients SET name = '\u202e '")
    page = await client.consent_page(ann)
    assert "Let <bdi>agent.example</bdi> work with" in page.text
    await client.tokens(ann)
    agents = await ann.browser.get("/account/agents")
    assert "End access of agent.example to" in agents.text
    assert "\u202e" not in page.text + agents.text
