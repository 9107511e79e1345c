"""SQL for the checkout page that an organization was shown last."""

from datetime import datetime

from tolsey.storage.database import Database


async def last(database: Database, organization_id: str) -> str | None:
    """Name the page that was shown last, open or not."""
    row = await database.fetchrow(
        "SELECT session_id FROM plan_checkouts WHERE organization_id = $1", organization_id
    )
    return None if row is None else str(row["session_id"])


async def follow(
    database: Database, organization_id: str, before: str | None, session_id: str, at: datetime
) -> bool:
    """Let a page take the place of the one before it; False when that is not the last any more."""
    written = await database.execute(
        """
        INSERT INTO plan_checkouts AS known (organization_id, session_id, created_at)
        VALUES ($1, $3, $4)
        ON CONFLICT (organization_id) DO UPDATE
            SET session_id = excluded.session_id, created_at = excluded.created_at
            WHERE known.session_id IN ($2::text, excluded.session_id)
        """,
        organization_id,
        before,
        session_id,
        at,
    )
    return written == 1
