"""Collections and pages that no buyer sees yet: written anew, or edited while they are drafts (rules/agents#drafts)."""

from abc import ABC
from typing import Any

from tolsey.actors.edit import Edit
from tolsey.actors.store.editing.kinds.kind import EditKind, Facts, Planned, Rejected, same


class DraftEdit(EditKind, ABC):
    """The title and text of what stands under a handle, which nobody has published; a new one where none does."""

    ids = ("handle",)

    def plan(self, wanted: Facts, facts: Facts) -> Planned | Rejected:
        """Write a new one, or what is another of one that is a draft."""
        found = facts["found"]
        if found is None and "title" not in wanted:
            return Rejected(
                "title_required",
                f"This {self.thing} doesn't exist. Check the id, or send a title to create a new one.",
            )
        if found is None:
            new = {"id": None, "is_published": False, "body_html": "", **wanted}
            return Planned({"found": new}, {**wanted, "id": None})
        # What buyers see is changed by people alone, in the shop's admin (rules/agents#drafts).
        if found["is_published"]:
            return Rejected(
                "published",
                f"This {self.thing} is published, and agents can't change published content. Ask a store admin to edit it in Shopify.",
            )
        change = None if same(wanted, found) else {**wanted, "id": found["id"]}
        return Planned({"found": {**found, **wanted}}, change)

    def shown(self, wanted: Facts, facts: Facts) -> dict[str, Any]:
        """Show what stands there, as far as it is written."""
        found = facts["found"]
        if found is None:
            return {self.thing: None}
        return {self.thing: {name: found[name] for name in ("id", "is_published", *wanted)}}

    def is_made(self, edit: Edit, before: Facts, now: Facts) -> bool:
        """Whether what stands there is as wanted, whoever has published it since."""
        del before
        return now[self.thing] is not None and same(edit.wanted, now[self.thing])

    def undo(self, before: Facts, after: Facts, version: str | None) -> Facts | None:
        """Write what was there, unless somebody wrote something since; a new one stays."""
        del after
        found = before[self.thing]
        if found is None:
            return None
        texts = {name: found[name] for name in ("title", "body_html") if name in found}
        return {**texts, "expected_version": version}


class CollectionEdit(DraftEdit):
    """A collection that is in no sales channel."""

    tools = ("save_collection",)
    thing = "collection"
    platform_scope = "write_products"


class PageEdit(DraftEdit):
    """A page that is hidden."""

    tools = ("save_page",)
    thing = "page"
    platform_scope = "write_content"
    or_scope = "write_online_store_pages"
