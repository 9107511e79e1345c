"""The checker is worth what it catches: right histories pass, each way to be wrong is named."""

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.campaigns.cluster.histories import KEYS, Bank, History, luck_of
from tests.campaigns.cluster.linear import (
    CREDIT,
    Call,
    Line,
    SearchTooLong,
    Seen,
    check,
    linearizable,
    seen_of,
    until,
)
from tests.campaigns.cluster.wrong import MUTATIONS
from tolsey.runtime.turns.mailbox import slot_of

SEEDS = st.integers(0, 2**48)


def right(seed: int, *, clients: int = 5, ops: int = 40) -> History:
    return Bank(luck_of(seed)).run(clients, ops)


def rules(history: History) -> set[str]:
    return {finding.rule for finding in check(history.calls, history.lines)}


def deposit(op: str, invoked: float, answered: float, version: int, total: int) -> Call:
    return Call(op, "a", "deposit", 1, invoked, answered, "reply", version, total)


def read(invoked: float, answered: float, version: int) -> Call:
    return Call("r", "a", "read", 0, invoked, answered, "reply", version, version)


def line(version: int, op: str, epoch: int = 1) -> Line:
    return Line("a", slot_of("a"), version, op, 1, epoch, version)


TWO = (line(1, "one"), line(2, "two"))
BOTH = (deposit("one", 1, 2, 1, 1), deposit("two", 3, 4, 2, 2))


@given(SEEDS, st.integers(1, 8), st.integers(0, 80))
def test_a_history_of_operations_served_one_at_a_time_is_right(
    seed: int, clients: int, ops: int
) -> None:
    history = right(seed, clients=clients, ops=ops)
    assert check(history.calls, history.lines) == []


@pytest.mark.parametrize("name", MUTATIONS)
@given(seed=SEEDS)
@settings(max_examples=60)
def test_a_wrong_history_is_caught_and_its_rule_is_named(name: str, seed: int) -> None:
    broken, change = MUTATIONS[name]
    wrong = change(right(seed), luck_of(seed))
    assume(wrong is not None)
    assert wrong is not None
    assert rules(wrong) & broken


def test_there_are_more_than_a_dozen_ways_to_be_wrong() -> None:
    assert len(MUTATIONS) >= 18


@given(SEEDS)
@settings(max_examples=60)
def test_the_search_agrees_that_a_right_history_is_right(seed: int) -> None:
    history = right(seed, clients=3, ops=30)
    for key in KEYS:
        assert linearizable(seen_of(key, history.calls, history.lines))


@given(SEEDS, st.floats(0, 15))
@settings(max_examples=60)
def test_a_right_history_is_right_up_to_any_moment(seed: int, end: float) -> None:
    history = right(seed, clients=3, ops=40)
    for key in KEYS:
        assert linearizable(until(seen_of(key, history.calls, history.lines), end))


def test_the_search_catches_wrong_answers_without_a_look_at_versions() -> None:
    """It sees less than the checker, which knows the versions; it must see something."""
    caught: Counter[str] = Counter()
    tried: Counter[str] = Counter()
    for name, (_, change) in MUTATIONS.items():
        for seed in range(60):
            wrong = change(right(seed, clients=3, ops=30), luck_of(seed))
            if wrong is None:
                continue
            tried[name] += 1
            try:
                ok = all(linearizable(seen_of(key, wrong.calls, wrong.lines)) for key in KEYS)
            except SearchTooLong:
                ok = True
            caught[name] += not ok
    for name in (
        "a_read_answers_what_was_overwritten_before_it_was_called",
        "a_read_answers_a_version_that_never_was",
        "a_read_answers_what_was_called_only_after_it",
        "an_answer_carries_a_wrong_total",
    ):
        assert caught[name] > tried[name] // 2 > 0, (name, caught, tried)


