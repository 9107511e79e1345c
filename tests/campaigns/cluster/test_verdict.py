"""What a campaign is judged by beside its histories: each of it refuses what is wrong."""

from dataclasses import replace

import pytest

from tests.campaigns.cluster.linear import Line
from tests.campaigns.cluster.verdict import Claim, owned, sums

CLAIMS = (Claim(1, 7, 1, "a", None), Claim(5, 7, 2, "b", "a"))
LINES = (
    Line("key", 7, 1, "deposit-1", 10, 1, 2, "a"),
    Line("key", 7, 2, "deposit-2", 20, 2, 6, "b"),
)


def rules(lines: tuple[Line, ...], claims: tuple[Claim, ...] = CLAIMS) -> set[str]:
    return {finding.rule for finding in owned(lines, claims)}


def test_who_was_given_an_epoch_commits_under_it_until_the_next() -> None:
    assert rules(LINES) == set()


@pytest.mark.parametrize(
    ("line", "rule"),
    [
        (replace(LINES[0], order=6), "epoch_order"),  # after the slot was given to another
        (replace(LINES[1], order=4), "epoch_order"),  # before it was given
        (replace(LINES[0], owner="b"), "two_owners"),
        (replace(LINES[0], epoch=3), "two_owners"),  # nobody was given that epoch
    ],
)
def test_a_commit_outside_of_its_epoch_is_found(line: Line, rule: str) -> None:
    assert rules((line,)) == {rule}


@pytest.mark.parametrize("epoch", [1, 3])
def test_epochs_of_a_slot_are_minted_one_by_one(epoch: int) -> None:
    assert rules((), (CLAIMS[0], CLAIMS[1]._replace(epoch=epoch))) == {"epoch_order"}


def test_an_account_has_what_its_postings_say() -> None:
    assert list(sums(LINES, {"key": (2, 30)}, 0)) == []
    assert {finding.rule for finding in sums(LINES, {"key": (2, 31)}, 0)} == {
        "torn",
        "not_conserved",
    }
    assert {finding.rule for finding in sums(LINES, {}, 30)} == {"torn"}


def test_what_is_on_its_way_between_accounts_is_not_lost() -> None:
    left = replace(LINES[1], op="transfer-2", amount=-4)
    assert list(sums((LINES[0], left), {"key": (2, 6)}, 4)) == []
    assert {finding.rule for finding in sums((LINES[0], left), {"key": (2, 6)}, 0)} == {
        "not_conserved"
    }
