"""SQL for affiliates: their codes, and who redeemed which."""

from datetime import datetime
from typing import Final

from tolsey.storage import audit
from tolsey.storage.conditions import Conditions
from tolsey.storage.database import Database
from tolsey.storage.lookups import record
from tolsey.storage.records.money.affiliates import AffiliateCode, AffiliateRedemption, CodeUse
from tolsey.storage.tables import table_of

CODES_PER_PERSON: Final = 20

REDEMPTIONS: Final = table_of(AffiliateRedemption)

CODES: Final = """
SELECT c.id, c.code, c.created_at,
    (SELECT count(*) FROM affiliate_redemptions r WHERE r.code_id = c.id) AS redemptions
FROM affiliate_codes c
"""


async def add_code(
    database: Database, code_id: str, user_id: str, code: str, at: datetime
) -> AffiliateCode | None:
    """Keep a new code of an affiliate; None when they have as many as they may.

    The same id again answers the code it made.
    """
    async with database.transaction() as tx:
        # Two requests at once queue up here, so that the count holds.
        await tx.execute("SELECT FROM users WHERE id = $1 FOR UPDATE", user_id)
        status = await tx.execute(
            """
            INSERT INTO affiliate_codes (id, user_id, code, created_at)
            SELECT $1, $2, $3, $4
            WHERE (SELECT count(*) FROM affiliate_codes WHERE user_id = $2) < $5
            ON CONFLICT (id) DO NOTHING
            """,
            code_id,
            user_id,
            code,
            at,
            CODES_PER_PERSON,
        )
        if status == "INSERT 0 1":
            await audit.write(tx, "affiliate.code_created", code_id, actor=user_id)
        row = await tx.fetchrow(f"{CODES} WHERE c.id = $1 AND c.user_id = $2", code_id, user_id)
    return AffiliateCode(**row) if row else None


async def codes_of(
    database: Database, user_id: str, before: str | None, limit: int
) -> list[AffiliateCode]:
    """List a person's codes, newest first."""
    wanted = Conditions(user_id, limit)
    wanted.add("c.id < {}", before)
    rows = await database.fetch(
        f"{CODES} WHERE c.user_id = $1 AND {wanted} ORDER BY c.id DESC LIMIT $2", *wanted.args
    )
    return [AffiliateCode(**row) for row in rows]


async def code_use(database: Database, code: str, organization_id: str, user_id: str) -> CodeUse:
    """Look up all that decides on a redemption at once: an unknown code costs the same time.

    A code of somebody who is banned or leaves is unknown.
    """
    row = await database.fetchrow(
        """
        SELECT c.id AS code_id, c.user_id AS affiliate_id,
            EXISTS (
                SELECT FROM members m WHERE m.organization_id = $2 AND m.user_id = c.user_id
            ) AS belongs,
            EXISTS (
                SELECT FROM affiliate_redemptions r WHERE r.organization_id = $2
            ) OR EXISTS (
                SELECT FROM affiliate_redemptions r WHERE r.user_id = $3
            ) AS redeemed
        FROM (SELECT $1::text AS code) AS given
        LEFT JOIN (
            affiliate_codes c
            JOIN users u ON u.id = c.user_id AND NOT u.banned AND u.deletion_requested_at IS NULL
        ) ON c.code = given.code
        """,
        code,
        organization_id,
        user_id,
    )
    if row is None:
        raise LookupError("a select of one row")
    return CodeUse(**row)


async def redemption(database: Database, redemption_id: str) -> AffiliateRedemption | None:
    """Find a redemption."""
    return await record(database, REDEMPTIONS, "id = $1", redemption_id)


async def organizations_run_by(database: Database, user_id: str) -> list[str]:
    """Name organizations in which a person is owner or admin: two are enough to be asked which."""
    rows = await database.fetch(
        """
        SELECT organization_id FROM members WHERE user_id = $1 AND role IN ('owner', 'admin')
        ORDER BY organization_id LIMIT 2
        """,
        user_id,
    )
    return [row["organization_id"] for row in rows]
