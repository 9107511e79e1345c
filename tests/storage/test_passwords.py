import pytest

from tolsey.storage.people import passwords


@pytest.fixture(autouse=True)
def _derived_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take back what tests/conftest.py does to all other tests."""
    for name in ("_derive", "_verify"):
        monkeypatch.setattr(passwords, name, getattr(passwords, name).__wrapped__)


async def test_a_password_matches_its_own_hash_only() -> None:
    encoded = await passwords.hash_password("correct horse battery")
    assert await passwords.matches("correct horse battery", encoded)
    assert not await passwords.matches("correct horse batterz", encoded)
    assert encoded != await passwords.hash_password("correct horse battery")


@pytest.mark.parametrize("password", ["", "AAAA", "anything"])
async def test_no_password_is_nobodys(password: str) -> None:
    assert not await passwords.matches(password, None)


async def test_a_hash_of_weaker_parameters_is_outdated() -> None:
    encoded = await passwords.hash_password("correct horse battery")
    assert not passwords.is_outdated(encoded)
    assert passwords.is_outdated(encoded.replace("m=19456", "m=1024"))
