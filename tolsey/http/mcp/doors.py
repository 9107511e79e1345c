"""The addresses at which stores' endpoints are reached: on the base address, and on the sub-address.

A sub-address answers for its own surface only (specification, "Public sub-addresses").
"""

from typing import Any, Final

import orjson

from tolsey.http.edge import Receive, Scope, Send
from tolsey.http.mcp.endpoint import Denied, Endpoint, answer_denied
from tolsey.http.mcp.gate import CALLED
from tolsey.http.oauth import metadata
from tolsey.http.oauth.resources import Resources

PREFIX: Final = "/api/mcp/"
"""Where both forms of the base address begin."""
METADATA_HEADERS: Final = (
    (b"content-type", b"application/json"),
    (b"access-control-allow-origin", b"*"),
    (b"cache-control", b"public, max-age=3600"),
)


class Door:
    """Leads what is a store's address to the endpoint, and says of all else that it is nothing."""

    def __init__(
        self, resources: Resources, endpoint: Endpoint, issuer: str, *, on_subaddress: bool
    ) -> None:
        self._resources = resources
        self._endpoint = endpoint
        self._issuer = issuer
        self._on_subaddress = on_subaddress

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        path = scope["path"]
        called = self._resources.called(path, on_subaddress=self._on_subaddress)
        if called is not None:
            scope[CALLED] = called
            await self._endpoint(scope, receive, send)
            return
        described = (
            self._resources.described(path, on_subaddress=True) if self._on_subaddress else None
        )
        if described is None or scope["method"] not in {"GET", "HEAD"}:
            denied = Denied(404, "not_found", "There is nothing at this address.")
            await answer_denied(scope, receive, send, denied)
            return
        await _answer(send, metadata.of_resource(described, self._issuer))


async def _answer(send: Send, said: Any) -> None:
    body = orjson.dumps(said)
    headers = [*METADATA_HEADERS, (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})
