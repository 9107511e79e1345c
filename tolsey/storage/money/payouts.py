"""SQL for payout accounts: whose they are, what the processor says of them, what came back.

An event is applied and settled in the transaction that keeps it: none is applied twice or forgotten.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

import structlog

from tolsey.storage import audit
from tolsey.storage.database import Database, Transaction
from tolsey.storage.lookups import record, records
from tolsey.storage.money.payment_events import settle
from tolsey.storage.records.money.payment_event import EventState
from tolsey.storage.records.money.payouts import (
    FailedPayout,
    ObservedAccount,
    PayoutAccount,
    PayoutFailure,
)
from tolsey.storage.tables import table_of

SHOWN_FAILURES: Final = 10
"""The latest are what an account's owner can act on."""

OBSERVED: Final = (
    "has_submitted_details",
    "can_charge",
    "can_be_paid_out",
    "is_verified",
    "disabled_reason",
    "currently_due",
    "past_due",
    "eventually_due",
    "pending_verification",
)
ACCOUNTS: Final = table_of(PayoutAccount)
FAILURES: Final = table_of(PayoutFailure)

log = structlog.get_logger()


async def account_observed(
    tx: Transaction, event_id: str, facts: ObservedAccount, created_at: datetime
) -> bool:
    """Apply what an event tells of an account; False when the event was settled before.

    The newest event stands, whatever order they come in. Of two of the same second nobody knows
    which is newer: the one that verifies nothing stands, and reading the account mends it.
    """
    kept = await _locked(tx, facts.account_id)
    if kept is None:
        return await _settled(tx, event_id, "unknown_account")
    at = kept.seen_at
    if at is not None and (created_at < at or (created_at == at and facts.is_verified)):
        return await _settled(tx, event_id, "older_than_known")
    if not await _settled(tx, event_id):
        return False
    await _put(tx, kept, facts, created_at)
    return True


async def payout_failed(
    tx: Transaction, event_id: str, facts: FailedPayout, created_at: datetime
) -> bool:
    """Keep a payout that came back; False when it was told of before."""
    if not await _settled(tx, event_id):
        return False
    failure = PayoutFailure(
        payout_id=facts.payout_id,
        account_id=facts.account_id,
        amount_cents=facts.amount_cents,
        currency=facts.currency,
        failure_code=facts.failure_code,
        failure_message=facts.failure_message,
        failed_at=created_at,
    )
    status = await tx.execute(
        f"{FAILURES.insert} {FAILURES.conflict}", *FAILURES.values_of(failure)
    )
    if status == "INSERT 0 0":  # told of by two events
        return False
    await audit.write(
        tx,
        "payout",
        facts.payout_id,
        actor="system",
        outcome="failed",
        account=facts.account_id,
        amountCents=facts.amount_cents,
        currency=facts.currency,
        code=facts.failure_code,
    )
    log.error("payout.failed", account=facts.account_id, code=facts.failure_code)
    return True


@dataclass(frozen=True, slots=True, kw_only=True)
class PaidOut:
    """What somebody is paid by an operator of ours."""

    id: str
    kind: str
    payee: str
    cents: int
    year: int
    tax_form: str | None
    reason: str
    by: str


PAID: Final = """
SELECT coalesce(sum((metadata->>'cents')::bigint) FILTER (
        WHERE metadata->>'kind' = $2 AND metadata->>'year' = $3), 0)::bigint AS cents,
    coalesce(bool_or(metadata->>'taxForm' IS NOT NULL), false) AS has_form,
    coalesce(bool_or(metadata->>'id' = $4), false) AS is_known
FROM audit_log WHERE subject = $1 AND event = ANY (ARRAY['payout', 'bounty.paid'])
"""
"""The audit trail of money is kept for seven years, so that it is the book of payouts, too."""
PAID_EVENTS: Final = {"affiliate": "payout", "bounty": "bounty.paid"}


async def record_payout(
    database: Database, wanted: PaidOut, allow: Callable[[int, bool], None]
) -> int | None:
    """Write a payout down, once for its id; answers the sum of its kind and year, with it, None without a payee.

    `allow` is told what was paid this year and whether a tax form is filed, and raises what refuses it.
    """
    async with database.transaction() as tx:
        # Two payouts at once would each find the other not there: one payee is paid one at a time.
        await tx.execute("SELECT pg_advisory_xact_lock(hashtextextended($1, 0))", wanted.payee)
        if await tx.fetchrow("SELECT FROM users WHERE id = $1", wanted.payee) is None:
            return None
        (row,) = await tx.fetch(PAID, wanted.payee, wanted.kind, str(wanted.year), wanted.id)
        paid, has_form = row["cents"], row["has_form"]
        if row["is_known"]:
            return int(paid)
        allow(paid, has_form)
        await audit.write(
            tx,
            PAID_EVENTS[wanted.kind],
            wanted.payee,
            actor=wanted.by,
            outcome="recorded",
            id=wanted.id,
            kind=wanted.kind,
            cents=wanted.cents,
            currency="usd",
            year=str(wanted.year),
            taxForm=wanted.tax_form,
            reason=wanted.reason,
        )
        return int(paid) + wanted.cents


