"""What an agent's edit does to a thing of the shop: planned, compared, and recognised afterwards.

Facts are what the shop says of a thing: of a `product` its texts, tags and status; of `stock` what is
available at a location; of an order its `note` or its `tags`. What is shown or kept of them is never
more than the edit is about, and of an order's free text nothing that we did not write ourselves.
"""

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, ClassVar, Final

Facts = Mapping[str, Any]

PRODUCT: Final = "product"
STOCK: Final = "stock"
NOTE: Final = "note"
TAGS: Final = "tags"
LONGEST_NOTE: Final = 5000
"""Of the platform's notes; a longer one would be cut."""
MOST_TAGS: Final = 250


@dataclass(frozen=True, slots=True, kw_only=True)
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
            kind=kept["kind"],
            ids=tuple(kept["ids"]),
            wanted=kept["wanted"],
            version=kept["version"],
            change=kept.get("change"),
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


class EditKind(ABC):
    """What an edit of a kind does to a thing, how the shop tells that it was made, and what undoes it."""

    thing: ClassVar[str]
    """Edits of one thing are made one after the other."""
    ids: ClassVar[tuple[str, ...]]
    """What the ids of a thing are called."""
    platform_scope: ClassVar[str]
    """What the shop must have granted."""
    is_keyed: ClassVar[bool] = False
    """Whether the platform makes it once under a key, so that one that was sent may be sent again."""
    only_grows: ClassVar[bool] = False
    """Whether it only adds, so that a thing without it shows that it was not made."""

    @abstractmethod
    def plan(self, wanted: Facts, facts: Facts) -> Planned | Rejected:
        """Say what is to be sent, and what the thing is then."""

    @abstractmethod
    def shown(self, wanted: Facts, facts: Facts) -> dict[str, Any]:
        """Show what a thing is, as far as the edit is about it."""

    @abstractmethod
    def is_made(self, wanted: Facts, before: Facts, now: Facts) -> bool:
        """Whether a thing that is now shown like this was edited."""

    def undo(self, before: Facts, after: Facts, version: str | None) -> Facts | None:
        """Say what is asked of the same thing to have it as before; None where nothing does that."""
        del before, after, version
        return None


class ProductEdit(EditKind):
    """New texts, tags or status of a product."""

    thing = "product"
    ids = ("product_id",)
    platform_scope = "write_products"

    def plan(self, wanted: Facts, facts: Facts) -> Planned:
        """Overwrite what is another."""
        is_so = _same(wanted, self.shown(wanted, facts))
        return Planned({**facts, **wanted}, None if is_so else wanted)

    def shown(self, wanted: Facts, facts: Facts) -> dict[str, Any]:
        """Show what is overwritten."""
        return {name: facts[name] for name in wanted}

    def is_made(self, wanted: Facts, before: Facts, now: Facts) -> bool:
        """Whether all of it is as wanted."""
        del before
        return _same(wanted, now)

    def undo(self, before: Facts, after: Facts, version: str | None) -> Facts:
        """Write what was there, unless somebody wrote something since."""
        del after
        return {**before, "expected_version": version}


class StockEdit(EditKind):
    """More or less of an item at a location."""

    thing = "stock"
    ids = ("inventory_item_id", "location_id")
    platform_scope = "write_inventory"
    is_keyed = True

    def plan(self, wanted: Facts, facts: Facts) -> Planned | Rejected:
        """Move it from what was read: the platform refuses when it is another by then."""
        available: int = facts["available"]
        compare, delta = wanted.get("compare"), wanted["delta"]
        if compare is not None and compare != available:
            return Rejected(
                "quantity_changed", f"There are {available} available, not {compare}; look again."
            )
        change = {"delta": delta, "from": available} if delta else None
        return Planned({"available": available + delta}, change)

    def shown(self, wanted: Facts, facts: Facts) -> dict[str, Any]:
        """Show what is available."""
        del wanted
        return {"available": facts["available"]}

    def is_made(self, wanted: Facts, before: Facts, now: Facts) -> bool:
        """Whether there are as many more."""
        return bool(now["available"] == before["available"] + wanted["delta"])

    def undo(self, before: Facts, after: Facts, version: str | None) -> Facts:
        """Move as much back, whatever others moved since."""
        del version
        return {"delta": before["available"] - after["available"]}


