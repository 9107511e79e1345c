"""What a connected shop is, what it lacks for its launch, and whether it tells us of everything."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from tolsey.actors.store.deliveries.topics import TOPICS
from tolsey.actors.store.launch.executors.work import Finished, LaunchWork, ReadShop, Taken
from tolsey.actors.store.launch.grants import covers
from tolsey.actors.store.launch.playbook import PLAYBOOK

BLOCKS: Final = {
    "locations": "read_locations",
    "publications": "read_publications",
    "products": "read_products",
}
"""The parts of the audit that take a permission: a field that is refused may blank the whole answer."""
ONLINE_STORE: Final = "Online Store"


def audit(work: LaunchWork) -> Taken:
    """Read the scopes first, then as much of the shop as they cover."""
    del work
    granted = yield ReadShop(document=PLAYBOOK.documents["foundation.scopes"])
    scopes = [one["handle"] for one in granted["currentAppInstallation"]["accessScopes"]]
    blocks = {name: covers(scopes, scope) for name, scope in BLOCKS.items()}
    found = yield ReadShop(document=PLAYBOOK.documents["foundation.audit"], variables=blocks)
    shop = found["shop"]
    location = _primary(_nodes(found, "locations"))
    publication = next(
        (
            one["id"]
            for one in _nodes(found, "publications")
            if (one.get("catalog") or {}).get("title") == ONLINE_STORE
        ),
        None,
    )
    facts = {
        "store.plan": shop["plan"]["publicDisplayName"],
        "store.currency": shop["currencyCode"],
        "store.timezone": shop["ianaTimezone"],
        "store.country": (shop.get("shopAddress") or {}).get("countryCodeV2"),
        "store.primary_location_id": location,
        "store.online_publication_id": publication,
        "store.granted_scopes": " ".join(sorted(scopes)),
    }
    topics = {one["topic"] for one in _nodes(found, "webhookSubscriptions")}
    lacking = [
        name
        for name, topic in TOPICS.items()
        if (topic.scope is None or covers(scopes, topic.scope))
        and name.replace("/", "_").upper() not in topics
    ]
    result = {
        "shop": {
            "name": shop["name"],
            "currency": shop["currencyCode"],
            "country": facts["store.country"],
            "plan": facts["store.plan"],
            "hasPassword": found["onlineStore"]["passwordProtection"]["enabled"],
            "products": (found.get("productsCount") or {}).get("count"),
        },
        "primaryLocationId": location,
        "onlinePublicationId": publication,
        "scopes": sorted(scopes),
        "missingScopes": missing(scopes),
        "missingTopics": sorted(lacking),
    }
    told = {key: value for key, value in facts.items() if value is not None}
    return Finished(result=result, facts=told, lacks_topics=bool(lacking))


def missing(scopes: Sequence[str]) -> dict[str, list[str]]:
    """Say of each milestone which permissions it would lack."""
    lacking = {
        one.id: [scope for scope in one.scopes if not covers(scopes, scope)]
        for one in PLAYBOOK.milestones.values()
    }
    return {id: some for id, some in lacking.items() if some}


def _nodes(found: Mapping[str, Any], name: str) -> Sequence[Mapping[str, Any]]:
    return (found.get(name) or {}).get("nodes") or ()


def _primary(locations: Sequence[Mapping[str, Any]]) -> str | None:
    """Choose the location that orders of the online store are shipped from: the first that is active."""
    active = [one for one in locations if one["isActive"]]
    online = [one for one in active if one["fulfillsOnlineOrders"]]
    chosen = next(iter((*online, *active)), None)
    return None if chosen is None else str(chosen["id"])
