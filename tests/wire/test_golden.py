"""What waits and what crosses stays readable for the release before, as the golden files have it."""

from collections.abc import Sequence
from dataclasses import dataclass, field, make_dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

import orjson
import pytest

from tests.wire import golden
from tests.wire.golden import COMMAND, behind, classes, faults, kept, path_of, reads, write
from tests.wire.shapes import sample_of, shape_of
from tolsey.actors.organization.billing.payment_events.catalogue import TYPES
from tolsey.runtime.codec import decode, encode, reply_type
from tolsey.runtime.messages import REGISTERED, Message

KEPT = kept()
FACTS = {f"facts.{kind.facts.__name__}": kind.facts for kind in TYPES.values()}


def test_the_release_before_reads_what_this_one_writes_and_this_one_what_it_wrote() -> None:
    assert [f"{name} {fault}" for name, fault in faults(kept(), classes())] == []


def test_every_class_that_waits_or_crosses_is_in_a_golden_file() -> None:
    assert behind(kept(), classes()) == [], f"run: {COMMAND}"


@pytest.mark.parametrize("name", [name for name in KEPT if name in REGISTERED])
def test_a_row_of_the_release_before_is_read_whole_by_either_name(name: str) -> None:
    kind, _, alone = name.partition(".")
    file = KEPT[name]
    example = file["holds"]["example"]
    text = orjson.dumps(example).decode()
    assert orjson.loads(encode(decode(name, kind, text))) == example
    assert decode(alone, kind, text) == decode(name, kind, text)
    if issubclass(REGISTERED[name], Message):
        assert reads(reply_type(REGISTERED[name]), file["is answered with"]["example"])


@pytest.mark.parametrize("name", sorted(FACTS))
def test_facts_that_the_release_before_kept_are_read_whole(name: str) -> None:
    assert reads(FACTS[name], KEPT[name]["holds"]["example"])


# Planted changes of a class.


@dataclass(frozen=True)
class Line:
    sku: str
    count: int


@dataclass(frozen=True)
class Parcel:
    id: str
    at: datetime
    state: Literal["packed", "sent"]
    lines: tuple[Line, ...]
    note: str | None = None


def changed(
    name: str = "Parcel", *, without: Sequence[str] = (), line: Any = Line, **new: Any
) -> type[Any]:
    """Make the class as a later release might have it; a field that is new says its type and default."""
    fields: dict[str, Any] = {
        "id": (str,),
        "at": (datetime,),
        "state": (Literal["packed", "sent"],),
        "lines": (tuple[line, ...],),
        "note": (str | None, None),
    }
    fields = {one: kind for one, kind in {**fields, **new}.items() if one not in without}
    ordered: list[Any] = [
        (one, kind, *(field(default=default) for default in end))
        for one, (kind, *end) in sorted(fields.items(), key=lambda one: len(one[1]))
    ]
    return make_dataclass(name, ordered)


@dataclass(frozen=True)
class WeighedLine:
    sku: str
    count: int
    grams: int


@dataclass(frozen=True)
class PricedLine:
    sku: str
    count: int
    cents: int = 0


def described(found: type[Any]) -> dict[str, Any]:
    return {f"store.{found.__name__}": {"holds": {"fields": shape_of(found), "example": {}}}}


BREAKS = {
    "a removed field": (changed(without=["at"]), "at is gone"),
    "a removed field that had a default": (changed(without=["note"]), "note is gone"),
    "a new field without a default": (changed(weight=(int,)), "weight is new without a default"),
    "a new field of an item": (changed(line=WeighedLine), "lines[].grams is new without a default"),
    "a changed type": (changed(id=(int,)), "id was string and is integer"),
    "a wider type": (changed(id=(str | None,)), "id was string and is string | null"),
    "a further word": (
        changed(state=(Literal["packed", "sent", "lost"],)),
        "state was 'packed' | 'sent' and is 'packed' | 'sent' | 'lost'",
    ),
    "a lost default": (changed(note=(str | None,)), "note has lost its default"),
    "one instead of several": (changed(lines=(Line,)), "lines was array and is object"),
    "another name": (changed("Package"), "is gone or has another name"),
}
INSTEAD = ("Give it a default", "a class of a new name", "Keep it for a release", "Keep the class")


@pytest.mark.parametrize(("later", "sentence"), BREAKS.values(), ids=BREAKS)
def test_a_change_that_the_release_before_could_not_read_is_named_with_what_to_do_instead(
    later: type[Any], sentence: str
) -> None:
    said = [fault for _, fault in faults(described(Parcel), described(later))]
    assert any(sentence in fault for fault in said)
    assert all(any(instead in fault for instead in INSTEAD) for fault in said)


@pytest.mark.parametrize(
    "later",
    [
        changed(weight=(int, 0)),
        changed(line=PricedLine),
        changed(stamps=(tuple[str, ...], ())),
        changed(box=(WeighedLine | None, None)),
    ],
    ids=["a field", "a field of an item", "a list", "a whole of its own"],
)
def test_what_has_a_default_may_be_added_and_only_has_to_be_written_down(later: type[Any]) -> None:
    before, now = described(Parcel), described(later)
    assert list(faults(before, now)) == []
    assert behind(before, now) == ["store.Parcel"]
    assert reads(later, sample_of(Parcel))


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(golden, "FILES", tmp_path)
    return tmp_path


def test_the_command_overwrites_no_file_that_breaks_unless_it_is_told_to(
    files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def release(found: type[Any]) -> None:
        monkeypatch.setattr(golden, "classes", lambda: described(found))

    release(Parcel)
    assert write(accept=False) == []
    first = path_of("store.Parcel").read_bytes()
    release(changed(id=(int,)))
    (refused,) = write(accept=False)
    assert refused.startswith("store.Parcel (holds) id was string and is integer")
    assert path_of("store.Parcel").read_bytes() == first
    release(changed(weight=(int, 0)))
    assert write(accept=False) == []
    assert b"weight" in path_of("store.Parcel").read_bytes()
    release(changed("Package"))
    (refused,) = write(accept=False)
    assert "Keep the class beside the new one" in refused
    assert write(accept=True) == []
    assert [path.name for path in files.rglob("*.json")] == ["Package.json"]
