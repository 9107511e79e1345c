from collections.abc import AsyncIterator
from typing import Any, cast

import httpx
import pytest

from tests.mcp.fixture_server import application
from tests.mcp.wire import Agent


@pytest.fixture
async def agent() -> AsyncIterator[Agent]:
    """Speak to the fixtures, in this process."""
    transport = httpx.ASGITransport(cast("Any", application()))
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8000") as client:
        yield Agent(client)
