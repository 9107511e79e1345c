"""What an agent's edit does to a thing of the shop: planned, compared, and recognised afterwards.

Facts are what the shop says of a thing: of a `product` its texts, tags and status; of `stock` what is
available at a location; of an order its `note` or its `tags`. What is shown or kept of them is never
more than the edit is about, and of an order's free text nothing that we did not write ourselves.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

Facts = Mapping[str, Any]

PRODUCT: Final = "product"
STOCK: Final = "stock"
NOTE: Final = "note"
TAGS: Final = "tags"
LONGEST_NOTE: Final = 5000
"""Of the platform's notes; a longer one would be cut."""
MOST_TAGS: Final = 250


@dataclass(frozen=True, slots=True)
class Edit:
    """A change to one thing: its kind, its ids as text, and what is wanted of it.

    Wanted of a product are its new `values`; of stock a `delta`, and a `compare` it must be before;
    of a note a `text` to add; of tags the `tags` to add. With a `version` the thing must still be
    the one that this version was told of. Once it is planned, `change` is what is sent for it.
    """

    kind: str
    ids: tuple[str, ...]
    wanted: Mapping[str, Any]
    version: str | None = None
    change: Mapping[str, Any] | None = None

    def written(self) -> str:
        """Write it down, to be sealed: a note may say anything."""
        return json.dumps(
            {
                "kind": self.kind,
                "ids": self.ids,
                "wanted": dict(self.wanted),
                "version": self.version,
                "change": self.change,
            }
        )

    @classmethod
    def read(cls, text: str) -> "Edit":
        """Read one back."""
        kept = json.loads(text)
        return cls(
            kept["kind"], tuple(kept["ids"]), kept["wanted"], kept["version"], kept.get("change")
        )


@dataclass(frozen=True, slots=True)
class Planned:
    """What an edit would do: the facts after it, and the change to ask for; None when it is done."""

    after: Facts
    change: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True)
class Rejected:
    """Why an edit is not made."""

    code: str
    detail: str


MISSING: Final = Rejected("not_found", "The shop has no such thing.")


class EditVerdict(StrEnum):
    """What a thing says of an edit that was sent and never answered."""

    APPLIED = "applied"
    UNCHANGED = "unchanged"
    UNCLEAR = "unclear"


def subject_of(edit: Edit) -> str:
    """Name the thing: edits of one thing are made one after the other."""
    kind = "order" if edit.kind in {NOTE, TAGS} else edit.kind
    return "/".join((kind, *edit.ids))


def version_of(edit: Edit, facts: Facts) -> str:
    """Name the state of a thing, as far as edits of this kind go."""
    told = json.dumps([edit.kind, list(edit.ids), dict(facts)], sort_keys=True)
    return hashlib.sha256(told.encode()).hexdigest()[:32]


def plan(edit: Edit, facts: Facts | None) -> Planned | Rejected:
    """Say what the edit makes of a thing, or why it is not to be made."""
    if facts is None:
        return MISSING
    if edit.version is not None and edit.version != version_of(edit, facts):
        return Rejected("version_changed", "It changed since this version; look again.")
    match edit.kind:
        case "product":
            return _product(edit, facts)
        case "stock":
            return _stock(edit, facts)
        case "note":
            return _note(edit, facts)
        case _:
            return _tags(edit, facts)


def shown(edit: Edit, facts: Facts) -> dict[str, Any]:
    """Show what a thing is, as far as the edit is about it."""
    match edit.kind:
        case "product":
            return {name: facts[name] for name in edit.wanted}
        case "stock":
            return {"available": facts["available"]}
        case "note":
            note = facts["note"]
            return {"characters": len(note), "has_text": _holds(note, edit.wanted["text"])}
        case _:
            held = _folded(facts["tags"])
            return {"tags": [tag for tag in edit.wanted["tags"] if tag.casefold() in held]}


def verdict(edit: Edit, before: Facts, found: Facts | None) -> EditVerdict:
    """Tell from a thing whether an edit was made; `before` is how it was shown before that."""
    if found is None:
        return EditVerdict.UNCLEAR
    now = shown(edit, found)
    if _is_made(edit, before, now):
        return EditVerdict.APPLIED
    # An order's note and tags only ever grow by this edit, whatever others do to them.
    is_unchanged = edit.kind in {NOTE, TAGS} or _same(before, now)
    return EditVerdict.UNCHANGED if is_unchanged else EditVerdict.UNCLEAR


def _is_made(edit: Edit, before: Facts, now: Facts) -> bool:
    match edit.kind:
        case "product":
            return _same(edit.wanted, now)
        case "stock":
            return bool(now["available"] == before["available"] + edit.wanted["delta"])
        case "note":
            return bool(now["has_text"])
        case _:
            return len(now["tags"]) == len(edit.wanted["tags"])


def _product(edit: Edit, facts: Facts) -> Planned:
    after = {**facts, **edit.wanted}
    return Planned(after, None if _same(edit.wanted, shown(edit, facts)) else edit.wanted)


def _stock(edit: Edit, facts: Facts) -> Planned | Rejected:
    available: int = facts["available"]
    compare = edit.wanted.get("compare")
    if compare is not None and compare != available:
        return Rejected(
            "quantity_changed", f"There are {available} available, not {compare}; look again."
        )
    delta = edit.wanted["delta"]
    change = {"delta": delta, "from": available} if delta else None
    return Planned({"available": available + delta}, change)


def _note(edit: Edit, facts: Facts) -> Planned | Rejected:
    note, text = facts["note"], edit.wanted["text"]
    if _holds(note, text):
        return Planned(facts, None)
    after = f"{note}\n{text}" if note else text
    if len(after) > LONGEST_NOTE:
        return Rejected("note_full", f"A note has at most {LONGEST_NOTE} characters.")
    return Planned({"note": after}, {"note": after})


def _tags(edit: Edit, facts: Facts) -> Planned | Rejected:
    held = _folded(facts["tags"])
    new = [tag for tag in edit.wanted["tags"] if tag.casefold() not in held]
    if not new:
        return Planned(facts, None)
    if len(facts["tags"]) + len(new) > MOST_TAGS:
        return Rejected("too_many_tags", f"An order has at most {MOST_TAGS} tags.")
    return Planned({"tags": [*facts["tags"], *new]}, {"tags": new})


def _holds(note: str, text: str) -> bool:
    """Whether a text stands in a note, on lines of its own."""
    return f"\n{text}\n" in f"\n{note}\n"


def _folded(tags: list[str]) -> set[str]:
    return {tag.casefold() for tag in tags}


def _same(wanted: Facts, now: Facts) -> bool:
    """Compare a product's values; the platform keeps its tags in an order of its own."""
    return all(
        _folded(now[name]) == _folded(value) if name == TAGS else now[name] == value
        for name, value in wanted.items()
    )
