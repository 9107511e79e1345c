-- Why a store is stuck is also a message of it that failed for good, not only a call: both are found by their actor.
-- compatible-from: 0036
-- transaction: none
-- locks: nothing that keeps others from writing; of a million rows the index takes seconds
CREATE INDEX CONCURRENTLY IF NOT EXISTS dead_letters_actor ON dead_letters (kind, actor_key, died_at)
    WHERE status = 'dead';
DROP INDEX CONCURRENTLY IF EXISTS dead_letters_calls;
