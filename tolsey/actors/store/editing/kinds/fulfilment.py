"""Edits of what is sent out: fulfilments of orders, and how their parcels are tracked."""

from collections.abc import Mapping
from typing import Any, Final

from tolsey.actors.edit import Edit
from tolsey.actors.store.editing.kinds.kind import EditKind, Facts, Planned, Rejected

SENDABLE: Final = frozenset({"OPEN", "IN_PROGRESS"})
"""States of a fulfilment order in which the platform takes fulfilments."""
CANCELLED: Final = "CANCELLED"


class FulfilEdit(EditKind):
    """Lines of an order sent out, with how the parcel is tracked; nothing takes that back.

    An order's `parts` are its fulfilment orders, each at a location, with what is left to send of its lines.
    """

    tools = ("fulfil_order",)
    thing = "order"
    ids = ("order_id",)
    platform_scope = "write_merchant_managed_fulfillment_orders"

    def plan(self, wanted: Facts, facts: Facts) -> Planned | Rejected:
        """Take what is wanted of what is left, from one location: the platform sends no parcel from two."""
        if not facts["is_whole"]:
            return Rejected(
                "too_large",
                "This order has more fulfillment orders than this tool can read. Fulfill it in"
                " the Shopify admin.",
            )
        parts = [
            part
            for part in facts["parts"]
            if part["status"] in SENDABLE
            and wanted["part"] in {None, part["id"]}
            and any(line["left"] for line in part["lines"].values())
        ]
        if not parts:
            return Rejected(
                "nothing_to_fulfil",
                "There are no items left to fulfill. Check the order's fulfillments.",
            )
        if len({part["location"] for part in parts}) > 1:
            named = ", ".join(part["id"] for part in parts)
            return Rejected(
                "several_locations",
                f"The order ships from several locations. Name one of these fulfillment orders: {named}.",
            )
        taken = _taken(parts, wanted["lines"])
        if isinstance(taken, Rejected):
            return taken
        sent = _by_line(parts, taken)
        after = {
            **facts,
            "left": {line: left - sent.get(line, 0) for line, left in facts["left"].items()},
            "fulfilments": [*facts["fulfilments"], {"id": None, **wanted["tracking"]}],
        }
        change = {"parts": taken, "sent": sent, **{n: wanted[n] for n in ("tracking", "notify")}}
        return Planned(after, change)

    def shown(self, wanted: Facts, facts: Facts) -> dict[str, Any]:
        """Show what is left to send of each line, and the fulfilments that there are."""
        del wanted
        return {"left": facts["left"], "fulfilments": facts["fulfilments"]}

    def is_made(self, edit: Edit, before: Facts, now: Facts) -> bool:
        """Whether there is a fulfilment more, and as much less left; a number tells it from others'."""
        known = {one["id"] for one in before["fulfilments"]}
        new = [one for one in now["fulfilments"] if one["id"] not in known]
        number = edit.wanted["tracking"]["number"]
        if number is not None:
            return any(one["number"] == number for one in new)
        sent = (edit.change or {}).get("sent", {})
        left = {line: left - sent.get(line, 0) for line, left in before["left"].items()}
        return len(new) == 1 and now["left"] == left


class TrackEdit(EditKind):
    """How the parcel of a fulfilment is tracked."""

    tools = ("track_fulfilment",)
    thing = "fulfilment"
    ids = ("fulfillment_id",)
    platform_scope = "write_merchant_managed_fulfillment_orders"

    def plan(self, wanted: Facts, facts: Facts) -> Planned | Rejected:
        """Overwrite what is another; whoever is told of a parcel is not told of the same twice."""
        if facts["status"] == CANCELLED:
            return Rejected(
                "fulfilment_cancelled",
                "This fulfillment was cancelled in the shop. Create a new fulfillment.",
            )
        if facts["parcels"] > 1:
            return Rejected(
                "several_parcels",
                "This fulfillment has several parcels. Edit its tracking in the Shopify admin.",
            )
        tracking = {**facts["tracking"], **wanted["tracking"]}
        change = {"tracking": tracking, "notify": wanted["notify"]}
        is_so = tracking == facts["tracking"]
        return Planned({**facts, "tracking": tracking}, None if is_so else change)

    def shown(self, wanted: Facts, facts: Facts) -> dict[str, Any]:
        """Show how it is tracked."""
        del wanted
        return {"tracking": facts["tracking"]}

    def is_made(self, edit: Edit, before: Facts, now: Facts) -> bool:
        """Whether it is tracked as wanted."""
        return bool(now["tracking"] == {**before["tracking"], **edit.wanted["tracking"]})

    def undo(self, before: Facts, after: Facts, version: str | None) -> Facts | None:
        """Write what was there; what had nothing there cannot be emptied."""
        held, now = before["tracking"], after["tracking"]
        changed = {name: held[name] for name in held if held[name] != now[name]}
        if not changed or None in changed.values():
            return None
        given = {f"tracking_{name}": value for name, value in changed.items()}
        return {**given, "expected_version": version}


def _taken(
    parts: list[Any], lines: Mapping[str, int] | None
) -> dict[str, dict[str, int]] | Rejected:
    """Choose how many of which lines of which parts are sent; all that is left where none are named."""
    wanted = None if lines is None else dict(lines)
    taken: dict[str, dict[str, int]] = {}
    for part in parts:
        for id, line in part["lines"].items():
            units = line["left"] if wanted is None else min(line["left"], wanted.get(line["of"], 0))
            if units:
                taken.setdefault(part["id"], {})[id] = units
            if wanted is not None and units:
                wanted[line["of"]] -= units
    for line, missing in (wanted or {}).items():
        if missing:
            return Rejected(
                "too_many",
                f"The quantity for line {line} exceeds what is left to fulfill by {missing}. Send a smaller quantity.",
            )
    return taken


def _by_line(parts: list[Any], taken: Mapping[str, Mapping[str, int]]) -> dict[str, int]:
    """Say how many are sent of each line of the order."""
    sent: dict[str, int] = {}
    for part in parts:
        for id, units in taken.get(part["id"], {}).items():
            line = part["lines"][id]["of"]
            sent[line] = sent.get(line, 0) + units
    return sent
