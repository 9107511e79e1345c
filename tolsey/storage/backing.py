"""The servers behind the service: those whose addresses are set, else embedded ones."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import anyio.lowlevel

from tolsey.settings import Settings
from tolsey.storage.embedded.servers import EmbeddedServers


@asynccontextmanager
async def addresses(settings: Settings) -> AsyncIterator[tuple[str, str]]:
    """Give the database's and the cache's address; embedded servers run where none is set."""
    if settings.database_url and settings.redis_url:
        yield settings.database_url, settings.redis_url
        return
    servers = EmbeddedServers(settings.data_dir / "servers")
    with anyio.CancelScope(shield=True):  # who cannot be cut short is not left half entered either
        await anyio.to_thread.run_sync(servers.__enter__)
    try:
        await anyio.lowlevel.checkpoint()
        yield (
            settings.database_url or servers.database_url,
            settings.redis_url or servers.redis_url,
        )
    finally:
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(servers.__exit__, None, None, None)
