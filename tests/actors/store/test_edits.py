"""What an agent's edit makes of a thing, and how it is recognised when nobody answered."""

from typing import Any

import pytest

from tolsey.actors.edit import Edit
from tolsey.actors.store.editing import edits
from tolsey.actors.store.editing.kinds.kind import EditVerdict, Planned, Rejected
from tolsey.actors.store.editing.kinds.orders import LONGEST_NOTE

PRODUCT = {
    "title": "Blue shirt",
    "description_html": "<p>Blue</p>",
    "handle": "blue-shirt",
    "product_type": "",
    "status": "ACTIVE",
    "tags": ["soft", "warm"],
    "vendor": "Loom",
}
RENAME = Edit(kind="product", ids=("7",), wanted={"title": "Green shirt"})
LESS = Edit(kind="stock", ids=("7", "1"), wanted={"delta": -3, "compare": None})
NOTE = Edit(kind="note", ids=("9",), wanted={"text": "Wrap it"})
TAG = Edit(kind="tags", ids=("9",), wanted={"tags": ["gift", "VIP"]})


def test_only_what_is_wanted_of_a_product_changes() -> None:
    assert edits.plan(RENAME, PRODUCT) == Planned(
        {**PRODUCT, "title": "Green shirt"}, {"title": "Green shirt"}
    )


@pytest.mark.parametrize(
    ("edit", "facts"),
    [
        (RENAME, {**PRODUCT, "title": "Green shirt"}),
        (Edit(kind="product", ids=("7",), wanted={"tags": ["Warm", "soft"]}), PRODUCT),
        (Edit(kind="stock", ids=("7", "1"), wanted={"delta": 0}), {"available": 4}),
        (NOTE, {"note": "Ring\nWrap it"}),
        (TAG, {"tags": ["Gift", "vip", "x"]}),
    ],
)
def test_what_is_so_already_is_not_asked_for(edit: Edit, facts: dict[str, Any]) -> None:
    planned = edits.plan(edit, facts)
    assert isinstance(planned, Planned)
    assert planned.change is None


def test_stock_moves_from_what_was_read() -> None:
    assert edits.plan(LESS, {"available": 2}) == Planned(
        {"available": -1}, {"delta": -3, "from": 2}
    )


@pytest.mark.parametrize(
    ("edit", "facts", "code"),
    [
        (RENAME, None, "not_found"),
        (
            Edit(kind="stock", ids=("7", "1"), wanted={"delta": 1, "compare": 5}),
            {"available": 4},
            "quantity_changed",
        ),
        (
            Edit(kind="stock", ids=("7", "1"), wanted={"delta": 1}, version="0" * 32),
            {"available": 4},
            "version_changed",
        ),
        (NOTE, {"note": "x" * LONGEST_NOTE}, "note_full"),
        (TAG, {"tags": [f"t{n}" for n in range(249)]}, "too_many_tags"),
    ],
)
def test_what_does_not_fit_is_rejected(edit: Edit, facts: dict[str, Any] | None, code: str) -> None:
    planned = edits.plan(edit, facts)
    assert isinstance(planned, Rejected)
    assert planned.code == code


def test_a_version_names_one_state_of_one_thing() -> None:
    version = edits.version_of(LESS, {"available": 4})
    assert version == edits.version_of(LESS, {"available": 4})
    assert version != edits.version_of(LESS, {"available": 5})
    assert version != edits.version_of(
        Edit(kind="stock", ids=("7", "2"), wanted={}), {"available": 4}
    )
    same = Edit(kind="product", ids=("7",), wanted={"status": "DRAFT"})
    assert edits.version_of(RENAME, PRODUCT) == edits.version_of(same, PRODUCT)


def test_what_is_shown_of_an_order_is_what_the_edit_itself_says() -> None:
    note = "Jane Doe, 5 Elm Street\nWrap it"
    assert edits.shown(NOTE, {"note": note}) == {"characters": len(note), "has_text": True}
    assert edits.shown(TAG, {"tags": ["Jane Doe", "vip"]}) == {"tags": ["VIP"]}


def test_a_note_holds_a_text_on_lines_of_its_own_only() -> None:
    assert not edits.shown(NOTE, {"note": "Wrap it well"})["has_text"]
    assert edits.shown(NOTE, {"note": "Ring\nWrap it\nThanks"})["has_text"]


@pytest.mark.parametrize(
    ("edit", "before", "found", "verdict"),
    [
        (RENAME, {"title": "Blue shirt"}, {**PRODUCT, "title": "Green shirt"}, EditVerdict.APPLIED),
        (RENAME, {"title": "Blue shirt"}, PRODUCT, EditVerdict.UNCHANGED),
        (RENAME, {"title": "Blue shirt"}, {**PRODUCT, "title": "Red"}, EditVerdict.UNCLEAR),
        (RENAME, {"title": "Blue shirt"}, None, EditVerdict.UNCLEAR),
        (LESS, {"available": 10}, {"available": 7}, EditVerdict.APPLIED),
        (LESS, {"available": 10}, {"available": 10}, EditVerdict.UNCHANGED),
        (LESS, {"available": 10}, {"available": 6}, EditVerdict.UNCLEAR),
        (NOTE, {"characters": 0, "has_text": False}, {"note": "Wrap it"}, EditVerdict.APPLIED),
        (NOTE, {"characters": 0, "has_text": False}, {"note": "Other"}, EditVerdict.UNCHANGED),
        (TAG, {"tags": []}, {"tags": ["gift", "vip"]}, EditVerdict.APPLIED),
        (TAG, {"tags": []}, {"tags": ["gift"]}, EditVerdict.UNCHANGED),
    ],
)
def test_the_shop_tells_what_became_of_an_edit(
    edit: Edit, before: dict[str, Any], found: dict[str, Any] | None, verdict: EditVerdict
) -> None:
    assert edits.verdict(edit, before, found) is verdict


def test_an_edit_is_read_back_as_it_was_written() -> None:
    for edit in (
        RENAME,
        LESS,
        NOTE,
        Edit(kind="tags", ids=("9",), wanted={"tags": ["a"]}, version="v"),
    ):
        assert Edit.read(edit.written()) == edit


def test_edits_of_an_order_go_one_after_the_other_whatever_they_are_about() -> None:
    assert edits.subject_of(NOTE) == edits.subject_of(TAG) == "order/9"
    assert edits.subject_of(LESS) == "stock/7/1"
