"""What is kept of how the service does (rules/service#status)."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated, Final, Literal

from tolsey.storage.owners import ADDRESS_OF_USER, Belongs, RowOwner
from tolsey.storage.tables import Age, Integer, Personal, Sealed, bare, stored

OURS: Final = "How the service itself does."

Standing = Literal["operational", "degraded_performance", "partial_outage", "major_outage"]
"""How a part of the service does, in the words of status pages."""
IncidentState = Literal["investigating", "identified", "monitoring", "resolved", "postmortem"]
Impact = Literal["none", "minor", "major", "critical"]


@stored("status_components", key=("component",), nobodys=OURS)
@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredComponent:
    """How a part of the service did when it was looked at last, and how many times in a row it was not well."""

    component: str
    state: Standing
    why: str
    bad_times: Annotated[int, Integer]
    checked_at: datetime


@stored(
    "status_days",
    key=("component", "day"),
    retention=Age(column="day", interval="400 days"),
    swept="statusDays",
    nobodys=OURS,
)
@dataclass(frozen=True, slots=True, kw_only=True)
class ComponentDay:
    """How often a part was looked at on a day, and how often it was slow or down."""

    component: str
    day: datetime
    samples: Annotated[int, Integer]
    slow: Annotated[int, Integer]
    down: Annotated[int, Integer]


@stored("incidents", key=("id",), nobodys=OURS)
@dataclass(frozen=True, slots=True, kw_only=True)
class Incident:
    """Something that was wrong with a part; nobody sees it before it is published."""

    id: str
    component: str
    title: str
    impact: Impact
    state: IncidentState
    source: str
    opened_at: datetime
    published_at: datetime | None = None
    resolved_at: datetime | None = None


@stored("incident_updates", key=("id",), nobodys=OURS)
@dataclass(frozen=True, slots=True, kw_only=True)
class IncidentUpdate:
    """What was said of an incident, and how far it was then."""

    id: str
    incident_id: str
    state: IncidentState
    body: str
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class PaymentTally:
    """Payments and chargebacks of a window, and events that failed in the last hour; counted up to a bound."""

    payments: int
    chargebacks: int
    failed_events: int


STATUS_SUBSCRIBERS: Final = bare(
    "status_subscribers",
    {"email": Annotated[str, Personal.EMAIL], "confirmed_at": datetime, "components": str},
    key=("email",),
    belongs=Belongs(to=RowOwner.USER, by=f"email = {ADDRESS_OF_USER}"),
    export="statusSubscriptions",
)


@stored("status_webhooks", key=("id",), besides={"failures": Annotated[int, Integer]}, nobodys=OURS)
@dataclass(frozen=True, slots=True, kw_only=True)
class StatusWebhook:
    """The address of a program that is told how parts of the service do; of all, where `components` is empty."""

    id: str
    url: str
    sealed_secret: Annotated[str, Sealed] = field(repr=False)
    components: str
    confirmed_at: datetime


RAISED_ALERTS: Final = bare(
    "raised_alerts",
    {"name": str, "since": datetime, "told_at": datetime},
    key=("name",),
    nobodys=OURS,
)