class NoteEdit(EditKind):
    """Lines added to an order's note."""

    thing = "order"
    ids = ("order_id",)
    platform_scope = "write_orders"
    only_grows = True

    def plan(self, wanted: Facts, facts: Facts) -> Planned | Rejected:
        """Add the lines, unless they are there."""
        note, text = facts["note"], wanted["text"]
        if _holds(note, text):
            return Planned(facts, None)
        after = f"{note}\n{text}" if note else text
        if len(after) > LONGEST_NOTE:
            return Rejected("note_full", f"A note has at most {LONGEST_NOTE} characters.")
        return Planned({"note": after}, {"note": after})

    def shown(self, wanted: Facts, facts: Facts) -> dict[str, Any]:
        """Show its length, and whether the lines are in it."""
        note = facts["note"]
        return {"characters": len(note), "has_text": _holds(note, wanted["text"])}

    def is_made(self, wanted: Facts, before: Facts, now: Facts) -> bool:
        """Whether the lines are in it."""
        del wanted, before
        return bool(now["has_text"])


class TagsEdit(EditKind):
    """Tags added to an order."""

    thing = "order"
    ids = ("order_id",)
    platform_scope = "write_orders"
    only_grows = True

    def plan(self, wanted: Facts, facts: Facts) -> Planned | Rejected:
        """Add those that it has not."""
        held = _folded(facts["tags"])
        new = [tag for tag in wanted["tags"] if tag.casefold() not in held]
        if not new:
            return Planned(facts, None)
        if len(facts["tags"]) + len(new) > MOST_TAGS:
            return Rejected("too_many_tags", f"An order has at most {MOST_TAGS} tags.")
        return Planned({"tags": [*facts["tags"], *new]}, {"tags": new})

    def shown(self, wanted: Facts, facts: Facts) -> dict[str, Any]:
        """Show which of the tags it has."""
        held = _folded(facts["tags"])
        return {"tags": [tag for tag in wanted["tags"] if tag.casefold() in held]}

    def is_made(self, wanted: Facts, before: Facts, now: Facts) -> bool:
        """Whether it has all of them."""
        del before
        return len(now["tags"]) == len(wanted["tags"])


KINDS: Final[Mapping[str, EditKind]] = {
    PRODUCT: ProductEdit(),
    STOCK: StockEdit(),
    NOTE: NoteEdit(),
    TAGS: TagsEdit(),
}
"""Every kind of edit. Another one is a class here, and its two documents in `http.clients.commerce.edits`."""


def subject_of(edit: Edit) -> str:
    """Name the thing that is edited."""
    return "/".join((KINDS[edit.kind].thing, *edit.ids))


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
    return KINDS[edit.kind].plan(edit.wanted, facts)


def shown(edit: Edit, facts: Facts) -> dict[str, Any]:
    """Show what a thing is, as far as the edit is about it."""
    return KINDS[edit.kind].shown(edit.wanted, facts)


def verdict(edit: Edit, before: Facts, found: Facts | None) -> EditVerdict:
    """Tell from a thing whether an edit was made; `before` is how it was shown before that."""
    if found is None:
        return EditVerdict.UNCLEAR
    kind, now = KINDS[edit.kind], shown(edit, found)
    if kind.is_made(edit.wanted, before, now):
        return EditVerdict.APPLIED
    is_unchanged = kind.only_grows or _same(before, now)
    return EditVerdict.UNCHANGED if is_unchanged else EditVerdict.UNCLEAR


def undo(subject: str, before: Facts, after: Facts, version: str | None) -> Facts | None:
    """Say what is asked of which thing, to undo what was made of it; None where nothing does."""
    thing, *ids = subject.split("/")
    for kind in KINDS.values():
        if kind.thing == thing and (wanted := kind.undo(before, after, version)) is not None:
            return {**dict(zip(kind.ids, ids, strict=True)), **wanted}
    return None


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
