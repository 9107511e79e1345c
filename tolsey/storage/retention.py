"""SQL that lets go of what has served its time (specification, Limits), in bounded batches."""

from collections.abc import AsyncIterator

from tolsey.storage.database import Database

BATCH = 5000

WEBHOOK_DELIVERIES = """
    DELETE FROM commerce_webhook_events WHERE ctid IN (
        SELECT ctid FROM commerce_webhook_events
        WHERE created_at < now() - interval '7 days' ORDER BY created_at LIMIT $1)
"""

AUDIT_LOG = """
    DELETE FROM audit_log WHERE id IN (
        SELECT id FROM audit_log
        WHERE created_at < now() - interval '180 days'
        AND created_at < now() - CASE audit_retention(event, retention)
            WHEN '180_days' THEN interval '180 days' WHEN '7_years' THEN interval '7 years' END
        ORDER BY created_at LIMIT $1)
"""
"""Audit rows that have stayed as long as they say; deliveries wait for their erasure."""

SWEPT = {
    "sessions": """DELETE FROM sessions WHERE ctid IN (
        SELECT ctid FROM sessions WHERE expires_at < now() LIMIT $1)""",
    "idempotencyKeys": """DELETE FROM idempotency_keys WHERE ctid IN (
        SELECT ctid FROM idempotency_keys WHERE created_at < now() - interval '24 hours' LIMIT $1)""",
    "journal": """DELETE FROM actor_journal WHERE ctid IN (
        SELECT ctid FROM actor_journal WHERE committed_at < now() - interval '7 days' LIMIT $1)""",
    "executions": """DELETE FROM cron_executions WHERE id IN (
        SELECT id FROM cron_executions WHERE finished_at < now() - interval '90 days' LIMIT $1)""",
    "deadLetters": """DELETE FROM dead_letters WHERE id IN (
        SELECT id FROM dead_letters WHERE settled_at < now() - interval '90 days' LIMIT $1)""",
    "workflowClaims": """DELETE FROM workflow_claims WHERE ctid IN (
        SELECT ctid FROM workflow_claims WHERE lease_until < now() - interval '7 days' LIMIT $1)""",
    "agentRequests": """DELETE FROM oauth_requests WHERE id_hash IN (
        SELECT id_hash FROM oauth_requests WHERE expires_at < now() - interval '1 day' LIMIT $1)""",
    "agentCodes": """DELETE FROM oauth_codes WHERE code_hash IN (
        SELECT code_hash FROM oauth_codes WHERE expires_at < now() - interval '1 day' LIMIT $1)""",
    # A refresh token that comes again after its use ends the grant: for that it is known a while longer.
    "agentTokens": """DELETE FROM oauth_tokens WHERE token_hash IN (
        SELECT token_hash FROM oauth_tokens
        WHERE expires_at < now() - interval '30 days' LIMIT $1)""",
    # Also those that never ended but of which no token is left, so that people are not shown agents
    # that can do nothing any more.
    "agentGrants": """DELETE FROM oauth_grants WHERE id IN (
        SELECT id FROM oauth_grants g
        WHERE ended_at < now() - interval '90 days' OR (
            created_at < now() - interval '30 days'
            AND NOT EXISTS (SELECT FROM oauth_tokens t WHERE t.grant_id = g.id))
        LIMIT $1)""",
    "agentClients": """DELETE FROM oauth_clients WHERE id IN (
        SELECT id FROM oauth_clients
        WHERE used_at < now() - interval '90 days'
        OR (used_at = created_at AND created_at < now() - interval '1 day') LIMIT $1)""",
    # For that long the same key changes nothing twice.
    "agentOperations": """DELETE FROM agent_operations WHERE ctid IN (
        SELECT ctid FROM agent_operations
        WHERE finished_at < now() - interval '90 days' LIMIT $1)""",
    # Product page "Reliability" 3: an operator may have one sent again after months. What was not
    # applied is money that someone waits for, and stays.
    "paymentEvents": """DELETE FROM payment_events WHERE event_id IN (
        SELECT event_id FROM payment_events
        WHERE received_at < now() - interval '400 days' AND state IN ('applied', 'ignored')
        LIMIT $1)""",
}
"""What the retention sweep deletes, by the counter it is reported under."""


async def batches(database: Database, sql: str) -> AsyncIterator[int]:
    """Run a batched DELETE until a batch is short; give the count of each batch."""
    while True:
        deleted = await database.execute(sql, BATCH)
        yield deleted
        if deleted < BATCH:
            return
