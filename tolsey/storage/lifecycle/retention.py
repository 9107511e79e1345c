"""SQL that lets go of what has served its time (rules/service#retention), in bounded batches.

Each statement finds its batch by an index, oldest first: it reads what is due and nothing of what is kept.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from tolsey.storage.commerce import stores
from tolsey.storage.database import Database
from tolsey.storage.people import leaving
from tolsey.storage.records.agents import CLIENTS, CODES, GRANTS, REQUESTS, TOKENS
from tolsey.storage.records.commerce.agent_operation import AgentOperation
from tolsey.storage.records.commerce.deliveries import WebhookEvent
from tolsey.storage.records.intelligence import (
    CHANGES,
    SNAPSHOTS,
    FittedCalibration,
    IntelligenceSuppression,
    StorefrontScan,
)
from tolsey.storage.records.journal import AuditRecord
from tolsey.storage.records.mail import MailBounce, OutboundMail
from tolsey.storage.records.memory import StoreFact, StoreMessage
from tolsey.storage.records.money.payment_event import PaymentEventSettled
from tolsey.storage.records.people import (
    IDEMPOTENCY_KEYS,
    PASSWORD_RESETS,
    SESSIONS,
    ApiKey,
    Invitation,
)
from tolsey.storage.records.provider_events import ProviderEvent
from tolsey.storage.records.runtime.executions import Execution
from tolsey.storage.records.runtime.kept import DEAD_LETTERS, FINISHED_CALLS, JOURNAL
from tolsey.storage.records.runtime.operations import Operation
from tolsey.storage.records.runtime.workflows import WorkflowClaim
from tolsey.storage.records.selling.roots import SignatureShare
from tolsey.storage.records.status import ComponentDay
from tolsey.storage.tables import Age, Table, table_of

SWEPT_TABLES: Final = (
    SESSIONS,
    PASSWORD_RESETS,
    table_of(Invitation),
    table_of(ApiKey),
    IDEMPOTENCY_KEYS,
    JOURNAL,
    table_of(Execution),
    DEAD_LETTERS,
    table_of(WorkflowClaim),
    table_of(OutboundMail),
    table_of(MailBounce),
    table_of(ProviderEvent),
    REQUESTS,
    CODES,
    TOKENS,
    GRANTS,
    CLIENTS,
    table_of(Operation),
    FINISHED_CALLS,
    table_of(AgentOperation),
    table_of(PaymentEventSettled),
    table_of(StoreFact),
    table_of(StoreMessage),
    table_of(FittedCalibration),
    table_of(ComponentDay),
    table_of(SignatureShare),
    table_of(StorefrontScan),
    table_of(IntelligenceSuppression),
    SNAPSHOTS,
    CHANGES,
)

REVIEW_GRANTS: Final = """
        WITH due AS MATERIALIZED (
            SELECT g.id, (SELECT max(t.expires_at) FROM oauth_tokens t WHERE t.grant_id = g.id) AS until
            FROM oauth_grants g WHERE g.ended_at IS NULL AND g.review_at < now()
            ORDER BY g.review_at LIMIT $1
        ), kept AS (
            UPDATE oauth_grants g
            SET review_at = greatest(due.until + interval '30 days', now() + interval '1 day')
            FROM due WHERE g.id = due.id AND due.until IS NOT NULL
        ), gone AS (
            DELETE FROM oauth_grants WHERE id = ANY(ARRAY(SELECT id FROM due WHERE until IS NULL))
        )
        SELECT FROM due"""
"""Those that never ended but of which no token is left go too, so that people are not shown agents that
can do nothing any more. A grant with tokens is looked at again when the last of them is gone."""


def deletions(table: Table[Any]) -> tuple[str, ...]:
    """Write what deletes a batch of a table's rows that are as old as its declaration lets them be.

    A row is taken by where it lies: one that was changed meanwhile lies elsewhere, and stays.
    """
    return tuple(
        f"DELETE FROM {table.name} WHERE ctid = ANY(ARRAY(SELECT ctid FROM {table.name}"  # noqa: S608 - names of our own tables
        f" WHERE {age.due}{f' ORDER BY {age.column}' if age.ordered else ''} LIMIT $1))"
        for age in table.retention
    )


WEBHOOK_DELIVERIES: Final = deletions(table_of(WebhookEvent))
AUDIT_LOG: Final = deletions(table_of(AuditRecord))
SWEPT: Final[Mapping[str, tuple[str, ...]]] = {
    **{table.swept: deletions(table) for table in SWEPT_TABLES},
    "agentGrantsReviewed": (REVIEW_GRANTS,),
}
"""What the retention sweep deletes, by the counter it is reported under."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionRule:
    """Which rows go when they are so old, and by which job; `name` is the counter that it reports them under."""

    name: str
    job: str
    table: str
    age: Age


_BY_JOBS: Final[tuple[tuple[str, str, Table[Any]], ...]] = (
    ("deleted", "prune-webhook-deliveries", table_of(WebhookEvent)),
    ("deleted", "prune-audit-log", table_of(AuditRecord)),
    *((table.swept, "retention-sweep", table) for table in SWEPT_TABLES),
)
RULES: Final = (
    *(
        RetentionRule(name=name, job=job, table=table.name, age=age)
        for name, job, table in _BY_JOBS
        for age in table.retention
    ),
    RetentionRule(name="files", job="retention-sweep", table="files", age=Age(column="expires_at")),
    # What these owned goes with them.
    RetentionRule(
        name="storesErased",
        job="gdpr-erasure",
        table="stores",
        age=Age(
            column="deleted_at",
            interval=f"{stores.REST.days} days",
            where="deleted_at IS NOT NULL AND name <> ''",
        ),
    ),
    RetentionRule(
        name="usersErased",
        job="gdpr-erasure",
        table="users",
        age=Age(
            column="deletion_requested_at",
            interval=f"{leaving.KEPT_FOR.days} days",
            where="deletion_requested_at IS NOT NULL AND password_hash <> ''",
        ),
    ),
    RetentionRule(
        name="organizationsErased",
        job="gdpr-erasure",
        table="organizations",
        age=Age(
            column="deleted_at",
            interval=f"{leaving.MEMORY_KEPT_FOR.days} days",
            where="deleted_at IS NOT NULL AND name <> ''",
        ),
    ),
)
"""Everything that goes by its age: each is found by an index, and counted before it goes."""


async def due(database: Database, rules: Sequence[RetentionRule], most: int) -> list[int]:
    """Count what each rule would let go now, up to so many rows, and change nothing."""
    counts = ", ".join(
        f"(SELECT count(*) FROM (SELECT FROM {rule.table} WHERE {rule.age.due} LIMIT $1) AS found)"  # noqa: S608 - names of our own tables
        for rule in rules
    )
    async with database.transaction(readonly=True) as tx:
        await tx.execute("SET LOCAL enable_seqscan = off")
        return list(await tx.fetchval(f"SELECT ARRAY[{counts}]", most))


async def sweep(database: Database, statements: Sequence[str], limit: int) -> int:
    """Delete one batch by each statement; answer how many rows it was."""
    deleted = 0
    async with database.transaction() as tx:
        # Statistics of before a large change would have a table read whole for its last rows.
        await tx.execute("SET LOCAL enable_seqscan = off")
        for sql in statements:
            status = await tx.execute(sql, limit)
            deleted += int(status.rsplit(" ", 1)[-1])
    return deleted


async def commit(database: Database) -> None:
    """Commit and change nothing: who times it knows what an answer waits for its commit."""
    await database.execute("SELECT pg_logical_emit_message(true, 'tolsey', '')")
