"""One question about the store, its answer as it streams, and what it cost."""

from collections.abc import AsyncIterator
from typing import Any

import httpx
import orjson

from tolsey.demo.browser import Browser
from tolsey.demo.money import usd
from tolsey.demo.telling import Unexpected

QUESTION = "What did my store sell this month?"


async def ask(browser: Browser, store_id: str) -> str:
    """Put the question and tell how many pieces the answer came in and what it cost."""
    pieces, done = 0, {}
    body = {"storeId": store_id, "messages": [{"role": "user", "content": QUESTION}]}
    async with browser.client.stream("POST", "/api/chat", json=body) as answer:
        if answer.is_error:
            await answer.aread()
            raise Unexpected(f"/api/chat answered {answer.status_code}: {answer.text[:300]}")
        async for name, data in _events(answer):
            pieces += name == "delta"
            if name == "aborted":
                raise Unexpected(f"the answer was aborted: {data['reason']}")
            if name == "done":
                done = data
    return f"{pieces} pieces came one by one and cost {usd(done['spent'])}"


async def _events(answer: httpx.Response) -> AsyncIterator[tuple[str, dict[str, Any]]]:
    """Read the events of a stream: each a name and JSON."""
    name = ""
    async for line in answer.aiter_lines():
        field, _, value = line.partition(": ")
        if field == "event":
            name = value
        elif field == "data":
            yield name, orjson.loads(value)
