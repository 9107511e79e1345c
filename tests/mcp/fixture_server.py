"""Serves the conformance suite's fixtures over our transport, for everyone: `python -m … PORT`."""

import sys
import time
from typing import Any, cast

import anyio
from hypercorn.asyncio import serve
from hypercorn.config import Config

from tests.mcp.fixtures import fixtures
from tolsey.http.edge import Edge, Scope
from tolsey.http.mcp.endpoint import Endpoint, Places
from tolsey.http.mcp.opening import VaultSealer
from tolsey.http.mcp.replies import Headers
from tolsey.http.mcp.server import Server
from tolsey.http.mcp.state import RequestStates
from tolsey.storage.sealed import Vault


class Everyone:
    """Admits whoever comes."""

    async def admit(self, scope: Scope) -> str:
        """Answer a name."""
        del scope
        return "anyone"

    async def count(self, principal: Any, requests: int) -> Headers:
        """Count nothing."""
        del principal, requests
        return ()


def _allow(principal: Any, scopes: frozenset[str]) -> None:
    """Want no scopes."""
    del principal, scopes


def application() -> Edge:
    """Make the fixture server."""
    vault = Vault({"k1": bytes(range(32))})
    server = Server(
        fixtures(),
        {"name": "tolsey-fixtures", "version": "1"},
        "Fixtures of the conformance suite.",
        require=_allow,
        states=RequestStates(VaultSealer(vault), time.time),
        name_of=str,
    )
    endpoint = Endpoint(server, Everyone(), Places((), local=True))

    async def nothing(scope: Any, receive: Any, send: Any) -> None:
        del receive
        if scope["type"] == "http":
            await send({"type": "http.response.start", "status": 404, "headers": []})
            await send({"type": "http.response.body", "body": b""})

    return Edge(nothing, {"/mcp": endpoint}, is_https=False)


if __name__ == "__main__":
    config = Config()
    config.bind = [f"127.0.0.1:{sys.argv[1]}"]
    anyio.run(serve, cast("Any", application()), config)
