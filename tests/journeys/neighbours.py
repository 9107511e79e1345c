"""Two processes of one service, side by side: they share a database and Redis, and nothing else."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx

from tests.timing import until
from tolsey.service import Running


async def shared(*processes: Running) -> None:
    """Wait until every slot has an owner among these processes, and each has some."""

    def whole() -> bool:
        owned = [set(process.service.runtime.slots.epochs) for process in processes]
        return all(owned) and sum(map(len, owned)) == len(set().union(*owned)) == 1024

    await until(whole)
    await until(
        lambda: all(len(one.service.shard.members()) == len(processes) for one in processes)
    )


@asynccontextmanager
async def browsing(process: Running) -> AsyncIterator[httpx.AsyncClient]:
    base = process.service.settings.base_url
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(process.app), base_url=base, headers={"Origin": base}
    ) as client:
        yield client


async def settled(process: Running) -> None:
    """Wait until nothing follows from what was done any more."""

    async def is_settled() -> bool:
        return not await process.service.database.fetch("SELECT 1 FROM outbox")

    await until(is_settled)
