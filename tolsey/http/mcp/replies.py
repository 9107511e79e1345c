"""The answer to one POST: one JSON body, or an event stream from the first thing said before it."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Final

import orjson

from tolsey.http.mcp.wire import RpcError
from tolsey.http.web.edge import Send

JSON: Final = ((b"content-type", b"application/json"),)
STREAM: Final = (
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-store, no-transform"),
    (b"x-accel-buffering", b"no"),
)

Headers = Sequence[tuple[bytes, bytes]]


class Reply:
    """Sends what belongs to one POST; `headers` go with whichever form it takes.

    Where the client takes no event stream, what is said before the answer is left out. `is_left`
    says that the client went away, and is owed nothing more.
    """

    def __init__(self, send: Send, headers: Headers = (), *, streams: bool = True) -> None:
        self._send = send
        self.headers = headers
        self._streams = streams
        self._sending = asyncio.Lock()
        self.is_stream = False
        self.is_left = False

    async def emit(self, notification: Mapping[str, Any]) -> None:
        """Send a notification ahead of the answer."""
        if self._streams:
            async with self._sending:
                await self._open()
                await self._event({"jsonrpc": "2.0", **notification})

    async def keep_alive(self) -> bool:
        """Send a comment into an open stream, so that nobody between takes the silence for the end.

        Answers whether one is open. It opens none itself: that would tell a status before it is known.
        """
        async with self._sending:
            if self.is_stream:
                await self._part(b":\n\n")
            return self.is_stream

    async def answer(self, message: Any, status: int = 200, headers: Headers = ()) -> None:
        """Send the answer, and end; None is an answer without a body."""
        async with self._sending:
            if self.is_stream:
                await self._event(message)
                await self._part(b"", more=False)
                return
            body = b"" if message is None else orjson.dumps(message)
            length = (b"content-length", b"%d" % len(body))
            kind = JSON if body else ()
            await self._start(status, (*kind, length, *self.headers, *headers))
            await self._part(body, more=False)

    async def refuse(self, error: RpcError, request_id: str | int | None, status: int) -> None:
        """Send an error as the answer to a request."""
        await self.answer(error.body(request_id), status, error.headers)

    async def _open(self) -> None:
        if not self.is_stream:
            await self._start(200, (*STREAM, *self.headers))
            self.is_stream = True

    async def _event(self, message: Any) -> None:
        await self._part(b"event: message\ndata: " + orjson.dumps(message) + b"\n\n")

    async def _start(self, status: int, headers: Headers) -> None:
        await self._send({"type": "http.response.start", "status": status, "headers": headers})

    async def _part(self, body: bytes, *, more: bool = True) -> None:
        await self._send({"type": "http.response.body", "body": body, "more_body": more})