async def find(database: Database, user_id: str) -> PayoutAccount | None:
    """Find a person's account."""
    return await record(database, ACCOUNTS, "user_id = $1", user_id)


async def opened(
    database: Database, user_id: str, facts: ObservedAccount, at: datetime
) -> PayoutAccount:
    """Keep the account that was made for a person; the one they have when they have one."""
    said: dict[str, Any] = {name: getattr(facts, name) for name in OBSERVED}
    made = PayoutAccount(
        **said, account_id=facts.account_id, user_id=user_id, created_at=at, seen_at=None
    )
    async with database.transaction() as tx:
        row = await tx.fetchrow(
            f"{ACCOUNTS.insert} ON CONFLICT DO NOTHING RETURNING {ACCOUNTS.selected}",
            *ACCOUNTS.values_of(made),
        )
        if row is not None:
            await audit.write(tx, "payout_account.opened", facts.account_id, actor=user_id)
            return ACCOUNTS.read(row)
        kept = await record(tx, ACCOUNTS, "user_id = $1", user_id)
    if kept is None:
        raise LookupError(f"{facts.account_id} is another person's")
    return kept


async def refreshed(database: Database, facts: ObservedAccount) -> PayoutAccount | None:
    """Keep what the processor answers of an account now; None when it is nobody's here."""
    async with database.transaction() as tx:
        kept = await _locked(tx, facts.account_id)
        return None if kept is None else await _put(tx, kept, facts, kept.seen_at)


async def visited(database: Database, account: PayoutAccount, event: str) -> None:
    """Record that an account's owner was sent to a page of the processor's."""
    async with database.transaction() as tx:
        await audit.write(tx, event, account.account_id, actor=account.user_id)


async def failures(database: Database, account_id: str) -> list[PayoutFailure]:
    """List the latest payouts of an account that came back, newest first."""
    where = "account_id = $1 ORDER BY failed_at DESC, payout_id LIMIT $2"
    return await records(database, FAILURES, where, account_id, SHOWN_FAILURES)


async def may_sell(database: Database, organization_id: str) -> bool:
    """Tell whether an organization can be paid for what it sells, or has sold before it had to.

    Those who can be paid are its owners and admins with a verified account (rules/payments#payout-accounts).
    """
    row = await database.fetchrow(
        """
        SELECT EXISTS (
            SELECT FROM listings WHERE organization_id = $1 AND published_at IS NOT NULL
        ) OR EXISTS (
            SELECT FROM members JOIN payout_accounts USING (user_id)
            WHERE organization_id = $1 AND role IN ('owner', 'admin') AND is_verified
        ) AS may
        """,
        organization_id,
    )
    return bool(row and row["may"])


async def account_of_sellers(database: Database, organization_id: str) -> PayoutAccount | None:
    """Read the account that an organization is paid to: of those of its owners and admins the one that is furthest."""
    where = """user_id IN (
        SELECT user_id FROM members WHERE organization_id = $1 AND role IN ('owner', 'admin'))
        ORDER BY is_verified DESC, has_submitted_details DESC, created_at LIMIT 1"""
    return await record(database, ACCOUNTS, where, organization_id)


async def _locked(tx: Transaction, account_id: str) -> PayoutAccount | None:
    return await record(tx, ACCOUNTS, "account_id = $1 FOR UPDATE", account_id)


async def _put(
    tx: Transaction, kept: PayoutAccount, facts: ObservedAccount, seen_at: datetime | None
) -> PayoutAccount:
    said: dict[str, Any] = {name: getattr(facts, name) for name in OBSERVED}
    now = replace(kept, **said, seen_at=seen_at)
    await tx.execute(
        """
        UPDATE payout_accounts SET
            has_submitted_details = $2, can_charge = $3, can_be_paid_out = $4, is_verified = $5,
            disabled_reason = $6, currently_due = $7, past_due = $8, eventually_due = $9,
            pending_verification = $10, seen_at = $11
        WHERE account_id = $1
        """,
        kept.account_id,
        *said.values(),
        seen_at,
    )
    if now.state is not kept.state:
        await audit.write(
            tx,
            f"payout_account.{now.state}",
            kept.account_id,
            actor="system",
            user=kept.user_id,
            reason=now.disabled_reason,
        )
    return now


async def _settled(tx: Transaction, event_id: str, ignored: str | None = None) -> bool:
    state = EventState.IGNORED if ignored else EventState.APPLIED
    return await settle(tx, event_id, state, ignored)
