"""Bodies that are read as they come: no more of one is in memory than its reader has left there."""

import asyncio
import re
from collections.abc import AsyncGenerator
from typing import Any, Final

from quart import request
from quart.asgi import ASGIHTTPConnection
from quart.wrappers.request import Body
from werkzeug.exceptions import RequestTimeout

from tolsey.http.layout.forms import BoundedFormParser
from tolsey.http.web.json import JsonRequest

UPLOADS: Final = re.compile(r"/api/marketplace/deals/[^/]+/files")
"""The routes that take a file as it is, up to a limit of their own."""
AHEAD_BYTES: Final = 1024 * 1024
"""Of a body that comes faster than it is read."""
SILENCE_SECONDS: Final = 15
UPLOAD_SECONDS: Final = 900


class PacedBody(Body):
    """A body that can say when there is room for more."""

    def __init__(self, expected_content_length: int | None, max_content_length: int | None) -> None:
        super().__init__(expected_content_length, max_content_length)
        self.is_paced = False
        self._taken = asyncio.Event()

    async def __anext__(self) -> bytes:
        """Take what has come."""
        found = await super().__anext__()
        self._taken.set()
        return found

    async def room(self) -> None:
        """Wait until what has come is small enough."""
        while self.is_paced and len(self._data) >= AHEAD_BYTES and self._must_raise is None:
            self._taken.clear()
            await self._taken.wait()


class PacedRequest(JsonRequest):
    """A request whose body is as large as its route takes, and whose forms have a bound."""

    body_class = PacedBody
    form_data_parser_class = BoundedFormParser

    def __init__(self, method: str, scheme: str, path: str, *args: Any, **kwargs: Any) -> None:
        is_upload = method == "POST" and UPLOADS.fullmatch(path) is not None
        if is_upload:
            kwargs["max_content_length"] = None
        super().__init__(method, scheme, path, *args, **kwargs)
        if isinstance(self.body, PacedBody):
            self.body.is_paced = is_upload


class PacedConnection(ASGIHTTPConnection):
    """Takes no more of a body from the server than its reader keeps up with, so that its sender waits."""

    async def handle_messages(self, request: Any, receive: Any) -> None:
        """Hand on what comes."""
        body = request.body
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                return
            if message["type"] == "http.request":
                body.append(message.get("body", b""))
                if not message.get("more_body", False):
                    body.set_complete()
                if isinstance(body, PacedBody):
                    await body.room()


async def upload() -> AsyncGenerator[bytes]:
    """Give the body of the present request as it comes; one that stops coming is refused."""
    parts = aiter(request.body)
    async with asyncio.timeout(UPLOAD_SECONDS):
        while True:
            try:
                async with asyncio.timeout(SILENCE_SECONDS):
                    yield await anext(parts)
            except StopAsyncIteration:
                return
            except TimeoutError as error:
                raise RequestTimeout from error
