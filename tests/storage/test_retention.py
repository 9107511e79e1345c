"""What sweeps read is what is due, however much is kept."""

import asyncio
from collections.abc import Sequence

import pytest

from tests.timing import until
from tolsey.storage.database import Database
from tolsey.storage.lifecycle import retention
from tolsey.storage.lifecycle.catalogue import declared

KEPT = 4000
DUE = 3
ROWS = {
    "sessions": "INSERT INTO sessions (token_hash, user_id, created_at, expires_at) SELECT sha256(n::text::bytea), 'u', now(), {at} FROM {n}",
    "passwordResets": "INSERT INTO password_resets SELECT sha256(n::text::bytea), 'u', {at}, {at} FROM {n}",
    "invitations": (
        "INSERT INTO invitations (id, token_hash, organization_id, email, role, invited_by, created_at,"
        " expires_at) SELECT n::text, sha256(n::text::bytea), 'o', n::text, 'member', 'u', {at}, {at}"
        " FROM {n}"
    ),
    "apiKeys": (
        "INSERT INTO api_keys (id, key_hash, prefix, organization_id, user_id, name, scopes, created_at,"
        " expires_at) SELECT n::text, sha256(n::text::bytea), 'bei_', 'o', 'u', '', '{{a}}', {at}, {at}"
        " FROM {n}"
    ),
    "idempotencyKeys": "INSERT INTO idempotency_keys SELECT 'u', n::text, '', '', {at} FROM {n}",
    "executions": (
        "INSERT INTO cron_executions SELECT n::text, 'job', now() - n * interval '1 hour', 'schedule',"
        " {at}, {at}, 'done' FROM {n}"
    ),
    "deadLetters": (
        "INSERT INTO dead_letters SELECT n::text, 'k', 1, 'store', 's', 'n', '{{}}', 1, 'e', NULL,"
        " 'retried', {at}, {at}, {at} FROM {n}"
    ),
    "mails": (
        "INSERT INTO outbound_mail (id, event, about, recipient, subject, created_at)"
        " SELECT n::text, 'invited', n::text, 'r', 's', {at} FROM {n}"
    ),
    "workflowClaims": "INSERT INTO workflow_claims SELECT 'o', n::text, 'k', {at}, {at}, {at} FROM {n}",
    "agentRequests": (
        "INSERT INTO oauth_requests SELECT sha256(n::text::bytea), 'c', 'C', 'r', NULL, 'c', 'r', 's',"
        " '{{}}', {at} FROM {n}"
    ),
    "agentCodes": (
        "INSERT INTO oauth_codes SELECT sha256(n::text::bytea), 'g', 'c', {at} FROM {n}"
    ),
    "agentTokens": (
        "INSERT INTO oauth_tokens SELECT sha256(n::text::bytea), 'g', 'access', '{{}}', {at} FROM {n}"
    ),
    "agentGrants": (
        "INSERT INTO oauth_grants (id, user_id, client_id, client_name, redirect_uri, organization_id,"
        " store_id, resource, scopes, created_at, ended_at, why)"
        " SELECT n::text, 'u', 'c', 'C', 'r', 'o', 's', 'r', '{{}}', {at}, {at}, 'user' FROM {n}"
    ),
    "agentGrantsReviewed": (
        "INSERT INTO oauth_grants (id, user_id, client_id, client_name, redirect_uri, organization_id,"
        " store_id, resource, scopes, created_at, review_at)"
        " SELECT n::text, 'u', 'c', 'C', 'r', 'o', 's', 'r', '{{}}', now() - interval '1 year', {at}"
        " FROM {n}"
    ),
    "agentClients": (
        "INSERT INTO oauth_clients SELECT n::text, 'C', '{{}}', 'none', NULL, {at}, {at} FROM {n}"
    ),
    "paymentEvents": (
        "INSERT INTO payment_events (event_id, type, livemode, created_at, state, received_at)"
        " SELECT n::text, 't', false, {at}, 'applied', {at} FROM {n}"
    ),
    "signatureShares": (
        "INSERT INTO signature_shares SELECT sha256(n::text::bytea), 's', 'd', 'u', {at}, {at} FROM {n}"
    ),
    "webhookDeliveries": (
        "INSERT INTO commerce_webhook_events"
        " SELECT 's', n::text, 't', NULL, 'd', NULL, {at} FROM {n}"
    ),
}
STATEMENTS = {**retention.SWEPT, "webhookDeliveries": retention.WEBHOOK_DELIVERIES}
READ = """
SELECT sum(seq_tup_read + coalesce(idx_tup_fetch, 0))::int AS rows FROM pg_stat_xact_user_tables
"""


