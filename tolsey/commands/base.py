"""What the commands share: settings that can be read, an event loop, the service's database."""

import gc
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeVar

import anyio
import click

from tolsey import settings
from tolsey.runtime.messages import UnusableName
from tolsey.settings import Settings, SettingsError
from tolsey.storage.errors import StorageError, StorageUnavailable

if TYPE_CHECKING:
    from tolsey.storage.database import Database  # what this drags in, only some commands need

Result = TypeVar("Result")


def read_settings() -> Settings:
    """Read the settings, or end with what is wrong with them."""
    try:
        return settings.read()
    except SettingsError as error:
        raise click.ClickException(str(error)) from None


def run(main: Callable[[], Awaitable[Any]]) -> Any:
    """Run on uvloop where it is installed: queued turns cost a third less on it."""
    gc.freeze()
    gc.enable()  # off since the process began to import
    try:
        return anyio.run(main, backend="asyncio", backend_options={"use_uvloop": _has_uvloop()})
    except StorageUnavailable as error:
        raise click.ClickException(f"The database is out of reach: {error}") from None
    except (StorageError, UnusableName) as error:
        raise click.ClickException(str(error)) from None


def _has_uvloop() -> bool:
    try:
        import uvloop  # noqa: F401, PLC0415 - only whether it is there
    except ImportError:
        return False
    return True


def on_database(read: Settings, act: Callable[["Database"], Awaitable[Result]]) -> Result:
    """Act on the service's database, brought up to date."""
    from tolsey.storage.backing import addresses  # noqa: PLC0415 - only commands like this need it
    from tolsey.storage.database import Database  # noqa: PLC0415 - as above
    from tolsey.storage.migrate import migrate as apply  # noqa: PLC0415 - as above

    async def go() -> Result:
        async with addresses(read) as (database_url, _):
            await apply(database_url)
            database = Database(database_url)
            await database.open()
            try:
                return await act(database)
            finally:
                await database.close()

    done: Result = run(go)
    return done
