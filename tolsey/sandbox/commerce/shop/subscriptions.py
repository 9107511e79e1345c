"""Webhook subscriptions of an app in a shop."""

from dataclasses import dataclass, field
from datetime import datetime


@dataclass(slots=True)
class Subscription:
    """Where deliveries of one topic go."""

    id: int
    topic: str
    uri: str
    api_version: str
    created_at: datetime
    updated_at: datetime
    format: str = "JSON"
    filter: str | None = None
    name: str | None = None
    include_fields: list[str] = field(default_factory=list)
    metafield_namespaces: list[str] = field(default_factory=list)


def enum_of(topic: str) -> str:
    """Write a topic as the GraphQL enum does: `orders/create` is `ORDERS_CREATE`."""
    return topic.upper().replace("/", "_")
