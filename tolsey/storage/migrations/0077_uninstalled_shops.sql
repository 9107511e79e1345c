-- 30 days after its app was removed a shop that nobody connected again is forgotten: the job looks for them each hour.
-- compatible-from: 0036
-- transaction: none
-- locks: nothing; the index is built beside the traffic, in a moment
CREATE INDEX CONCURRENTLY IF NOT EXISTS connection_history_uninstalled ON connection_history (ended_at)
    WHERE ending = 'uninstalled';
