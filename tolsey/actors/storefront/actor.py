"""A storefront of the public web: who looks at it when, and what the registry has of it."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tolsey.actors.storefront import KIND, registry
from tolsey.actors.storefront.messages import (
    AwaitScan,
    DiscoverStorefront,
    RequestScan,
    ScanEnded,
    StorefrontForgotten,
    SuppressStorefront,
)
from tolsey.actors.storefront.registry import StorefrontState
from tolsey.runtime.actor import Actor, on
from tolsey.storage.database import Database
from tolsey.storage.intelligence import registry as rows


class StorefrontActor(Actor[StorefrontState]):
    """Every storefront, by its domain."""

    kind = KIND
    decides = (
        on(RequestScan, registry.request),
        on(AwaitScan, registry.wait),
        on(ScanEnded, registry.ended),
        on(DiscoverStorefront, registry.discover),
        on(SuppressStorefront, registry.suppress),
        on(StorefrontForgotten, registry.forgotten),
    )

    def __init__(self, database: Database) -> None:
        super().__init__()
        self._database = database

    async def load(self, keys: Sequence[str]) -> Mapping[str, StorefrontState]:
        """Read storefronts back into memory."""
        known = await rows.load(self._database, keys)
        scans = await rows.open_scans(self._database, keys)
        tombstones = await rows.suppressions(self._database, keys)
        return {
            key: StorefrontState(
                domain=key,
                row=known.get(key),
                scans=scans.get(key, ()),
                tombstone=tombstones.get(key),
            )
            for key in keys
        }

    def changes(self, old: StorefrontState, new: StorefrontState) -> Iterable[Any]:
        """List what is to be written of the row; scans and tombstones are written by their turns."""
        if new.row is not None and new.row != old.row:
            yield new.row
