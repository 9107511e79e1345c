"""The pool, and transactions on it."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, TypeAlias

import asyncpg

from tolsey.storage.errors import Duplicate, OutcomeUnknown, StorageError, StorageUnavailable

Pool: TypeAlias = "asyncpg.Pool[asyncpg.Record]"
Transaction: TypeAlias = "asyncpg.pool.PoolConnectionProxy[asyncpg.Record]"
Connection: TypeAlias = "asyncpg.Connection[asyncpg.Record]"
Row: TypeAlias = asyncpg.Record

UNREACHABLE = (
    OSError,
    TimeoutError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
    asyncpg.PostgresConnectionError,
    asyncpg.CannotConnectNowError,
    asyncpg.AdminShutdownError,
    asyncpg.CrashShutdownError,
    asyncpg.TooManyConnectionsError,
)
"""What a lost or refused connection looks like; one that is cut in mid-answer may confuse the driver."""


def translated(error: BaseException) -> StorageError:
    """Say a driver's error in the words of this package."""
    if isinstance(error, asyncpg.UniqueViolationError):
        return Duplicate(str(error.constraint_name))
    if isinstance(error, UNREACHABLE):
        return StorageUnavailable(type(error).__name__)
    return StorageError(f"{type(error).__name__}: {error}")


async def _as_it_is(connection: Connection) -> None:
    """Leave a session as it is when its connection is given back.

    Nothing that runs on the pool changes it but within a transaction, which is ended in any case; the
    driver's own reset would be a second round trip after every query.
    """
    del connection


class Database:
    """A pool of connections to PostgreSQL."""

    def __init__(self, dsn: str, *, min_size: int = 1, max_size: int = 10) -> None:
        self.dsn = dsn
        self._sizes = (min_size, max_size)
        self._pool: Pool | None = None

    async def open(self) -> None:
        """Connect the pool. Raises StorageUnavailable when PostgreSQL is out of reach."""
        try:
            self._pool = await asyncpg.create_pool(
                self.dsn,
                min_size=self._sizes[0],
                max_size=self._sizes[1],
                command_timeout=60,
                reset=_as_it_is,
                server_settings={"application_name": "tolsey", "timezone": "UTC"},
            )
        except (asyncpg.PostgresError, asyncpg.InterfaceError, OSError, TimeoutError) as error:
            raise translated(error) from error

    async def close(self) -> None:
        """Give every connection back and close them."""
        if self._pool is not None:
            try:
                await asyncio.wait_for(self._pool.close(), 5)
            except TimeoutError:
                self._pool.terminate()
            self._pool = None

    @property
    def pool(self) -> Pool:
        """The open pool."""
        if self._pool is None:
            raise StorageUnavailable("the pool is closed")
        return self._pool

    async def connect(self) -> Connection:
        """Open a connection of one's own, outside the pool."""
        try:
            return await asyncpg.connect(
                self.dsn,
                timeout=10,
                server_settings={"application_name": "tolsey", "timezone": "UTC"},
            )
        except UNREACHABLE as error:
            raise StorageUnavailable(type(error).__name__) from error

    @asynccontextmanager
    async def transaction(
        self, *, isolation: str = "read_committed", readonly: bool = False
    ) -> AsyncGenerator[Transaction]:
        """Everything in the block is written, or none of it."""
        try:
            async with (
                self.pool.acquire(timeout=10) as connection,
                connection.transaction(isolation=isolation, readonly=readonly),  # type: ignore[arg-type]  # the stubs want a Literal
            ):
                yield connection
        except (asyncpg.PostgresError, asyncpg.InterfaceError, OSError, TimeoutError) as error:
            raise translated(error) from error

    async def fetch(self, sql: str, *args: Any) -> list[Row]:
        """Read rows."""
        try:
            return await self.pool.fetch(sql, *args)
        except (asyncpg.PostgresError, asyncpg.InterfaceError, OSError, TimeoutError) as error:
            raise translated(error) from error

    async def fetchrow(self, sql: str, *args: Any) -> Row | None:
        """Read one row, or none."""
        try:
            return await self.pool.fetchrow(sql, *args)
        except (asyncpg.PostgresError, asyncpg.InterfaceError, OSError, TimeoutError) as error:
            raise translated(error) from error

    async def execute(self, sql: str, *args: Any) -> int:
        """Run one statement; answer how many rows it touched."""
        try:
            status = await self.pool.execute(sql, *args)
        except (asyncpg.PostgresError, asyncpg.InterfaceError, OSError, TimeoutError) as error:
            raise translated(error) from error
        last = status.rsplit(" ", 1)[-1]
        return int(last) if last.isdigit() else 0


__all__ = ["Connection", "Database", "OutcomeUnknown", "Pool", "Row", "Transaction", "translated"]
