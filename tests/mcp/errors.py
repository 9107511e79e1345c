"""What an error may look like in each revision, as the official schemas say it.

From `schema/<revision>/schema.json` of the protocol's repository: `JSONRPCError`, since 2025-11-25
`JSONRPCErrorResponse`, with the `Error` and `RequestId` that they refer to.
"""

from collections.abc import Mapping
from typing import Any

import jsonschema  # type: ignore[import-untyped]  # it has no types

from tolsey.http.mcp import wire

ERROR = {
    "type": "object",
    "properties": {"code": {"type": "integer"}, "data": {}, "message": {"type": "string"}},
    "required": ["code", "message"],
}
PROPERTIES = {
    "error": ERROR,
    "id": {"type": ["string", "integer"]},
    "jsonrpc": {"type": "string", "const": "2.0"},
}
WITH_ID = {
    "type": "object",
    "properties": PROPERTIES,
    "required": ["error", "id", "jsonrpc"],
}
WITH_OR_WITHOUT = {"type": "object", "properties": PROPERTIES, "required": ["error", "jsonrpc"]}
SCHEMAS = {
    "2025-03-26": WITH_ID,
    "2025-06-18": WITH_ID,
    "2025-11-25": WITH_OR_WITHOUT,
    "2026-07-28": WITH_OR_WITHOUT,
}


def revision_of(named: str | None) -> str:
    """Say whose schema an answer must fit, by the header that named the revision."""
    if named is None:
        return wire.UNNAMED
    return named if named in wire.HANDSHAKE else wire.MODERN


def require_valid(message: Mapping[str, Any], revision: str) -> None:
    """Refuse an error that its revision's schema does not know.

    2025-03-26 and 2025-06-18 have no form for an error that answers no request: the schema wants an
    id and knows no null, while the transport page of both says "error response that has no `id`".
    That is what is sent, as in the later schemas: the official TypeScript client refuses a null
    whatever the revision, the Python one only reads errors of requests, and these have an id.
    """
    schema = WITH_OR_WITHOUT if "id" not in message else SCHEMAS[revision]
    jsonschema.validate(message, schema, cls=jsonschema.Draft202012Validator)
