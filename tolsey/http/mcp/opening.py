"""Opens the stores' endpoints: the registry of tools behind the gate, at every address there is."""

from dataclasses import dataclass
from typing import Final

from tolsey import __version__
from tolsey.http.mcp.doors import PREFIX, Door
from tolsey.http.mcp.endpoint import Endpoint, OwnAddresses
from tolsey.http.mcp.gate import StoreGate, grantable, name_of, require
from tolsey.http.mcp.server import McpServer
from tolsey.http.mcp.state import RequestStates
from tolsey.http.mcp.tools.instructions import INSTRUCTIONS
from tolsey.http.mcp.tools.registry import stores_registry
from tolsey.http.web.context import Service
from tolsey.http.web.edge import ASGIApp
from tolsey.storage.sealing.sealed import SealBroken, Vault

NAME: Final = "tolsey"
TITLE: Final = "tolsey store"


@dataclass(frozen=True, slots=True)
class Opened:
    """Where the endpoints are served: below a path, and on a host of their own."""

    mounted: dict[str, ASGIApp]
    on_subaddress: ASGIApp
    server: McpServer


class VaultSealer:
    """Seals what travels with a client under the service's keys."""

    def __init__(self, vault: Vault) -> None:
        self._vault = vault

    def seal(self, plain: str, bound_to: str) -> str:
        """Seal a text so that only `bound_to` opens it."""
        return self._vault.seal(plain, table="mcp", column="state", row=bound_to, tenant="")

    def open(self, sealed: str, bound_to: str) -> str:
        """Open a sealed text; ValueError when it was not sealed for this."""
        try:
            return self._vault.open(sealed, table="mcp", column="state", row=bound_to, tenant="")
        except SealBroken as error:
            raise ValueError(str(error)) from error


def opened(service: Service) -> Opened:
    """Open the endpoints of a running service."""
    settings, agents = service.settings, service.agents
    server = McpServer(
        stores_registry(service),
        {"name": NAME, "title": TITLE, "version": __version__},
        INSTRUCTIONS,
        require=require,
        grantable=grantable,
        states=RequestStates(VaultSealer(service.vault), lambda: service.clock().timestamp()),
        name_of=name_of,
    )
    gate = StoreGate(agents.access_tokens, service.limits, settings.believed_proxies)
    places = OwnAddresses(agents.resources.origins, local=settings.is_local)
    endpoint = Endpoint(server, gate, places)
    issuer = settings.base_url.rstrip("/")
    base = Door(agents.resources, endpoint, issuer, on_subaddress=False)
    own = Door(agents.resources, endpoint, issuer, on_subaddress=True)
    return Opened({PREFIX: base}, own, server)
