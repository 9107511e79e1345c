"""A launch's writes are planned from the look that found them due, and sent without another but the one right before."""

from dataclasses import replace
from typing import Any

from tests.actors.store.launch.test_comparing import ABOUT, WORK
from tests.actors.store.launch.test_launching import EMPTY, NOON, calls
from tolsey.actors.edit import Edit
from tolsey.actors.store.editing import edits, operations
from tolsey.actors.store.editing.kinds.kind import EditVerdict
from tolsey.actors.store.editing.messages import (
    BeginOperation,
    CarryOut,
    OperationOvertaken,
    SendEdit,
)
from tolsey.actors.store.editing.queueing import AT_ONCE
from tolsey.actors.store.launch.executors.work import WriteShop, compare, planned
from tolsey.actors.store.launch.stops import LAUNCH_CLIENT
from tolsey.storage.records.commerce.agent_operation import OperationState

ZONE = {"name": "Domestic", "countries": ["US"]}
WISH = BeginOperation(
    operation_id="op_1",
    user_id="usr_1",
    client_id=LAUNCH_CLIENT,
    tool="storefront.pages",
    subject="page/about",
    digest="d",
    intent="sealed",
    at=NOON,
    before="{}",
)


def test_what_a_launch_planned_is_sent_at_its_turn_and_planned_anew_once_the_shop_moved_on() -> (
    None
):
    begun = operations.begin(EMPTY, WISH, None)
    (send,) = calls(begun, SendEdit)
    assert (send.sends, calls(begun, CarryOut)) == (1, [])
    (kept,) = begun.state.operations
    assert (kept.state, kept.before) == (OperationState.SENT, "{}")
    again = operations.overtaken(begun.state, OperationOvertaken("op_1", 1, NOON))
    assert len(calls(again, CarryOut)) == 1


def test_what_an_agent_asks_for_is_planned_at_its_turn_whatever_was_shown() -> None:
    for wish in (replace(WISH, client_id="agent"), replace(WISH, before=None)):
        begun = operations.begin(EMPTY, wish, None)
        assert (len(calls(begun, CarryOut)), calls(begun, SendEdit)) == (1, [])


def test_a_launch_takes_no_more_places_at_the_platform_than_others() -> None:
    state = EMPTY
    for number in range(AT_ONCE + 2):
        wish = replace(WISH, operation_id=f"op_{number}", subject=f"page/{number}")
        state = operations.begin(state, wish, None).state
    states = [one.state for one in state.operations]
    assert states == [OperationState.SENT] * AT_ONCE + [OperationState.WAITING] * 2


def test_a_comparison_says_what_is_sent_and_what_the_thing_was() -> None:
    comparing = compare(WORK, [ABOUT])
    next(comparing)
    try:
        comparing.send([{"found": None}])
    except StopIteration as end:
        found = end.value
    assert isinstance(found.write, WriteShop)
    (edit,) = found.write.edits
    assert edit.change is not None
    assert edit.planned == edit.version == edits.version_of(ABOUT, {"found": None})
    assert found.write.before == {"page/about": edits.shown(ABOUT, {"found": None})}


def test_what_the_platform_works_at_is_waited_for_longer_the_longer_it_takes() -> None:
    waits = [
        replace(WORK, waited_seconds=waited).processing("Not yet.").wait_seconds
        for waited in (1, 10, 3_600)
    ]
    assert waits == [0.5, 5, 60]


def test_what_the_platform_is_never_done_with_uses_attempts_after_its_time_so_that_it_ends() -> (
    None
):
    work = replace(WORK, milestone="storefront.theme")
    kinds = [
        replace(work, waited_seconds=waited).processing("Not yet.").kind for waited in (600, 601)
    ]
    assert kinds == ["throttled", "retryable"]


def test_what_would_change_nothing_is_left_out_and_what_cannot_be_says_why_at_its_turn() -> None:
    rates = Edit(kind=edits.RATES, ids=("1",), wanted={"zones": [ZONE]})
    there: dict[str, Any] = {"group": "g", "zones": ["Domestic"], "countries": ["US"]}
    nowhere: dict[str, Any] = {"group": None, "zones": [], "countries": []}
    assert planned([(rates, there)]).edits == []
    write = planned([(rates, nowhere)])
    assert (list(write.edits), write.before) == ([rates], {})


def test_a_product_whose_answer_was_lost_is_made_in_whatever_digits_its_prices_are_written() -> (
    None
):
    wanted = {"title": "Blanket", "prices": ["120.00"]}
    edit = Edit(kind=edits.NEW_PRODUCT, ids=("blanket",), wanted=wanted)
    for price, verdict in (("120.0", EditVerdict.APPLIED), ("12.00", EditVerdict.UNCLEAR)):
        found = {"found": {**wanted, "id": "1", "prices": [price]}}
        assert edits.verdict(edit, {"new-product": None}, found) == verdict
