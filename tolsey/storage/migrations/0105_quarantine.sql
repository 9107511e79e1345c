-- A message that keeps failing waits aside among the dead letters, and behind it what the same sender says of the same
-- thing (an order, a deal), in order; everything else of its actor goes on. So rows say what they are about, and behind
-- which letter they wait.
-- compatible-from: 0036
-- locks: outbox and dead_letters, for a moment; their indexes are built beside the traffic, in a second
-- transaction: none
ALTER TABLE outbox ADD COLUMN IF NOT EXISTS about text NOT NULL DEFAULT '', ADD COLUMN IF NOT EXISTS held_by text;
ALTER TABLE dead_letters ADD COLUMN IF NOT EXISTS sender text, ADD COLUMN IF NOT EXISTS about text NOT NULL DEFAULT '';
CREATE INDEX CONCURRENTLY IF NOT EXISTS outbox_sender_about ON outbox (sender, about, created_at, key)
    WHERE sender IS NOT NULL;
CREATE INDEX CONCURRENTLY IF NOT EXISTS outbox_held ON outbox (held_by, created_at, key) WHERE held_by IS NOT NULL;
CREATE INDEX CONCURRENTLY IF NOT EXISTS dead_letters_about ON dead_letters (sender, about, created_at, key)
    WHERE status = 'dead' AND sender IS NOT NULL;
DROP INDEX CONCURRENTLY IF EXISTS outbox_sender;
