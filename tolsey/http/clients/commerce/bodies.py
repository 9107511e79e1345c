"""One exchange over HTTP with bounds: time, decoded size, and a named fault for what went wrong."""

import re
import zlib
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from math import isfinite
from typing import Any

import anyio
import httpx
from pydantic_core import from_json

from tolsey.actors.ports import PlatformUnreachable
from tolsey.http.clients.commerce.costs import Cost
from tolsey.http.clients.guard import ForbiddenAddress

PIECE = 256 * 1024
LONGEST_WAIT_SECONDS = 600.0
SECONDS = re.compile(r"\d{1,6}(?:\.\d{1,9})?")
NEVER_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)


class TransientFault(Exception):  # noqa: N818 - a state of the world
    """An attempt failed and the next one may not.

    `wait_seconds` is how long the platform asked us to wait, `done` whether the request may have
    been carried out all the same, `throttled` whether the platform only asked for patience, and `cost`
    what it said about the shop's points.
    """

    def __init__(
        self,
        reason: str,
        *,
        wait_seconds: float | None = None,
        done: bool = True,
        throttled: bool = False,
        cost: Cost | None = None,
    ) -> None:
        super().__init__(reason)
        self.reason = reason
        self.wait_seconds = wait_seconds
        self.done = done
        self.throttled = throttled
        self.cost = cost


@dataclass(frozen=True, slots=True)
class PlatformReply:
    """A whole answer, its body decoded and within its bound."""

    status: int
    headers: Mapping[str, str] = field(repr=False)
    body: bytes = field(repr=False)

    def json(self) -> Any:
        """Parse the body; ValueError when it is not JSON."""
        return from_json(self.body, allow_inf_nan=False)


async def fetch(
    http: httpx.AsyncClient, request: httpx.Request, *, limit_bytes: int, seconds: float
) -> PlatformReply:
    """Answer a request whole, or raise TransientFault; PlatformUnreachable when it never can."""
    async with opened(http, request, seconds=seconds) as response:
        body = bytearray()
        async for piece in decoded(response):
            body += piece
            if len(body) > limit_bytes:
                raise PlatformUnreachable(f"The platform answered more than {limit_bytes} bytes.")
        return PlatformReply(response.status_code, response.headers, bytes(body))


@asynccontextmanager
async def opened(
    http: httpx.AsyncClient, request: httpx.Request, *, seconds: float | None
) -> AsyncGenerator[httpx.Response]:
    """Hold a response open for at most `seconds`, if it has so many, its body still to be read."""
    try:
        with anyio.fail_after(seconds):
            response = await http.send(request, stream=True)
            try:
                yield response
            finally:
                with anyio.CancelScope(shield=True):
                    await response.aclose()
    except NEVER_SENT as error:
        if isinstance(error.__cause__, ForbiddenAddress):
            raise PlatformUnreachable("The platform's address is not a public one.") from error
        raise TransientFault("The platform could not be reached.", done=False) from error
    except (httpx.TransportError, TimeoutError) as error:
        raise TransientFault("The platform's answer did not arrive.") from error


async def decoded(response: httpx.Response) -> AsyncIterator[bytes]:
    """Yield a body in pieces of bounded size, however far it was compressed."""
    encoding = response.headers.get("content-encoding", "identity").strip().lower()
    if encoding in ("", "identity"):
        async for piece in response.aiter_raw():
            yield piece
        return
    if encoding not in ("gzip", "x-gzip", "deflate"):
        raise TransientFault(f"The platform's answer is encoded as {encoding[:20]!r}.")
    inflate = zlib.decompressobj(wbits=zlib.MAX_WBITS | 32)
    try:
        async for piece in response.aiter_raw():
            rest = piece
            while rest and not inflate.eof:
                yield inflate.decompress(rest, PIECE)
                rest = inflate.unconsumed_tail
        while not inflate.eof:
            last = inflate.decompress(b"", PIECE)
            if not last:
                break
            yield last
    except zlib.error as error:
        raise TransientFault("The platform's answer cannot be decompressed.") from error
    if not inflate.eof:
        raise TransientFault("The platform's answer broke off.")


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds the platform asked for; it sends fractions, such as `2.0`, where RFC 9110 has none.

    None when the header is absent or not a number.
    """
    text = headers.get("retry-after", "").strip()
    if SECONDS.fullmatch(text) is None:
        return None
    seconds = float(text)
    return min(seconds, LONGEST_WAIT_SECONDS) if isfinite(seconds) else None
