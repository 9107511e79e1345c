"""Whole services over HTTP under faults: nothing that was acknowledged is lost or doubled, no read is stale."""

import os
from collections import Counter

import pytest

from tests.campaigns.cluster.campaign import Plan
from tests.campaigns.cluster.planted import Bug
from tests.campaigns.cluster.test_cluster import show
from tests.campaigns.nemesis.campaign import KINDS as REQUESTS
from tests.campaigns.nemesis.campaign import LEASE_SECONDS, campaign
from tests.campaigns.nemesis.faults import KINDS, schedule
from tests.campaigns.nemesis.planted import BUGS, PLANTED_SECONDS

SECONDS = float(os.environ.get("CAMPAIGN_SECONDS", "0"))
SEED = int(os.environ.get("CAMPAIGN_SEED", "1"))

long = pytest.mark.skipif(not SECONDS, reason="takes minutes: `make campaign`")


@long
@pytest.mark.timeout(SECONDS + 900)
async def test_no_fault_of_services_servers_or_networks_breaks_what_was_acknowledged(
    capsys: pytest.CaptureFixture[str],
) -> None:
    outcome = await campaign(
        Plan(SEED, SECONDS, LEASE_SECONDS, say=lambda line: show(capsys, line))
    )
    show(capsys, outcome)
    assert outcome.found == []
    assert set(outcome.nemesis.landed) == set(KINDS)
    told = {kind: outcome.told[f"{kind} 200"] + outcome.told[f"{kind} 201"] for kind in REQUESTS}
    assert min(told.values()) > 0, told


@long
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("bug", BUGS.values(), ids=lambda bug: bug.name)
async def test_a_bug_planted_in_a_service_is_found(
    bug: Bug, capsys: pytest.CaptureFixture[str]
) -> None:
    for seed in range(1, 6):
        outcome = await campaign(
            Plan(seed, PLANTED_SECONDS, LEASE_SECONDS, planted=bug.name, faults=bug.faults)
        )
        broken = Counter(finding.rule for finding in outcome.found)
        if broken.keys() & set(bug.broken):
            break
    else:
        pytest.fail(f"{bug.name} survived")
    told = " ".join(f"{rule}={n}" for rule, n in sorted(broken.items()))
    show(capsys, f"planted {bug.name}: {told} seed={seed}")
    control = await campaign(Plan(seed, PLANTED_SECONDS, LEASE_SECONDS, faults=bug.faults))
    assert control.found == []


def test_every_kind_of_fault_of_services_is_drawn_and_the_same_for_a_seed() -> None:
    for seed in range(50):
        drawn = schedule(seed, 60, LEASE_SECONDS)
        assert drawn == schedule(seed, 60, LEASE_SECONDS)
        assert {fault.kind for fault in drawn} == set(KINDS)
