"""What guards the stores' endpoints, put together once for the routes and the gate."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Final

import httpx

from tolsey.http.clients.guard import guarded_client
from tolsey.http.oauth.access_tokens import AccessTokens
from tolsey.http.oauth.clients import Clients
from tolsey.http.oauth.documents import Documents
from tolsey.http.oauth.resources import StoreResources
from tolsey.http.oauth.server import AuthorizationServer
from tolsey.settings import Settings
from tolsey.storage.database import Database

DOCUMENT_TIMEOUT: Final = httpx.Timeout(5.0)


@dataclass(frozen=True, slots=True)
class Agents:
    """The authorization server, and what it and the gate share."""

    server: AuthorizationServer
    clients: Clients
    resources: StoreResources
    access_tokens: AccessTokens
    documents: httpx.AsyncClient

    @classmethod
    def of(
        cls,
        settings: Settings,
        database: Database,
        clock: Callable[[], datetime],
        tell_others: Callable[[], Awaitable[None]],
        documents: httpx.AsyncClient | None = None,
    ) -> "Agents":
        """Put it together; `tell_others` makes the other processes forget who they let in."""
        fetching = documents or guarded_client(peer="agents", timeout=DOCUMENT_TIMEOUT)
        access_tokens = AccessTokens(database, clock, tell_others)
        resources = StoreResources(settings)
        clients = Clients(database, Documents(fetching, clock))
        issuer = settings.base_url.rstrip("/")
        server = AuthorizationServer(database, clients, resources, issuer, access_tokens.forget)
        return cls(server, clients, resources, access_tokens, fetching)

    async def close(self) -> None:
        """Let go of connections."""
        await self.documents.aclose()
