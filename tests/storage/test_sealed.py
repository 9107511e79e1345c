import stat
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from tolsey.storage.sealing.sealed import SealBroken, Vault

OLD = "old:" + "A" * 43
NEW = "new:" + "B" * 42 + "A"
PLACE = {"table": "stores", "column": "sealed_salt", "row": "store_1", "tenant": "store_1"}


def test_what_is_sealed_opens_in_its_own_place() -> None:
    vault = Vault.from_keys(OLD)
    sealed = vault.seal("secret", **PLACE)
    assert sealed.startswith("v1.old.")
    assert "secret" not in sealed
    assert vault.open(sealed, **PLACE) == "secret"


@pytest.mark.parametrize("part", list(PLACE))
def test_a_seal_moved_to_another_place_is_refused(part: str) -> None:
    vault = Vault.from_keys(OLD)
    sealed = vault.seal("secret", **PLACE)
    with pytest.raises(SealBroken):
        vault.open(sealed, **{**PLACE, part: "other"})


def test_texts_that_only_join_alike_are_different_places() -> None:
    vault = Vault.from_keys(OLD)
    sealed = vault.seal("secret", table="t", column="ab", row="c", tenant="x")
    with pytest.raises(SealBroken):
        vault.open(sealed, table="t", column="a", row="bc", tenant="x")


def test_every_flipped_bit_is_refused() -> None:
    vault = Vault.from_keys(OLD)
    sealed = vault.seal("secret", **PLACE).encode()
    for position in range(len(sealed)):
        for bit in range(8):
            changed = bytearray(sealed)
            changed[position] ^= 1 << bit
            with pytest.raises(SealBroken):
                vault.open(changed.decode("latin-1"), **PLACE)


def test_the_key_id_is_part_of_the_seal() -> None:
    same_key_twice = Vault.from_keys(f"{OLD},copy:{'A' * 43}")
    sealed = same_key_twice.seal("secret", **PLACE)
    with pytest.raises(SealBroken):
        same_key_twice.open(sealed.replace("v1.old.", "v1.copy."), **PLACE)


def test_an_old_key_still_opens_after_a_new_one_seals() -> None:
    sealed = Vault.from_keys(OLD).seal("secret", **PLACE)
    both = Vault.from_keys(f"{NEW},{OLD}")
    assert both.open(sealed, **PLACE) == "secret"
    assert both.seal("secret", **PLACE).startswith("v1.new.")
    with pytest.raises(SealBroken):
        Vault.from_keys(NEW).open(sealed, **PLACE)


def test_what_is_derived_from_a_salt_survives_a_change_of_keys() -> None:
    salt = b"s" * 32
    assert Vault.from_keys(OLD).subkey(salt, b"purpose") == Vault.from_keys(NEW).subkey(
        salt, b"purpose"
    )
    assert Vault.from_keys(OLD).subkey(salt, b"a") != Vault.from_keys(OLD).subkey(salt, b"b")


def test_each_key_signs_with_a_key_of_its_own() -> None:
    vault = Vault.from_keys(f"{NEW},{OLD}")
    assert vault.key_ids == ("new", "old")
    public = {
        vault.signing_key(key_id).public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
        for key_id in vault.key_ids
    }
    assert len(public) == 2
    assert "A" * 40 not in repr(vault)


def test_a_key_is_made_once_under_an_id_of_its_own_and_only_its_owner_reads_it(
    tmp_path: Path,
) -> None:
    home, elsewhere = tmp_path / "data", tmp_path / "elsewhere"
    assert Vault.load(home) is None
    sealed = Vault.make(home).seal("secret", **PLACE)
    assert Vault.make(home).open(sealed, **PLACE) == "secret"
    again = Vault.load(home)
    assert again is not None
    assert again.open(sealed, **PLACE) == "secret"
    assert Vault.make(elsewhere).key_ids != again.key_ids
    files = list(home.iterdir())
    assert len(files) == 1
    assert stat.S_IMODE(files[0].stat().st_mode) == 0o600
