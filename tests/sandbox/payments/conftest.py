from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import stripe

from tests.sandbox.payments.stage import (
    NOW,
    SECRET,
    Opener,
    Receiver,
    Shop,
    client_of,
    close,
    opened,
)
from tolsey.sandbox.payments.processor import Processor
from tolsey.sandbox.server import listening


@pytest.fixture
def processor() -> Processor:
    return Processor(now=NOW, frozen_clock=True)


@pytest.fixture
async def shop(processor: Processor) -> AsyncIterator[Shop]:
    async with opened(processor) as shop:
        yield shop


@pytest.fixture
async def receiver(processor: Processor) -> AsyncIterator[Receiver]:
    receiver = Receiver()
    async with listening(receiver) as port:
        receiver.uri = f"http://127.0.0.1:{port}/hooks"
        processor.open_endpoint(receiver.uri, SECRET)
        yield receiver


@pytest.fixture
def as_key(shop: Shop) -> Opener:
    @asynccontextmanager
    async def use(key: str) -> AsyncIterator[stripe.StripeClient]:
        client = client_of(shop.processor.url, key, 0)
        try:
            yield client
        finally:
            await close(client)

    return use