async def read_by(database: Database, statements: Sequence[str]) -> tuple[int, int]:
    """Run a sweep; answer how many rows it took, and how many it read for them."""
    async with database.transaction() as tx:
        await tx.execute("SELECT pg_stat_force_next_flush()")
    async with database.transaction() as tx:
        await tx.execute("SET LOCAL enable_seqscan = off")
        taken = [int((await tx.execute(sql, 100)).rsplit(" ", 1)[-1]) for sql in statements]
        return sum(taken), await tx.fetchval(READ)


def rows(name: str, count: int, at: str) -> str:
    first = 0 if at.startswith("now() -") else 10
    numbers = f"generate_series({first}, {first + count - 1}) n"
    return ROWS[name].format(at=at, n=numbers)


@pytest.mark.parametrize("name", ROWS)
async def test_a_sweep_reads_what_is_due_and_nothing_of_what_is_kept(
    database: Database, name: str
) -> None:
    async with database.transaction() as tx:
        await tx.execute("SET LOCAL session_replication_role = replica")
        await tx.execute(rows(name, KEPT, "now() + interval '1 day'"))
    assert await read_by(database, STATEMENTS[name]) == (0, 0)

    async with database.transaction() as tx:
        await tx.execute("SET LOCAL session_replication_role = replica")
        await tx.execute(rows(name, DUE, "now() - interval '500 days'"))
    taken, read = await read_by(database, STATEMENTS[name])
    assert taken == DUE
    assert read <= 4 * DUE


async def test_what_is_due_is_counted_before_it_goes(database: Database) -> None:
    rules = {
        one.table: one for one in retention.RULES if one.name in ("deleted", "idempotencyKeys")
    }
    deliveries, keys = rules["commerce_webhook_events"], rules["idempotency_keys"]
    for name in ("webhookDeliveries", "idempotencyKeys"):
        await database.execute(rows(name, DUE, "now() - interval '500 days'"))
        await database.execute(rows(name, KEPT, "now() + interval '1 day'"))
    assert await retention.due(database, (deliveries, keys), KEPT) == [DUE, DUE]
    assert await retention.due(database, [deliveries], 2) == [2]
    assert await retention.sweep(database, retention.WEBHOOK_DELIVERIES, 100) == DUE
    assert await retention.due(database, (deliveries, keys), KEPT) == [0, DUE]


def test_every_table_with_an_age_has_its_rule() -> None:
    ages = {(table.name, age) for table in declared() for age in table.retention}
    assert ages <= {(one.table, one.age) for one in retention.RULES}


@pytest.mark.parametrize("rule", retention.RULES, ids=lambda one: f"{one.table}-{one.age.due}")
async def test_an_index_finds_what_is_due_by_every_rule(
    database: Database, rule: retention.RetentionRule
) -> None:
    async with database.transaction() as tx:
        await tx.execute("SET LOCAL enable_seqscan = off")
        plan = await tx.fetch(f"EXPLAIN SELECT FROM {rule.table} WHERE {rule.age.due} LIMIT 9")
    said = [row[0] for row in plan]
    assert any("Index Cond" in line or "Index Only Scan" in line for line in said), said
    assert not any("Seq Scan" in line for line in said), said


async def test_letting_audit_rows_go_reads_none_that_stay(database: Database) -> None:
    await database.execute(
        """
        INSERT INTO audit_log (event, subject, actor, metadata, retention, created_at)
        SELECT (ARRAY['commerce.webhook.orders.create', 'refund.requested', 'refund.requested'])[1 + n % 3],
            's', 'u', '{}', (ARRAY['until_erased', '7_years', '7_years'])[1 + n % 3], now() - interval '1 year'
        FROM generate_series(1, $1) n
        """,
        KEPT,
    )
    for sql in retention.AUDIT_LOG:
        assert await read_by(database, [sql]) == (0, 0)

    await database.execute(
        """
        INSERT INTO audit_log (event, subject, actor, metadata, retention, created_at) VALUES
            ('user.signed_in', 's', 'u', '{}', '180_days', now() - interval '181 days'),
            ('user.signed_in', 's', 'u', '{}', '180_days', now() - interval '179 days'),
            ('refund.requested', 's', 'u', '{}', '7_years', now() - interval '8 years')
        """
    )
    assert [await read_by(database, [sql]) for sql in retention.AUDIT_LOG] == [(1, 1), (1, 1)]


async def test_a_client_that_comes_while_the_sweep_looks_at_it_stays(database: Database) -> None:
    await database.execute(rows("agentClients", 1, "now() - interval '500 days'"))
    async with asyncio.TaskGroup() as group, database.transaction() as tx:
        await tx.execute("UPDATE oauth_clients SET used_at = now()")
        statements = retention.SWEPT["agentClients"]
        swept = group.create_task(retention.sweep(database, statements, 100))
        await until(lambda: tx.fetchval("SELECT count(*) FROM pg_locks WHERE NOT granted"))
    assert swept.result() == 0
