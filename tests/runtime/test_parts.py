"""A kind that is made of parts: each answers, reads and writes what it owns."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import pytest

from tests.runtime.counter import Add, Read
from tolsey.runtime.actor import KindOfParts, KindPart, on
from tolsey.runtime.decision import Decision


@dataclass(frozen=True, slots=True)
class Page:
    """The state of a kind that is made of parts."""

    key: str
    total: int = 0
    note: str = "blank"


def add(state: Page, message: Add) -> Decision[Page, int]:
    after = replace(state, total=state.total + message.amount)
    return Decision(after, after.total)


def read(state: Page, message: Read) -> Decision[Page, int]:
    del message
    return Decision(state, state.total)


class Totals(KindPart[Page]):
    """What is counted."""

    owns: ClassVar[tuple[str, ...]] = ("total",)
    decides = (on(Add, add),)

    async def load(self, keys: Sequence[str]) -> Mapping[str, Mapping[str, Any]]:
        return {key: {"total": 7} for key in keys if key == "known"}

    def changes(self, old: Page, new: Page) -> Iterable[Any]:
        if new.total != old.total:
            yield "total", new.total


class Notes(KindPart[Page]):
    """What is written."""

    owns: ClassVar[tuple[str, ...]] = ("note",)
    decides = (on(Read, read),)

    async def load(self, keys: Sequence[str]) -> Mapping[str, Mapping[str, Any]]:
        return {keys[0]: {"note": "written"}}

    def changes(self, old: Page, new: Page) -> Iterable[Any]:
        if new.note != old.note:
            yield "note", new.note


class Pages(KindOfParts[Page]):
    """Every page."""

    kind: ClassVar[str] = "page"
    state: ClassVar[type[Page]] = Page


async def test_a_state_is_put_together_from_what_each_part_reads() -> None:
    found = await Pages(Totals(), Notes()).load(["known", "new"])
    assert found == {"known": Page("known", 7, "written"), "new": Page("new", 0, "blank")}


def test_each_part_writes_what_moved_of_its_own() -> None:
    pages, old = Pages(Totals(), Notes()), Page("known")
    assert list(pages.changes(old, replace(old, note="new"))) == [("note", "new")]
    assert list(pages.changes(old, Page("known", 1, "new"))) == [("total", 1), ("note", "new")]
    assert not list(pages.changes(old, old))


def test_the_messages_of_all_parts_are_answered() -> None:
    assert set(Pages(Totals(), Notes()).turns) == {Add, Read}


def test_a_field_that_is_nobodys_stops_the_start() -> None:
    with pytest.raises(TypeError, match=r"note of Page is owned by 0 parts of page"):
        Pages(Totals())


def test_a_field_that_two_parts_own_stops_the_start() -> None:
    class Others(KindPart[Page]):
        owns = ("note", "total")

    with pytest.raises(TypeError, match=r"total of Page is owned by 2 parts of page"):
        Pages(Totals(), Others())


def test_a_message_that_two_parts_answer_stops_the_start() -> None:
    class Others(Notes):
        decides = (on(Add, add),)

    with pytest.raises(TypeError, match="page answers Add twice"):
        Pages(Totals(), Others())
