"""A runtime that owns every slot of a database, as most benches want one."""

from collections.abc import Sequence
from contextlib import AsyncExitStack
from functools import partial
from typing import Any

from tolsey.runtime.registry import Runtime
from tolsey.storage.database import Database
from tolsey.storage.runtime import slots
from tolsey.storage.runtime.journal import Journal
from tolsey.storage.runtime.outbox import Outbox


async def opened(stack: AsyncExitStack, url: str) -> tuple[Database, Journal]:
    """Connect to a database and its journal until the stack ends."""
    database = Database(url)
    await database.open()
    stack.push_async_callback(database.close)
    journal = Journal(database)
    stack.push_async_callback(journal.close)
    return database, journal


async def owning(
    actors: Sequence[Any], database: Database, journal: Journal, **settings: Any
) -> Runtime:
    """Make a runtime that owns every slot."""
    return Runtime(
        actors,
        journal,
        Outbox(database),
        partial(slots.versions, database),
        epochs=await slots.claim(database, "bench"),
        **settings,
    )
