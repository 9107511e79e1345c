"""What is read of anybody's answer before it can be trusted: bodies in bounded pieces, waits as numbers."""

import re
import zlib
from collections.abc import AsyncGenerator, Mapping
from math import isfinite
from typing import Final

import httpx

PIECE: Final = 256 * 1024
LONGEST_WAIT_SECONDS: Final = 600.0
SECONDS: Final = re.compile(r"\d{1,6}(?:\.\d{1,9})?")


class Undecodable(Exception):  # noqa: N818 - what a body is
    """A body cannot be read to its end."""


async def decoded(response: httpx.Response) -> AsyncGenerator[bytes]:
    """Yield a body in pieces of bounded size, however far it was compressed. Raises Undecodable."""
    encoding = response.headers.get("content-encoding", "identity").strip().lower()
    if encoding in ("", "identity"):
        async for piece in response.aiter_raw():
            yield piece
        return
    if encoding not in ("gzip", "x-gzip", "deflate"):
        raise Undecodable(f"It is encoded as {encoding[:20]!r}.")
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
        raise Undecodable("It cannot be decompressed.") from error
    if not inflate.eof:
        raise Undecodable("It broke off.")


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds that a server asked for; some send fractions, such as `2.0`, where RFC 9110 has none.

    None when the header is absent or not a number.
    """
    text = headers.get("retry-after", "").strip()
    if SECONDS.fullmatch(text) is None:
        return None
    seconds = float(text)
    return min(seconds, LONGEST_WAIT_SECONDS) if isfinite(seconds) else None
