"""The answer to one POST, as one JSON body."""

from typing import Any, Final

import orjson

from tolsey.http.mcp.wire import RpcError
from tolsey.http.web.edge import Headers, Send, answer_whole

JSON: Final = ((b"content-type", b"application/json"),)


class Reply:
    """Sends the answer that belongs to one POST, with its `headers`.

    `is_left` says that the client went away, and is owed nothing more.
    """

    def __init__(self, send: Send, headers: Headers = ()) -> None:
        self._send = send
        self.headers = headers
        self.is_left = False

    async def answer(self, message: Any, status: int = 200, headers: Headers = ()) -> None:
        """Send the answer; None is one without a body."""
        body = b"" if message is None else orjson.dumps(message)
        kind = JSON if body else ()
        await answer_whole(self._send, status, (*kind, *self.headers, *headers), body)

    async def refuse(self, error: RpcError, request_id: str | int | None, status: int) -> None:
        """Send an error as the answer to a request."""
        await self.answer(error.body(request_id), status, error.headers)
