"""The client of an outside vector store, against a stand-in over real HTTP."""

import socket
from collections.abc import AsyncIterator
from typing import Any

import anyio
import httpx
import pytest
from hypercorn.asyncio import serve
from hypercorn.config import Config
from quart import Quart, request

from tolsey.http.clients.vectors import RestVectors, VectorStoreFailed

TOKEN = "vector-token"


class StandIn:
    """A store of vectors by namespace."""

    def __init__(self) -> None:
        self.kept = {"store_1": 3, "messages:store_1": 2, "other": 9}
        self.app = Quart("vectors")
        self.app.delete("/delete-namespace/<name>")(self.delete)
        self.app.get("/info")(self.info)

    async def delete(self, name: str) -> Any:
        if request.headers.get("Authorization") != f"Bearer {TOKEN}":
            return {"error": "unauthorized"}, 401
        if self.kept.pop(name, None) is None:
            return {"error": "no such namespace"}, 404
        return {"result": "Success"}

    async def info(self) -> Any:
        counted = {name: {"vectorCount": count} for name, count in self.kept.items()}
        return {"result": {"namespaces": counted}}


@pytest.fixture
async def store() -> AsyncIterator[tuple[StandIn, str]]:
    stand_in = StandIn()
    config = Config()
    listening = socket.create_server(("127.0.0.1", 0))
    port = listening.getsockname()[1]
    config.bind = [f"fd://{listening.detach()}"]
    stopped = anyio.Event()
    async with anyio.create_task_group() as tasks:

        async def run() -> None:
            await serve(stand_in.app, config, shutdown_trigger=stopped.wait)

        tasks.start_soon(run)
        yield stand_in, f"http://127.0.0.1:{port}"
        stopped.set()


async def test_namespaces_are_counted_and_purged(store: tuple[StandIn, str]) -> None:
    stand_in, url = store
    async with httpx.AsyncClient() as client:
        vectors = RestVectors(f"{url}/", TOKEN, client)
        names = ["store_1", "messages:store_1", "facts:store:store_1"]
        assert await vectors.count(names) == 5
        await vectors.purge(names)
        assert stand_in.kept == {"other": 9}
        assert await vectors.count(names) == 0


async def test_a_store_that_refuses_or_is_away_has_failed(store: tuple[StandIn, str]) -> None:
    _, url = store
    async with httpx.AsyncClient() as client:
        with pytest.raises(VectorStoreFailed):
            await RestVectors(url, "wrong", client).purge(["store_1"])
        with pytest.raises(VectorStoreFailed):
            await RestVectors("http://127.0.0.1:1", TOKEN, client).count(["store_1"])
