"""What a posted message asks, and in which revision: read, checked, or refused by name.

Pure. The order of the checks is that of the official packages, so that a client that disagrees with
itself is told so first (rules/agents#protocol).
"""

import base64
import binascii
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from tolsey.http.mcp import wire
from tolsey.http.mcp.wire import RpcError
from tolsey.http.web.json import oddity

WRAPPED: Final = b"=?"
BASE64: Final = re.compile(rb"=\?base64\?(?P<text>.*)\?=", re.DOTALL)
EDGES: Final = b" \t"
"""Optional whitespace around a header's value (RFC 9110, 5.6.3): not every server trims it."""

Headers = Sequence[tuple[bytes, bytes]]


@dataclass(frozen=True, slots=True)
class Request:
    """One message: a request when it has an `id`, else a notification that is owed no answer."""

    method: str
    params: Mapping[str, Any]
    revision: str
    id: str | int | None = None
    capabilities: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_modern(self) -> bool:
        """Whether it needs no handshake before it."""
        return self.revision == wire.MODERN


def header(headers: Headers, name: bytes) -> bytes | None:
    """Return a header's value without the whitespace around it; None when it is not sent.

    Raises RpcError when it is sent twice: two readers could take two different ones.
    """
    found = [value for sent, value in headers if sent == name]
    if len(found) > 1:
        raise RpcError(
            wire.HEADER_MISMATCH, f"The header {name.decode()} is repeated. Send it once."
        )
    return found[0].strip(EDGES) if found else None


def decoded(value: bytes) -> str | None:
    """Read a header's value, which may be written as `=?base64?…?=`; None when it cannot be."""
    wrapped = BASE64.fullmatch(value) if value.startswith(WRAPPED) else None
    try:
        if wrapped is None:
            return value.decode("ascii")
        raw = base64.b64decode(wrapped["text"], validate=True)
        if base64.b64encode(raw) != wrapped["text"]:  # a second spelling of the same bytes
            return None
        return raw.decode()
    except (binascii.Error, UnicodeDecodeError):
        return None


def revision_of(headers: Headers) -> str | None:
    """Name the handshake revision that a POST belongs to; None when it is to be read as modern."""
    sent = header(headers, wire.VERSION_HEADER)
    if sent is None:
        return wire.UNNAMED
    named = sent.decode("latin-1")
    return named if named in wire.HANDSHAKE else None


def read(message: Any, headers: Headers, revision: str | None) -> Request:
    """Read one message. Raises RpcError with the code that says what is wrong with it."""
    if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
        raise RpcError(
            wire.INVALID_REQUEST,
            "The body is not a JSON-RPC request or notification. Send exactly one.",
        )
    method, params = message.get("method"), message.get("params")
    params = {} if params is None else params
    if not isinstance(method, str) or not isinstance(params, dict):
        raise RpcError(
            wire.INVALID_REQUEST,
            "The message is invalid. Send a method name, and parameters as an object.",
        )
    request_id = _id(message)
    if revision is not None:
        capabilities: Mapping[str, Any] = {}
        return Request(method, params, revision, request_id, capabilities)
    if request_id is None:
        return _notification(method, params, headers)
    return _modern(method, params, headers, request_id)


def id_of(message: Any) -> str | int | None:
    """Return the id a message would be answered under, when it has a usable one."""
    try:
        return _id(message) if isinstance(message, dict) else None
    except RpcError:
        return None


def _id(message: Mapping[str, Any]) -> str | int | None:
    if "id" not in message:
        return None
    found = message["id"]
    if isinstance(found, bool) or not isinstance(found, str | int) or oddity(found):
        raise RpcError(
            wire.INVALID_REQUEST, "The request id is invalid. Send a string or an integer."
        )
    return found


def _notification(method: str, params: Mapping[str, Any], headers: Headers) -> Request:
    sent = header(headers, wire.VERSION_HEADER) or b""
    _require_support(sent.decode("latin-1"))
    return Request(method, params, wire.MODERN)


def _modern(
    method: str, params: Mapping[str, Any], headers: Headers, request_id: str | int
) -> Request:
    meta = params.get("_meta")
    said = meta if isinstance(meta, dict) else {}
    wanted = (wire.PROTOCOL_VERSION, wire.CLIENT_CAPABILITIES)
    missing = [key for key in wanted if key not in said]
    if missing:
        raise RpcError(
            wire.INVALID_PARAMS,
            f"_meta lacks {', '.join(missing)}. Add the missing keys.",
            {"missing": missing},
        )
    version, capabilities = said[wire.PROTOCOL_VERSION], said[wire.CLIENT_CAPABILITIES]
    if not isinstance(version, str) or not isinstance(capabilities, dict):
        raise RpcError(
            wire.INVALID_PARAMS,
            "_meta is invalid. Send a protocol version and a capabilities object.",
        )
    _match(headers, wire.VERSION_HEADER, version)
    _match(headers, wire.METHOD_HEADER, method)
    if method in wire.NAMED:
        _match(headers, wire.NAME_HEADER, params.get(wire.NAMED[method]))
    _require_support(version)
    return Request(method, params, wire.MODERN, request_id, capabilities)


def _match(headers: Headers, name: bytes, said: Any) -> None:
    """Refuse a header that does not repeat what the body says."""
    sent = header(headers, name)
    if sent is None:
        raise RpcError(
            wire.HEADER_MISMATCH,
            f"The header {name.decode()} is missing. Send it with the request.",
        )
    if not isinstance(said, str) or decoded(sent) != said:
        raise RpcError(
            wire.HEADER_MISMATCH,
            f"The header {name.decode()} doesn't match the body. Send the same value in both.",
        )


def _require_support(version: str) -> None:
    if version != wire.MODERN:
        raise RpcError(
            wire.UNSUPPORTED_VERSION,
            "This protocol revision isn't supported. Use one of the supported revisions.",
            {"supported": list(wire.SUPPORTED), "requested": version},
        )
