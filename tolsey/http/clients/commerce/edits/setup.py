"""What a launch sets up: a shop's location, markets, shipping rates and files."""

from typing import Any, Final

from tolsey.actors.edit import Edit
from tolsey.http.clients.commerce import shapes
from tolsey.http.clients.commerce.edits.way import (
    Body,
    EditDocument,
    EditWay,
    NumberedWay,
    id_of,
    nodes,
    number_of,
    tail,
    units,
)

LOCATION: Final = """
id name isActive fulfillsOnlineOrders
address { address1 address2 city zip provinceCode countryCode phone }
"""
LOOK_AT_LOCATION: Final = f"""
query LookAtLocation($id: ID!) {{ location(id: $id) {{ {LOCATION} }} }}
"""
EDIT_LOCATION: Final = f"""
mutation EditLocation($id: ID!, $input: LocationEditInput!) {{
  locationEdit(id: $id, input: $input) {{
    location {{ {LOCATION} }}
    userErrors {{ code field message }}
  }}
}}
"""
LOOK_AT_MARKET: Final = """
query LookAtMarkets { markets(first: 250) { nodes { id handle } } }
"""
CREATE_MARKET: Final = """
mutation CreateMarket($input: MarketCreateInput!) {
  marketCreate(input: $input) {
    market { id handle }
    userErrors { code field message }
  }
}
"""
PROFILE: Final = """
id activeMethodDefinitionsCount locationsWithoutRatesCount
profileLocationGroups {
  locationGroup { id }
  countriesInAnyZone { zone country { code { countryCode restOfWorld } } }
}
"""
LOOK_AT_PROFILE: Final = f"""
query LookAtRates($id: ID!) {{ deliveryProfile(id: $id) {{ {PROFILE} }} }}
"""
UPDATE_PROFILE: Final = f"""
mutation UpdateRates($id: ID!, $profile: DeliveryProfileInput!) {{
  deliveryProfileUpdate(id: $id, profile: $profile) {{
    profile {{ {PROFILE} }}
    userErrors {{ field message }}
  }}
}}
"""
FILE: Final = "id fileStatus"
LOOK_AT_FILE: Final = f"""
query LookAtFile($query: String!) {{ files(first: 1, query: $query) {{ nodes {{ {FILE} }} }} }}
"""
CREATE_FILE: Final = f"""
mutation CreateFile($files: [FileCreateInput!]!) {{
  fileCreate(files: $files) {{
    files {{ {FILE} }}
    userErrors {{ code field message }}
  }}
}}
"""
ADDRESS: Final = (
    "address1",
    "address2",
    "city",
    "zip",
    "provinceCode",
    "countryCode",
    "phone",
)


class LocationWay(NumberedWay):
    """A location."""

    kind, looks, at = "Location", LOOK_AT_LOCATION, "location"

    def read(self, value: object) -> dict[str, Any]:
        """Read its name, its address, and whether it sends orders out."""
        found = shapes.mapping(value, "a location")
        address = shapes.mapping(found.get("address"), "the address of a location")
        return {
            "name": shapes.text(found.get("name"), "the name of a location"),
            "fulfills": found.get("fulfillsOnlineOrders") is True,
            # What is empty is told as null or as no text.
            "address": {name: address[name] for name in ADDRESS if address.get(name)},
        }

    def change(self, edit: Edit, key: str) -> EditDocument:
        """Send what is to change."""
        del key
        names = {"name": "name", "address": "address", "fulfills": "fulfillsOnlineOrders"}
        change = {names[name]: value for name, value in (edit.change or {}).items()}
        sent = {"id": id_of("Location", edit), "input": change}
        return EditDocument(text=EDIT_LOCATION, variables=sent, field="locationEdit")


class MarketWay(EditWay):
    """A market by its handle."""

    def look(self, edit: Edit) -> EditDocument:
        """Ask for all markets: none can be asked for by its handle."""
        del edit
        return EditDocument(text=LOOK_AT_MARKET, variables={})

    def found(self, edit: Edit, data: Body) -> dict[str, Any]:
        """Look whether it is among them."""
        handles = [one.get("handle") for one in nodes(data.get("markets"), "markets")]
        return {"is_there": edit.ids[0] in handles}

    def change(self, edit: Edit, key: str) -> EditDocument:
        """Ask for a market of the country."""
        del key
        change = edit.change or {}
        asked = {
            "name": change["name"],
            "handle": edit.ids[0],
            "status": "ACTIVE",
            "conditions": {"regionsCondition": {"regions": [{"countryCode": change["country"]}]}},
        }
        return EditDocument(text=CREATE_MARKET, variables={"input": asked}, field="marketCreate")

    def made(self, edit: Edit, payload: Body) -> dict[str, Any]:
        """Say that it is there."""
        del edit
        shapes.mapping(payload.get("market"), "a market")
        return {"is_there": True}


