"""A cut, a silence or a swallowed answer between the service and its database."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from urllib.parse import parse_qs, urlsplit

READ = 65536


class Proxy:
    """Passes bytes between clients and PostgreSQL until told otherwise."""

    def __init__(self, database_url: str) -> None:
        self._parts = urlsplit(database_url)
        self.url = ""
        self.swallow = False
        """The next answer is not passed on: its connection is cut instead."""
        self.silent = False
        """Answers are neither passed on nor cut: a black hole."""
        self.refuse = 0
        """How many new connections are still to be cut at once."""
        self.swallowed = asyncio.Event()
        self.connections = 0
        """How many have come."""
        self._hung = 0
        """Up to which of them nothing passes any more, either way."""
        self._tasks: set[asyncio.Task[None]] = set()

    async def _upstream(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        folder = parse_qs(self._parts.query).get("host", [""])[0]
        if folder.startswith("/"):
            port = self._parts.port or 5432
            return await asyncio.open_unix_connection(f"{folder}/.s.PGSQL.{port}")
        host = self._parts.hostname or "127.0.0.1"
        return await asyncio.open_connection(host, self._parts.port or 5432)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        if self.refuse > 0:
            self.refuse -= 1
            writer.close()
            return
        self.connections += 1
        number = self.connections
        back, forth = await self._upstream()
        up = asyncio.ensure_future(self._pump(number, reader, forth, answers=False))
        down = asyncio.ensure_future(self._pump(number, back, writer, answers=True))
        try:
            await asyncio.wait({up, down}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for pump in (up, down):
                pump.cancel()
            # A statement that runs is not told: as with a cut cable, the server finds out later.
            writer.transport.abort()
            forth.close()
            self._tasks.discard(task)

    async def _pump(
        self,
        number: int,
        source: asyncio.StreamReader,
        target: asyncio.StreamWriter,
        *,
        answers: bool,
    ) -> None:
        with suppress(OSError):
            while block := await source.read(READ):
                if number <= self._hung:
                    continue
                if answers and self.swallow:
                    self.swallow = False
                    self.swallowed.set()
                    return
                if answers and self.silent:
                    self.swallowed.set()
                    continue
                target.write(block)
                await target.drain()

    def hang(self) -> None:
        """Let nothing pass over the connections that stand; those that come are as any."""
        self._hung = self.connections

    async def cut(self) -> None:
        """Cut every connection that stands."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    @asynccontextmanager
    async def standing(self) -> AsyncIterator["Proxy"]:
        """Listen on loopback; `url` is the database as seen through the proxy."""
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        user = self._parts.username or "postgres"
        password = f":{self._parts.password}" if self._parts.password else ""
        self.url = (
            f"postgresql://{user}{password}@127.0.0.1:{port}{self._parts.path}?sslmode=disable"
        )
        try:
            yield self
        finally:
            server.close()
            await self.cut()
