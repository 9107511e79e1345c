"""The protocol's own words: revisions, keys, headers, error codes and their HTTP statuses.

Model Context Protocol 2026-07-28, "Streamable HTTP" and "Versioning"; rules/agents#protocol.
"""

import math
from collections.abc import Mapping
from typing import Any, Final

from tolsey.actors.refusals import Refusal

MODERN: Final = "2026-07-28"
"""The revision without a handshake: every request says all that is needed to answer it."""
HANDSHAKE: Final = ("2025-11-25", "2025-06-18", "2025-03-26")
"""Revisions that begin with `initialize`, newest first; they are answered without a session too."""
UNNAMED: Final = "2025-03-26"
"""What a client speaks that names no revision after its handshake."""
BATCHING: Final = "2025-03-26"
"""The one revision in which several messages may come at once."""
SUPPORTED: Final = (MODERN, *HANDSHAKE)

PROTOCOL_VERSION: Final = "io.modelcontextprotocol/protocolVersion"
CLIENT_CAPABILITIES: Final = "io.modelcontextprotocol/clientCapabilities"
SERVER_INFO: Final = "io.modelcontextprotocol/serverInfo"

VERSION_HEADER: Final = b"mcp-protocol-version"
METHOD_HEADER: Final = b"mcp-method"
NAME_HEADER: Final = b"mcp-name"
NAMED: Final[Mapping[str, str]] = {
    "tools/call": "name",
    "prompts/get": "name",
    "resources/read": "uri",
}
"""The methods whose `Mcp-Name` header repeats a parameter, and that parameter."""

PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600
METHOD_NOT_FOUND: Final = -32601
INVALID_PARAMS: Final = -32602
INTERNAL_ERROR: Final = -32603
RESOURCE_NOT_FOUND: Final = -32002
"""What `INVALID_PARAMS` says of a resource since 2026-07-28."""
HEADER_MISMATCH: Final = -32020
MISSING_CAPABILITY: Final = -32021
UNSUPPORTED_VERSION: Final = -32022

STATUSES: Final[Mapping[int, int]] = {
    PARSE_ERROR: 400,
    INVALID_REQUEST: 400,
    INVALID_PARAMS: 400,
    HEADER_MISMATCH: 400,
    MISSING_CAPABILITY: 400,
    UNSUPPORTED_VERSION: 400,
    METHOD_NOT_FOUND: 404,
}
"""The HTTP status of an error since 2026-07-28; other errors, and all before, are sent with 200."""


class RpcError(Exception):
    """A JSON-RPC error that the client is told.

    `status` overrules the HTTP status that belongs to the code, and `headers` go with it: for what
    is decided at the level of HTTP, such as a rate limit.
    """

    def __init__(
        self,
        code: int,
        message: str,
        data: Any = None,
        *,
        status: int | None = None,
        headers: tuple[tuple[bytes, bytes], ...] = (),
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data
        self.status = status
        self.headers = headers

    def status_for(self, revision: str) -> int:
        """Say which HTTP status tells this error to a client of a revision."""
        if self.status is not None:
            return self.status
        return STATUSES.get(self.code, 200) if revision == MODERN else 200

    def body(self, request_id: str | int | None) -> dict[str, Any]:
        """Write the error down as the answer to a request; None when it cannot be told to which.

        Such an answer has no `id`, as every revision's transport page says: none knows a null.
        """
        error: dict[str, Any] = {"code": self.code, "message": self.message}
        if self.data is not None:
            error["data"] = self.data
        whose = {} if request_id is None else {"id": request_id}
        return {"jsonrpc": "2.0", **whose, "error": error}


def error_of(refusal: Refusal) -> RpcError:
    """Say a refusal to the client at the level of HTTP: when it may come again, not what to mend."""
    fields = {name: value for name, value in refusal.fields.items() if value is not None}
    headers: tuple[tuple[bytes, bytes], ...] = ()
    if "retryAfter" in fields:
        headers = ((b"retry-after", str(math.ceil(fields["retryAfter"])).encode()),)
    data = {"code": refusal.code, **fields}
    return RpcError(refusal.status, refusal.detail, data, status=refusal.status, headers=headers)