class RatesWay(NumberedWay):
    """A shipping profile."""

    kind, looks, at = "DeliveryProfile", LOOK_AT_PROFILE, "deliveryProfile"

    def read(self, value: object) -> dict[str, Any]:
        """Read its zones and rates."""
        return _profile(value)

    def change(self, edit: Edit, key: str) -> EditDocument:
        """Ask for the zones, each with one rate, and another that costs nothing above an amount."""
        del key
        change = edit.change or {}
        group = {"id": change["group"], "zonesToCreate": [_zone(one) for one in change["zones"]]}
        sent = {
            "id": id_of("DeliveryProfile", edit),
            "profile": {"locationGroupsToUpdate": [group]},
        }
        return EditDocument(text=UPDATE_PROFILE, variables=sent, field="deliveryProfileUpdate")

    def made(self, edit: Edit, payload: Body) -> dict[str, Any]:
        """Read what it is then."""
        del edit
        return self.read(payload.get("profile"))


def _zone(zone: Body) -> dict[str, Any]:
    flat = {
        "name": zone["rate_name"],
        "active": True,
        "rateDefinition": {"price": _price(zone["rate"])},
    }
    free = {
        "name": zone["free_name"],
        "active": True,
        "rateDefinition": {"price": _price({**zone["rate"], "amount": 0})},
        "priceConditionsToCreate": [
            {"criteria": _price(zone["free_from"]), "operator": "GREATER_THAN_OR_EQUAL_TO"}
        ]
        if zone["free_from"]
        else [],
    }
    return {
        "name": zone["name"],
        "countries": [{"code": code, "includeAllProvinces": True} for code in zone["countries"]],
        "methodDefinitionsToCreate": [flat, free] if zone["free_from"] else [flat],
    }


def _price(amount: Body) -> dict[str, str]:
    return {"amount": units(amount), "currencyCode": amount["currency"]}


def _profile(value: object) -> dict[str, Any]:
    found = shapes.mapping(value, "a shipping profile")
    groups = tail(found.get("profileLocationGroups"), "location groups")
    zones, countries = set[str](), set[str]()
    for group in groups:
        for one in tail(group.get("countriesInAnyZone"), "countries of a zone"):
            country = shapes.mapping(one.get("country"), "a country")
            code = shapes.mapping(country.get("code"), "the code of a country")
            zones.add(shapes.text(one.get("zone"), "the name of a zone"))
            countries.add("*" if code.get("restOfWorld") else str(code.get("countryCode")))
    first = shapes.mapping(groups[0].get("locationGroup"), "a location group") if groups else {}
    return {
        "group": first.get("id"),
        "zones": sorted(zones),
        "countries": sorted(countries),
        "methods": found.get("activeMethodDefinitionsCount"),
        "without_rates": found.get("locationsWithoutRatesCount"),
    }


class FileWay(EditWay):
    """A file by its name."""

    def look(self, edit: Edit) -> EditDocument:
        """Ask for it."""
        return EditDocument(text=LOOK_AT_FILE, variables={"query": f"filename:'{edit.ids[0]}'"})

    def found(self, edit: Edit, data: Body) -> dict[str, Any]:
        """Read it; a name that nothing has is one, too."""
        del edit
        return {"file": next(map(_file, nodes(data.get("files"), "files")), None)}

    def change(self, edit: Edit, key: str) -> EditDocument:
        """Ask for a file of what was uploaded."""
        del key
        change = edit.change or {}
        asked = {
            "filename": edit.ids[0],
            "originalSource": change["source"],
            "alt": change["alt"],
            "contentType": "IMAGE",
            "duplicateResolutionMode": "REPLACE",
        }
        return EditDocument(text=CREATE_FILE, variables={"files": [asked]}, field="fileCreate")

    def made(self, edit: Edit, payload: Body) -> dict[str, Any]:
        """Read it."""
        del edit
        return {"file": next(map(_file, tail(payload.get("files"), "files")), None)}


def _file(found: Body) -> dict[str, Any]:
    return {
        "id": number_of(found.get("id"), "a file"),
        "kind": shapes.text(found.get("id"), "a file").split("/")[-2],
        "status": found.get("fileStatus"),
    }