@given(SEEDS)
@settings(max_examples=60)
def test_what_the_search_refuses_the_checker_refuses(seed: int) -> None:
    """Answers are exchanged at random: whatever an outsider can see to be wrong, the checker sees."""
    luck = luck_of(seed)
    history = right(seed, clients=3, ops=25)
    reads = [call for call in history.calls if call.what == "read" and call.told == "reply"]
    assume(reads)
    old = luck.choice(reads)
    known = history.of(old.key)
    version = luck.randrange(len(known) + 1)
    total = sum(known[n].amount for n in range(version))
    new = replace(old, version=version, total=total)
    calls = [new if call is old else call for call in history.calls]
    if not linearizable(seen_of(old.key, calls, history.lines)):
        assert check(calls, history.lines)


def test_a_read_may_answer_what_is_written_while_it_waits() -> None:
    for version in (0, 1):
        calls = (deposit("one", 1, 5, 1, 1), read(2, 4, version))
        assert check(calls, [line(1, "one")]) == []


def test_a_read_of_an_overwritten_version_is_stale_even_when_only_a_read_has_seen_the_new_one() -> (
    None
):
    calls = (
        Call("one", "a", "deposit", 1, 1),
        read(2, 3, 1),
        read(4, 5, 0),
    )
    assert [finding.rule for finding in check(calls, [line(1, "one")])] == ["stale_read"]


def test_a_write_without_an_answer_may_take_effect_long_after() -> None:
    calls = (Call("one", "a", "deposit", 1, 1), deposit("two", 3, 4, 1, 1), read(9, 10, 2))
    assert check(calls, [line(1, "two"), line(2, "one")]) == []


def test_a_write_without_an_answer_may_never_take_effect() -> None:
    assert check([Call("one", "a", "deposit", 1, 1)], []) == []


def test_a_duplicate_says_that_its_first_effect_came_before_the_answer() -> None:
    duplicate = Call("one", "a", "deposit", 1, 3, 4, "duplicate")
    calls = (Call("one", "a", "deposit", 1, 1), duplicate, read(5, 6, 0))
    assert {finding.rule for finding in check(calls, [line(1, "one")])} == {"stale_read"}


def test_an_answer_given_twice_is_the_same_both_times() -> None:
    again = deposit("one", 5, 6, 1, 1)
    assert check((*BOTH, again), TWO) == []
    assert rules(History((*BOTH, replace(again, version=2, total=2)), TWO)) >= {"wrong_answer"}


def test_two_writes_in_turn_are_in_that_order_on_disk() -> None:
    calls = (deposit("one", 1, 2, 2, 2), deposit("two", 3, 4, 1, 1))
    assert rules(History(calls, (line(1, "two"), line(2, "one")))) == {"order"}


def test_epochs_never_fall_though_versions_rise() -> None:
    assert rules(History(BOTH, (line(1, "one", 7), line(2, "two", 6)))) == {"epoch_order"}


def test_another_account_of_the_slot_may_not_commit_under_an_older_epoch() -> None:
    other = replace(line(1, "two", 6), key="neighbour", order=2)
    calls = (BOTH[0], replace(BOTH[1], key="neighbour", version=1, total=1))
    assert rules(History(calls, (line(1, "one", 7), other))) == {"epoch_order"}


def test_a_transfer_that_is_on_its_way_is_not_yet_lost_once_it_is_there() -> None:
    call = Call("t", "a", "transfer", 1, 1, 2, "reply", 1, -1, to="b")
    debit = replace(line(1, "t"), amount=-1)
    assert rules(History((call,), (debit,))) == {"lost_transfer"}
    credit = Line("b", slot_of("b"), 1, "t" + CREDIT, 1, 1, 2)
    assert rules(History((call,), (debit, credit))) == set()


def test_the_search_gives_up_rather_than_run_for_ever() -> None:
    crowd = [Seen(0, 100, 2**n, None) for n in range(18)]
    wrong = Seen(200, 201, 0, 1, read=True)
    with pytest.raises(SearchTooLong):
        linearizable([*crowd, wrong], steps=1000)


def test_ten_thousand_operations_are_checked_in_one_sweep() -> None:
    history = right(1, clients=12, ops=10_000)
    assert len(history.lines) > 5_000
    assert check(history.calls, history.lines) == []
