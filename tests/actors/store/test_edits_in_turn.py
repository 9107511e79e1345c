"""Agents' operations: each once, those of one thing in turn, and none that is lost from sight."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tolsey.actors.refusals import Refusal
from tolsey.actors.store.editing import operations, proposals
from tolsey.actors.store.editing.messages import (
    BeginOperation,
    CarryOut,
    DecideProposal,
    OperationApplied,
    OperationGivenUp,
    OperationNotSent,
    OperationOvertaken,
    OperationRejected,
    OperationSending,
    OperationUnanswered,
    OperationView,
    ProposalExpired,
    RecordOperation,
    SendEdit,
)
from tolsey.actors.store.editing.queueing import AT_ONCE, view
from tolsey.actors.store.state import ENDED_KEPT, StoreState
from tolsey.runtime.codec import decode, decode_reply, encode, encode_reply
from tolsey.runtime.decision import Decision, Parked, Perform
from tolsey.storage.records.commerce.agent_operation import AgentOperation, OperationState
from tolsey.storage.records.journal import AuditRecord

NOON = datetime(2026, 7, 1, 12, tzinfo=UTC)
EMPTY = StoreState(store_id="store_1", organization_id="org_1")


def wish(
    operation_id: str = "op_1", subject: str = "product/7", digest: str = "d"
) -> BeginOperation:
    return BeginOperation(
        operation_id=operation_id,
        user_id="usr_1",
        client_id="client_1",
        tool="update_product",
        subject=subject,
        digest=digest,
        intent="sealed",
        at=NOON,
    )


def begun(*wishes: BeginOperation) -> StoreState:
    state = EMPTY
    for one in wishes or (wish(),):
        state = operations.begin(state, one, None).state
    return state


def sent(state: StoreState, operation_id: str = "op_1", sends: int = 0) -> StoreState:
    decision = operations.sending(
        state, OperationSending(operation_id=operation_id, sends=sends, before="{}", at=NOON)
    )
    assert decision.reply is True
    return decision.state


def called(decision: Decision[StoreState, Any]) -> list[CarryOut]:
    return [
        one.call
        for one in decision.effects
        if isinstance(one, Perform) and isinstance(one.call, CarryOut)
    ]


def states(state: StoreState) -> dict[str, str]:
    return {one.operation_id: str(one.state) for one in state.operations}


def test_an_operation_begins_and_its_asker_waits() -> None:
    decision = operations.begin(EMPTY, wish(), None)
    assert decision.reply == Parked("operation:op_1")
    assert called(decision) == [
        CarryOut(store_id="store_1", operation_id="op_1", organization_id="org_1")
    ]
    assert states(decision.state) == {"op_1": "running"}


def test_money_never_goes_back_without_a_person_whoever_asks() -> None:
    asked = replace(wish(), tool="refund_order")
    with pytest.raises(Refusal) as refused:
        operations.begin(EMPTY, asked, None)
    assert refused.value.code == "proposal_required"
    proposed = operations.begin(EMPTY, replace(asked, is_proposal=True), None)
    assert (states(proposed.state), called(proposed)) == ({"op_1": "proposed"}, [])
    yes = DecideProposal(operation_id="op_1", user_id="usr_2", is_confirmed=True, at=NOON)
    decided = proposals.decide(proposed.state, yes, None)
    assert states(decided.state) == {"op_1": "running"}
    assert decided.state.operations[0].decided_by == "usr_2"
    expired = proposals.expired(proposed.state, ProposalExpired("op_1", NOON))
    assert expired.state.ended[-1].code == "proposal_expired"
    assert proposals.expired(decided.state, ProposalExpired("op_1", NOON)).state == decided.state


def test_operations_of_one_thing_wait_for_each_other_and_others_do_not() -> None:
    state = begun(wish(), wish("op_2"), wish("op_3", "product/8"), wish("op_4"))
    assert states(state) == {
        "op_1": "running",
        "op_2": "waiting",
        "op_3": "running",
        "op_4": "waiting",
    }
    decision = operations.rejected(
        state,
        OperationRejected(
            operation_id="op_1",
            code="not_found",
            detail="None.",
            before=None,
            version=None,
            at=NOON,
        ),
    )
    assert called(decision) == [
        CarryOut(store_id="store_1", operation_id="op_2", organization_id="org_1")
    ]
    assert states(decision.state)["op_4"] == "waiting"


def test_a_store_calls_the_platform_only_so_often_at_once() -> None:
    state = begun(*(wish(f"op_{n}", f"product/{n}") for n in range(AT_ONCE + 2)))
    assert list(states(state).values()) == ["running"] * AT_ONCE + ["waiting"] * 2
    ended = operations.applied(
        sent(state, "op_1"),
        OperationApplied(operation_id="op_1", before="{}", after="{}", version="v", at=NOON),
    )
    assert called(ended) == [
        CarryOut(store_id="store_1", operation_id=f"op_{AT_ONCE}", organization_id="org_1")
    ]
    unknown = operations.unanswered(
        sent(state, "op_0"), OperationUnanswered("op_0", is_unchanged=True, at=NOON)
    )
    assert CarryOut(
        store_id="store_1", operation_id=f"op_{AT_ONCE}", organization_id="org_1"
    ) in called(unknown)


def test_who_asks_again_waits_for_the_same_answer() -> None:
    decision = operations.begin(begun(), wish(), None)
    assert (decision.reply, decision.effects) == (Parked("operation:op_1"), ())


def test_a_key_with_other_arguments_is_refused_wherever_the_operation_is() -> None:
    kept = begun().operations[0]
    ended = replace(kept, state=OperationState.APPLIED, finished_at=NOON)
    for state, on_disk in ((begun(), None), (EMPTY, ended), (EMPTY.with_ended(ended), None)):
        with pytest.raises(Refusal) as refused:
            operations.begin(state, wish(digest="other"), on_disk)
        assert refused.value.code == "idempotency_key_reused"


def test_an_end_answers_whoever_waits_and_leaves_a_row_and_an_audit_row() -> None:
    message = OperationApplied(
        operation_id="op_1", before='{"title": "a"}', after='{"title": "b"}', version="v2", at=NOON
    )
    decision = operations.applied(sent(begun()), message)
    view = (decision.resolve or {})["operation:op_1"]
    assert isinstance(view, OperationView)
    assert (view.state, view.after, view.version) == ("applied", '{"title": "b"}', "v2")
    row, audit = decision.records
    assert isinstance(row, AgentOperation)
    assert isinstance(audit, AuditRecord)
    assert (row.intent, row.finished_at, audit.event) == (None, NOON, "agent.write")
    assert decision.state.operations == ()


def test_an_operation_is_replayed_before_its_end_is_on_disk() -> None:
    state = operations.applied(
        sent(begun()),
        OperationApplied(operation_id="op_1", before="{}", after="{}", version="v2", at=NOON),
    ).state
    on_disk = sent(begun()).operations[0]
    decision = operations.begin(state, wish(), on_disk)
    assert isinstance(decision.reply, OperationView)
    assert decision.reply.replayed
    assert called(decision) == []


def test_only_one_process_may_send_and_only_as_often_as_it_was_refused() -> None:
    state = sent(begun())
    late = operations.sending(
        state, OperationSending(operation_id="op_1", sends=0, before="{}", at=NOON)
    )
    assert (late.reply, late.state) == (False, state)
    assert sent(state, sends=1).operations[0].sends == 2
    assert (
        operations.sending(
            EMPTY, OperationSending(operation_id="op_1", sends=0, before="{}", at=NOON)
        ).reply
        is False
    )


def test_what_was_planned_is_sent_once_as_it_was_planned() -> None:
    planned = OperationSending(
        operation_id="op_1",
        sends=0,
        before='{"available": 1}',
        at=NOON,
        intent="sealed with its change",
    )
    decision = operations.sending(begun(), planned)
    (send,) = decision.effects
    assert isinstance(send, Perform)
    assert (send.key, send.call) == (
        "send:op_1:1",
        SendEdit(store_id="store_1", operation_id="op_1", sends=1, organization_id="org_1"),
    )
    (kept,) = decision.state.operations
    assert (kept.state, kept.before, kept.intent) == (
        *("sent", '{"available": 1}'),
        "sealed with its change",
    )
    late = operations.sending(decision.state, planned)
    assert (late.reply, late.state, late.effects) == (False, decision.state, ())


def test_what_is_overtaken_is_planned_anew_until_it_is_contended() -> None:
    state = begun()
    for sends in range(1, operations.TRIES):
        decision = operations.overtaken(
            sent(state, sends=sends - 1), OperationOvertaken("op_1", sends, NOON)
        )
        assert called(decision) == [
            CarryOut(store_id="store_1", operation_id="op_1", organization_id="org_1")
        ]
        assert states(decision.state) == {"op_1": "running"}
        assert (
            operations.overtaken(decision.state, OperationOvertaken("op_1", 0, NOON)).effects == ()
        )
        state = decision.state
    tries = operations.TRIES
    last = operations.overtaken(
        sent(state, sends=tries - 1), OperationOvertaken("op_1", tries, NOON)
    )
    assert (last.state.ended[-1].state, last.state.ended[-1].code) == ("rejected", "contended")


def test_an_operation_whose_call_is_given_up_holds_nobody_up() -> None:
    state = begun(wish(), wish("op_2"))
    assert CarryOut(store_id="store_1", operation_id="op_1").given_up(
        "a bug", NOON
    ) == OperationGivenUp("op_1", NOON)
    assert SendEdit(store_id="store_1", operation_id="op_1", sends=1).given_up(
        "a bug", NOON
    ) == OperationGivenUp("op_1", NOON)
    for before, ends in ((state, "not_sent"), (sent(state), "unclear")):
        decision = operations.given_up(before, OperationGivenUp("op_1", NOON))
        assert decision.state.ended[-1].state == ends
        assert called(decision) == [
            CarryOut(store_id="store_1", operation_id="op_2", organization_id="org_1")
        ]


def test_what_was_not_sent_may_be_tried_again_under_its_key() -> None:
    failed = OperationNotSent(
        operation_id="op_1",
        status=503,
        code="commerce_unreachable",
        detail="Away.",
        retry_after=5.0,
        at=NOON,
    )
    decision = operations.not_sent(begun(), failed)
    refusal = (decision.resolve or {})["operation:op_1"]
    assert isinstance(refusal, Refusal)
    assert (refusal.status, refusal.code) == (503, "commerce_unreachable")
    again = operations.begin(decision.state, wish(), None)
    assert called(again) == [
        CarryOut(store_id="store_1", operation_id="op_1", organization_id="org_1")
    ]
    assert again.state.operations[0].sends == 0


def test_what_was_sent_and_refused_counts_on_when_it_is_tried_again() -> None:
    failed = OperationNotSent(
        operation_id="op_1",
        status=503,
        code="commerce_unreachable",
        detail="Away.",
        retry_after=5.0,
        at=NOON,
    )
    again = operations.begin(operations.not_sent(sent(begun()), failed).state, wish(), None)
    assert again.state.operations[0].sends == 1


def test_a_mere_repeat_never_starts_anything() -> None:
    failed = OperationNotSent(
        operation_id="op_1",
        status=503,
        code="commerce_unreachable",
        detail="Away.",
        retry_after=5.0,
        at=NOON,
    )
    for state in (EMPTY, operations.not_sent(begun(), failed).state):
        with pytest.raises(Refusal):
            operations.begin(state, replace(wish(), is_repeat=True), None)
    assert operations.begin(begun(), replace(wish(), is_repeat=True), None).reply == Parked(
        "operation:op_1"
    )


@pytest.mark.parametrize(("is_unchanged", "state"), [(True, "rejected"), (False, "unclear")])
def test_the_shop_is_looked_at_ever_later_and_then_no_more(
    *, is_unchanged: bool, state: str
) -> None:
    now = sent(begun())
    waits: list[timedelta] = []
    for _ in range(operations.LOOKS - 1):
        decision = operations.unanswered(now, OperationUnanswered("op_1", is_unchanged, NOON))
        (again,) = decision.effects
        assert isinstance(again, Perform)
        assert again.due_at is not None
        waits.append(again.due_at - NOON)
        now = decision.state
        assert states(now) == {"op_1": "unknown"}
    assert waits == list(operations.LOOK_AFTER)
    last = operations.unanswered(now, OperationUnanswered("op_1", is_unchanged, NOON))
    assert (last.effects, last.state.ended[-1].state) == ((), state)


def test_an_unknown_operation_is_told_at_once_and_holds_back_what_follows() -> None:
    state = operations.unanswered(
        sent(begun()), OperationUnanswered("op_1", is_unchanged=True, at=NOON)
    ).state
    again = operations.begin(state, wish(), None)
    assert isinstance(again.reply, OperationView)
    assert again.reply.state == "unknown"
    assert states(operations.begin(state, wish("op_2"), None).state)["op_2"] == "waiting"


def test_what_comes_after_the_end_changes_nothing() -> None:
    for decision in (
        operations.applied(
            EMPTY,
            OperationApplied(operation_id="op_1", before="{}", after="{}", version="v", at=NOON),
        ),
        operations.rejected(
            EMPTY,
            OperationRejected(
                operation_id="op_1", code="c", detail="d", before=None, version=None, at=NOON
            ),
        ),
        operations.not_sent(
            EMPTY,
            OperationNotSent(
                operation_id="op_1", status=503, code="c", detail="d", retry_after=None, at=NOON
            ),
        ),
        operations.unanswered(EMPTY, OperationUnanswered("op_1", is_unchanged=True, at=NOON)),
        operations.overtaken(EMPTY, OperationOvertaken("op_1", 0, NOON)),
        operations.given_up(EMPTY, OperationGivenUp("op_1", NOON)),
    ):
        assert (decision.state, decision.records, decision.effects) == (EMPTY, (), ())


def test_a_store_takes_only_so_many_at_once() -> None:
    state = begun(*(wish(f"op_{n}") for n in range(operations.MOST_OPEN)))
    with pytest.raises(Refusal) as refused:
        operations.begin(state, wish("op_more"), None)
    assert (refused.value.status, refused.value.code) == (503, "overloaded")


def test_memory_keeps_only_the_last_ends() -> None:
    state = EMPTY
    for n in range(ENDED_KEPT + 5):
        state = operations.record(
            state,
            RecordOperation(
                operation_id=f"op_{n}",
                user_id="usr_1",
                client_id="c",
                tool="t",
                subject="s",
                digest="d",
                before="{}",
                after="{}",
                at=NOON,
            ),
            None,
        ).state
    assert len(state.ended) == ENDED_KEPT
    assert state.ended[-1].operation_id == f"op_{ENDED_KEPT + 4}"


@pytest.mark.parametrize(
    "message",
    [
        wish(),
        OperationSending(operation_id="op_1", sends=0, before="{}", at=NOON),
        OperationUnanswered("op_1", is_unchanged=True, at=NOON),
        OperationNotSent(
            operation_id="op_1", status=503, code="c", detail="d", retry_after=None, at=NOON
        ),
        CarryOut(store_id="store_1", operation_id="op_1", look=2, organization_id="org_1"),
    ],
)
def test_messages_cross_processes(message: Any) -> None:
    assert decode(type(message).__name__, "store", encode(message)) == message


def test_an_answer_crosses_processes() -> None:
    told = view(sent(begun()).operations[0], replayed=True)
    assert decode_reply(BeginOperation, encode_reply(BeginOperation, told)) == told
