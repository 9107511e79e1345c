"""fastmcp's server: stateless, answering JSON."""

import sys
from typing import Annotated

from fastmcp import FastMCP
from pydantic import Field

from bench import calls
from bench.peers.serving import Checked, serve
from tolsey.http.mcp.tools.reads.orders import OrderDetail

server = FastMCP("peer", version="1")


@server.tool(name=calls.TOOL, title=calls.TITLE, description=calls.DESCRIPTION)
async def get_order(order_id: Annotated[str, Field(min_length=1, max_length=64)]) -> OrderDetail:
    """Make the answer."""
    return calls.order(order_id)


if __name__ == "__main__":
    app = server.http_app(path="/mcp", json_response=True, stateless_http=True)
    serve(Checked(app, calls.TOKENS), sys.argv[1], int(sys.argv[2]))
