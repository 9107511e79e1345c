"""What a caller is told while an answer is made: server-sent events (rules/chat#telling)."""

from collections.abc import AsyncGenerator, Iterator
from contextlib import suppress
from typing import Any, Final

import anyio
import orjson

CONTENT_TYPE: Final = "text/event-stream"
QUIET_SECONDS: Final = 15.0
"""So long a silence is broken by a comment: proxies close what looks dead."""
READING_SECONDS: Final = 60.0
"""A caller who reads nothing for so long has left."""
EVENTS_WAITING: Final = 64
BREATH: Final = b":\n\n"


class Telling:
    """Events on their way to who reads them; `kept` has them all when it is to keep them."""

    def __init__(self, *, keeps: bool) -> None:
        self.kept: list[bytes] = []
        self._keeps = keeps
        self._in, self._out = anyio.create_memory_object_stream[bytes](EVENTS_WAITING)

    async def tell(self, name: str, /, **said: Any) -> bool:
        """Tell an event; False when nobody reads any more."""
        event = b"event: " + name.encode() + b"\ndata: " + orjson.dumps(said) + b"\n\n"
        if self._keeps:
            self.kept.append(event)
        try:
            self._in.send_nowait(event)
        except anyio.WouldBlock:
            return await self._wait(event)
        except anyio.BrokenResourceError:
            return False
        return True

    async def _wait(self, event: bytes) -> bool:
        """Tell an event to who is behind with reading."""
        with anyio.move_on_after(READING_SECONDS):
            try:
                await self._in.send(event)
            except anyio.BrokenResourceError:
                return False
            return True
        return False

    def end(self) -> None:
        """Say that nothing more comes."""
        self._in.close()

    def stop_reading(self) -> None:
        """Say that nobody reads."""
        self._out.close()

    async def body(self) -> AsyncGenerator[bytes]:
        """Read what is told as it comes, with a breath in long silences."""
        while True:
            said = BREATH
            with anyio.move_on_after(QUIET_SECONDS):
                try:
                    said = await self._out.receive()
                except (anyio.EndOfStream, anyio.ClosedResourceError):
                    return
            yield said + b"".join(self._waiting())

    def _waiting(self) -> Iterator[bytes]:
        """Take what is there already: what the model says in one piece leaves in one piece."""
        with suppress(anyio.WouldBlock, anyio.EndOfStream, anyio.ClosedResourceError):
            while True:
                yield self._out.receive_nowait()


async def told_in(body: AsyncGenerator[bytes]) -> AsyncGenerator[tuple[str, dict[str, Any]]]:
    """Read events back, for a reader that waits for all of them."""
    waiting = b""
    async for chunk in body:
        *whole, waiting = (waiting + chunk).split(b"\n\n")
        for event in whole:
            name, separator, data = event.partition(b"\ndata: ")
            if separator:
                yield name.removeprefix(b"event: ").decode(), orjson.loads(data)
