"""What a launch reads and changes: location, markets, shipping rates, files, and what people do in the admin."""

import secrets
from collections.abc import Callable, Mapping
from typing import Any

from tolsey.sandbox.commerce.fields.mutations import Wrong, mutation, number
from tolsey.sandbox.commerce.fields.reads import need
from tolsey.sandbox.commerce.query.pages import Page, listed
from tolsey.sandbox.commerce.query.projection import Call, Getter
from tolsey.sandbox.commerce.query.search import compile_search
from tolsey.sandbox.commerce.shop.files import StoredFile
from tolsey.sandbox.commerce.shop.state import Shop

PROFILE_ID = 1
GROUP = "gid://shopify/DeliveryLocationGroup/1"


def _listing(field: str, scope: str, items: Callable[[Shop], list[Any]]) -> Getter:
    """Serve a list of the shop's, where the app may read it."""

    def read(_root: Any, call: Call) -> Page:
        return listed(items(need(call, field, scope))).page(call.args)

    return read


def _location(_root: Any, call: Call) -> Any:
    shop = need(call, "location", "read_locations")
    found = shop.setup.location
    asked = call.args.get("id")
    return found if asked is None or number(asked) == number(found["id"]) else None


def _profile(_root: Any, call: Call) -> Shop | None:
    shop = need(call, "deliveryProfile", "read_shipping")
    return shop if number(call.args["id"]) == PROFILE_ID else None


def _files(_root: Any, call: Call) -> Page:
    """Search the files; one that was uploaded is processed by the next look."""
    shop = need(call, "files", "read_files")
    search = compile_search(call.args.get("query"), {"filename": lambda one: one.filename})
    found = [one for one in shop.setup.files.values() if search.matches(one)]
    for one in found:
        one.fileStatus = "READY"
    return listed(found).page(call.args)


def _payments(_root: Any, call: Call) -> dict[str, Any]:
    shop = need(call, "shopifyPaymentsAccount", "read_shopify_payments_accounts")
    return {
        "id": f"gid://shopify/ShopifyPaymentsAccount/{shop.id}",
        "activated": shop.setup.payments_activated,
    }


def policies(shop: Shop, call: Call) -> list[dict[str, Any]]:
    """List the shop's policies."""
    need(call, "shopPolicies", "read_legal_policies")
    return shop.setup.policies


@mutation("locationEdit", "write_locations")
def edit_location(shop: Shop, call: Call) -> dict[str, Any]:
    """Change what is given of the location."""
    found, asked = shop.setup.location, call.args["input"]
    if number(call.args["id"]) != number(found["id"]):
        raise Wrong(["id"], "Location not found", "NOT_FOUND")
    if "name" in asked and not (asked["name"] or "").strip():
        raise Wrong(["input", "name"], "Add a location name", "BLANK")
    found["address"] |= asked.get("address") or {}
    found |= {name: value for name, value in asked.items() if name != "address"}
    return {"location": found}


@mutation("marketCreate", "write_markets")
def create_market(shop: Shop, call: Call) -> dict[str, Any]:
    """Make a market of regions that no other has."""
    asked = call.args["input"]
    handle = asked.get("handle") or asked["name"].lower()
    regions = asked["conditions"]["regionsCondition"]["regions"]
    codes = {one["countryCode"] for one in regions}
    if any(one["handle"] == handle for one in shop.setup.markets):
        raise Wrong(["input", "handle"], "Handle has already been taken", "TAKEN")
    taken = {code for one in shop.setup.markets for code in one["codes"]} | {shop.spec.country}
    if codes & taken:
        message = "A region is in another market already"
        raise Wrong(["input", "conditions"], message, "DUPLICATE_REGION_MARKET")
    made = {
        "id": f"gid://shopify/Market/{next(shop.ids)}",
        "handle": handle,
        "name": asked["name"],
        "codes": codes,
    }
    shop.setup.markets.append(made)
    return {"market": made}


@mutation("deliveryProfileUpdate", "write_shipping")
def update_profile(shop: Shop, call: Call) -> dict[str, Any]:
    """Make zones with their rates; a country is in one zone alone."""
    if number(call.args["id"]) != PROFILE_ID:
        raise Wrong(["id"], "The delivery profile could not be found.")
    taken = {code for zone in shop.setup.zones for code in zone["codes"]}
    made = list[dict[str, Any]]()
    for group in call.args["profile"].get("locationGroupsToUpdate") or ():
        for zone in group.get("zonesToCreate") or ():
            codes = {one["code"] for one in zone["countries"]}
            if codes & taken:
                raise Wrong(["profile"], "A country is in another shipping zone already.")
            taken |= codes
            methods = zone.get("methodDefinitionsToCreate") or ()
            made.append(
                {
                    "id": f"gid://shopify/DeliveryZone/{next(shop.ids)}",
                    "name": zone["name"],
                    "codes": codes,
                    "methods": [
                        {
                            "id": f"gid://shopify/DeliveryMethodDefinition/{next(shop.ids)}",
                            "name": one["name"],
                            "active": one.get("active", True),
                            "rate": one["rateDefinition"]["price"],
                        }
                        for one in methods
                    ],
                }
            )
    shop.setup.zones += made
    return {"profile": shop}


