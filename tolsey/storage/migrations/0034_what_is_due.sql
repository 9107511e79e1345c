-- What sweeps look for is found by an index for just that, so that a night on which nothing is due costs
-- nothing, however many rows are kept. Rows of the audit log are judged by the function of migration 0026;
-- deliveries wait for their erasure and stand in neither index.
-- compatible-from: 0027
-- locks: oauth_grants, for a moment; each index is built beside the traffic, in seconds
-- transaction: none
CREATE INDEX CONCURRENTLY IF NOT EXISTS audit_log_180_days ON audit_log (created_at)
    WHERE audit_retention(event, retention) = '180_days';
CREATE INDEX CONCURRENTLY IF NOT EXISTS audit_log_7_years ON audit_log (created_at)
    WHERE audit_retention(event, retention) = '7_years';

CREATE INDEX CONCURRENTLY IF NOT EXISTS oauth_codes_expires_at ON oauth_codes (expires_at);
CREATE INDEX CONCURRENTLY IF NOT EXISTS workflow_claims_lease_until ON workflow_claims (lease_until);
CREATE INDEX CONCURRENTLY IF NOT EXISTS cron_executions_finished_at ON cron_executions (finished_at)
    WHERE finished_at IS NOT NULL;
CREATE INDEX CONCURRENTLY IF NOT EXISTS dead_letters_settled_at ON dead_letters (settled_at)
    WHERE settled_at IS NOT NULL;

-- A grant goes when no token of it is left. When to look for tokens next stands with it, so that a sweep
-- looks at grants whose last token may be gone and not at all there are.
ALTER TABLE oauth_grants ADD COLUMN review_at timestamptz NOT NULL DEFAULT now() + interval '30 days';
CREATE INDEX CONCURRENTLY IF NOT EXISTS oauth_grants_review_at ON oauth_grants (review_at)
    WHERE ended_at IS NULL;
