"""The outside of an event, alike for all types and API versions."""

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from tolsey.actors.bodies import Body, Unreadable, table
from tolsey.actors.organization.billing.payment_events.fields import (
    flag,
    identifier,
    instant,
    reference,
    text,
    within,
    word,
)

THIN: Final = "v2.core.event"


@dataclass(frozen=True, slots=True, kw_only=True)
class EventEnvelope:
    """Which event it is, and the object that it is about as it was then.

    `account` is set when the object is a connected account's, not the platform's own.
    """

    event_id: str
    type: str
    account: str | None
    api_version: str | None
    livemode: bool
    created_at: datetime
    object_id: str | None
    object: Body


def is_thin(parsed: Body) -> bool:
    """Tell whether an event only points at its object, as the processor's v2 events do."""
    return parsed.get("object") == THIN


def open_envelope(parsed: Body) -> EventEnvelope:
    """Read the outside of an event. Raises Unreadable when it is none."""
    if parsed.get("object") != "event":
        raise Unreadable("object", "not an event")
    event_id, event_type = identifier(parsed), word(parsed, "type")
    with within("data"):
        about = table(table(parsed, "data"), "object")
    if not about:
        raise Unreadable("data.object", "missing")
    try:
        object_id = reference(about, "id")
    except Unreadable:
        object_id = None  # its own reader refuses it, and the event is kept as unreadable
    return EventEnvelope(
        event_id=event_id,
        type=event_type,
        account=reference(parsed, "account"),
        api_version=text(parsed, "api_version", 100),
        livemode=flag(parsed, "livemode"),
        created_at=instant(parsed, "created"),
        object_id=object_id,
        object=about,
    )
