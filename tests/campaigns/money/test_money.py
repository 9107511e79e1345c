"""Whatever people, banks and time do to organizations, in any order and through any crash."""

import os

import pytest

from tests.campaigns.money.campaign import Tally, on_disk, on_paper
from tests.campaigns.money.histories import live
from tolsey.storage.database import Database

SEED = int(os.environ.get("CAMPAIGN_SEED", "1"))
SECONDS = float(os.environ.get("CAMPAIGN_SECONDS", "0"))
HISTORIES = 250

SOMETIMES = (
    *("SpendCredits reply", "SpendCredits refused", "SpendCredits lost", "again", "crashes"),
    *("HoldCredits reply", "ExtendHold reply", "SettleHold reply", "ReleaseHold reply"),
    *("AdjustCredits reply", "GrantDailyBonus reply", "StartMonth reply", "ExpireCredits reply"),
    *("event checkout.session.completed", "event payment_intent.succeeded"),
    *("event payment_intent.payment_failed", "event invoice.paid", "event charge.refunded"),
    *("event invoice.payment_succeeded", "event invoice.payment_failed"),
    *("event customer.subscription.created", "event customer.subscription.updated"),
    *("event customer.subscription.deleted", "event charge.dispute.created"),
    "event charge.dispute.closed",
)
"""What has to happen now and then, or a campaign that finds nothing says nothing."""
SOMETIMES_ON_DISK = (
    *("died before the commit", "died after the commit", "died between two applied events"),
    *("died with its slots taken", "died between two rounds", "fenced", "done, not answered"),
    *("lost before its row", "answered accepted", "answered duplicate"),
)


@pytest.fixture
def tally(capsys: pytest.CaptureFixture[str]) -> Tally:
    def say(line: str) -> None:
        with capsys.disabled():
            print(f"\n{line}", flush=True)  # noqa: T201 - the figures are what a campaign is for

    return Tally(SEED, say)


@pytest.mark.timeout(SECONDS + 900)
def test_no_history_on_paper_breaks_an_invariant(tally: Tally) -> None:
    on_paper(tally, SEED, SECONDS / 2, at_least=HISTORIES)
    assert not tally.found
    assert [name for name in SOMETIMES if not tally.seen[name]] == []


@pytest.mark.timeout(SECONDS + 900)
async def test_no_history_on_the_real_service_breaks_an_invariant(
    tally: Tally, database: Database
) -> None:
    await on_disk(tally, SEED, SECONDS / 2, database)
    assert not tally.found
    assert [name for name in SOMETIMES_ON_DISK if not tally.seen[name]] == []


@pytest.mark.parametrize("seed", [3, 7])
def test_the_same_seed_lives_the_same_life(seed: int) -> None:
    first, second = live(seed), live(seed)
    assert (first.seen, first.found) == (second.seen, second.found)
    assert live(seed + 1).seen != first.seen
