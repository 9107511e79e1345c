"""Edits of orders: their notes and tags."""

from typing import Any, Final

from tolsey.actors.edit import Edit
from tolsey.actors.store.editing.kinds.kind import EditKind, Facts, Planned, Rejected, folded

LONGEST_NOTE: Final = 5000
"""Of the platform's notes; a longer one would be cut."""
MOST_TAGS: Final = 250


class NoteEdit(EditKind):
    """Lines added to an order's note."""

    tools = ("add_order_note",)
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
            return Rejected(
                "note_full",
                f"The order's note would exceed {LONGEST_NOTE} characters. Send a shorter text.",
            )
        return Planned({"note": after}, {"note": after})

    def shown(self, wanted: Facts, facts: Facts) -> dict[str, Any]:
        """Show its length, and whether the lines are in it."""
        note = facts["note"]
        return {"characters": len(note), "has_text": _holds(note, wanted["text"])}

    def is_made(self, edit: Edit, before: Facts, now: Facts) -> bool:
        """Whether the lines are in it."""
        del edit, before
        return bool(now["has_text"])


class TagsEdit(EditKind):
    """Tags added to an order."""

    tools = ("tag_order",)
    thing = "order"
    ids = ("order_id",)
    platform_scope = "write_orders"
    only_grows = True

    def plan(self, wanted: Facts, facts: Facts) -> Planned | Rejected:
        """Add those that it has not."""
        held = folded(facts["tags"])
        new = [tag for tag in wanted["tags"] if tag.casefold() not in held]
        if not new:
            return Planned(facts, None)
        if len(facts["tags"]) + len(new) > MOST_TAGS:
            return Rejected(
                "too_many_tags",
                f"The order would have more than {MOST_TAGS} tags. Remove a tag first, or add fewer.",
            )
        return Planned({"tags": [*facts["tags"], *new]}, {"tags": new})

    def shown(self, wanted: Facts, facts: Facts) -> dict[str, Any]:
        """Show which of the tags it has."""
        held = folded(facts["tags"])
        return {"tags": [tag for tag in wanted["tags"] if tag.casefold() in held]}

    def is_made(self, edit: Edit, before: Facts, now: Facts) -> bool:
        """Whether it has all of them."""
        del before
        return len(now["tags"]) == len(edit.wanted["tags"])


def _holds(note: str, text: str) -> bool:
    """Whether a text stands in a note, on lines of its own."""
    return f"\n{text}\n" in f"\n{note}\n"
