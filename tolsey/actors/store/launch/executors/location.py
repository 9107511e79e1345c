"""The location that orders are shipped from, as the merchant's form has it."""

from typing import Any, Final

from tolsey.actors.edit import Edit
from tolsey.actors.store.editing import edits
from tolsey.actors.store.launch.executors.work import (
    Finished,
    LaunchWork,
    LookAt,
    Taken,
    planned,
)
from tolsey.actors.store.launch.graph import MilestoneStop

ADDRESS: Final = {
    "address1": "address1",
    "address2": "address2",
    "city": "city",
    "zip": "zip",
    "provinceCode": "provinceCode",
    "countryCode": "countryCode",
    "phone": "phone",
}
NO_LOCATION: Final = MilestoneStop(
    kind="permanent",
    reason="no_location",
    detail="The shop has no active location. Add one under Settings > Locations, then run this"
    " again.",
)


def set_up(work: LaunchWork) -> Taken:
    """Name the location, give it its address, and have it fulfil orders of the online store."""
    location_id = work.results["foundation.audit"].get("primaryLocationId")
    if location_id is None:
        return NO_LOCATION
    edit = Edit(kind=edits.LOCATION, ids=(location_id.rpartition("/")[2],), wanted=_wanted(work))
    facts = yield LookAt(edit)
    if facts is None:
        return NO_LOCATION
    result = {"locationId": location_id}
    if work.is_overwritten(edit, facts):
        return Finished(result={**result, "note": "merchant_edit"})
    write = planned([(edit, facts)])
    return write if write.edits else Finished(result=result)


def _wanted(work: LaunchWork) -> dict[str, Any]:
    """Take from the form what it says; what it does not say stays as the shop has it."""
    form = work.spec.get("location") or {}
    address = {name: form[name] for name in ADDRESS if form.get(name)}
    wanted: dict[str, Any] = {"fulfills": True}
    if form.get("name"):
        wanted["name"] = form["name"]
    if address:
        wanted["address"] = address
    return wanted
