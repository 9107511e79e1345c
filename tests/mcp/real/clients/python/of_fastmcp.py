"""fastmcp's client, with its own browser and its own callback."""

import asyncio
from typing import Any

from fastmcp import Client

from tests.mcp.real.clients.python.journey import ADDRESS, text_of, travel


async def main() -> None:
    async with Client(ADDRESS, auth="oauth") as client:

        async def call(name: str, given: dict[str, Any]) -> str:
            return text_of(await client.call_tool(name, given), failed=False)

        await travel("fastmcp", [tool.name for tool in await client.list_tools()], call)


asyncio.run(main())
