"""One exchange over HTTP with bounds: time, decoded size, and a named fault for what went wrong."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import anyio
import httpx
from pydantic_core import from_json

from tolsey.actors.ports import PlatformUnreachable
from tolsey.http.clients.decoding import Undecodable, decoded
from tolsey.http.clients.guard import ForbiddenAddress

NEVER_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)


class TransientFault(Exception):  # noqa: N818 - a state of the world
    """An attempt failed and the next one may not.

    `wait_seconds` is how long the platform asked us to wait, `done` whether the request may have
    been carried out all the same, and `throttled` whether the platform only asked for patience.
    """

    def __init__(
        self,
        reason: str,
        *,
        wait_seconds: float | None = None,
        done: bool = True,
        throttled: bool = False,
    ) -> None:
        super().__init__(reason)
        self.reason = reason
        self.wait_seconds = wait_seconds
        self.done = done
        self.throttled = throttled


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
                raise PlatformUnreachable(
                    f"The response from Shopify exceeds {limit_bytes} bytes. Request less data."
                )
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
            raise PlatformUnreachable(
                "The shop's domain resolves to a private address, so it isn't called. Check the"
                " domain."
            ) from error
        raise TransientFault(
            "Shopify is unreachable. Try again in a minute.", done=False
        ) from error
    except (httpx.TransportError, TimeoutError) as error:
        raise TransientFault(
            "The response from Shopify didn't arrive. Try again in a minute."
        ) from error
    except Undecodable as error:
        raise TransientFault(f"Shopify's response can't be decoded. {error}") from error
