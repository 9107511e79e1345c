-- What agents did in a store is listed, the newest first, on the store's page.
-- compatible-from: 0036
-- transaction: none
-- locks: nothing that keeps others from writing; ten million rows are read once, beside them
CREATE INDEX CONCURRENTLY IF NOT EXISTS agent_operations_acts ON agent_operations (store_id, created_at DESC, operation_id DESC);
-- What a person took back is found by the name of what was taken back.
CREATE INDEX CONCURRENTLY IF NOT EXISTS agent_operations_taken_back ON agent_operations (client_id)
    WHERE client_id LIKE 'undo:%';
