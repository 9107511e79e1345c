"""Money's turns cost the same however many lots are open."""

import sys
import tracemalloc
from collections.abc import Callable
from datetime import timedelta
from functools import cache
from types import FrameType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.actors.organization.books import AT, Ledger, days, purchase
from tolsey.actors.organization.ledger.messages import (
    GrantCredits,
    HoldCredits,
    SettleHold,
    SpendCredits,
)
from tolsey.actors.organization.ledger.open_lots import (
    MOST_IN_A_CHUNK,
    REMEMBERED,
    OpenLots,
    spending_order,
)
from tolsey.runtime.messages import Message
from tolsey.storage.records.money.credits import CreditLot

LATER = AT + days(1)


def lot(number: int, expires: int = 0, seq: int = 1) -> CreditLot:
    ends = AT + timedelta(minutes=expires)
    return CreditLot(
        organization_id="org_1",
        id=f"lot_{number}",
        kind="bonus",
        reference=None,
        amount=5,
        remaining=5,
        pinned=0,
        granted_at=AT,
        expires_at=ends,
        seq=seq,
    )


@cache
def bought(number: int) -> Ledger:
    """Return an organization that made so many purchases; tests take copies of it."""
    ledger = Ledger()
    for n in range(number):
        ledger.take(purchase(f"pi_{n:05}", 1, AT + timedelta(seconds=n)))
    return ledger


def held(number: int) -> Ledger:
    """Return an organization with so many open lots, each of a payment of its own."""
    kept, ledger = bought(number), Ledger()
    ledger.state, ledger.account = kept.state, kept.account
    ledger.lots, ledger.payments = dict(kept.lots), dict(kept.payments)
    return ledger


def calls_and_bytes(act: Callable[[], object]) -> tuple[int, int]:
    """Count the calls that a piece of work makes, and the bytes that it has at once."""
    calls = 0

    def count(frame: FrameType, event: str, argument: object) -> None:
        nonlocal calls
        calls += event in {"call", "c_call"}

    tracemalloc.start()
    sys.setprofile(count)
    try:
        act()
    finally:
        sys.setprofile(None)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    return calls, peak


@pytest.mark.parametrize(
    "turns",
    [
        (SpendCredits(key="s", amount=1, reason="chat", at=LATER),),
        (SpendCredits(key="s", amount=3_500_000, reason="chat", at=LATER),),  # uses lots up
        (
            HoldCredits(hold_id="h", amount=5, at=LATER, lease_until=LATER + days(1)),
            SettleHold("h", 3, LATER),
        ),
        (purchase("pi_new", 5, LATER),),
        (GrantCredits(key="g", kind="bonus", amount=5, at=LATER, expires_at=LATER + days(7)),),
    ],
    ids=["a spend", "a spend of several lots", "a hold", "a purchase", "a grant"],
)
def test_a_turn_over_thousands_of_lots_does_no_more_than_one_over_a_few(
    turns: tuple[Message[object], ...],
) -> None:
    few, many = held(10), held(3_000)

    def act(ledger: Ledger) -> Callable[[], object]:
        return lambda: [ledger.take(turn) for turn in turns]

    (calls, size), (more_calls, more_size) = map(calls_and_bytes, map(act, (few, many)))
    assert more_calls <= calls * 1.3 + 10
    assert more_size <= size * 1.5 + 4_096


def test_lots_let_go_of_are_found_without_looking_at_the_others() -> None:
    few, many = held(10), held(3_000)
    ends = few.state.credits.lots["purchase:pi_00000"].expires_at
    spend = SpendCredits(key="s", amount=1, reason="chat", at=ends)
    counted = [calls_and_bytes(lambda one=one: one.take(spend)) for one in (few, many)]  # type: ignore[misc]
    assert counted[1][0] <= counted[0][0] * 1.3 + 10
    assert "purchase:pi_00000" not in many.state.credits.lots


Step = tuple[bool, int, int]
STEPS = st.lists(st.tuples(st.booleans(), st.integers(0, 300), st.integers(0, 40)), max_size=400)


@given(STEPS, st.integers(0, 400))
def test_lots_are_those_of_a_dictionary_in_the_order_they_are_spent(
    steps: list[Step], seen: int
) -> None:
    lots, model, before = OpenLots(), dict[str, CreditLot](), 0
    for seq, (is_put, number, expires) in enumerate(steps, 1):
        one = lot(number, expires, seq)
        if is_put:
            lots, model[one.id] = lots.put(one), one
        elif one.id in model:
            kept = lots
            lots = lots.without(one.id)
            assert kept[one.id] is model.pop(one.id)  # what was made of it changes nothing in it
        if seq == seen:
            before = seq
    assert lots == model
    assert len(lots) == len(model)
    assert [*lots.values()] == [*lots.after(None)] == sorted(model.values(), key=spending_order)
    for one in model.values():
        place = spending_order(one)
        rest = [other for other in lots.values() if spending_order(other) > place]
        assert [*lots.after(place)] == rest
    assert {one.id for one in lots.moved_after(before)} == {
        one.id for one in model.values() if one.seq > before
    }


def test_chunks_stay_small_and_ordered_whatever_comes_between() -> None:
    lots = OpenLots(map(lot, range(1_000), range(0, 2_000, 2)))
    for number in range(1_000):
        lots = lots.put(lot(1_000 + number, number * 2 + 1))
    assert [one.expires_at for one in lots.values()] == [
        AT + timedelta(minutes=n) for n in range(2_000)
    ]
    assert max(map(len, lots._chunks)) <= MOST_IN_A_CHUNK
    for number in range(2_000):
        lots = lots.without(f"lot_{number}")
    assert lots == {}
    assert not lots._chunks


def test_more_than_is_remembered_is_found_by_looking_at_all() -> None:
    lots = OpenLots(map(lot, range(200)))
    for number in range(REMEMBERED + 20):
        lots = lots.put(lot(number, seq=number + 2))
    for seq in (1, 15, 30, REMEMBERED + 21):
        moved = sorted(one.seq for one in lots.moved_after(seq))
        assert moved == list(range(seq + 1, REMEMBERED + 22))
