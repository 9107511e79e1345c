"""What a launch sets up in a shop: its location, markets, shipping rates and files."""

import hashlib
import json
from typing import Any, Final

from tolsey.actors.edit import Edit
from tolsey.actors.store.editing.kinds.kind import EditKind, Facts, Planned, Rejected, same

READY: Final = "READY"
UNDER_WAY: Final = frozenset({"UPLOADED", "PROCESSING"})


class LocationEdit(EditKind):
    """Name and address of a location, and that it fulfils orders of the online store."""

    tools = ("operations.location",)
    thing = "location"
    ids = ("location_id",)
    platform_scope = "write_locations"

    def plan(self, wanted: Facts, facts: Facts) -> Planned | Rejected:
        """Change what differs."""
        change = {name: value for name, value in wanted.items() if facts[name] != value}
        return Planned({**facts, **wanted}, change or None)

    def shown(self, wanted: Facts, facts: Facts) -> dict[str, Any]:
        """Show what is to change; of the address only a digest, since a person may live there."""
        return {name: _digest(facts[name]) if name == "address" else facts[name] for name in wanted}

    def is_made(self, edit: Edit, before: Facts, now: Facts) -> bool:
        """Whether the location has what was planned."""
        del before
        return same(self.shown(edit.wanted, edit.wanted), now)


def _digest(address: Facts) -> str:
    return hashlib.sha256(json.dumps(address, sort_keys=True).encode()).hexdigest()[:16]


class MarketEdit(EditKind):
    """A new market of one country; one that is there is left as it is."""

    tools = ("operations.shipping",)
    thing = "market"
    ids = ("handle",)
    platform_scope = "write_markets"

    def plan(self, wanted: Facts, facts: Facts) -> Planned | Rejected:
        """Make it, unless there is one of that handle."""
        if facts["is_there"]:
            return Planned(facts, None)
        return Planned({"is_there": True}, dict(wanted))

    def shown(self, wanted: Facts, facts: Facts) -> dict[str, Any]:
        """Show whether it is there."""
        del wanted
        return dict(facts)

    def is_made(self, edit: Edit, before: Facts, now: Facts) -> bool:
        """Whether it is there now."""
        del edit, before
        return bool(now["is_there"])


class RatesEdit(EditKind):
    """Zones of a shipping profile with their rates; those that are there are left as they are."""

    tools = ("operations.shipping",)
    thing = "delivery-profile"
    ids = ("profile_id",)
    platform_scope = "write_shipping"

    def plan(self, wanted: Facts, facts: Facts) -> Planned | Rejected:
        """Make zones of those countries that are in none, under names that are nobody's."""
        if facts["group"] is None:
            return Rejected(
                "no_location_group",
                "The shop's shipping profile has no location. Add a location to it in the"
                " Shopify admin.",
            )
        zones = [
            {**zone, "countries": left}
            for zone in wanted["zones"]
            if zone["name"] not in facts["zones"]
            and (left := [one for one in zone["countries"] if one not in facts["countries"]])
        ]
        if not zones:
            return Planned(facts, None)
        after = {
            **facts,
            "zones": sorted({*facts["zones"], *(zone["name"] for zone in zones)}),
            "countries": sorted(
                {*facts["countries"], *(one for zone in zones for one in zone["countries"])}
            ),
        }
        return Planned(after, {"group": facts["group"], "zones": zones})

    def shown(self, wanted: Facts, facts: Facts) -> dict[str, Any]:
        """Show the zones."""
        del wanted
        return {"zones": facts["zones"], "countries": facts["countries"]}

    def is_made(self, edit: Edit, before: Facts, now: Facts) -> bool:
        """Whether every zone that was to be made is there."""
        del before
        planned = (edit.change or {}).get("zones", ())
        return {zone["name"] for zone in planned} <= set(now["zones"])


class FileEdit(EditKind):
    """A file of the shop, named by what is in it."""

    tools = ("brand.assets",)
    thing = "file"
    ids = ("filename",)
    platform_scope = "write_files"

    def plan(self, wanted: Facts, facts: Facts) -> Planned | Rejected:
        """Make it, unless there is one of that name."""
        if facts["file"] is not None:
            return Planned(facts, None)
        return Planned({"file": {"id": None, "status": "UPLOADED"}}, dict(wanted))

    def shown(self, wanted: Facts, facts: Facts) -> dict[str, Any]:
        """Show the file of that name."""
        del wanted
        return {"file": facts["file"]}

    def is_made(self, edit: Edit, before: Facts, now: Facts) -> bool:
        """Whether there is one now."""
        del edit, before
        return now["file"] is not None
