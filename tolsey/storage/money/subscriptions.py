"""SQL for what organizations pay for."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from tolsey.storage.database import Database
from tolsey.storage.records.money.subscription import SubscriptionRecord
from tolsey.storage.tables import table_of

SUBSCRIPTIONS: Final = table_of(SubscriptionRecord)

READ: Final = f"""
SELECT organizations.id, organizations.created_at AS since, {SUBSCRIPTIONS.selected_of("s")}
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
        known = None if row["organization_id"] is None else SUBSCRIPTIONS.read(row)
        found[row["id"]] = Membership(row["since"], known)
    return found


async def unpaid(database: Database, organization_ids: Sequence[str]) -> list[str]:
    """Name those among these organizations of whom an invoice could not be collected."""
    rows = await database.fetch(
        "SELECT organization_id FROM subscriptions"
        " WHERE organization_id = ANY($1::text[]) AND dunning_since IS NOT NULL ORDER BY 1",
        list(organization_ids),
    )
    return [row["organization_id"] for row in rows]
