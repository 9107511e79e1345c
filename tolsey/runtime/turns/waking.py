"""Actors that a message found asleep: read from disk, many of one kind at once."""

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, Protocol

import structlog

from tolsey.runtime.errors import ShardUnavailable, Stopping, TurnFailed
from tolsey.runtime.messages import ActorId
from tolsey.runtime.telemetry import Telemetry
from tolsey.runtime.turns.mailbox import Cell
from tolsey.storage.errors import StorageError

log = structlog.get_logger()

WAKE_PAGE = 256
"""How many actors of a kind are read from disk at once."""


class Versions(Protocol):
    """How far actors are on disk."""

    async def __call__(self, kind: str, keys: Sequence[str]) -> dict[str, int]:
        """Read versions; an actor that never committed is not among them."""


class Waking:
    """Wakes the actors of one process."""

    def __init__(
        self,
        versions: Versions,
        telemetry: Telemetry,
        *,
        spawn: Callable[[Coroutine[Any, Any, None]], None],
        release: Callable[[Cell], None],
        refuse: Callable[[Sequence[Cell], Callable[[], BaseException]], None],
    ) -> None:
        self._versions = versions
        self._telemetry = telemetry
        self._spawn = spawn
        self._release = release
        self._refuse = refuse
        self._waking: dict[str, list[Cell]] = {}
        """Those of a kind that are read from disk as soon as the loop comes round."""
        self._awaiting: dict[ActorId, list[asyncio.Future[None]]] = {}

    def __bool__(self) -> bool:
        return bool(self._waking)

    async def awaken(self, cell: Cell) -> None:
        """Wait until an actor is awake."""
        if cell.cold is not None:
            cell.warm()
        if not cell.hot:
            future = asyncio.get_running_loop().create_future()
            self._awaiting.setdefault(cell.id, []).append(future)
            if not cell.busy:
                cell.busy = True
                self.wake(cell)
            await future

    def wake(self, cell: Cell) -> None:
        """Read an actor from disk together with others of its kind that are asked for now."""
        waiting = self._waking.get(cell.id.kind)
        if waiting is None:
            waiting = self._waking[cell.id.kind] = []
            asyncio.get_running_loop().call_soon(self._wake_kind, cell.id.kind)
        waiting.append(cell)

    def _wake_kind(self, kind: str) -> None:
        cells = self._waking.pop(kind)
        for at in range(0, len(cells), WAKE_PAGE):
            self._spawn(self._read(cells[at : at + WAKE_PAGE]))

    async def _read(self, cells: Sequence[Cell]) -> None:
        """Read actors of one kind from disk, all in one query for each table."""
        kind, keys = cells[0].id.kind, [cell.id.key for cell in cells]
        generations = [cell.generation for cell in cells]
        try:
            # The version first: a state that is newer than its version cannot commit.
            versions: Mapping[str, int] = await self._versions(kind, keys)
            states = await cells[0].actor.load(keys)
            for cell, generation in zip(cells, generations, strict=True):
                if cell.generation == generation:
                    cell.wake(states[cell.id.key], versions.get(cell.id.key, 0))
        except StorageError as error:
            log.warning("actor.not_woken", kind=kind, actors=len(cells), error=str(error))
            reason = f"storage: {error}"
            self._refuse(cells, lambda: ShardUnavailable(reason))
        except asyncio.CancelledError:
            self._refuse(cells, Stopping)
            raise
        except Exception as error:
            if len(cells) > 1:  # one actor that cannot be read fails alone
                for cell in cells:
                    self._spawn(self._read([cell]))
                return
            log.error("actor.load_failed", kind=kind, exc_info=error)  # noqa: TRY400 - as above
            cause = type(error).__name__
            self._refuse(cells, lambda: TurnFailed("load", cause))
        self._read_back(cells)

    def _read_back(self, cells: Sequence[Cell]) -> None:
        self._telemetry.counters["wakes"] += len(cells)
        for cell in cells:
            for future in self._awaiting.pop(cell.id, ()):
                if not future.done():
                    future.set_result(None)
            self._release(cell)
