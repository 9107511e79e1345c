-- Whoever had an agent change something looks up what became of it by the operation's id alone, as for
-- everything else that takes calls.
-- compatible-from: 0036
-- transaction: none
-- locks: nothing that keeps others from writing; of a million rows it takes seconds
CREATE INDEX CONCURRENTLY IF NOT EXISTS agent_operations_id ON agent_operations (operation_id);
