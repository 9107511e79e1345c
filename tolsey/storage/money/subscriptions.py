"""SQL for what organizations pay for."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Final

from tolsey.storage.database import Database
from tolsey.storage.records.money.subscription import OrganizationTerms, SubscriptionRecord
from tolsey.storage.tables import replaced_whole, table

TYPES: Final = {"cancel_at_period_end": "boolean", "refused_changes": "int"}
MOMENTS: Final = (
    "period_start",
    "period_end",
    "seen_at",
    *(
        "paid_from",
        "paid_until",
        "paid_at",
        "dunning_since",
        "dunning_at",
        "settled_at",
        "aside_until",
    ),
)
COLUMNS: Final = {
    one.name: "timestamptz" if one.name in MOMENTS else TYPES.get(one.name, "text")
    for one in fields(SubscriptionRecord)
}

table(
    SubscriptionRecord,
    "subscriptions",
    COLUMNS,
    conflict=replaced_whole(COLUMNS, "organization_id"),
    key=("organization_id",),
)
table(
    OrganizationTerms,
    "organizations",
    {"id": "text", "plan": "text", "stores_contracted": "int", "name": "text"},
    conflict="ON CONFLICT (id) DO UPDATE"
    " SET plan = excluded.plan, stores_contracted = excluded.stores_contracted",
    key=("id",),
)

READ: Final = f"""
SELECT organizations.id, organizations.created_at AS since, {", ".join(f"s.{name}" for name in COLUMNS)}
FROM organizations LEFT JOIN subscriptions s ON s.organization_id = organizations.id
WHERE organizations.id = ANY($1::text[])
"""  # noqa: S608 - names of our own table


@dataclass(frozen=True, slots=True)
class Membership:
    """Since when an organization is here, and what it pays for."""

    created_at: datetime
    subscription: SubscriptionRecord | None


async def load(database: Database, organization_ids: Sequence[str]) -> dict[str, Membership]:
    """Read what organizations pay for; an unknown organization is absent."""
    found: dict[str, Membership] = {}
    for row in await database.fetch(READ, list(organization_ids)):
        told = dict(row)
        organization_id, since = told.pop("id"), told.pop("since")
        known = SubscriptionRecord(**told) if told["organization_id"] is not None else None
        found[organization_id] = Membership(since, known)
    return found


async def seen_at(
    database: Database, organization_id: str, subscription_id: str
) -> datetime | None:
    """Tell as of when a subscription is known."""
    row = await database.fetchrow(
        "SELECT seen_at FROM subscriptions WHERE organization_id = $1 AND subscription_id = $2",
        organization_id,
        subscription_id,
    )
    found: datetime | None = None if row is None else row["seen_at"]
    return found


async def set_aside(database: Database, at: datetime, limit: int) -> list[str]:
    """Name organizations of which something made way for a change that nobody speaks of any more."""
    rows = await database.fetch(
        "SELECT organization_id FROM subscriptions WHERE aside_until <= $1"
        " ORDER BY aside_until LIMIT $2",
        at,
        limit,
    )
    return [row["organization_id"] for row in rows]
