"""SQL that lets go of what has served its time (specification, Limits), in bounded batches.

Each statement finds its batch by an index, oldest first, and takes it by where it lies or by its key: it
reads what is due and nothing of what is kept.
"""

from typing import Final

from tolsey.storage.database import Database

WEBHOOK_DELIVERIES: Final = """
    DELETE FROM commerce_webhook_events WHERE ctid = ANY(ARRAY(
        SELECT ctid FROM commerce_webhook_events
        WHERE created_at < now() - interval '7 days' ORDER BY created_at LIMIT $1))
"""

AUDIT_LOG: Final = tuple(
    f"""
    DELETE FROM audit_log WHERE id = ANY(ARRAY(
        SELECT id FROM audit_log
        WHERE audit_retention(event, retention) = '{stays}' AND created_at < now() - interval '{age}'
        ORDER BY created_at LIMIT $1))
    """  # noqa: S608 - names of this file
    for stays, age in (("180_days", "180 days"), ("7_years", "7 years"))
)
"""Audit rows that have stayed as long as they say; deliveries wait for their erasure."""

SWEPT: Final = {
    "sessions": """DELETE FROM sessions WHERE ctid = ANY(ARRAY(
        SELECT ctid FROM sessions WHERE expires_at < now() ORDER BY expires_at LIMIT $1))""",
    "idempotencyKeys": """DELETE FROM idempotency_keys WHERE ctid = ANY(ARRAY(
        SELECT ctid FROM idempotency_keys WHERE created_at < now() - interval '24 hours'
        ORDER BY created_at LIMIT $1))""",
    # Its index is of ranges of pages and knows no order.
    "journal": """DELETE FROM actor_journal WHERE ctid = ANY(ARRAY(
        SELECT ctid FROM actor_journal WHERE committed_at < now() - interval '7 days' LIMIT $1))""",
    "executions": """DELETE FROM cron_executions WHERE id = ANY(ARRAY(
        SELECT id FROM cron_executions WHERE finished_at < now() - interval '90 days'
        ORDER BY finished_at LIMIT $1))""",
    "deadLetters": """DELETE FROM dead_letters WHERE id = ANY(ARRAY(
        SELECT id FROM dead_letters WHERE settled_at < now() - interval '90 days'
        ORDER BY settled_at LIMIT $1))""",
    "workflowClaims": """DELETE FROM workflow_claims WHERE ctid = ANY(ARRAY(
        SELECT ctid FROM workflow_claims WHERE lease_until < now() - interval '7 days'
        ORDER BY lease_until LIMIT $1))""",
    "agentRequests": """DELETE FROM oauth_requests WHERE id_hash = ANY(ARRAY(
        SELECT id_hash FROM oauth_requests WHERE expires_at < now() - interval '1 day'
        ORDER BY expires_at LIMIT $1))""",
    "agentCodes": """DELETE FROM oauth_codes WHERE code_hash = ANY(ARRAY(
        SELECT code_hash FROM oauth_codes WHERE expires_at < now() - interval '1 day'
        ORDER BY expires_at LIMIT $1))""",
    # A refresh token that comes again after its use ends the grant: for that it is known a while longer.
    "agentTokens": """DELETE FROM oauth_tokens WHERE token_hash = ANY(ARRAY(
        SELECT token_hash FROM oauth_tokens WHERE expires_at < now() - interval '30 days'
        ORDER BY expires_at LIMIT $1))""",
    "agentGrants": """DELETE FROM oauth_grants WHERE id = ANY(ARRAY(
        SELECT id FROM oauth_grants WHERE ended_at < now() - interval '90 days'
        ORDER BY ended_at LIMIT $1))""",
    # Those that never ended but of which no token is left go too, so that people are not shown agents
    # that can do nothing any more. A grant with tokens is looked at again when the last of them is gone.
    "agentGrantsReviewed": """
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
        SELECT FROM due""",
    "agentClients": """DELETE FROM oauth_clients WHERE id = ANY(ARRAY(
        (SELECT id FROM oauth_clients WHERE used_at < now() - interval '90 days'
        ORDER BY used_at LIMIT $1)
        UNION ALL
        (SELECT id FROM oauth_clients
        WHERE used_at = created_at AND created_at < now() - interval '1 day'
        ORDER BY created_at LIMIT $1)))""",
    # Contract 2: whoever asked may look for seven days.
    "operations": """DELETE FROM operations WHERE id = ANY(ARRAY(
        SELECT id FROM operations WHERE finished_at < now() - interval '7 days'
        ORDER BY finished_at LIMIT $1))""",
    # For that long the same key changes nothing twice.
    # Architecture, "One way to act": what was done is shown for a day.
    "finishedCalls": """DELETE FROM finished_calls WHERE ctid = ANY(ARRAY(
        SELECT ctid FROM finished_calls WHERE finished_at < now() - interval '1 day'
        ORDER BY finished_at LIMIT $1))""",
    "agentOperations": """DELETE FROM agent_operations WHERE ctid = ANY(ARRAY(
        SELECT ctid FROM agent_operations WHERE finished_at < now() - interval '90 days'
        ORDER BY finished_at LIMIT $1))""",
    # Product page "Reliability" 3: an operator may have one sent again after months. What was not
    # applied is money that someone waits for, and stays.
    "paymentEvents": """DELETE FROM payment_events WHERE event_id = ANY(ARRAY(
        SELECT event_id FROM payment_events
        WHERE received_at < now() - interval '400 days' AND state IN ('applied', 'ignored')
        ORDER BY received_at LIMIT $1))""",
}
"""What the retention sweep deletes, by the counter it is reported under."""


async def sweep(database: Database, sql: str, limit: int) -> int:
    """Delete one batch; answer how many rows it was."""
    async with database.transaction() as tx:
        # Statistics of before a large change would have a table read whole for its last rows.
        await tx.execute("SET LOCAL enable_seqscan = off")
        status = await tx.execute(sql, limit)
    return int(status.rsplit(" ", 1)[-1])


async def commit(database: Database) -> None:
    """Commit and change nothing: who times it knows what an answer waits for its commit."""
    await database.execute("SELECT pg_logical_emit_message(true, 'tolsey', '')")
