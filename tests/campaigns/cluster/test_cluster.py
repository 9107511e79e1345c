"""The whole of it: real processes on real servers under faults, and nothing promised is broken."""

import os
from collections import Counter

import pytest

from tests.campaigns.cluster.campaign import Plan, campaign
from tests.campaigns.cluster.faults import KINDS, NODES, Fault, schedule
from tests.campaigns.cluster.planted import BUGS, PLANTED_SECONDS, Bug

SECONDS = float(os.environ.get("CAMPAIGN_SECONDS", "0"))
SEED = int(os.environ.get("CAMPAIGN_SEED", "1"))
SHORT_SECONDS = 34.0
LEASE_SECONDS = 1.5
CALM_LEASE_SECONDS = 12.0
"""So that a slow machine alone ends no lease: what is asked is whether hand-overs fail requests."""


def show(capsys: pytest.CaptureFixture[str], line: object) -> None:
    with capsys.disabled():
        print(f"\n{line}", flush=True)  # noqa: T201 - the figures are what a campaign is for


@pytest.mark.timeout(SECONDS + 900)
async def test_no_fault_of_processes_servers_or_networks_breaks_a_promise(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def say(line: str) -> None:
        if SECONDS:
            show(capsys, line)

    seconds = max(SECONDS, SHORT_SECONDS)
    verdict = await campaign(Plan(SEED, seconds, LEASE_SECONDS, say=say))
    show(capsys, verdict)
    assert verdict.found == []
    assert set(verdict.nemesis.landed) == {fault.kind for fault in verdict.faults}
    assert {fault.kind for fault in verdict.faults} == set(KINDS)
    some = verdict.sometimes()
    needed = set(some) if SECONDS else {"hand_overs", "duplicates", "unknown", "refused"}
    assert [name for name in sorted(needed) if not some[name]] == []


async def test_no_request_fails_when_processes_come_and_go_and_slots_move(
    capsys: pytest.CaptureFixture[str],
) -> None:
    planned = [
        *(Fault(1.0, "leave", 0), Fault(2.5, "join", 3), Fault(4.0, "leave", 1)),
        *(Fault(5.0 + n / 5, "move", 2 + n % 2, account=n) for n in range(5)),
        *(Fault(6.0, "join", 0), Fault(7.5, "leave", 3)),
    ]
    verdict = await campaign(
        Plan(SEED, 9.0, CALM_LEASE_SECONDS, faults=tuple(planned), one_by_one=True)
    )
    show(capsys, verdict)
    assert verdict.found == []
    assert verdict.nemesis.landed == {"leave": 3, "join": 2, "move": 5}
    assert verdict.record.errors == {}


@pytest.mark.skipif(not SECONDS, reason="takes minutes: `make campaign`")
@pytest.mark.parametrize("bug", BUGS.values(), ids=lambda bug: bug.name)
async def test_a_planted_bug_is_found(bug: Bug, capsys: pytest.CaptureFixture[str]) -> None:
    for seed in range(1, 6):
        verdict = await campaign(
            Plan(seed, PLANTED_SECONDS, LEASE_SECONDS, planted=bug.name, faults=bug.faults)
        )
        broken = {finding.rule for finding in verdict.found}
        if broken & set(bug.broken):
            show(capsys, f"planted {bug.name}: {' '.join(sorted(broken))} seed={seed}")
            return
    pytest.fail(f"{bug.name} survived")


def test_the_same_seed_draws_the_same_faults() -> None:
    for seed in range(20):
        assert schedule(seed, 300, 1.5) == schedule(seed, 300, 1.5)


def test_another_seed_draws_other_faults() -> None:
    assert len({tuple(schedule(seed, 60, 1.5)) for seed in range(50)}) == 50


def test_every_kind_of_fault_is_drawn_within_a_minute() -> None:
    for seed in range(200):
        assert {fault.kind for fault in schedule(seed, SHORT_SECONDS, LEASE_SECONDS)} == set(KINDS)


def test_one_process_is_always_left_alone() -> None:
    for seed in range(100):
        faults = schedule(seed, 120, 1.5)
        troubled = [fault for fault in faults if fault.node is not None and fault.seconds]
        for fault in troubled:
            before = Counter(other.kind for other in faults if other.at <= fault.at)
            members = NODES + before["join"] - before["leave"]
            at_once = {
                other.node for other in troubled if other.at <= fault.at < other.at + other.seconds
            }
            assert len(at_once) < members
