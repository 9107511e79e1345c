"""How the service does for programs: in the shape that status clients know (Statuspage API, v2), and as RSS 2.0."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from email.utils import format_datetime
from typing import Any, Final
from urllib.parse import urlsplit
from xml.etree import ElementTree as ET

from tolsey.actors.job.alerts.components import COMPONENTS
from tolsey.http.answers.base import timestamp
from tolsey.http.status.standing import ComponentStanding, ServiceStanding, ToldIncident
from tolsey.storage.records.status import Standing

INDICATORS: Final[Mapping[Standing, tuple[str, str]]] = {
    "operational": ("none", "All Systems Operational"),
    "degraded_performance": ("minor", "Minor Service Outage"),
    "partial_outage": ("major", "Partial System Outage"),
    "major_outage": ("critical", "Major Service Outage"),
}
PAGE: Final = "tolsey"
MIDNIGHT: Final = "T00:00:00.000Z"
ATOM: Final = "http://www.w3.org/2005/Atom"

Document = dict[str, Any]


def _page(found: ServiceStanding, base_url: str) -> Document:
    return {
        "id": urlsplit(base_url).netloc,
        "name": PAGE,
        "url": f"{base_url}/status",
        "time_zone": "Etc/UTC",
        "updated_at": timestamp(found.at),
    }


def _component(one: ComponentStanding, position: int, page: Document) -> Document:
    # One that nobody looked at yet is as old as its page, which is no news either.
    seen = timestamp(one.checked_at) if one.checked_at else page["updated_at"][:10] + MIDNIGHT
    return {
        "id": one.component.name,
        "name": one.component.title,
        "status": one.state,
        "created_at": seen,
        "updated_at": seen,
        "position": position,
        "description": one.component.about,
        "showcase": True,
        "start_date": None,
        "group_id": None,
        "page_id": page["id"],
        "group": False,
        "only_show_if_degraded": False,
    }


def _incident(told: ToldIncident, page: Document, components: Sequence[Document]) -> Document:
    one = told.incident
    monitored = [update.at for update in told.updates if update.state == "monitoring"]
    newest = told.updates[0].at if told.updates else one.opened_at
    return {
        "id": one.id,
        "name": one.title,
        "status": one.state,
        "created_at": timestamp(one.opened_at),
        "updated_at": timestamp(newest),
        "monitoring_at": timestamp(monitored[-1]) if monitored else None,
        "resolved_at": timestamp(one.resolved_at) if one.resolved_at else None,
        "impact": one.impact,
        "shortlink": f"{page['url']}/history#{one.id}",
        "started_at": timestamp(one.opened_at),
        "page_id": page["id"],
        "incident_updates": [
            {
                "id": update.id,
                "status": update.state,
                "body": update.body,
                "incident_id": one.id,
                "created_at": timestamp(update.at),
                "updated_at": timestamp(update.at),
                "display_at": timestamp(update.at),
                "affected_components": [],
                "deliver_notifications": True,
                "custom_tweet": None,
                "tweet_id": None,
            }
            for update in told.updates
        ],
        "components": [each for each in components if each["id"] == one.component],
        "reminder_intervals": None,
    }


def documents(found: ServiceStanding, base_url: str) -> Mapping[str, Document]:
    """Write every document of the API, by its name."""
    page = _page(found, base_url)
    indicator, said = INDICATORS[found.state]
    status = {"indicator": indicator, "description": said}
    components = [_component(one, place, page) for place, one in enumerate(found.components, 1)]
    unresolved = [_incident(one, page, components) for one in found.open_incidents]
    past = [_incident(one, page, components) for one in found.past]
    return {
        "summary": {
            "page": page,
            "components": components,
            "incidents": unresolved,
            "scheduled_maintenances": [],
            "status": status,
        },
        "status": {"page": page, "status": status},
        "components": {"page": page, "components": components},
        "incidents": {"page": page, "incidents": [*unresolved, *past]},
        "incidents/unresolved": {"page": page, "incidents": unresolved},
        "scheduled-maintenances": {"page": page, "scheduled_maintenances": []},
        "scheduled-maintenances/active": {"page": page, "scheduled_maintenances": []},
        "scheduled-maintenances/upcoming": {"page": page, "scheduled_maintenances": []},
    }


def feed(found: Sequence[ToldIncident], base_url: str) -> bytes:
    """Write what was said of incidents as RSS 2.0, an item each, newest first."""
    ET.register_namespace("atom", ATOM)
    root = ET.Element("rss", version="2.0")
    channel = ET.SubElement(root, "channel")
    _add(channel, title=f"{PAGE} status", link=f"{base_url}/status", language="en")
    _add(channel, description="What breaks and mends.")
    own = {"href": f"{base_url}/status/incidents.rss", "rel": "self", "type": "application/rss+xml"}
    ET.SubElement(channel, f"{{{ATOM}}}link", own)
    said = [(one.incident, update) for one in found for update in one.updates]
    for incident, update in sorted(said, key=lambda pair: pair[1].at, reverse=True):
        item = ET.SubElement(channel, "item")
        _add(
            item,
            title=f"{update.state.capitalize()}: {incident.title}",
            link=f"{base_url}/status/history#{incident.id}",
            description=update.body,
            category=COMPONENTS[incident.component].title,
            pubDate=_rfc_822(update.at),
        )
        ET.SubElement(item, "guid", isPermaLink="false").text = update.id
    return b'<?xml version="1.0" encoding="utf-8"?>\n' + ET.tostring(root)


def _add(parent: ET.Element, **texts: str) -> None:
    for name, text in texts.items():
        ET.SubElement(parent, name).text = text


def _rfc_822(at: datetime) -> str:
    return format_datetime(at.astimezone(UTC), usegmt=True)
