from collections.abc import AsyncIterator

import pytest

from tests.http.payments.market import Market, opened
from tests.http.payments.shop import Shop, served
from tests.http.people import NOON, Clock, Person, SignUp, made_operator
from tolsey.http import operations
from tolsey.http.web.edge import Edge


@pytest.fixture(autouse=True)
def long_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let answers wait for whatever a busy machine does."""
    monkeypatch.setattr(operations, "WAIT_SECONDS", 60.0)


@pytest.fixture
def clock() -> Clock:
    return Clock(NOON.replace(microsecond=0))


@pytest.fixture
async def market(clock: Clock) -> AsyncIterator[Market]:
    async with opened(clock()) as market:
        yield market


@pytest.fixture
async def shop(
    market: Market, clock: Clock, database_url: str, redis_url: str
) -> AsyncIterator[Shop]:
    async with served(market, clock, database_url, redis_url) as shop:
        yield shop


@pytest.fixture
def edge(shop: Shop) -> Edge:
    assert isinstance(shop.running.app, Edge)
    return shop.running.app


@pytest.fixture
async def ann(sign_up: SignUp) -> Person:
    return await sign_up("ann@example.com")


@pytest.fixture
async def operator(shop: Shop, sign_up: SignUp) -> Person:
    return await made_operator(shop.service.database, await sign_up("operator@example.com"))
