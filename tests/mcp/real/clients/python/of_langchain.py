"""langchain's tools of a server, through its MCP adapters."""

import asyncio
from typing import Any

from langchain_mcp_adapters.client import MultiServerMCPClient

from tests.mcp.real.clients.python.journey import ADDRESS, travel
from tests.mcp.real.clients.python.oauth import provider


async def main() -> None:
    store = {"transport": "http", "url": ADDRESS, "auth": await provider("langchain")}
    tools = {tool.name: tool for tool in await MultiServerMCPClient({"store": store}).get_tools()}

    async def call(name: str, given: dict[str, Any]) -> str:
        (block,) = await tools[name].ainvoke(given)
        text: str = block["text"]
        return text

    await travel("langchain-mcp-adapters", tools, call)


asyncio.run(main())
