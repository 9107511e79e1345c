"""Someone who talks to the model over their store, and what they are told."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import anyio
import httpx

from tests.http.people import PASSWORD
from tolsey.actors.organization.ledger.messages import GrantCredits
from tolsey.actors.organization.messages import organization
from tolsey.service import Running
from tolsey.storage.database import Database, Row

BASE = "http://127.0.0.1:8000"
DOLLAR = 1_000_000


@dataclass(frozen=True)
class StreamEvent:
    """A server-sent event."""

    name: str
    data: dict[str, Any]


@dataclass
class Answer:
    """What came back: a status, then a problem or events."""

    status: int
    headers: httpx.Headers
    problem: dict[str, Any]
    events: list[StreamEvent]

    @property
    def text(self) -> str:
        return "".join(one.data["text"] for one in self.events if one.name == "delta")

    @property
    def last(self) -> StreamEvent:
        return self.events[-1]

    def named(self, name: str) -> list[dict[str, Any]]:
        return [one.data for one in self.events if one.name == name]


async def events_of(response: httpx.Response) -> AsyncIterator[StreamEvent]:
    name = ""
    async for line in response.aiter_lines():
        if line.startswith("event: "):
            name = line.removeprefix("event: ")
        elif line.startswith("data: "):
            yield StreamEvent(name, json.loads(line.removeprefix("data: ")))


@dataclass
class Visitor:
    """A member of an organization with a store."""

    browser: httpx.AsyncClient
    user_id: str
    organization_id: str
    store_id: str

    def body(self, text: str = "How are sales?", **more: Any) -> dict[str, Any]:
        return {
            "storeId": self.store_id,
            "messages": [{"role": "user", "content": text}],
            "tools": False,
            **more,
        }

    @asynccontextmanager
    async def asking(
        self, text: str = "How are sales?", key: str | None = None, **more: Any
    ) -> AsyncIterator[httpx.Response]:
        headers = {"Idempotency-Key": key} if key else {}
        body = self.body(text, **more)
        async with self.browser.stream("POST", "/api/chat", json=body, headers=headers) as response:
            yield response

    async def ask(
        self, text: str = "How are sales?", key: str | None = None, **more: Any
    ) -> Answer:
        async with self.asking(text, key, **more) as response:
            if response.status_code != 200:
                await response.aread()
                return Answer(response.status_code, response.headers, response.json(), [])
            answered = [one async for one in events_of(response)]
            return Answer(response.status_code, response.headers, {}, answered)

    async def credits(self) -> dict[str, Any]:
        query = {"organizationId": self.organization_id}
        answer = await self.browser.get("/api/credits", params=query)
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found


async def arrive(browser: httpx.AsyncClient, email: str = "ann@example.com") -> Visitor:
    body = {"email": email, "password": PASSWORD, "organizationName": "Ann's"}
    made = await browser.post("/api/auth/signup", json=body)
    assert made.status_code == 201, made.text
    user_id, organization_id = made.json()["user"]["id"], made.json()["organization"]["id"]
    body = {"organizationId": organization_id, "name": "Corner shop"}
    store = await browser.post("/api/stores", json=body)
    assert store.status_code == 201, store.text
    return Visitor(browser, user_id, organization_id, store.json()["id"])


async def grant(live: Running, visitor: Visitor, amount: int, key: str = "gift") -> None:
    at: datetime = live.service.clock()
    message = GrantCredits(
        key=key, kind="bonus", amount=amount, at=at, expires_at=at + timedelta(days=30)
    )
    await live.service.runtime.ask(organization(visitor.organization_id), message)


async def ended(database: Database, count: int = 1, whose: str | None = None) -> list[Row]:
    """Wait until so many answers have ended, and read them."""
    with anyio.fail_after(240):
        while True:
            rows = await database.fetch(
                "SELECT * FROM chat_generations WHERE ended_at IS NOT NULL"
                " AND ($1::text IS NULL OR organization_id = $1) ORDER BY id",
                whose,
            )
            if len(rows) >= count:
                return rows
            await anyio.sleep(0.01)
