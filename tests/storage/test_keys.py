"""Data that meet the keys of a start: theirs, none, others, older ones, new ones."""

from pathlib import Path

import pytest

from tests.http.people import settings_of
from tolsey.settings import Settings
from tolsey.storage.commerce import stores
from tolsey.storage.database import Database
from tolsey.storage.sealing import keys
from tolsey.storage.sealing.keys import KeyringError
from tolsey.storage.sealing.sealed import KEY_FILE, Vault

ONE, TWO, THREE = (f"{name}:{letter * 43}" for name, letter in zip("abc", "AEI", strict=True))
OTHER_UNDER_THE_NAME = "a:" + "E" * 43


def given(keyring: str) -> Settings:
    return settings_of(encryption_keys=keyring)


@pytest.fixture
def made(tmp_path: Path) -> Settings:
    """Settings without keys: they are made in a data folder."""
    return settings_of(encryption_keys=None, data_dir=tmp_path / "data")


async def refused(database: Database, settings: Settings) -> str:
    with pytest.raises(KeyringError) as caught:
        await keys.open_vault(database, settings)
    assert "\n" not in str(caught.value)
    assert await keys.trouble(database, settings) == str(caught.value)
    return str(caught.value)


async def test_made_keys_are_found_again(database: Database, made: Settings) -> None:
    assert await keys.trouble(database, made) == ""
    first = await keys.open_vault(database, made)
    assert await keys.trouble(database, made) == ""
    assert (await keys.open_vault(database, made)).key_ids == first.key_ids


async def test_a_data_folder_without_its_keys_does_not_start_and_none_are_made(
    database: Database, made: Settings
) -> None:
    key_id = (await keys.open_vault(database, made)).key_ids[0]
    path = made.data_dir / KEY_FILE
    kept = path.read_text()
    path.unlink()

    said = await refused(database, made)
    assert f"{path} is gone, and the data are sealed with its key {key_id}." in said
    assert not path.exists()

    path.write_text(kept)
    assert (await keys.open_vault(database, made)).key_ids == (key_id,)


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        (ONE, TWO, "ENCRYPTION_KEYS lacks a key that the data are sealed with: a."),
        (ONE, OTHER_UNDER_THE_NAME, "holds another key under the name of one"),
        (f"{TWO},{ONE}", ONE, "ENCRYPTION_KEYS lacks a key that the data are sealed with: b."),
        (f"{TWO},{ONE}", "b:" + "A" * 43 + ",a:" + "E" * 43, "holds another key under the name"),
    ],
    ids=["lost", "exchanged", "older", "swapped"],
)
async def test_other_keys_are_refused_until_they_are_accepted_once(
    database: Database, before: str, after: str, said: str
) -> None:
    await keys.open_vault(database, given(before))
    assert said in await refused(database, given(after))

    accepted = await keys.accept(database, given(after))

    assert accepted.given_up
    vault = await keys.open_vault(database, given(after))
    assert vault.key_ids == tuple(accepted.key_ids)
    row = await database.fetchrow(
        "SELECT * FROM audit_log WHERE event = 'encryption_keys.accepted'"
    )
    assert row is not None
    assert row["actor"] == "operator"


async def test_a_lost_key_that_is_given_up_is_followed_by_one_with_another_id(
    database: Database, made: Settings
) -> None:
    lost = (await keys.open_vault(database, made)).key_ids
    (made.data_dir / KEY_FILE).unlink()

    accepted = await keys.accept(database, made)

    assert tuple(accepted.given_up) == lost
    assert set(accepted.key_ids).isdisjoint(lost)
    assert (await keys.open_vault(database, made)).key_ids == tuple(accepted.key_ids)


@pytest.mark.parametrize("after", [f"{THREE},{TWO},{ONE}", f"{ONE},{TWO},{THREE}"])
async def test_keys_that_come_new_beside_the_known_ones_are_known_from_then_on(
    database: Database, after: str
) -> None:
    before = f"{TWO},{ONE}"
    await keys.open_vault(database, given(before))
    await keys.open_vault(database, given(after))
    assert "lacks a key that the data are sealed with: c." in await refused(database, given(before))


async def seal_a_salt(database: Database, keyring: str) -> None:
    """Leave a store of the days when only names of keys were known."""
    sealed = stores.seal_salt(Vault.from_keys(keyring), "store_1", b"s" * 32)
    await database.execute("INSERT INTO organizations (id, name) VALUES ('org_1', 'One')")
    await database.execute(
        "INSERT INTO stores (id, organization_id, name, sealed_salt, created_at)"
        " VALUES ('store_1', 'org_1', 'One', $1, now())",
        sealed,
    )
    key_id = sealed.split(".")[1]
    await database.execute("INSERT INTO encryption_keys (key_id) VALUES ($1)", key_id)


async def test_older_data_are_opened_only_with_the_key_that_sealed_them(
    database: Database, made: Settings
) -> None:
    await seal_a_salt(database, ONE)

    assert "is gone" in await refused(database, made)
    assert "lacks a key" in await refused(database, given(TWO))
    assert "another key under the name" in await refused(database, given(OTHER_UNDER_THE_NAME))
    assert (await keys.open_vault(database, given(ONE))).key_ids == ("a",)
    assert "another key under the name" in await refused(database, given(OTHER_UNDER_THE_NAME))
