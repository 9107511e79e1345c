"""The cable between one process and one server: it can be cut, held up, or made slow."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

READ = 65536


async def _lets_pass(_line: object, _block: bytes) -> None:
    """Hold nothing back."""


class Link:
    """Passes bytes between a process and a server, on a UNIX socket or a port, until told otherwise.

    What is held goes on when the hold ends, as TCP sends again what a network lost: statements and
    answers then arrive late, maybe long after both sides went on.
    """

    def __init__(
        self,
        upstream: Path | int,
        heard: Callable[[bytes], object] = lambda _: None,
        passes: Callable[[object, bytes], Awaitable[None]] = _lets_pass,
    ) -> None:
        self._upstream = upstream
        self._heard = heard
        """Told of every block that goes up."""
        self.passes = passes
        """Waited for before a block goes up; told the connection, too, which alone waits."""
        self.port = 0
        self.delay_seconds = 0.0
        self.held = 0
        """How many blocks had to wait."""
        self.refused = 0
        """How many connections were cut or turned away."""
        self._cut = False
        self._flows = {"up": asyncio.Event(), "down": asyncio.Event()}
        self._open_gates()
        self._tasks: set[asyncio.Task[None]] = set()

    def _open_gates(self) -> None:
        for flow in self._flows.values():
            flow.set()

    def hold(self, *directions: str) -> None:
        """Let nothing pass: `up` to the server, `down` from it, or both."""
        for direction in directions:
            self._flows[direction].clear()

    async def cut(self) -> None:
        """Cut every connection that stands, and turn away who comes."""
        self._cut = True
        await self.reset()

    async def redirect(self, upstream: Path | int) -> None:
        """Lead to another server from now on."""
        self._upstream = upstream
        await self.reset()

    async def reset(self) -> None:
        """Cut every connection that stands."""
        tasks = list(self._tasks)
        self.refused += len(tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def heal(self, *, loses: bool = False) -> None:
        """Pass everything again; what was held arrives late, or is lost with its connection."""
        if loses:
            await self.reset()
        self._cut, self.delay_seconds = False, 0.0
        self._open_gates()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        forth: asyncio.StreamWriter | None = None
        pumps: set[asyncio.Task[None]] = set()
        try:
            if self._cut:
                self.refused += 1
                return
            back, forth = await self._open()
            pumps.add(asyncio.create_task(self._pump("up", reader, forth)))
            pumps.add(asyncio.create_task(self._pump("down", back, writer)))
            await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
        except (OSError, asyncio.CancelledError):
            pass  # the server is away, or the line is cut: so is this connection
        finally:
            for pump in pumps:
                pump.cancel()
            # Whoever waits on either side learns nothing but that the line is dead.
            writer.transport.abort()
            if forth is not None:
                forth.transport.abort()
            self._tasks.discard(task)

    async def _pump(
        self, flow: str, source: asyncio.StreamReader, target: asyncio.StreamWriter
    ) -> None:
        gate = self._flows[flow]
        with suppress(OSError):
            while True:
                block = await source.read(READ)
                if not gate.is_set():
                    self.held += 1
                    await gate.wait()
                if self.delay_seconds:
                    await asyncio.sleep(self.delay_seconds)
                if not block:
                    return
                if flow == "up":
                    await self.passes(source, block)
                    self._heard(block)
                target.write(block)
                await target.drain()

    async def _open(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if isinstance(self._upstream, int):
            return await asyncio.open_connection("127.0.0.1", self._upstream)
        return await asyncio.open_unix_connection(str(self._upstream))

    @asynccontextmanager
    async def standing(self) -> AsyncIterator["Link"]:
        """Listen on a loopback port."""
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        try:
            yield self
        finally:
            server.close()
            self._open_gates()
            await self.reset()
