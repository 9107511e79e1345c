"""Decisions about how many workflows run at once (rules/limits#workflows)."""

from dataclasses import replace

from tolsey.actors.organization import plans
from tolsey.actors.organization.state import OrganizationState
from tolsey.actors.organization.workflows.messages import (
    ClaimWorkflow,
    ReleaseWorkflow,
    WorkflowsRunning,
)
from tolsey.actors.refusals import NotFound, PaymentRequired, Unprocessable
from tolsey.runtime.decision import Decision
from tolsey.storage.records.runtime.workflows import WorkflowClaim


def claim(
    state: OrganizationState, message: ClaimWorkflow
) -> Decision[OrganizationState, WorkflowsRunning]:
    """Let a workflow run if the plan lets one more, or lengthen its lease if it does.

    One whose lease has ended counts no more. 402 proposes the plan that would have let it.
    """
    if not state.exists:
        raise NotFound("This organization doesn't exist, or you don't belong to it. Check the id.")
    if message.lease_until <= message.at:
        raise Unprocessable(
            "The lease must end after it starts. Send a later end time.", code="invalid_lease"
        )
    live = {id: one for id, one in state.workflows.items() if one.lease_until > message.at}
    lapsed = [
        replace(one, ended_at=one.lease_until)
        for id, one in state.workflows.items()
        if id not in live
    ]
    allowed = plans.BY_CODE[state.plan].concurrent_workflows
    known = live.get(message.workflow_id)
    if known is None:
        _require_room(len(live), allowed)
    elif message.lease_until <= known.lease_until:
        return Decision(state, reply=WorkflowsRunning(len(live), allowed))
    claimed = WorkflowClaim(
        organization_id=state.organization_id,
        id=message.workflow_id,
        kind=message.kind,
        started_at=known.started_at if known else message.at,
        lease_until=message.lease_until,
        ended_at=None,
    )
    live = {**live, message.workflow_id: claimed}
    after = replace(state, workflows=live)
    # Each row is written by its turn, so that of a claim that ended and began anew in one commit
    # the later stands.
    records = (*lapsed, claimed)
    return Decision(after, reply=WorkflowsRunning(len(live), allowed), records=records)


def release(
    state: OrganizationState, message: ReleaseWorkflow
) -> Decision[OrganizationState, bool]:
    """Give a workflow's place back."""
    known = state.workflows.get(message.workflow_id)
    if known is None:
        return Decision(state, reply=False)
    left = {id: one for id, one in state.workflows.items() if one is not known}
    ended = replace(known, ended_at=min(message.at, known.lease_until))
    return Decision(replace(state, workflows=left), reply=True, records=(ended,))


def _require_room(running: int, allowed: int | None) -> None:
    if allowed is not None and running >= allowed:
        raise PaymentRequired(
            f"Your plan runs {allowed} {'workflow' if allowed == 1 else 'workflows'} at a time. Wait for one to finish, or upgrade your plan.",
            code="workflow_limit",
            plan=plans.proposed_for_workflows(running + 1),
            concurrentWorkflows=allowed,
        )
