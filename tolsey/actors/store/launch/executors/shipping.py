"""Markets, shipping zones and rates for the countries that the merchant's form names."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final

from tolsey.actors.edit import Edit
from tolsey.actors.store.editing import edits
from tolsey.actors.store.launch.executors.work import (
    Finished,
    LaunchWork,
    LookAt,
    LookAtAll,
    ReadShop,
    Taken,
    planned,
)
from tolsey.actors.store.launch.graph import MilestoneStop
from tolsey.storage.records.money.currencies import to_minor

FIND_PROFILE: Final = """
query FindProfile { deliveryProfiles(first: 10) { nodes { id default } } }
"""
"""The playbook's own document for this costs more than the platform answers at once."""
DOMESTIC: Final = "Domestic"
INTERNATIONAL: Final = "International"
NO_RATE: Final = MilestoneStop(
    kind="permanent",
    reason="missing_input",
    detail=(
        "Neither the form nor the shop has a shipping rate. Set rates under Settings > Shipping"
        " and delivery, then run this again."
    ),
)
NO_PROFILE: Final = MilestoneStop(
    kind="permanent",
    reason="no_delivery_profile",
    detail="The shop has no general shipping profile. Create one, then run this again.",
)


def set_up(work: LaunchWork) -> Taken:
    """Make the markets and zones that are not there; what is there is left as it is."""
    form = work.spec.get("shipping") or {}
    home = work.results["foundation.audit"]["shop"]["country"] or work.spec["country"]
    countries = list(form.get("countries") or [home])
    # The shop's own country is in its first market already.
    markets = [_market(country) for country in countries if country != home]
    markets = [one for one in markets if not work.was_written(one)]
    seen = (yield LookAtAll(markets)) if markets else ()
    found = yield ReadShop(document=FIND_PROFILE)
    profile = next((one for one in found["deliveryProfiles"]["nodes"] if one["default"]), None)
    if profile is None:
        return NO_PROFILE
    rates = Edit(
        kind=edits.RATES,
        ids=(profile["id"].rpartition("/")[2],),
        wanted={"zones": _zones(work, form, countries, home)},
    )
    facts = yield LookAt(rates)
    if facts is None:
        return NO_PROFILE
    due = list(zip(markets, seen, strict=True))
    # Zones that we made and somebody took away stay away.
    if rates.wanted["zones"] and not work.was_written(rates):
        due.append((rates, facts))
    write = planned(due)
    if write.edits:
        return write
    if not facts["methods"] or facts["without_rates"]:
        return NO_RATE
    return Finished(
        result={
            "profileId": profile["id"],
            "countries": countries,
            "zones": facts["zones"],
            "rates": facts["methods"],
        }
    )


def _market(country: str) -> Edit:
    handle = f"country-{country.lower()}"
    return Edit(kind=edits.MARKET, ids=(handle,), wanted={"name": country, "country": country})


def _zones(
    work: LaunchWork, form: Mapping[str, Any], countries: list[str], home: str
) -> list[dict[str, Any]]:
    """Say which zones there are to be; none without a rate, which the merchant alone names."""
    if form.get("flatRate") is None:
        return []
    currency = work.results["foundation.audit"]["shop"]["currency"]
    free_from = form.get("freeFrom")
    priced = {
        "rate_name": "Standard",
        "rate": _amount(form["flatRate"], currency),
        "free_name": "Free shipping",
        "free_from": None if free_from is None else _amount(free_from, currency),
    }
    parts = {
        DOMESTIC: [one for one in countries if one == home],
        INTERNATIONAL: [one for one in countries if one != home],
    }
    return [{"name": name, "countries": some, **priced} for name, some in parts.items() if some]


def _amount(written: str, currency: str) -> dict[str, Any]:
    return {"amount": to_minor(Decimal(written), currency), "currency": currency}
