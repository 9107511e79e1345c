"""openai-agents' server over HTTP; every tool becomes a function, also with strict schemas."""

import asyncio
from typing import Any

from agents.mcp import MCPServerStreamableHttp, MCPUtil

from tests.mcp.real.clients.python.journey import ADDRESS, text_of, travel
from tests.mcp.real.clients.python.oauth import provider


async def main() -> None:
    store = {"url": ADDRESS, "auth": await provider("openai-agents")}
    # Its 5 seconds for an answer would have to do for the user at the consent page, too.
    async with MCPServerStreamableHttp(store, client_session_timeout_seconds=60) as server:
        tools = await server.list_tools()
        functions = [
            MCPUtil.to_function_tool(tool, server, convert_schemas_to_strict=True) for tool in tools
        ]
        loose = [function.name for function in functions if not function.strict_json_schema]
        if loose:
            raise SystemExit(f"no strict schema of {loose}")

        async def call(name: str, given: dict[str, Any]) -> str:
            answer = await server.call_tool(name, given)
            return text_of(answer, failed=answer.is_error)

        await travel("openai-agents", [function.name for function in functions], call)


asyncio.run(main())
