"""mcp-use's session, with its own browser and its own callback."""

import asyncio
from typing import Any

from mcp_use import MCPClient

from tests.mcp.real.clients.python.journey import ADDRESS, text_of, travel


async def main() -> None:
    client = MCPClient({"mcpServers": {"store": {"url": ADDRESS}}})
    session = await client.create_session("store")

    async def call(name: str, given: dict[str, Any]) -> str:
        answer = await session.call_tool(name, given)
        return text_of(answer, failed=answer.isError)

    await travel("mcp-use", [tool.name for tool in await session.list_tools()], call)
    await client.close_all_sessions()


asyncio.run(main())
