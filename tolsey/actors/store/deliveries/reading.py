"""What every reader of a body needs: for whom it reads, and what goes on record."""

from datetime import datetime
from typing import Any, NamedTuple

import orjson

from tolsey.actors.bodies import Body
from tolsey.actors.store.deliveries import fields
from tolsey.actors.store.deliveries.identity import pseudonym
from tolsey.actors.store.deliveries.messages import Delivery


class Reading(NamedTuple):
    """For whom a body is read: the store, its key for pseudonyms (None: none), the delivery."""

    store_id: str
    identity: bytes | None
    delivery: Delivery


def json_text(value: Any) -> str:
    """Write JSON text for a jsonb column."""
    return orjson.dumps(value).decode()


def about(delivery: Delivery) -> dict[str, str | None]:
    """Name a delivery for its audit row."""
    return {
        "deliveryId": delivery.id,
        "eventId": delivery.event_id,
        "shopDomain": delivery.shop_domain,
    }


def audit(reading: Reading, payload: dict[str, Any]) -> str:
    """Write what the audit row says of a delivery: its ids, and the extract that was kept."""
    return json_text({**about(reading.delivery), "payload": payload})


def changed_at(body: Body, reading: Reading) -> datetime:
    """Say when a thing changed: as its body tells, else when its delivery says it happened."""
    return fields.moment(body, "updated_at") or reading.delivery.happened_at


def known_as(reading: Reading, email: str | None, customer_id: int | None) -> str | None:
    """Name a person by the store's pseudonym; None once the store's key was destroyed."""
    if reading.identity is None:
        return None
    return pseudonym(reading.identity, email, customer_id)
