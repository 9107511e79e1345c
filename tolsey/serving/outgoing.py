"""What goes out to a client: one write for all that is said within one turn of the loop."""

import asyncio
from email.utils import formatdate
from functools import lru_cache
from typing import Any, Final

MOST_BYTES: Final = 64 * 1024
"""So much waits for the end of a turn; what is more goes at once, and feels how fast the client reads."""


@lru_cache(maxsize=1)
def http_date(second: int) -> bytes:
    """Write a time as answers are dated (RFC 9110 section 6.6.1)."""
    return formatdate(second, usegmt=True).encode()


class Outgoing(asyncio.Transport):
    """A transport that sends an answer's head with its body: each write of its own is a system call."""

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__()
        self._transport = transport
        self._loop = loop
        self._parts: list[bytes] = []
        self._size = 0

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Send what is written by the end of this turn of the loop."""
        if not data:
            return
        if not self._parts:
            self._loop.call_soon(self._flush)
        self._parts.append(bytes(data))
        self._size += len(data)
        if self._size >= MOST_BYTES:
            self._flush()

    def close(self) -> None:
        """End the connection when all is sent."""
        self._flush()
        self._transport.close()

    def abort(self) -> None:
        """End the connection at once."""
        self._parts.clear()
        self._transport.abort()

    def is_closing(self) -> bool:
        """Whether it is ended."""
        return self._transport.is_closing()

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """Tell what is known of the connection."""
        return self._transport.get_extra_info(name, default)

    def pause_reading(self) -> None:
        """Leave with the system what the client says."""
        self._transport.pause_reading()

    def resume_reading(self) -> None:
        """Take again what the client says."""
        self._transport.resume_reading()

    def _flush(self) -> None:
        parts, self._parts, self._size = self._parts, [], 0
        if parts and not self._transport.is_closing():
            self._transport.writelines(parts)
