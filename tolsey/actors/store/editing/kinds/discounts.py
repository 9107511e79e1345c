"""Discount codes, drafted: the platform knows no draft, so one begins on a day that never comes by itself."""

from typing import Any, Final

from tolsey.actors.edit import Edit
from tolsey.actors.store.editing.kinds.kind import EditKind, Facts, Planned, Rejected

DRAFTED: Final = "2099-01-01T00:00:00Z"
"""When a draft begins: a person gives it its day in the shop's admin (rules/agents#drafts)."""
SCHEDULED: Final = "SCHEDULED"


class DiscountEdit(EditKind):
    """A new code that takes a part or an amount off, and works only once a person says from when."""

    tools = ("create_discount",)
    thing = "discount"
    ids = ("code",)
    platform_scope = "write_discounts"

    def plan(self, wanted: Facts, facts: Facts) -> Planned | Rejected:
        """Make it, unless the code is somebody's."""
        if facts["discount"] is not None:
            return Rejected(
                "code_taken", "The shop already has a discount with this code. Choose another code."
            )
        for one in (wanted["amount"], wanted["minimum"]):
            if one and one["currency"] != facts["currency"]:
                return Rejected(
                    "other_currency",
                    f"The shop's currency is {facts['currency']}. Send amounts in that currency.",
                )
        drafted = {"title": wanted["title"], "status": SCHEDULED, "starts_at": DRAFTED}
        change = {**wanted, "starts_at": DRAFTED}
        return Planned({**facts, "discount": {"id": None, **drafted}}, change)

    def shown(self, wanted: Facts, facts: Facts) -> dict[str, Any]:
        """Show the discount of the code."""
        del wanted
        return {"discount": facts["discount"]}

    def is_made(self, edit: Edit, before: Facts, now: Facts) -> bool:
        """Whether the code, which was nobody's, has what was drafted."""
        del before
        found = now["discount"]
        return found is not None and bool(
            (found["title"], found["starts_at"]) == (edit.wanted["title"], DRAFTED)
        )
