"""Our own endpoint of stores with one tool, on either server, its gate as in the service.

The token of a call is looked up in PostgreSQL behind the cache of access tokens, and the call is counted in
Redis against the plan of its organization: `python -m bench.door SERVER PORT`.
"""

import asyncio
import gc
import os
import sys
import time
from typing import Any, cast

import anyio
import uvloop

from bench import calls
from tolsey import settings
from tolsey.http.mcp.doors import PREFIX, Door
from tolsey.http.mcp.endpoint import Endpoint, OwnAddresses
from tolsey.http.mcp.gate import Principal, StoreGate, grantable, name_of, require
from tolsey.http.mcp.registry import Registry
from tolsey.http.mcp.server import McpServer
from tolsey.http.mcp.state import RequestStates
from tolsey.http.mcp.tools.building import ReadTools, reads
from tolsey.http.mcp.tools.reads.orders import OrderDetail, OrderId
from tolsey.http.oauth.access_tokens import AccessTokens
from tolsey.http.oauth.resources import StoreResources
from tolsey.http.web.edge import Edge, Receive, Scope, Send
from tolsey.server import ServerName, chosen, serve_app
from tolsey.service import now
from tolsey.storage.cache import Cache
from tolsey.storage.database import Database
from tolsey.storage.limits import Limits


class Unsealed:
    """Seals nothing: no tool here waits for input."""

    def seal(self, plain: str, bound_to: str) -> str:
        """Seal nothing."""
        raise NotImplementedError

    def open(self, sealed: str, bound_to: str) -> str:
        """Open nothing."""
        raise NotImplementedError


class OneTool(ReadTools):
    """The tool, offered as our own are; it needs no service, for its rows are made here."""

    def __init__(self) -> None:
        pass

    @reads(calls.TOOL, calls.TITLE, calls.DESCRIPTION, scopes=frozenset({"orders:read"}))
    async def get_order(self, principal: Principal, asked: OrderId) -> OrderDetail:
        """Make the answer."""
        del principal
        return calls.order(asked.order_id)


async def nothing(scope: Scope, receive: Receive, send: Send) -> None:
    """Take part in the server's life, and serve nothing else."""
    del scope, receive, send


async def alone() -> None:
    """Tell nobody: there is one process."""


def application(database: Database, cache: Cache) -> Edge:
    """Put the endpoint together as the service does."""
    resources = StoreResources(settings.read())
    gate = StoreGate(AccessTokens(database, now, alone), Limits(cache))
    server = McpServer(
        Registry.of(*OneTool().tools()),
        {"name": "tolsey", "version": "1"},
        "",
        require=require,
        grantable=grantable,
        states=RequestStates(Unsealed(), time.time),
        name_of=name_of,
    )
    endpoint = Endpoint(server, gate, OwnAddresses(resources.origins, local=True))
    door = Door(resources, endpoint, "http://127.0.0.1", on_subaddress=False)
    return Edge(nothing, {}, is_https=False, mounted={PREFIX: door})


async def serve(server: ServerName, port: int) -> None:
    """Serve until SIGTERM."""
    gc.freeze()  # both as `tolsey serve` does
    gc.set_threshold(20_000, 20, 20)
    database = Database(os.environ["DATABASE_URL"], min_size=2, max_size=20)
    await database.open()
    app: Any = application(database, Cache(os.environ["REDIS_URL"]))
    await serve_app(app, "127.0.0.1", port, anyio.Event(), server=chosen(server))


if __name__ == "__main__":
    name, port = sys.argv[1:]
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(serve(cast("ServerName", name), int(port)))
