"""SQL for credits: the ledger and what stands beside it."""

import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any, Final

from tolsey.storage.conditions import Conditions
from tolsey.storage.database import Database, Transaction
from tolsey.storage.lookups import record, records
from tolsey.storage.records.money.credits import (
    OWN_ACCOUNTS,
    CreditAccount,
    CreditedPayment,
    CreditEntry,
    CreditHold,
    CreditLot,
    CreditPosting,
    postings,
)
from tolsey.storage.tables import table_of


@dataclass(slots=True, kw_only=True)
class Books:
    """What is open in an organization's books."""

    account: CreditAccount | None = None
    lots: list[CreditLot] = field(default_factory=list)
    holds: list[CreditHold] = field(default_factory=list)
    payments: list[CreditedPayment] = field(default_factory=list)
    """Those that wait for their grant; those whose lots are open, for what expires of a lot is told to
    its payment; and those of the plan's period, which may have paid for a part of one another's."""
    bonus_day: date = date.min


ACCOUNTS: Final = table_of(CreditAccount)
ENTRIES: Final = table_of(CreditEntry)
LOTS: Final = table_of(CreditLot)
HOLDS: Final = table_of(CreditHold)
PAYMENTS: Final = table_of(CreditedPayment)


THEIRS: Final = "organization_id = ANY($1::text[])"
OPEN_HOLDS: Final = f"{THEIRS} AND closed_at IS NULL ORDER BY id"
GRANTED: Final = f"""{THEIRS} AND granted > 0 AND (
    (organization_id, payment_ref) IN (
        SELECT organization_id, reference FROM credit_lots WHERE {THEIRS} AND NOT spent)
    OR (organization_id, expires_at) IN (
        SELECT organization_id, period_end FROM credit_accounts WHERE {THEIRS}))
"""  # noqa: S608 - names of our own tables
READ_BONUS_DAYS: Final = """
    SELECT organization_id, max(day) AS day FROM daily_bonuses
    WHERE organization_id = ANY($1::text[]) GROUP BY organization_id
"""

READ_ENTRIES: Final = f"""
    SELECT {ENTRIES.selected}, (
        SELECT json_agg(json_build_array(p.debit, p.credit, p.amount) ORDER BY p.n)
        FROM credit_postings p
        WHERE p.organization_id = e.organization_id AND p.seq = e.seq) AS postings
    FROM credit_entries e
    WHERE organization_id = $1 AND {{}} ORDER BY seq DESC LIMIT $2
"""  # noqa: S608 - names of our own tables
MOVED: Final = """EXISTS (
    SELECT FROM credit_postings p
    WHERE p.organization_id = e.organization_id AND p.seq = e.seq
        AND (p.debit ~ $3) <> (p.credit ~ $3))
"""


async def load(
    database: "Database | Transaction", organization_ids: Sequence[str]
) -> dict[str, Books]:
    """Read the open lots, live holds and their payments of organizations; the rest is history."""
    ids = list(organization_ids)
    books: dict[str, Books] = defaultdict(Books)
    for account in await records(database, ACCOUNTS, THEIRS, ids):
        books[account.organization_id].account = account
    for lot in await records(database, LOTS, f"{THEIRS} AND NOT spent", ids):
        books[lot.organization_id].lots.append(lot)
    for hold in await records(database, HOLDS, OPEN_HOLDS, ids):
        books[hold.organization_id].holds.append(hold)
    for where in (f"{THEIRS} AND granted = 0", GRANTED):
        for paid in await records(database, PAYMENTS, where, ids):
            books[paid.organization_id].payments.append(paid)
    for row in await database.fetch(READ_BONUS_DAYS, ids):
        books[row["organization_id"]].bonus_day = row["day"]
    return books


async def payment(
    database: Database, organization_id: str, payment_ref: str
) -> CreditedPayment | None:
    """Read what is known of a payment."""
    where = "organization_id = $1 AND payment_ref = $2"
    return await record(database, PAYMENTS, where, organization_id, payment_ref)


async def entries(
    database: Database, organization_id: str, limit: int, before: int | None = None
) -> list[tuple[CreditEntry, list[CreditPosting]]]:
    """Read a part of a ledger, newest first."""
    wanted = Conditions(organization_id, limit)
    wanted.add("seq < {}", before)
    found = await database.fetch(READ_ENTRIES.format(wanted), *wanted.args)
    return [_entry(row) for row in found]


async def movements(
    database: Database, organization_id: str, limit: int
) -> list[tuple[CreditEntry, list[CreditPosting]]]:
    """Read the entries that last changed a balance, newest first."""
    sql = READ_ENTRIES.format(MOVED)
    found = await database.fetch(sql, organization_id, limit, OWN_ACCOUNTS)
    return [_entry(row) for row in found]


async def history(
    database: Database, organization_id: str, after: int = 0, limit: int = 5_000
) -> list[tuple[CreditEntry, list[CreditPosting]]]:
    """Read a part of a ledger as its chain is checked, from the entry that follows `after` on."""
    found = await entries(database, organization_id, limit, after + limit + 1)
    return [pair for pair in reversed(found) if pair[0].seq > after]


def _entry(row: Any) -> tuple[CreditEntry, list[CreditPosting]]:
    entry = ENTRIES.read(row)
    moves = json.loads(row["postings"] or "[]")
    return entry, postings(entry.organization_id, entry.seq, moves)
