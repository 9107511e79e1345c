-- Money goes back only when a person of the store confirmed it: an operation may wait for that, and says who it was
-- and when.
-- compatible-from: 0036
ALTER TABLE agent_operations ADD COLUMN decided_by text, ADD COLUMN decided_at timestamptz;
COMMENT ON COLUMN agent_operations.decided_by IS 'The person who confirmed or declined what an agent proposed';

-- As they were, and `proposed`. The rows are few, and old ones keep both rules.
ALTER TABLE agent_operations
    DROP CONSTRAINT agent_operations_state_check,
    DROP CONSTRAINT agent_operations_check,
    ADD CONSTRAINT agent_operations_state_check CHECK (state IN ('proposed', 'waiting', 'running', 'sent', 'unknown',
        'applied', 'rejected', 'unclear', 'not_sent')),
    ADD CONSTRAINT agent_operations_check CHECK (
        (finished_at IS NULL) = (state IN ('proposed', 'waiting', 'running', 'sent', 'unknown')));
