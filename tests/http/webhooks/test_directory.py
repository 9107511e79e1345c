"""Which stores listen to a shop."""

import asyncio
from datetime import timedelta

import pytest

from tests.http.webhooks.merchant import NOON, SHOP, Merchant
from tolsey.actors.store.messages import Disconnect, store
from tolsey.http.webhooks.directory import KNOWN_SECONDS, UNKNOWN_SECONDS, ShopDirectory
from tolsey.storage.database import Database
from tolsey.storage.sealed import Vault


class Watched(Database):
    """A database that counts what is read from it."""

    reads = 0

    async def fetch(self, sql: str, *args: object) -> list[object]:  # type: ignore[override]
        self.reads += 1
        return await super().fetch(sql, *args)  # type: ignore[return-value]


@pytest.fixture
async def watched(database_url: str, merchant: Merchant) -> Watched:
    await merchant.connect()
    opened = Watched(database_url)
    await opened.open()
    return opened


async def test_a_shop_is_read_once_however_many_deliveries_wait(
    watched: Watched, vault: Vault
) -> None:
    directory = ShopDirectory(watched, vault)
    found = await asyncio.gather(*(directory.find(SHOP) for _ in range(20)))

    assert watched.reads == 1
    assert [ear.store_id for ear in found[0]] == ["store_1"]
    assert "shpss" not in repr(found)
    await watched.close()


async def test_what_is_known_ages_and_unknown_shops_faster(watched: Watched, vault: Vault) -> None:
    seconds = [0.0]
    directory = ShopDirectory(watched, vault, monotonic=lambda: seconds[0])
    for shop, life in ((SHOP, KNOWN_SECONDS), ("no.myshopify.com", UNKNOWN_SECONDS)):
        await directory.find(shop)
        assert directory.cached(shop) is not None
        seconds[0] += life
        assert directory.cached(shop) is None
    await watched.close()


async def test_made_up_shops_push_no_real_one_out(watched: Watched, vault: Vault) -> None:
    directory = ShopDirectory(watched, vault, most_shops=2)
    await directory.find(SHOP)
    for name in "abcd":
        await directory.find(f"{name}.myshopify.com")

    assert directory.cached(SHOP)
    assert directory.cached("a.myshopify.com") is None
    await watched.close()


async def test_a_read_that_began_before_a_change_is_not_kept(
    watched: Watched, vault: Vault
) -> None:
    directory = ShopDirectory(watched, vault)
    reading = asyncio.create_task(directory.find(SHOP))
    await asyncio.sleep(0)
    directory.invalidate(SHOP)
    await reading

    assert directory.cached(SHOP) is None
    await watched.close()


async def test_a_disconnected_store_hears_nothing(merchant: Merchant) -> None:
    await merchant.connect()
    await merchant.runtime.ask(store("store_1"), Disconnect(NOON + timedelta(hours=1), "usr_1"))
    merchant.directory.invalidate(SHOP)

    assert await merchant.directory.find(SHOP) == ()


async def test_a_secret_sealed_by_a_lost_key_silences_only_its_store(
    merchant: Merchant, database: Database
) -> None:
    await merchant.connect("store_1")
    await merchant.connect("store_2")
    await database.execute(
        "UPDATE integration_connections SET metadata = jsonb_set(metadata,"
        " '{clientSecretEncrypted}', '\"v1.lost.AAAA\"') WHERE store_id = 'store_1'"
    )
    merchant.directory.invalidate(SHOP)

    assert [ear.store_id for ear in await merchant.directory.find(SHOP)] == ["store_2"]
