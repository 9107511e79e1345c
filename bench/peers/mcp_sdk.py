"""The official Python SDK's low-level server: stateless, answering JSON, nothing in between."""

import sys
from typing import Any

import mcp_types as types
import orjson
from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

from bench import calls
from bench.peers.serving import Checked, serve
from tolsey.http.mcp.tools.reads.orders import OrderDetail, OrderId
from tolsey.http.mcp.tools.schemas import answer_schema_of, schema_of

LISTED = types.Tool(
    name=calls.TOOL,
    title=calls.TITLE,
    description=calls.DESCRIPTION,
    input_schema=schema_of(OrderId),
    output_schema=answer_schema_of(OrderDetail),
)


async def list_tools(context: Any, params: Any) -> types.ListToolsResult:
    """List the tool."""
    del context, params
    return types.ListToolsResult(tools=[LISTED])


async def call_tool(context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
    """Do what our tool does: read the arguments, make the answer, write it as text and value."""
    del context
    asked = OrderId.model_validate(params.arguments or {})
    value = calls.order(asked.order_id).model_dump(mode="json", exclude_none=True)
    content = [types.TextContent(type="text", text=orjson.dumps(value).decode())]
    return types.CallToolResult(content=list(content), structured_content=value)


class Application:
    """The SDK's manager of sessions as an application, without Starlette's routes before it."""

    def __init__(self) -> None:
        server: Server[Any] = Server(
            "peer", version="1", on_list_tools=list_tools, on_call_tool=call_tool
        )
        self._manager = StreamableHTTPSessionManager(server, json_response=True, stateless=True)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Serve one connection, or the life of the server."""
        if scope["type"] == "http":
            await self._manager.handle_request(scope, receive, send)
            return
        await receive()
        async with self._manager.run():
            await send({"type": "lifespan.startup.complete"})
            await receive()
        await send({"type": "lifespan.shutdown.complete"})


if __name__ == "__main__":
    serve(Checked(Application(), calls.TOKENS), sys.argv[1], int(sys.argv[2]))
