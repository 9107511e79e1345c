"""pydantic-ai's tools of a server, with the OAuth of fastmcp that it brings along."""

import asyncio

from pydantic_ai.mcp import MCPToolset

from tests.mcp.real.clients.python.journey import ADDRESS, travel


async def main() -> None:
    async with MCPToolset(ADDRESS, auth="oauth") as tools:
        names = [tool.name for tool in await tools.list_tools()]
        await travel("pydantic-ai-slim", names, tools.direct_call_tool)


asyncio.run(main())