@mutation("stagedUploadsCreate", "write_files")
def stage_uploads(shop: Shop, call: Call) -> dict[str, Any]:
    """Name an address for each file."""
    targets = []
    for asked in call.args["input"]:
        key = f"{secrets.token_hex(8)}/{asked['filename']}"
        shop.setup.staged[key] = b""
        url = f"{call.request.platform.url}/{shop.domain}/uploads/{key}"
        parameters = [{"name": "content_type", "value": asked["mimeType"]}]
        targets.append({"url": url, "resourceUrl": url, "parameters": parameters})
    return {"stagedTargets": targets}


@mutation("fileCreate", "write_files")
def create_files(shop: Shop, call: Call) -> dict[str, Any]:
    """Make files of what was uploaded; one of the same name takes the other's place when it is to."""
    made = []
    for place, asked in enumerate(call.args["files"]):
        where = ["files", str(place), "originalSource"]
        key = asked["originalSource"].rpartition("/uploads/")[2]
        content = shop.setup.staged.pop(key, b"")
        if not content:
            raise Wrong(where, "Image source URL is invalid", "INVALID")
        filename = asked.get("filename") or key.rpartition("/")[2]
        same = next((one for one in shop.setup.files.values() if one.filename == filename), None)
        id = same.id if same else next(shop.ids)
        file = StoredFile(id, filename, asked.get("alt") or "", content, "UPLOADED")
        shop.setup.files[id] = file
        made.append(file)
    return {"files": made}


def _zone(zone: Mapping[str, Any], _: Call) -> dict[str, Any]:
    return {"zone": zone, "methods": zone["methods"]}


def _groups(shop: Shop, call: Call) -> list[dict[str, Any]]:
    countries = [
        {"zone": zone["name"], "country": {"code": {"countryCode": code, "restOfWorld": False}}}
        for zone in shop.setup.zones
        for code in sorted(zone["codes"])
    ]
    return [
        {
            "locationGroup": {"id": GROUP},
            "countriesInAnyZone": countries,
            "zones": [_zone(zone, call) for zone in shop.setup.zones],
        }
    ]


def _active(shop: Shop) -> int:
    return sum(one["active"] for zone in shop.setup.zones for one in zone["methods"])


QUERIES: dict[str, Getter] = {
    "deliveryProfile": _profile,
    "deliveryProfiles": _listing("deliveryProfiles", "read_shipping", lambda shop: [shop]),
    "files": _files,
    "location": _location,
    "locations": _listing("locations", "read_locations", lambda shop: [shop.setup.location]),
    "markets": _listing("markets", "read_markets", lambda shop: shop.setup.markets),
    "onlineStore": lambda _r, c: {
        "passwordProtection": {"enabled": c.request.shop.setup.has_password}
    },
    "publications": _listing(
        "publications", "read_publications", lambda shop: shop.setup.publications
    ),
    "shopifyPaymentsAccount": _payments,
}
MUTATIONS: dict[str, Getter] = {
    "deliveryProfileUpdate": update_profile,
    "fileCreate": create_files,
    "locationEdit": edit_location,
    "marketCreate": create_market,
    "stagedUploadsCreate": stage_uploads,
}
TYPES: dict[str, Mapping[str, Getter]] = {
    "DeliveryProfile": {
        "id": lambda _s, _: f"gid://shopify/DeliveryProfile/{PROFILE_ID}",
        "name": lambda _s, _: "General profile",
        "default": lambda _s, _: True,
        "activeMethodDefinitionsCount": lambda s, _: _active(s),
        "locationsWithoutRatesCount": lambda s, _: 0 if _active(s) else 1,
        "zoneCountryCount": lambda s, _: sum(len(zone["codes"]) for zone in s.setup.zones),
        "profileLocationGroups": _groups,
    },
    "DeliveryProfileLocationGroup": {
        "locationGroup": lambda g, _: g["locationGroup"],
        "countriesInAnyZone": lambda g, _: g["countriesInAnyZone"],
        "locationGroupZones": lambda g, c: listed(g["zones"]).page(c.args),
    },
    "DeliveryLocationGroupZone": {
        "zone": lambda z, _: z["zone"],
        "methodDefinitions": lambda z, c: listed(z["methods"]).page(c.args),
    },
    "MediaImage": {
        "id": lambda f, _: f"gid://shopify/MediaImage/{f.id}",
        "fileStatus": lambda f, _: f.fileStatus,
        "alt": lambda f, _: f.alt,
    },
    "AppCatalog": {"title": lambda c, _: c.title},
}
PAGES = (
    "DeliveryProfile",
    "DeliveryLocationGroupZone",
    "DeliveryMethodDefinition",
    "File",
    "Location",
    "Market",
    "OnlineStoreTheme",
    "Publication",
)
"""What is listed, and only by `nodes`."""
