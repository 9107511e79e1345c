-- Changes that were planned together are looked up by the name of their plan, and a store lists its plans of late.
-- compatible-from: 0036
-- transaction: none
-- locks: nothing that keeps others from writing; no row has a name yet
CREATE INDEX CONCURRENTLY IF NOT EXISTS agent_operations_change_set ON agent_operations (change_set, operation_id)
    WHERE change_set IS NOT NULL;
CREATE INDEX CONCURRENTLY IF NOT EXISTS agent_operations_change_sets ON agent_operations (store_id, created_at)
    WHERE change_set IS NOT NULL;
