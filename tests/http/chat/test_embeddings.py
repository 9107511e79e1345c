"""Memory is found by what it means where a model makes embeddings, and paid for."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import httpx
import pytest

from tests.http.chat.visitor import BASE, DOLLAR, Visitor, arrive, grant
from tests.http.people import Clock
from tolsey.sandbox.model import EMBEDDER, Model
from tolsey.sandbox.server import listening
from tolsey.service import Running, running
from tolsey.settings import Settings

pytestmark = pytest.mark.anyio


@asynccontextmanager
async def started(
    settings: Settings, clock: Clock, model: str
) -> AsyncIterator[tuple[Running, str]]:
    """Run the service with an embedding model, on a port of its own."""
    with_model = settings.model_copy(update={"embedding_model": model})
    async with (
        running(with_model, clock=clock, timers=False, poll_seconds=0.05) as live,
        listening(live.app) as port,  # type: ignore[arg-type]  # plain ASGI
    ):
        yield live, f"http://127.0.0.1:{port}"


async def embedded(visitor: Visitor, total: int) -> dict[str, Any]:
    """Wait until everything that is remembered has its embedding."""
    with anyio.fail_after(60):
        while True:
            path = f"/api/stores/{visitor.store_id}/memory/vectors"
            told: dict[str, Any] = (await visitor.browser.get(path)).json()
            if told["embedded"] == total:
                return told
            await anyio.sleep(0.05)


async def found(visitor: Visitor, query: str) -> list[tuple[str, str]]:
    answer = await visitor.browser.get(
        f"/api/stores/{visitor.store_id}/memory/search", params={"query": query}
    )
    return [(one["text"], one["by"]) for one in answer.json()["items"]]


async def test_memory_is_found_by_its_meaning_kept_up_to_date_and_paid_for(
    settings: Settings, clock: Clock, model: Model
) -> None:
    async with (
        started(settings, clock, EMBEDDER) as (live, url),
        httpx.AsyncClient(base_url=url, headers={"Origin": BASE}, timeout=20) as browser,
    ):
        ann = await arrive(browser)
        path = f"/api/stores/{ann.store_id}/memory"
        await browser.put(f"{path}/facts/leaving", json={"value": "parcel every Monday"})
        await browser.put(f"{path}/facts/voice", json={"value": "dry and kind"})
        assert await found(ann, "package") == [], "without credits words have to do"
        await grant(live, ann, DOLLAR)
        told = await embedded(ann, 2)
        assert told == {"model": EMBEDDER, "embedded": 2, "waiting": 0, "total": 2}
        assert (await found(ann, "package"))[0] == ("parcel every Monday", "meaning")
        assert (await ann.credits())["balance"] < DOLLAR
        await browser.put(f"{path}/facts/leaving", json={"value": "never"})
        await embedded(ann, 2)
        assert ("parcel every Monday", "meaning") not in await found(ann, "package")
        await browser.delete(f"{path}/facts/leaving")
        assert [text for text, _ in await found(ann, "package")] == ["dry and kind"]


async def test_another_model_embeds_anew_where_it_was_left(
    settings: Settings, clock: Clock, model: Model
) -> None:
    async with (
        started(settings, clock, EMBEDDER) as (live, url),
        httpx.AsyncClient(base_url=url, headers={"Origin": BASE}, timeout=20) as browser,
    ):
        ann = await arrive(browser)
        await grant(live, ann, DOLLAR)
        for number in range(40):
            value = {"value": f"word{number}"}
            await browser.put(f"/api/stores/{ann.store_id}/memory/facts/f{number}", json=value)
        await embedded(ann, 40)
        assert {one["model"] for one in model.embedded} == {EMBEDDER}
        cookies = browser.cookies
    before = len(model.embedded)
    async with (
        started(settings, clock, "another-model") as (live, url),
        httpx.AsyncClient(
            base_url=url, headers={"Origin": BASE}, timeout=20, cookies=cookies
        ) as browser,
    ):
        ann = Visitor(browser, ann.user_id, ann.organization_id, ann.store_id)
        told = await embedded(ann, 40)
        assert told["model"] == "another-model"
        made = [one for one in model.embedded[before:] if len(one["input"]) > 1]
        assert sum(len(one["input"]) for one in made) == 40, "each once, in batches"
        rows = await live.service.database.fetch("SELECT DISTINCT model FROM vectors")
        assert [row["model"] for row in rows] == ["another-model"]
