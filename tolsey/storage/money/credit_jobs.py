"""SQL of the jobs that look after credits: who is due for what, and how far ledgers were checked.

Who is due is listed by the organizations' ids, a page at a time.
"""

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, Final

from tolsey.storage.database import Database, Row
from tolsey.storage.money.credits import Books, load

PAGE: Final = 500

WITHOUT_BONUS: Final = """
    SELECT o.id, coalesce((
        SELECT max(b.day) FROM daily_bonuses b WHERE b.organization_id = o.id), '-infinity') < $3 AS due
    FROM organizations o WHERE o.plan <> 'free' AND o.id > $1 ORDER BY o.id LIMIT $2
"""
NEXT_OPEN: Final = """
least(
    (SELECT min(organization_id) FROM credit_lots WHERE NOT spent AND organization_id > {after}),
    (SELECT min(organization_id) FROM credit_holds WHERE closed_at IS NULL AND organization_id > {after}))
"""
LAPSED: Final = f"""
    WITH RECURSIVE walked(id, place) AS (
        SELECT {NEXT_OPEN.format(after="$1::text")}, 1
        UNION ALL
        SELECT {NEXT_OPEN.format(after="walked.id")}, place + 1 FROM walked
        WHERE walked.id IS NOT NULL AND place < $2
    )
    SELECT id, coalesce((
            SELECT true FROM credit_lots l WHERE l.organization_id = walked.id AND NOT l.spent
                AND l.expires_at <= $3 AND l.remaining > l.pinned LIMIT 1
        ), (
            SELECT true FROM credit_holds h WHERE h.organization_id = walked.id
                AND h.closed_at IS NULL AND h.lease_until <= $3 LIMIT 1
        ), false) AS due
    FROM walked WHERE id IS NOT NULL ORDER BY id
"""  # noqa: S608 - put together from constants
"""From one organization that has something open to the next, and into the index of each by time.

No EXISTS: it may be planned as a table of all lots that lapsed, made for each page.
"""
MONTHS: Final = """
    SELECT o.id, s.subscription_id, s.paid_plan, s.paid_from, s.paid_until, s.paid_invoice_id,
        (a.period_end IS NULL OR a.period_end <= $3)
            AND (coalesce(c.monthly_allowance, 0) > 0 OR s.subscription_id IS NOT NULL) AS due
    FROM (
        SELECT id FROM organizations WHERE plan <> 'free' AND id > $1 ORDER BY id LIMIT $2) o
    LEFT JOIN LATERAL (
        SELECT monthly_allowance FROM contracts f
        WHERE f.organization_id = o.id AND f.ended_at IS NULL OFFSET 0) c ON true
    LEFT JOIN LATERAL (
        SELECT * FROM subscriptions f WHERE f.organization_id = o.id AND f.paid_cadence = 'yearly'
            AND f.paid_from <= $3 AND f.paid_until > $3 OFFSET 0) s ON true
    LEFT JOIN LATERAL (
        SELECT period_end FROM credit_accounts f WHERE f.organization_id = o.id OFFSET 0) a ON true
    ORDER BY o.id
"""
"""What is paid monthly begins its months by being paid."""
ACCOUNTS: Final = """
    SELECT a.organization_id AS id, a.seq IS DISTINCT FROM (
        SELECT c.seq FROM ledger_checks c WHERE c.organization_id = a.organization_id) AS due
    FROM credit_accounts a WHERE a.organization_id > $1 ORDER BY a.organization_id LIMIT $2
"""
CHECKED: Final = """
    SELECT c.organization_id AS id, NOT EXISTS (
        SELECT FROM credit_accounts a WHERE a.organization_id = c.organization_id) AS due
    FROM ledger_checks c WHERE c.organization_id > $1 ORDER BY c.organization_id LIMIT $2
"""
"""Each table is walked once by its key: a page that joined the two would read both from end to end.

So are the organizations that pay, above: most of them are due for nothing most of the time.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerCheck:
    """The entry up to which a ledger was right, its hash, and what its accounts came to there.

    `whole_at` is when it was last replayed from its first entry on.
    """

    seq: int
    hash: str
    accounts: dict[str, int]
    whole_at: datetime


async def without_bonus(database: Database, day: date) -> AsyncIterator[list[Row]]:
    """List the organizations that pay and were not granted a day's bonus."""
    async for page in _pages(database, WITHOUT_BONUS, day):
        yield page


async def lapsed(database: Database, at: datetime) -> AsyncIterator[list[Row]]:
    """List the organizations that have something which expired, or a hold that was left alone."""
    async for page in _pages(database, LAPSED, at):
        yield page


async def months_due(database: Database, at: datetime) -> AsyncIterator[list[Row]]:
    """List the organizations under a contract or with a paid year, whose last month is over."""
    async for page in _pages(database, MONTHS, at):
        yield page


async def changed(database: Database) -> AsyncIterator[list[Row]]:
    """List the organizations whose ledgers were written to since they were last found right."""
    for sql in (ACCOUNTS, CHECKED):
        async for page in _pages(database, sql):
            yield page


async def books(database: Database, organization_id: str) -> Books:
    """Read what stands beside a ledger, all of one moment."""
    async with database.transaction(isolation="repeatable_read", readonly=True) as tx:
        return (await load(tx, [organization_id]))[organization_id]


async def last_check(database: Database, organization_id: str) -> LedgerCheck | None:
    """Read how far a ledger was found right."""
    row = await database.fetchrow(
        "SELECT seq, hash, accounts, whole_at FROM ledger_checks WHERE organization_id = $1",
        organization_id,
    )
    if row is None:
        return None
    return LedgerCheck(
        seq=row["seq"],
        hash=row["hash"],
        accounts=json.loads(row["accounts"]),
        whole_at=row["whole_at"],
    )


async def keep_check(
    database: Database, organization_id: str, check: LedgerCheck, at: datetime
) -> None:
    """Write down how far a ledger was found right."""
    await database.execute(
        """
        INSERT INTO ledger_checks (organization_id, seq, hash, accounts, checked_at, whole_at)
        VALUES ($1, $2, $3, $4::jsonb, $5, $6)
        ON CONFLICT (organization_id) DO UPDATE SET seq = excluded.seq, hash = excluded.hash,
            accounts = excluded.accounts, checked_at = excluded.checked_at,
            whole_at = excluded.whole_at
        """,
        organization_id,
        check.seq,
        check.hash,
        json.dumps(check.accounts),
        at,
        check.whole_at,
    )


async def _pages(database: Database, sql: str, *arguments: Any) -> AsyncIterator[list[Row]]:
    after = ""
    while page := await database.fetch(sql, after, PAGE, *arguments):
        if due := [row for row in page if row["due"]]:
            yield due
        after = page[-1]["id"]
