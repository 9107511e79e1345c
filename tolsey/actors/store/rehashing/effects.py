"""Moves buyers from the older global digest to the pseudonyms of their store and shop (rules/shops#customers).

A transaction is of one shop and of all four columns, and a buyer's rows go together: whoever reads meanwhile finds
each buyer under one name. What is moved is found no more, so that a run which was cut off goes on with the rest.
"""

import secrets
from collections.abc import AsyncGenerator
from typing import Final

import anyio

from tolsey.actors.store.deliveries.identity import PURPOSE, rehashed
from tolsey.storage.commerce import identities, stores
from tolsey.storage.database import Database
from tolsey.storage.errors import StorageLocked
from tolsey.storage.records.commerce.shops import ShopKey
from tolsey.storage.sealing.sealed import Vault

PAGE_SIZE: Final = 1_000
"""Rows of a transaction, unless whoever starts a run says otherwise."""
TRIES: Final = 50
"""So often rows that others hold are asked for again."""
AGAIN_AFTER_SECONDS: Final = 0.2


class Rehashing:
    """Moves the rows of one shop after the other."""

    def __init__(self, database: Database, vault: Vault) -> None:
        self._database = database
        self._vault = vault

    async def of_shop(self, shop_key: ShopKey, page_size: int = PAGE_SIZE) -> AsyncGenerator[int]:
        """Move a shop's rows a page at a time, and give how many each was; raises SealBroken where no key opens its salt."""
        key, after = await self._key_of(shop_key), ""
        while True:
            known = await identities.digests(
                self._database, shop_key, after=after, page_size=page_size
            )
            if known:
                yield await self._move(shop_key, {one: rehashed(key, one) for one in known})
                after = known[-1]
            elif after:
                after = ""  # what was written meanwhile, before where we are
            else:
                return

    async def _move(self, shop_key: ShopKey, pseudonyms: dict[str, str]) -> int:
        for tried in range(1, TRIES + 1):
            try:
                async with self._database.transaction() as tx:
                    return await identities.move(tx, shop_key, pseudonyms)
            except StorageLocked:
                if tried == TRIES:
                    raise
                await anyio.sleep(AGAIN_AFTER_SECONDS)
        raise AssertionError

    async def _key_of(self, shop_key: ShopKey) -> bytes:
        salt = await stores.salt_of_key(self._database, self._vault, shop_key)
        # Whose salt is destroyed is linked by nobody (rules/shops#erasure): a key that is kept nowhere does the same.
        return self._vault.subkey(salt, PURPOSE) if salt else secrets.token_bytes(32)
