"""The imports of a store's shops, one row of each shop."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, ClassVar

from tolsey.actors.store.imports import importing
from tolsey.actors.store.imports.messages import (
    BeginImport,
    BulkExportLost,
    BulkExportRunning,
    BulkExportStarted,
    FindPlaceInExport,
    ImportEnded,
    ImportFailed,
    ImportPaused,
    KeepImported,
    StopImport,
)
from tolsey.actors.store.state import StoreState
from tolsey.runtime.actor import KindPart, gathers, on
from tolsey.storage.commerce import order_imports
from tolsey.storage.database import Database


class OrderImports(KindPart[StoreState]):
    """What was sold before; customers that were deleted last are in memory alone."""

    owns: ClassVar[tuple[str, ...]] = ("imports", "forgotten_customers")

    def __init__(self, database: Database) -> None:
        self._database = database
        self.decides = (
            on(BeginImport, importing.begin),
            on(StopImport, importing.stop),
            on(BulkExportStarted, importing.started),
            on(BulkExportRunning, importing.running),
            on(BulkExportLost, importing.lost),
            on(FindPlaceInExport, importing.find_place),
            gathers(KeepImported, self._forgotten, importing.keep),
            on(ImportPaused, importing.paused),
            on(ImportEnded, importing.ended),
            on(ImportFailed, importing.failed),
        )

    async def load(self, keys: Sequence[str]) -> Mapping[str, Mapping[str, Any]]:
        """Read the last import of each shop."""
        found = await order_imports.load(self._database, keys)
        return {key: {"imports": some} for key, some in found.items()}

    def changes(self, old: StoreState, new: StoreState) -> Iterable[Any]:
        """List the imports that began or came further."""
        if new.imports is old.imports:
            return ()
        return [one for one in new.imports if one not in old.imports]

    async def _forgotten(self, state: StoreState, message: KeepImported) -> Collection[int]:
        """Find those of a part's customers that were deleted."""
        customers = {one.customer_id for one in message.orders if one.customer_id is not None}
        return await order_imports.deleted_customers(
            self._database, state.shop_key, sorted(customers)
        )
