"""Connections for what may read a whole store: apart from those that short queries use."""

from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, Final
from weakref import WeakValueDictionary

import anyio

from tolsey.storage.database import REQUEST_SECONDS, Database, Row
from tolsey.storage.errors import StorageBusy

CONNECTIONS: Final = 8
OPERATORS: Final = "operators"
"""Those of the service count as an organization."""
PLACES: Final = 4
"""So many reports of one organization run at once: half of the connections are left to others."""
WAITING: Final = 64
"""So many more of it wait for a place; what comes after them is refused at once."""
SESSION: Final = {
    # Most statements leave a condition out with `$n IS NULL OR ...`: a plan for any value reads the
    # whole store where the plan for these values reads a page.
    "plan_cache_mode": "force_custom_plan",
    # A request is given up after this long, and its statement ends with it.
    "statement_timeout": f"{int(REQUEST_SECONDS * 1000)}",
    "default_transaction_read_only": "on",
    # What is added up of twenty thousand products fits, so that nothing is sorted on disk.
    "work_mem": "16MB",
    # To compile a statement takes longer than any of these may.
    "jit": "off",
}


class Reports:
    """A pool of its own, in which no organization takes every connection."""

    def __init__(self, dsn: str, *, size: int = CONNECTIONS, places: int = PLACES) -> None:
        self._database = Database(dsn, min_size=0, max_size=size, session=SESSION)
        self._places = places
        self._semaphores: WeakValueDictionary[str, anyio.Semaphore] = WeakValueDictionary()
        self._asked: Counter[str] = Counter()

    async def open(self) -> None:
        """Make the pool; it connects with its first report."""
        await self._database.open()

    async def close(self) -> None:
        """Close every connection."""
        await self._database.close()

    def of(self, organization_id: str) -> "OrganizationReports":
        """Give the reader of one organization."""
        return OrganizationReports(self, organization_id)

    @asynccontextmanager
    async def place(self, organization_id: str) -> AsyncGenerator[Database]:
        """Wait for a place of an organization; raises StorageBusy when too many wait, or too long."""
        if self._asked[organization_id] >= self._places + WAITING:
            raise StorageBusy(organization_id)
        semaphore = self._semaphores.get(organization_id)
        if semaphore is None:
            semaphore = self._semaphores[organization_id] = anyio.Semaphore(self._places)
        self._asked[organization_id] += 1
        try:
            with anyio.move_on_after(REQUEST_SECONDS) as waiting:
                await semaphore.acquire()
            if waiting.cancelled_caught:
                raise StorageBusy(organization_id)
            try:
                yield self._database
            finally:
                semaphore.release()
        finally:
            self._asked[organization_id] -= 1
            if not self._asked[organization_id]:
                del self._asked[organization_id]


class OrganizationReports:
    """Reads for one organization, each in a place of its own."""

    def __init__(self, reports: Reports, organization_id: str) -> None:
        self._reports = reports
        self._organization_id = organization_id

    async def fetch(self, sql: str, *args: Any) -> list[Row]:
        """Read rows."""
        async with self._reports.place(self._organization_id) as database:
            return await database.fetch(sql, *args)

    async def fetchrow(self, sql: str, *args: Any) -> Row | None:
        """Read one row, or none."""
        async with self._reports.place(self._organization_id) as database:
            return await database.fetchrow(sql, *args)
