from dataclasses import replace
from datetime import datetime

import pytest

from tests.actors.organization.books import AT, days
from tolsey.actors.organization.state import OrganizationState
from tolsey.actors.organization.workflows import claims
from tolsey.actors.organization.workflows.messages import (
    ClaimWorkflow,
    ReleaseWorkflow,
    WorkflowsRunning,
)
from tolsey.actors.refusals import NotFound, PaymentRequired, Unprocessable
from tolsey.storage.records.runtime.workflows import WorkflowClaim

LEASE = AT + days(0.01)


def claim(number: int, at: datetime = AT, lease_until: datetime = LEASE) -> ClaimWorkflow:
    return ClaimWorkflow(workflow_id=f"wf_{number}", kind="launch", at=at, lease_until=lease_until)


def running(plan: str, count: int) -> OrganizationState:
    state = OrganizationState("org_1", plan)
    for number in range(count):
        state = claims.claim(state, claim(number)).state
    return state


@pytest.mark.parametrize(
    ("plan", "allowed", "proposed"),
    [("free", 1, "pro"), ("pro", 5, "max_5x"), ("max_5x", 20, "max_20x")],
)
def test_one_workflow_more_than_the_plan_runs_is_402_with_the_plan_that_runs_it(
    plan: str, allowed: int, proposed: str
) -> None:
    state = running(plan, allowed - 1)
    last = claims.claim(state, claim(99))
    assert last.reply == WorkflowsRunning(allowed, allowed)
    with pytest.raises(PaymentRequired) as refused:
        claims.claim(last.state, claim(100))
    assert refused.value.code == "workflow_limit"
    assert refused.value.fields == {"plan": proposed, "concurrentWorkflows": allowed}


@pytest.mark.parametrize("plan", ["max_20x", "custom"])
def test_the_dearest_plans_run_as_many_as_they_want(plan: str) -> None:
    decision = claims.claim(running(plan, 60), claim(99))
    assert decision.reply == WorkflowsRunning(61, None)


def test_a_workflow_that_claims_again_keeps_its_place_and_lengthens_its_lease() -> None:
    first = claims.claim(OrganizationState("org_1"), claim(1))
    again = claims.claim(first.state, claim(1))
    assert again.state is first.state
    assert not again.records
    longer = claims.claim(first.state, claim(1, AT + days(0.005), LEASE + days(1)))
    kept = WorkflowClaim(
        organization_id="org_1",
        id="wf_1",
        kind="launch",
        started_at=AT,
        lease_until=LEASE + days(1),
        ended_at=None,
    )
    assert longer.records == (kept,)
    assert longer.reply == WorkflowsRunning(1, 1)


def test_a_workflow_whose_lease_has_ended_gives_its_place_to_the_next() -> None:
    first = claims.claim(OrganizationState("org_1"), claim(1))
    second = claims.claim(first.state, claim(2, LEASE, LEASE + days(1)))
    lapsed = WorkflowClaim(
        organization_id="org_1",
        id="wf_1",
        kind="launch",
        started_at=AT,
        lease_until=LEASE,
        ended_at=LEASE,
    )
    begun = WorkflowClaim(
        organization_id="org_1",
        id="wf_2",
        kind="launch",
        started_at=LEASE,
        lease_until=LEASE + days(1),
        ended_at=None,
    )
    assert second.records == (lapsed, begun)
    assert set(second.state.workflows) == {"wf_2"}


def test_a_released_place_is_free_and_releasing_twice_is_once() -> None:
    first = claims.claim(OrganizationState("org_1"), claim(1))
    released = claims.release(first.state, ReleaseWorkflow("wf_1", AT))
    assert released.reply is True
    assert released.records == (
        WorkflowClaim(
            organization_id="org_1",
            id="wf_1",
            kind="launch",
            started_at=AT,
            lease_until=LEASE,
            ended_at=AT,
        ),
    )
    assert claims.release(released.state, ReleaseWorkflow("wf_1", AT)).reply is False
    assert claims.claim(released.state, claim(2)).reply == WorkflowsRunning(1, 1)


def test_a_downgrade_lets_what_runs_run_on_and_nothing_begin() -> None:
    state = replace(running("pro", 4), plan="free")
    assert claims.claim(state, claim(2, AT, LEASE + days(1))).reply == WorkflowsRunning(4, 1)
    with pytest.raises(PaymentRequired) as refused:
        claims.claim(state, claim(9))
    assert refused.value.fields["plan"] == "pro"


def test_a_lease_that_has_ended_and_an_organization_that_is_not_are_refused() -> None:
    with pytest.raises(Unprocessable):
        claims.claim(OrganizationState("org_1"), claim(1, LEASE, LEASE))
    with pytest.raises(NotFound):
        claims.claim(OrganizationState("org_1", exists=False), claim(1))
