"""What every reader of a body needs: for whom it reads, and what goes on record."""

from typing import Any, NamedTuple

import orjson

from tolsey.actors.store.identity import pseudonym
from tolsey.actors.store.messages import Delivery


class Reading(NamedTuple):
    """For whom a body is read: the store, its key for pseudonyms (None: none), the delivery."""

    store_id: str
    identity: bytes | None
    delivery: Delivery


def json_text(value: Any) -> str:
    """Write JSON text for a jsonb column."""
    return orjson.dumps(value).decode()


def audit(reading: Reading, payload: dict[str, Any]) -> str:
    """Write what the audit row says of a delivery: its ids, and the extract that was kept."""
    delivery = reading.delivery
    return json_text(
        {
            "deliveryId": delivery.id,
            "eventId": delivery.event_id,
            "shopDomain": delivery.shop_domain,
            "payload": payload,
        }
    )


def known_as(reading: Reading, email: str | None, customer_id: int | None) -> str | None:
    """Name a person by the store's pseudonym; None once the store's key was destroyed."""
    if reading.identity is None:
        return None
    return pseudonym(reading.identity, email, customer_id)
