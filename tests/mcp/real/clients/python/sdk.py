"""The official SDK's client."""

import asyncio
from typing import Any

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from tests.mcp.real.clients.python.journey import ADDRESS, text_of, travel
from tests.mcp.real.clients.python.oauth import provider


async def main() -> None:
    async with (
        httpx2.AsyncClient(auth=await provider("Python SDK")) as web,
        Client(streamable_http_client(ADDRESS, http_client=web)) as client,
    ):

        async def call(name: str, given: dict[str, Any]) -> str:
            answer = await client.call_tool(name, given)
            return text_of(answer, failed=answer.is_error)

        await travel("mcp", [tool.name for tool in (await client.list_tools()).tools], call)


asyncio.run(main())
