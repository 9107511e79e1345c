"""The addresses at which stores' endpoints are reached: on the base address, and on the sub-address.

A sub-address answers for its own surface only (rules/service#sub-addresses).
"""

from typing import Final

from tolsey.http.mcp.endpoint import Denied, Endpoint, answer_denied
from tolsey.http.mcp.gate import CALLED
from tolsey.http.mcp.replies import JSON
from tolsey.http.oauth import metadata
from tolsey.http.oauth.resources import StoreResources
from tolsey.http.oauth.routes import CORS, HOLDS
from tolsey.http.web.edge import Receive, Scope, Send, answer_whole

PREFIX: Final = "/api/mcp/"
"""Where both forms of the base address begin."""
METADATA_HEADERS: Final = tuple(
    (name.lower().encode(), value.encode()) for name, value in CORS.items()
)
"""As on the base address: pages of anywhere may read what a store's address is."""


class Door:
    """Leads what is a store's address to the endpoint, and says of all else that it is nothing."""

    def __init__(
        self, resources: StoreResources, endpoint: Endpoint, issuer: str, *, on_subaddress: bool
    ) -> None:
        self._resources = resources
        self._endpoint = endpoint
        self._issuer = issuer
        self._on_subaddress = on_subaddress

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        path = scope["path"]
        host = next((value for name, value in scope["headers"] if name == b"host"), b"").decode(
            "latin-1"
        )
        called = self._resources.called(path, host=host, on_subaddress=self._on_subaddress)
        if called is not None:
            scope[CALLED] = called
            await self._endpoint(scope, receive, send)
            return
        described = (
            self._resources.described(path, on_subaddress=True) if self._on_subaddress else None
        )
        if described is None or scope["method"] not in {"GET", "HEAD", "OPTIONS"}:
            denied = Denied(
                404, "not_found", "This page or endpoint doesn't exist. Check the address."
            )
            await answer_denied(scope, send, denied)
        elif scope["method"] == "OPTIONS":
            await answer_whole(send, 204, METADATA_HEADERS)
        else:
            said = metadata.of_resource(described, self._issuer).model_dump_json().encode()
            headers = (*METADATA_HEADERS, *JSON, (b"cache-control", HOLDS.encode()))
            await answer_whole(send, 200, headers, said)
