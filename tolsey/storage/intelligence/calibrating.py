"""SQL for the shops that correct what is estimated of others, and for what came of it."""

from datetime import datetime, timedelta
from typing import Final

from tolsey.storage.database import Database, Reader, Row, Transaction
from tolsey.storage.records.intelligence import CalibratingListing, FittedCalibration
from tolsey.storage.tables import table_of

CALIBRATING: Final = table_of(CalibratingListing)
CALIBRATIONS: Final = table_of(FittedCalibration)
MOST_SHOPS: Final = 500
"""So many are compared a day, those that agreed last."""
FRESH: Final = timedelta(days=3)
"""A reading of the books that is older says nothing of the last thirty days."""


async def find(database: Reader, listing_id: str) -> CalibratingListing | None:
    """Read whether a listing's seller agreed."""
    row = await database.fetchrow(
        f"SELECT {CALIBRATING.selected} FROM calibrating_listings WHERE listing_id = $1",  # noqa: S608 - our columns
        listing_id,
    )
    return CALIBRATING.read(row) if row else None


async def agree(tx: Transaction, agreed: CalibratingListing) -> None:
    """Keep that a seller agreed; who did so before stays."""
    await tx.execute(
        f"{CALIBRATING.insert} ON CONFLICT (listing_id) DO UPDATE SET domain = excluded.domain",
        *CALIBRATING.values_of(agreed),
    )


async def disagree(tx: Transaction, listing_id: str) -> None:
    """Let a listing take no part any more."""
    await tx.execute("DELETE FROM calibrating_listings WHERE listing_id = $1", listing_id)


async def verified(database: Reader, now: datetime) -> list[Row]:
    """List the shops that take part: their domain, their currency, and what they took in thirty days by their books."""
    return await database.fetch(
        """
        SELECT c.domain, s.currency, (r.figures -> s.currency ->> 'revenue30d')::bigint AS taken
        FROM calibrating_listings c
        JOIN listings l ON l.id = c.listing_id AND l.deleted_at IS NULL
        JOIN listing_verifications v
            ON v.listing_id = l.id AND v.provider = 'commerce' AND v.state = 'verified'
        JOIN storefronts s ON s.domain = c.domain AND s.state = 'active'
        CROSS JOIN LATERAL (
            SELECT figures FROM revenue_snapshots
            WHERE listing_id = l.id AND shop_domain = v.shop_domain AND verified AND window_end > $1
            ORDER BY window_end DESC LIMIT 1) r
        WHERE r.figures ? s.currency ORDER BY c.agreed_at DESC LIMIT $2
        """,
        now - FRESH,
        MOST_SHOPS,
    )


async def keep(database: Database, fitted: FittedCalibration) -> None:
    """Keep what estimates are corrected by from now on."""
    async with database.transaction() as tx:
        await tx.execute(CALIBRATIONS.insert, *CALIBRATIONS.values_of(fitted))


async def latest(database: Reader, since: datetime) -> FittedCalibration | None:
    """Read what estimates are corrected by; None where nothing was fitted since a moment."""
    row = await database.fetchrow(
        f"""
        SELECT {CALIBRATIONS.selected} FROM calibrations
        WHERE fitted_at > $1 ORDER BY fitted_at DESC LIMIT 1
        """,  # noqa: S608 - our columns
        since,
    )
    return CALIBRATIONS.read(row) if row else None
