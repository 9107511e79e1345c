"""Kept connections to one service for clients by the thousand: httpx takes longer to ask than a service to answer.

The clients of a campaign are one process, and what that takes for a request is what bounds how much is asked.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import httpx
import orjson

END = b"\r\n\r\n"
JSON = {"Content-Type": "application/json"}


class Pipes:
    """Connections to one port, as many as there are requests at once; answers and errors are those of httpx."""

    def __init__(self, port: int, headers: Mapping[str, str], *, seconds: float) -> None:
        self._port = port
        self._headers = {"Host": f"127.0.0.1:{port}", **headers}
        self._seconds = seconds
        self._free: list[_Pipe] = []

    @asynccontextmanager
    async def standing(self) -> AsyncIterator["Pipes"]:
        """Hang up in the end."""
        try:
            yield self
        finally:
            for pipe in self._free:
                pipe.hang_up()

    async def request(
        self,
        method: str,
        path: str,
        *,
        content: bytes = b"",
        json: object = None,
        headers: Mapping[str, str] | None = None,
    ) -> httpx.Response:
        """Ask once, and wait for the whole answer. Raises ConnectError, ReadError or ReadTimeout."""
        if json is not None:
            content, headers = orjson.dumps(json), {**JSON, **(headers or {})}
        all_of_them = {**self._headers, **(headers or {}), "Content-Length": str(len(content))}
        head = "".join(f"{name}: {value}\r\n" for name, value in all_of_them.items())
        asked = f"{method} {path} HTTP/1.1\r\n{head}\r\n".encode() + content
        pipe = await self._pipe()
        try:
            async with asyncio.timeout(self._seconds):
                answer = await pipe.answer_to(asked)
        except TimeoutError as error:
            raise httpx.ReadTimeout("") from error
        finally:
            if pipe.is_free:
                self._free.append(pipe)
            else:
                pipe.hang_up()
        return answer

    async def _pipe(self) -> "_Pipe":
        while self._free:
            pipe = self._free.pop()
            if pipe.is_free:
                return pipe
        loop = asyncio.get_running_loop()
        try:
            _, pipe = await loop.create_connection(_Pipe, "127.0.0.1", self._port)
        except OSError as error:
            raise httpx.ConnectError(str(error)) from error
        return pipe


class _Pipe(asyncio.Protocol):
    """One connection, for one request after the other."""

    def __init__(self) -> None:
        self.is_free = True
        self._got = b""
        self._answer: asyncio.Future[httpx.Response] | None = None
        self._transport: asyncio.Transport

    async def answer_to(self, asked: bytes) -> httpx.Response:
        self.is_free = False
        self._answer = asyncio.get_running_loop().create_future()
        self._transport.write(asked)
        return await self._answer

    def hang_up(self) -> None:
        self.is_free = False
        self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._got += data
        found = read(self._got)
        if found is not None and self._answer is not None and not self._answer.done():
            self._got = b""
            self.is_free = found.headers.get("Connection") != "close"
            self._answer.set_result(found)

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_free = False
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(httpx.ReadError(str(exc or "")))


def read(got: bytes) -> httpx.Response | None:
    """Read an answer, if it is whole."""
    until = got.find(END)
    if until < 0:
        return None
    status, *lines = got[:until].decode("latin-1").split("\r\n")
    pairs = [(name, value.strip()) for name, _, value in (one.partition(":") for one in lines)]
    named = {name.lower(): value for name, value in pairs}
    body: bytes | None = got[until + len(END) :]
    if named.get("transfer-encoding") == "chunked":
        body = _unchunked(got, until + len(END))
    elif len(body or b"") < int(named.get("content-length", 0)):
        body = None
    if body is None:
        return None
    kept = [pair for pair in pairs if pair[0].lower() != "transfer-encoding"]
    return httpx.Response(int(status.split(" ")[1]), headers=kept, content=body)


def _unchunked(got: bytes, at: int) -> bytes | None:
    """Put chunks together; none while the last one is missing."""
    if not got.endswith(b"0" + END):
        return None
    parts: list[bytes] = []
    while True:
        line = got.index(b"\r\n", at)
        length = int(got[at:line], 16)
        if not length:
            return b"".join(parts)
        parts.append(got[line + 2 : line + 2 + length])
        at = line + 2 + length + 2
