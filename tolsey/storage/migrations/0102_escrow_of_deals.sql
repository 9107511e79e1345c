-- The escrow provider tells of a transaction by its id, and anybody can post that: whose it is has to be found at once.
-- compatible-from: 0036
-- locks: none
-- transaction: none
CREATE INDEX CONCURRENTLY IF NOT EXISTS deal_threads_of_escrow ON deal_threads (escrow_id) WHERE escrow_id IS NOT NULL;
