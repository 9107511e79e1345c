"""A release in the middle of load, and the way back: nothing is lost, doubled or buried."""

import os
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from tests.campaigns.cluster.test_cluster import show
from tests.campaigns.releases.campaign import (
    BEFORE,
    LOST_REFUNDS,
    NEW,
    OLD,
    SHORT,
    TOO_EARLY,
    UP,
    Replaced,
    campaign,
    code_before,
    is_known,
)
from tests.campaigns.releases.payers import LongestWait
from tests.campaigns.releases.rounds import crossed, rounds, taken
from tolsey.actors.job.catalogue import JOBS
from tolsey.storage.migrate import migrations

OPERATIONS = int(os.environ.get("CAMPAIGN_OPERATIONS", "0"))
SEED = int(os.environ.get("CAMPAIGN_SEED", "1"))
ALWAYS = {
    *("organization.AdjustCredits", "organization.RecordBillingAct", "organization.HoldCredits"),
    *("organization.ExtendHold", "organization.SettleHold", "store.OrderChanged"),
    *("store.ProductChanged", "store.CustomerChanged", "store.FulfillmentChanged"),
    *("store.InventoryChanged", "store.ThemePublished", "store.ShopUpdated", "store.BulkFinished"),
    *("store.DomainCreated", "store.BeginOperation", "listing.EditListing"),
}
"""What both releases know and is asked for during all of a run."""
BOTH_WAYS = ALWAYS | {"organization.ReadCredits", "store.UseToken"}
EXPECTED = ALWAYS | {
    *("organization.OpenStore", "store.Connect", "listing.CreateListing"),
    *("organization.PaymentEventReceived", "organization.ApplyPaymentEvent"),
    *("organization.BeginRefund", "organization.GiveBackPayment", "organization.RefundMade"),
    *("organization.ChangePlan", "organization.PlanChangeMade", "organization.CancelPlan"),
    "organization.CheckAnswer",
}


long = pytest.mark.skipif(not OPERATIONS, reason="takes minutes: `make campaign`")
SHORT_OPERATIONS, PLANTED_OPERATIONS, REFUNDED_OPERATIONS = 3_000, 2_000, 6_000
PLANTED_SECONDS = 30.0


NEWEST_BEFORE = 36
"""The newest migration that the release before knows."""


def test_the_release_before_can_run_on_every_schema_since() -> None:
    asks = {one.name: one.compatible_from for one in migrations() if one.number > NEWEST_BEFORE}
    assert {name: number for name, number in asks.items() if number > NEWEST_BEFORE} == {}, (
        "say `-- compatible-from: 0036`, and narrow in the release after the next"
    )


def test_jobs_that_the_release_before_does_not_do_are_ticked_by_what_it_leaves_alone(
    before: Path,
) -> None:
    asked = "from tolsey.actors.job.catalogue import JOBS; print(*(j.name for j in JOBS.values() if j.built))"
    told = subprocess.run(
        [sys.executable, "-c", asked], cwd=before, capture_output=True, check=True, text=True
    )
    assert {name for name, job in JOBS.items() if job.is_new} == JOBS.keys() - {
        *told.stdout.split()
    }


@pytest.fixture
def before(tmp_path: Path) -> Path:
    """Answer the code of the release before."""
    found = code_before(tmp_path / "before")
    if found is None:
        pytest.skip(f"the clone does not have {BEFORE}: git fetch --unshallow")
    return found


@long
@pytest.mark.timeout(7200)
async def test_two_releases_on_one_database_lose_double_and_bury_nothing_up_and_back(
    before: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results = await rounds(OPERATIONS, before, seed=SEED, say=partial(show, capsys))
    assert [one["found"] for one in results] == [[]] * len(results)
    assert taken(results).keys() >= EXPECTED
    for way in ((OLD, NEW), (NEW, OLD)):
        assert crossed(results)[way].keys() >= BOTH_WAYS


@long
@pytest.mark.timeout(1200)
async def test_one_process_of_a_newer_release_comes_and_goes_and_nothing_is_lost(
    before: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    say = partial(show, capsys)
    outcome = await campaign(SHORT_OPERATIONS, before, steps=SHORT, seed=SEED, say=say)
    say(outcome)
    assert outcome.found == []


@long
@pytest.mark.timeout(1200)
async def test_a_form_that_is_written_before_every_process_reads_it_is_found(
    before: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    outcome = await campaign(PLANTED_OPERATIONS, before, steps=TOO_EARLY, say=partial(show, capsys))
    assert "unread" in {finding.rule for finding in outcome.found}


@long
@pytest.mark.timeout(1200)
async def test_a_refund_that_is_lost_and_not_held_for_the_newer_release_is_found(
    before: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    outcome = await campaign(
        REFUNDED_OPERATIONS,
        before,
        steps=UP,
        say=partial(show, capsys),
        planted=LOST_REFUNDS,
        settled_seconds=PLANTED_SECONDS,
    )
    assert {finding.rule for finding in outcome.found} >= {"stuck", "unfinished", "open_hold"}


@pytest.mark.parametrize(("under_way", "ended"), [(0, 40), (8, 0)])
def test_a_release_that_comes_while_nothing_is_asked_for_is_found(
    under_way: int, ended: int
) -> None:
    idle = Replaced("n0", f"{OLD} 1", f"{NEW} 1", under_way, ended, 3.0)
    assert [finding.rule for finding in idle.found()] == ["idle"]
    assert list(Replaced("n0", f"{OLD} 1", f"{NEW} 1", 8, 40, 3.0).found()) == []


async def test_a_payer_waits_on_for_what_is_held_and_for_nothing_else() -> None:
    held = {"org_1"}

    async def is_held(organization_id: str) -> bool:
        return organization_id in held

    wait = LongestWait("org_1", 0.0, is_held)
    await wait.allows("org_1 is not on free")
    held.clear()
    with pytest.raises(TimeoutError, match="org_1 is not on free"):
        await wait.allows("org_1 is not on free")
    with pytest.raises(TimeoutError):
        await LongestWait("org_2", 0.0, is_held).allows("org_2 is not on free")


@pytest.mark.parametrize("prefix", ["", "organization."])
def test_only_a_class_that_the_release_before_does_not_have_is_held(prefix: str) -> None:
    known = {"ApplyPaymentEvent"}
    assert is_known(f"{prefix}ApplyPaymentEvent", known)
    assert not is_known(f"{prefix}RefundPayment", known)
