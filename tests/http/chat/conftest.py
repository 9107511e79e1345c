from collections.abc import AsyncIterator

import httpx
import pytest

from tests.http.chat.visitor import BASE, DOLLAR, Visitor, arrive, grant
from tests.http.people import Clock, settings_of
from tolsey.sandbox.model import Model
from tolsey.sandbox.server import listening
from tolsey.service import Running, running
from tolsey.settings import Settings


@pytest.fixture
def settings(database_url: str, redis_url: str, model: Model) -> Settings:
    return settings_of(
        database_url=database_url,
        redis_url=redis_url,
        **model.settings,
        chat_checkpoint_seconds=0.05,
    )


@pytest.fixture
async def live(settings: Settings, clock: Clock) -> AsyncIterator[Running]:
    async with running(settings, clock=clock, timers=False, poll_seconds=0.1) as started:
        yield started


@pytest.fixture
async def url(live: Running) -> AsyncIterator[str]:
    """Serve the whole application by the server it ships with."""
    async with listening(live.app) as port:  # type: ignore[arg-type]  # plain ASGI
        yield f"http://127.0.0.1:{port}"


@pytest.fixture
async def client(url: str) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(base_url=url, headers={"Origin": BASE}, timeout=20) as opened:
        yield opened


@pytest.fixture
async def ann(client: httpx.AsyncClient) -> Visitor:
    """Sign Ann up; she has a store and no credits."""
    return await arrive(client)


@pytest.fixture
async def rich(live: Running, ann: Visitor) -> Visitor:
    """Give Ann ten dollars."""
    await grant(live, ann, 10 * DOLLAR)
    return ann
