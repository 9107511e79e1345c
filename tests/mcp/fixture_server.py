"""Serves the conformance suite's fixtures over our transport, for everyone: `python -m … PORT`."""

import sys
import time
from typing import Any, Final, cast

import anyio
from hypercorn.asyncio import serve
from hypercorn.config import Config

from tests.mcp.fixtures import fixtures
from tests.mcp.speaking import SpeakingEndpoint, SpeakingServer
from tolsey.http.mcp.endpoint import AgentGate, Endpoint, OwnAddresses
from tolsey.http.mcp.opening import VaultSealer
from tolsey.http.mcp.registry import Registry
from tolsey.http.mcp.state import RequestStates
from tolsey.http.web.edge import Edge, Headers, Scope
from tolsey.storage.sealing.sealed import Vault


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


def _all(principal: Any, scopes: frozenset[str]) -> bool:
    """Keep nobody from any."""
    del principal, scopes
    return True


EVERYONE: Final = Everyone()


def serving(
    registry: Registry,
    *,
    local: bool = True,
    origins: tuple[str, ...] = (),
    gate: AgentGate = EVERYONE,
) -> Endpoint:
    """Serve a registry."""
    server = SpeakingServer(
        registry,
        {"name": "tolsey-fixtures", "version": "1"},
        "Fixtures of the conformance suite.",
        require=_allow,
        grantable=_all,
        states=RequestStates(VaultSealer(Vault({"k1": bytes(range(32))})), time.time),
        name_of=str,
    )
    return SpeakingEndpoint(server, gate, OwnAddresses(origins, local=local))


def application() -> Edge:
    """Make the fixture server."""

    async def nothing(scope: Any, receive: Any, send: Any) -> None:
        del receive
        if scope["type"] == "http":
            await send({"type": "http.response.start", "status": 404, "headers": []})
            await send({"type": "http.response.body", "body": b""})

    return Edge(nothing, {"/mcp": serving(fixtures())}, is_https=False)


if __name__ == "__main__":
    config = Config()
    config.bind = [f"127.0.0.1:{sys.argv[1]}"]
    anyio.run(serve, cast("Any", application()), config)
