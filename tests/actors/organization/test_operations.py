"""What is asked of an organization and takes calls to the outside."""

from dataclasses import replace

import pytest

from tests.actors.organization.pure_organization import AT
from tolsey.actors.organization.operations import under_way
from tolsey.actors.organization.operations.messages import AwaitOperation
from tolsey.actors.organization.state import OrganizationState
from tolsey.actors.refusals import NotFound, Refusal, Unavailable
from tolsey.runtime.decision import Decision, Parked
from tolsey.storage.records.runtime.operations import Operation

ASKED = Operation(
    id="operation_1",
    organization_id="org_1",
    user_id="usr_1",
    kind="refund",
    subject="pi_1",
    state="running",
    wanted="{}",
    created_at=AT,
)
BEGUN = under_way.begin(OrganizationState("org_1"), ASKED)


def test_whoever_asks_waits_for_the_end() -> None:
    waits = under_way.wait(BEGUN, AwaitOperation(ASKED.id), ASKED)
    assert waits.reply == Parked("operation:operation_1")
    ended = under_way.end(Decision(BEGUN, None), ASKED, AT, result={"id": "re_1"})
    assert dict(ended.resolve or {}) == {"operation:operation_1": ended.records[0]}


def test_an_end_that_is_not_on_disk_yet_is_told_and_not_waited_for() -> None:
    ended = under_way.end(Decision(BEGUN, None), ASKED, AT, result={"id": "re_1"})
    answered = under_way.wait(ended.state, AwaitOperation(ASKED.id), ASKED).reply
    assert answered == replace(ASKED, state="done", result='{"id":"re_1"}', finished_at=AT)


def test_a_refused_one_is_refused_again_in_the_same_words() -> None:
    why = Refusal("Not now.", status=422, code="processor_rejected")
    ended = under_way.end(Decision(BEGUN, None), ASKED, AT, why=why)
    (kept,) = ended.records
    assert (kept.state, kept.status, kept.code, kept.detail) == (
        *("refused", 422, "processor_rejected"),
        "Not now.",
    )
    for state in (ended.state, OrganizationState("org_1")):
        with pytest.raises(Refusal, match="Not now") as caught:
            under_way.wait(state, AwaitOperation(ASKED.id), kept)
        assert (caught.value.status, caught.value.code) == (422, "processor_rejected")


def test_what_nobody_asked_for_is_not_there() -> None:
    with pytest.raises(NotFound):
        under_way.wait(OrganizationState("org_1"), AwaitOperation("operation_2"), None)


def test_only_so_many_are_on_their_way() -> None:
    full = replace(BEGUN, operations=(ASKED,) * under_way.MOST_OPEN)
    with pytest.raises(Unavailable, match="Too many changes"):
        under_way.begin(full, ASKED)
