-- Indexes for lists that still read whole tables: the processor's events by what became of them, what an
-- organization ever published, runs of jobs that go on. And what a product's letters cost is told to the
-- planner, which would else rather take those of every product of a store than look into the index.
-- compatible-from: 0032
-- transaction: none
-- locks: nothing that keeps others from writing; of a million rows each index takes seconds
ALTER FUNCTION store_grams COST 10000;
ALTER FUNCTION product_words COST 2000;

CREATE INDEX CONCURRENTLY IF NOT EXISTS payment_events_state
    ON payment_events (state, received_at, event_id) WHERE state <> 'applied';
DROP INDEX CONCURRENTLY IF EXISTS payment_events_failed;

CREATE INDEX CONCURRENTLY IF NOT EXISTS listings_published
    ON listings (organization_id) WHERE published_at IS NOT NULL;

CREATE INDEX CONCURRENTLY IF NOT EXISTS cron_executions_running
    ON cron_executions (job, started_at) WHERE status = 'running';
