"""Which stores listen to a shop."""

import asyncio
from datetime import timedelta

import pytest

from tests.http.webhooks.merchant import NOON, SHOP, Merchant
from tolsey.actors.store.connection.messages import Disconnect
from tolsey.actors.store.messages import store
from tolsey.http.webhooks.directory import (
    DOUBT_SECONDS,
    KNOWN_SECONDS,
    UNKNOWN_SECONDS,
    ShopDirectory,
)
from tolsey.storage.database import Database
from tolsey.storage.sealing.sealed import Vault


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
    assert [listener.store_id for listener in found[0]] == ["store_1"]
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
    directory.forget(SHOP)
    await reading

    assert directory.cached(SHOP) is None
    await watched.close()


async def test_a_disconnected_store_hears_nothing(merchant: Merchant) -> None:
    await merchant.connect()
    await merchant.runtime.ask(store("store_1"), Disconnect(NOON + timedelta(hours=1), "usr_1"))
    merchant.directory.forget(SHOP)

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
    merchant.directory.forget(SHOP)

    assert [listener.store_id for listener in await merchant.directory.find(SHOP)] == ["store_2"]


async def test_a_signature_that_fits_no_secret_reads_a_shop_once_in_a_while(
    watched: Watched, vault: Vault
) -> None:
    seconds = [0.0]
    directory = ShopDirectory(watched, vault, monotonic=lambda: seconds[0])
    await directory.find(SHOP)
    assert await directory.doubt(SHOP, just_read=True) is None
    assert await directory.doubt(SHOP, just_read=False) is None
    assert watched.reads == 1
    seconds[0] += DOUBT_SECONDS
    found = await asyncio.gather(*(directory.doubt(SHOP, just_read=False) for _ in range(20)))
    assert all(listeners and listeners[0].store_id == "store_1" for listeners in found)
    assert watched.reads == 2
    assert await directory.doubt(SHOP, just_read=False) is None
    assert await directory.doubt("no.myshopify.com", just_read=False) is None
    assert watched.reads == 2
    await watched.close()


async def test_a_forger_has_a_connected_shop_read_no_more_often_than_an_unknown_one(
    watched: Watched, vault: Vault, merchant: Merchant
) -> None:
    seconds = [0.0]
    directory = ShopDirectory(watched, vault, monotonic=lambda: seconds[0])
    merchant.app._directory = directory
    for shop in (SHOP, "no.myshopify.com"):
        before = watched.reads
        reads = []
        for step in (0.0, 0.0, 1.0, UNKNOWN_SECONDS, 0.0):
            seconds[0] += step
            answer = await merchant.deliver("orders/create", {"id": 1}, secret="forged", shop=shop)
            assert answer.status == 401
            reads.append(watched.reads - before)
        assert reads == [1, 1, 1, 2, 2]
    await watched.close()


async def test_a_delivery_signed_with_a_secret_that_changed_unheard_is_taken(
    merchant: Merchant, database: Database
) -> None:
    await merchant.connect()
    assert (await merchant.deliver("orders/create", {"id": 1})).status == 200
    deaf = ShopDirectory(database, merchant.vault, lambda: NOON + timedelta(hours=1))
    await deaf.find(SHOP)
    await merchant.connect(secret="shpss_new", at=NOON + timedelta(minutes=1))
    merchant.app._directory = deaf

    taken = await merchant.deliver("orders/updated", {"id": 1}, secret="shpss_new")

    assert taken.json["status"] == "accepted"


async def test_a_change_is_told_to_the_others_and_a_silent_one_is_not_waited_for_long(
    watched: Watched, vault: Vault, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tolsey.http.webhooks.directory.TELL_SECONDS", 0.01)
    directory = ShopDirectory(watched, vault)
    told: list[str] = []

    async def tell(shop: str) -> None:
        told.append(shop)
        await asyncio.Event().wait()

    directory.tell_others = tell
    await directory.find(SHOP)
    await directory.invalidate(SHOP)

    assert told == [SHOP]
    assert directory.cached(SHOP) is None
    await watched.close()


async def test_everything_is_forgotten_when_changes_may_have_gone_unheard(
    watched: Watched, vault: Vault
) -> None:
    directory = ShopDirectory(watched, vault)
    await directory.find(SHOP)
    await directory.find("no.myshopify.com")
    directory.forget_all()

    assert directory.cached(SHOP) is None
    assert directory.cached("no.myshopify.com") is None
    await watched.close()
