"""What no tool of the service does: tell of progress, write logs, and take subscriptions.

The conformance suite asks for it, so the fixtures do it over the transport of the service.
"""

import asyncio
from collections.abc import Mapping
from contextvars import ContextVar
from typing import Any, Final

import orjson

from tolsey.http.mcp import wire
from tolsey.http.mcp.call import ToolCall
from tolsey.http.mcp.endpoint import Endpoint
from tolsey.http.mcp.replies import Reply
from tolsey.http.mcp.server import McpServer
from tolsey.http.mcp.wire import RpcError
from tolsey.http.web.edge import Headers, Scope, Send

LOG_LEVEL: Final = "io.modelcontextprotocol/logLevel"
LEVELS: Final = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
"""Severities of log messages (RFC 5424), least first."""
STREAM: Final = (
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-store, no-transform"),
    (b"x-accel-buffering", b"no"),
)
ANSWERING: Final = ContextVar["SpeakingReply"]("ANSWERING")
"""What carries the answer to the request that is being answered."""


class SpeakingReply(Reply):
    """One JSON body, or an event stream from the first thing said before it.

    Where the client takes no event stream, what is said before the answer is left out.
    """

    def __init__(self, send: Send, headers: Headers, *, streams: bool) -> None:
        super().__init__(send, headers)
        self._streams = streams
        self._sending = asyncio.Lock()
        self._is_stream = False

    async def emit(self, notification: Mapping[str, Any]) -> None:
        """Send a notification ahead of the answer."""
        if self._streams:
            async with self._sending:
                if not self._is_stream:
                    headers = [*STREAM, *self.headers]
                    start = {"type": "http.response.start", "status": 200, "headers": headers}
                    await self._send(start)
                    self._is_stream = True
                await self._event({"jsonrpc": "2.0", **notification}, more=True)

    async def answer(self, message: Any, status: int = 200, headers: Headers = ()) -> None:
        """Send the answer, and end."""
        async with self._sending:
            if self._is_stream:
                await self._event(message, more=False)
            else:
                await super().answer(message, status, headers)

    async def _event(self, message: Any, *, more: bool) -> None:
        body = b"event: message\ndata: " + orjson.dumps(message) + b"\n\n"
        await self._send({"type": "http.response.body", "body": body, "more_body": more})


class SpeakingEndpoint(Endpoint):
    """An endpoint whose tools may speak before they answer."""

    def _reply_to(self, scope: Scope, send: Send, headers: Headers) -> Reply:
        accepted = [value.lower() for name, value in scope["headers"] if name == b"accept"]
        wanted = (b"text/event-stream", b"text/*", b"*/*")
        streams = not accepted or any(one in value for value in accepted for one in wanted)
        reply = SpeakingReply(send, headers, streams=streams)
        ANSWERING.set(reply)
        return reply


class SpeakingServer(McpServer):
    """A server whose tools write logs, and whose resources older clients may subscribe to."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._handshake["logging/setLevel"] = self._set_level
        self._handshake["resources/subscribe"] = self._watch
        self._handshake["resources/unsubscribe"] = self._watch

    def _capabilities(self) -> dict[str, Any]:
        return {**super()._capabilities(), "logging": {}}

    async def _initialize(self, call: ToolCall) -> Mapping[str, Any]:
        said = await super()._initialize(call)
        subscribed = {**said["capabilities"], "resources": {"subscribe": True}}
        return {**said, "capabilities": subscribed}

    async def _set_level(self, call: ToolCall) -> Mapping[str, Any]:
        """Check the level; without a session it binds no other request."""
        if call.request.params.get("level") not in LEVELS:
            raise RpcError(wire.INVALID_PARAMS, "There is no such level.")
        return {}

    async def _watch(self, call: ToolCall) -> Mapping[str, Any]:
        """Check the address; without a session no request outlasts its answer."""
        uri = call.request.params["uri"]
        if self._find(uri)[0] is None:
            raise self._no_resource(call, uri)
        return {}


def meta_of(call: ToolCall) -> Mapping[str, Any]:
    """Give what is said beside the parameters."""
    found = call.request.params.get("_meta")
    return found if isinstance(found, dict) else {}


async def tell(call: ToolCall, progress: float, total: float, message: str) -> None:
    """Tell how far the work is, when the client asked."""
    token = meta_of(call).get("progressToken")
    if token is not None:
        said = {"progressToken": token, "progress": progress, "total": total, "message": message}
        await ANSWERING.get().emit({"method": "notifications/progress", "params": said})


async def write_log(call: ToolCall, level: str, data: Any) -> None:
    """Send a log message, when the client wants messages of this severity.

    Before 2026-07-28 a client said so once for a session; without one it is sent everything.
    """
    least = meta_of(call).get(LOG_LEVEL) if call.request.is_modern else LEVELS[0]
    if least in LEVELS and LEVELS.index(level) >= LEVELS.index(least):
        said = {"level": level, "data": data}
        await ANSWERING.get().emit({"method": "notifications/message", "params": said})
