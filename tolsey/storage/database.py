"""The pool, and transactions on it."""

import asyncio
import time
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from typing import Any, Final, Protocol, TypeAlias

import asyncpg

from tolsey.storage.errors import (
    SchemaDrift,
    StorageError,
    StorageFull,
    StorageLocked,
    StorageOverdue,
    StorageUnavailable,
    UniqueViolation,
)

Pool: TypeAlias = "asyncpg.Pool[asyncpg.Record]"
Transaction: TypeAlias = "asyncpg.pool.PoolConnectionProxy[asyncpg.Record]"
Connection: TypeAlias = "asyncpg.Connection[asyncpg.Record]"
Row: TypeAlias = asyncpg.Record

LONGEST_SECONDS: Final = 60.0
"""So long may a statement take that nobody waits for."""
REQUEST_SECONDS = 5.0
"""So long a request waits for PostgreSQL: it may do so twice, and its sender waits longer. Tests set another one."""

SESSION: Final = {
    "application_name": "tolsey",
    "timezone": "UTC",
    # A server that is not told to stop goes on with what nobody waits for any more: our side of a
    # connection is closed by who gives up, and this is how often a running statement looks at it.
    "client_connection_check_interval": "500ms",
}

_PATIENCE: ContextVar[float | None] = ContextVar("patience", default=None)

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
    asyncpg.QueryCanceledError,
)
"""What a lost, refused or overdue connection looks like; one that is cut in mid-answer may confuse the driver."""
LOCKED: Final = (asyncpg.LockNotAvailableError, asyncpg.DeadlockDetectedError)


def translated(error: BaseException) -> StorageError:
    """Say a driver's error in the words of this package."""
    if isinstance(error, asyncpg.UniqueViolationError):
        return UniqueViolation(str(error.constraint_name))
    if isinstance(error, asyncpg.UndefinedTableError | asyncpg.UndefinedColumnError):
        return SchemaDrift(f"{type(error).__name__}: {error}")
    if isinstance(error, LOCKED):
        return StorageLocked(type(error).__name__)
    if isinstance(error, asyncpg.QueryCanceledError):
        return StorageOverdue(type(error).__name__)
    if isinstance(error, UNREACHABLE):
        return StorageUnavailable(type(error).__name__)
    return StorageError(f"{type(error).__name__}: {error}")


@contextmanager
def patience(seconds: float | None) -> Iterator[None]:
    """Give each use of a connection so long while the block runs; with None, each statement longest."""
    token = _PATIENCE.set(seconds)
    try:
        yield
    finally:
        _PATIENCE.reset(token)


async def _as_it_is(connection: Connection) -> None:
    """Leave a session as it is when its connection is given back.

    Nothing that runs on the pool changes it but within a transaction, which is ended in any case; the
    driver's own reset would be a second round trip after every query.
    """
    del connection


class Reader(Protocol):
    """Where rows are read."""

    async def fetch(self, sql: str, *args: Any) -> list[Row]:
        """Read rows."""

    async def fetchrow(self, sql: str, *args: Any) -> Row | None:
        """Read one row, or none."""


class Database:
    """A pool of connections to PostgreSQL; `session` are settings of its sessions."""

    def __init__(
        self,
        dsn: str,
        *,
        min_size: int = 1,
        max_size: int = 10,
        session: Mapping[str, str] | None = None,
    ) -> None:
        self.dsn = dsn
        longest = {"statement_timeout": f"{int(LONGEST_SECONDS * 1000)}"}
        self._session = SESSION | longest | dict(session or {})
        self._sizes = (min_size, max_size)
        self._pool: Pool | None = None
        self._full_at: float | None = None

    async def open(self) -> None:
        """Connect the pool. Raises StorageUnavailable when PostgreSQL is out of reach."""
        try:
            self._pool = await asyncpg.create_pool(
                self.dsn,
                min_size=self._sizes[0],
                max_size=self._sizes[1],
                command_timeout=LONGEST_SECONDS,
                reset=_as_it_is,
                server_settings=self._session,
            )
        except (asyncpg.PostgresError, *UNREACHABLE) as error:
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
        """Open a connection of one's own, outside the pool; no statement waits longer than a request."""
        try:
            return await asyncpg.connect(
                self.dsn,
                timeout=REQUEST_SECONDS,
                command_timeout=REQUEST_SECONDS,
                server_settings=SESSION,
            )
        except UNREACHABLE as error:
            raise StorageUnavailable(type(error).__name__) from error

    @asynccontextmanager
    async def _lent(self) -> AsyncGenerator[Transaction]:
        """Lend a connection; one that a caller waited on for too long is given up.

        It is closed on our side alone: to ask a server that hangs to cancel is to wait for it again.
        """
        seconds = _PATIENCE.get()
        loop = asyncio.get_running_loop()
        longest = LONGEST_SECONDS if seconds is None else seconds
        until = loop.time() + longest
        try:
            async with self.pool.acquire(timeout=longest) as connection:
                if seconds is None:
                    yield connection
                    return
                end = loop.call_at(until, connection.terminate)
                try:
                    yield connection
                except asyncio.CancelledError:
                    connection.terminate()
                    raise
                finally:
                    end.cancel()
        except (asyncpg.PostgresError, *UNREACHABLE) as error:
            raise self.translated(error) from error

    def translated(self, error: BaseException) -> StorageError:
        """Say a driver's error in the words of this package, and remember that the disk is full."""
        if isinstance(error, asyncpg.DiskFullError):
            self._full_at = time.monotonic()
            return StorageFull(type(error).__name__)
        return translated(error)

    @property
    def full_seconds(self) -> float | None:
        """How long ago PostgreSQL last refused a write for want of room; none when it did not."""
        return None if self._full_at is None else time.monotonic() - self._full_at

    @asynccontextmanager
    async def transaction(
        self, *, isolation: str = "read_committed", readonly: bool = False
    ) -> AsyncGenerator[Transaction]:
        """Everything in the block is written, or none of it."""
        async with (
            self._lent() as connection,
            connection.transaction(isolation=isolation, readonly=readonly),  # type: ignore[arg-type]  # the stubs want a Literal
        ):
            yield connection

    async def fetch(self, sql: str, *args: Any) -> list[Row]:
        """Read rows."""
        async with self._lent() as connection:
            return await connection.fetch(sql, *args)

    async def fetchrow(self, sql: str, *args: Any) -> Row | None:
        """Read one row, or none."""
        async with self._lent() as connection:
            return await connection.fetchrow(sql, *args)

    async def fetch_as_it_is(self, sql: str, *args: Any) -> list[Row]:
        """Read rows by a plan for these values, and for tables as large as they are by now.

        A kept plan may be from when a table was empty, and nobody makes a new one before statistics come.
        """
        async with self.transaction(readonly=True) as tx:
            await tx.execute("SET LOCAL plan_cache_mode = force_custom_plan")
            return await tx.fetch(sql, *args)

    async def execute(self, sql: str, *args: Any) -> int:
        """Run one statement; answer how many rows it touched."""
        async with self._lent() as connection:
            status = await connection.execute(sql, *args)
        last = status.rsplit(" ", 1)[-1]
        return int(last) if last.isdigit() else 0
