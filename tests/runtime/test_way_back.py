"""What turns changed is kept so that a state of before can be put together again, and nothing else is."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import pairwise
from typing import Annotated, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rpds import HashTrieMap

from tests.runtime.counter import Add, Break, Note, counter
from tests.runtime.runtime_on_disk import running
from tolsey.runtime.masking import MASK
from tolsey.runtime.turns import pending
from tolsey.runtime.turns import way_back as module
from tolsey.runtime.turns.way_back import (
    MISSING,
    Rebuilding,
    differences,
    kept_state,
    read_way,
    way_back,
)
from tolsey.storage.database import Database
from tolsey.storage.runtime.journal_turns import turns, ways_back
from tolsey.storage.tables import Personal


@dataclass(frozen=True)
class Line:
    id: str
    amount: int


@dataclass(frozen=True)
class Book:
    key: str
    lines: tuple[Line, ...] = ()
    holds: "HashTrieMap[str, Line]" = field(default_factory=HashTrieMap)
    notes: Mapping[str, int] | None = None
    at: datetime | None = None
    token: str | None = field(default=None, metadata={"secret": True})
    email: Annotated[str | None, Personal.EMAIL] = None


LINE = st.builds(Line, st.sampled_from("abcdef"), st.integers(0, 3))
BOOKS = st.builds(
    Book,
    st.just("k"),
    lines=st.lists(LINE, max_size=12).map(tuple),
    holds=st.dictionaries(st.sampled_from("abcdef"), LINE, max_size=5).map(HashTrieMap),
    notes=st.none() | st.dictionaries(st.sampled_from("xyz"), st.integers(0, 2), max_size=3),
    at=st.none() | st.datetimes(timezones=st.just(UTC)),
    token=st.none() | st.sampled_from(["hunter2", "v1.sealed"]),
    email=st.none() | st.just("anna@example.com"),
)


@given(st.lists(BOOKS, min_size=2, max_size=6))
def test_the_ways_back_lead_to_each_state_before(states: list[Book]) -> None:
    ways = [way_back(old, new) for old, new in pairwise(states)]
    rebuilding = Rebuilding(kept_state(states[-1]))
    for state, way in zip(reversed(states[:-1]), reversed(ways), strict=True):
        assert way is not None
        rebuilding.take_back(way)
        assert rebuilding.state == kept_state(state)
    assert not rebuilding.unknown


@given(st.lists(BOOKS, min_size=2, max_size=6))
def test_no_secret_and_nobody_is_among_what_is_kept(states: list[Book]) -> None:
    for old, new in pairwise(states):
        kept = str(read_way(way_back(old, new) or b"[]"))
        assert not any(one in kept for one in ("hunter2", "sealed", "anna"))


def test_only_what_changed_is_kept_however_much_there_is() -> None:
    book = Book("k", tuple(Line(str(n), n) for n in range(5_000)))
    lines = (*book.lines[:70], Line("70", -1), *book.lines[71:], Line("new", 1))
    way = way_back(book, replace(book, lines=(*book.lines, Line("new", 1)), token="hunter2"))
    assert read_way(way or b"") == [
        ["~", ["lines"], 5_000, 1, [], 5_001],
        ["=", ["token"], None],
    ]
    assert len(way_back(book, replace(book, lines=lines)) or b"") < 200_000


def test_a_place_that_is_not_on_disk_is_said_to_be_unknown_until_it_is_set() -> None:
    old, new = Book("k", notes={"x": 1}), Book("k", notes={"x": 2})
    rebuilding = Rebuilding(kept_state(Book("k")))  # what was looked up is not kept
    rebuilding.take_back(way_back(old, new) or b"")
    assert rebuilding.unknown == {("notes",)}
    rebuilding.take_back(way_back(Book("k"), old) or b"")
    assert not rebuilding.unknown
    assert rebuilding.state == kept_state(Book("k"))


def test_a_secret_that_changed_is_told_without_it() -> None:
    rebuilding = Rebuilding(kept_state(Book("k", token="new")))
    rebuilding.take_back(way_back(Book("k", token="old"), Book("k", token="new")) or b"")
    assert rebuilding.masked == {("token",)}
    assert rebuilding.state["token"] == MASK


def test_differences_are_the_smallest_places_that_tell_them() -> None:
    before = {"a": {"b": 1, "c": [1, 2]}, "gone": 1}
    now = {"a": {"b": 1, "c": [1, 3, 4]}, "new": None}
    assert differences(before, now) == [
        (("a", "c", 1), 2, 3),
        (("a", "c", 2), MISSING, 4),
        (("gone",), 1, MISSING),
        (("new",), MISSING, None),
    ]


async def test_each_turn_of_a_kind_that_is_named_keeps_its_way_back(counters: Database) -> None:
    async with running(counters, history=("counter",)) as tested:
        for amount in (1, 2, 3):
            await tested.ask(counter("a"), Add(amount))
        await tested.ask(counter("a"), Note("n"))
        with pytest.raises(Exception, match="Break"):
            await tested.ask(counter("a"), Break())
    (rows,) = [page async for page in ways_back(counters, "counter", "a", newest=4, oldest=1)]
    assert [row["version"] for row in rows] == [4, 3, 2, 1]
    rebuilding, totals = Rebuilding({"key": "a", "total": 6}), []
    for row in rows:
        rebuilding.take_back(row["way_back"])
        totals.append(rebuilding.state["total"])
    assert totals == [6, 3, 1, 0]


async def test_other_kinds_keep_none_and_a_state_that_cannot_be_told_fails_no_turn(
    counters: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running(counters) as tested:
        await tested.ask(counter("a"), Add(1))

    def broken(*_: Any) -> bytes:
        raise ValueError

    monkeypatch.setattr(pending, "way_back", broken)
    async with running(counters, history=("counter",)) as tested:
        assert await tested.ask(counter("a"), Add(1)) == 2
    assert [row["is_kept"] for row in await turns(counters, "counter", "a", 10)] == [False, False]


def test_what_is_too_much_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_BYTES", 10)
    assert way_back(Book("k", at=datetime.now(UTC)), Book("k")) is None
