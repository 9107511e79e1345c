"""The simulator is worth what it catches: bugs planted on purpose, each found within some seeds."""

import pytest

from tests.campaigns.checks import check
from tests.campaigns.mutants import MUTANTS, Mutant
from tests.campaigns.simulation import simulate

SEEDS = 6000
CAUGHT: dict[str, int] = {}


@pytest.mark.parametrize("planted", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_planted_bug_is_caught(planted: Mutant) -> None:
    with planted.plant():
        for seed in range(1, SEEDS + 1):
            if simulate(seed, planted.guards, check).found:
                CAUGHT[planted.name] = seed
                return
    pytest.fail(f"{planted.name} survived {SEEDS} seeds")


def test_all_planted_bugs_are_listed_with_the_seed_that_caught_them(
    capsys: pytest.CaptureFixture[str],
) -> None:
    if len(CAUGHT) < len(MUTANTS):
        pytest.skip("not all of them were tried in this session")
    caught = " ".join(f"{name}@{seed}" for name, seed in CAUGHT.items())
    with capsys.disabled():
        print(f"\nplanted_bugs caught={len(CAUGHT)}/{len(MUTANTS)} {caught}")  # noqa: T201 - as above
    assert len(CAUGHT) >= 20
