"""Each bug that is planted on purpose is caught by the test that says so, and by the campaign."""

from collections.abc import Callable

import pytest

from tests.campaigns.money.catching import Planted
from tests.campaigns.money.histories import live, reversed_otherwise, told_otherwise
from tests.campaigns.money.planted import BUGS
from tolsey.storage.database import Database

HISTORIES = 300
OF_THE_MODEL = frozenset({AttributeError, ImportError, NameError, SyntaxError, TypeError})
"""What a bug that is planted wrongly raises: catching that is catching nothing."""


def by_name(*bugs: Planted) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("bug", bugs, ids=lambda bug: bug.name)


def test_there_are_twenty_seven() -> None:
    assert len({bug.name for bug in BUGS}) == 27
    assert [bug.number for bug in BUGS] == [*range(1, 28)]


@by_name(*(bug for bug in BUGS if not bug.needs_database))
def test_its_test_catches_it(bug: Planted) -> None:
    with bug.planted(), pytest.raises(Exception) as caught:  # noqa: PT011 - whatever it breaks
        bug.catch(None)
    assert caught.type not in OF_THE_MODEL, caught.value


@by_name(*(bug for bug in BUGS if bug.needs_database))
async def test_its_test_on_disk_catches_it(bug: Planted, database: Database) -> None:
    with bug.planted(), pytest.raises(Exception) as caught:  # noqa: PT011 - as above
        await bug.run(database)
    assert caught.type not in OF_THE_MODEL, caught.value


@by_name(*(bug for bug in BUGS if bug.needs_database))
async def test_without_it_its_test_on_disk_passes(bug: Planted, database: Database) -> None:
    await bug.run(database)


@by_name(*(bug for bug in BUGS if not bug.needs_database))
def test_without_it_its_test_passes(bug: Planted) -> None:
    bug.catch(None)


@by_name(*(bug for bug in BUGS if bug.on_paper))
def test_the_campaign_finds_it_too(bug: Planted) -> None:
    with bug.planted():
        assert any(live(seed).found for seed in range(1, HISTORIES + 1))


@pytest.mark.parametrize("otherwise", [told_otherwise, reversed_otherwise])
def test_another_order_finds_what_expired_to_be_owed(otherwise: Callable[[int], list[str]]) -> None:
    (bug,) = (bug for bug in BUGS if bug.name == "what_expired_is_owed")
    with bug.planted():
        assert any(otherwise(seed) for seed in range(1, 61))
