"""Organizations that ask the model, and what each answer came to."""

import random
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import httpx
import orjson

from tests.campaigns.cluster.ground import Ground
from tests.campaigns.cluster.linear import Finding
from tests.campaigns.money.disk import read_rows
from tests.campaigns.money.rows import broken
from tests.campaigns.nemesis.clients import Clients, done
from tolsey.storage.database import Database

TALKERS = 6
CREDITS = 900_000_000

ANSWERS = """
SELECT organization_id, outcome, charged, ended_at IS NOT NULL AS has_ended FROM chat_generations
"""
SETTLED = """
SELECT organization_id, coalesce(sum(used), 0)::bigint AS used FROM credit_holds
WHERE closed_at IS NOT NULL GROUP BY 1
"""
HELD = "SELECT organization_id, id FROM credit_holds WHERE closed_at IS NULL"


@dataclass
class Talkers:
    """All of them, and what they were told."""

    clients: Clients
    stores: dict[str, str] = field(default_factory=dict)
    """The store of each organization."""
    asked: Counter[str] = field(default_factory=Counter)
    """How many questions each has asked: a repeat under its key is the same one."""
    spent: Counter[str] = field(default_factory=Counter)
    """What the answers that came to their end said they cost, in micro-dollars."""
    ended: Counter[str] = field(default_factory=Counter)

    async def enter(self) -> None:
        """Make their organizations, with credits by contract, and a store of each."""
        door = self.clients.doors[0]
        for n in range(TALKERS):
            id = (await done(door, "POST", "/api/organizations", name=f"Talker {n}"))["id"]
            terms = {"plan": "custom", "monthlyAllowance": CREDITS, "dailyBonus": 0}
            path = f"/api/admin/organizations/{id}/contract"
            await done(door, "PUT", path, **terms, reason="a campaign")
            store = await done(door, "POST", "/api/stores", organizationId=id, name="A store")
            self.stores[id] = store["id"]

    async def ask(self, luck: random.Random) -> None:
        """Ask one question, again under its key until its answer has come to an end."""
        id, key = luck.choice(list(self.stores)), self.clients.name("chat")
        said = {"role": "user", "content": f"How are sales? {key}"}
        self.asked[id] += 1
        for place in self.clients.places(luck):
            answer = await self.clients.attempt(
                *("chat", place, "POST", "/api/chat"),
                json={"storeId": self.stores[id], "messages": [said]},
                headers={"Idempotency-Key": key},
            )
            if answer is not None and answer.status_code == httpx.codes.OK:
                name, last = _last(answer.text)
                self.clients.model.told[f"chat {name}"] += 1
                if name in {"done", "aborted"}:
                    self.ended[id] += 1
                    self.spent[id] += last["spent"]
                    return

    async def judged(self, ground: Ground) -> list[Finding]:
        """Find answers that were lost, made twice, left open, or paid otherwise than was said."""
        rows, answers = Counter[str](), await ground.fetch(ANSWERS)
        charged = Counter[str]()
        for row in answers:
            rows[row["organization_id"]] += 1
            charged[row["organization_id"]] += row["charged"] or 0
        settled = {row["organization_id"]: row["used"] for row in await ground.fetch(SETTLED)}
        held = await ground.fetch(HELD)
        found = [Finding("open_answer", str(dict(row))) for row in answers if not row["has_ended"]]
        found += [Finding("open_hold", str(dict(row))) for row in held]
        database = Database(ground.database_url)
        await database.open()
        try:
            books = await read_rows(database, list(self.stores))
        finally:
            await database.close()
        for id in self.stores:
            if not self.ended[id] <= rows[id] <= self.asked[id]:
                said = f"{self.ended[id]} ended of {self.asked[id]} questions"
                found.append(Finding("answers", f"{id}: {rows[id]} rows, {said}"))
            if charged[id] != settled.get(id, 0) or charged[id] < self.spent[id]:
                said = f"told {self.spent[id]}, settled {settled.get(id, 0)}"
                found.append(Finding("spent", f"{id}: charged {charged[id]}, {said}"))
            found += [Finding("books", f"{id}: {one}") for one in broken(books[id])]
        return found


def _last(text: str) -> tuple[str, dict[str, Any]]:
    """Read the last event of a stream."""
    name, data = "cut", {}
    for line in text.splitlines():
        if line.startswith("event: "):
            name = line.removeprefix("event: ")
        elif line.startswith("data: "):
            data = orjson.loads(line.removeprefix("data: "))
    return name, data
