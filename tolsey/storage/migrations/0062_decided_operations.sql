-- Money goes back only when a person of the store confirmed it: an operation may wait for that, and says who it was
-- and when.
-- compatible-from: 0036
-- locks: agent_operations, for a moment: what stands there kept a narrower rule and is not read again
ALTER TABLE agent_operations ADD COLUMN decided_by text, ADD COLUMN decided_at timestamptz;
COMMENT ON COLUMN agent_operations.decided_by IS 'The person who confirmed or declined what an agent proposed';

-- As they were, and `proposed`.
ALTER TABLE agent_operations
    DROP CONSTRAINT agent_operations_state_check,
    DROP CONSTRAINT agent_operations_check,
    ADD CONSTRAINT agent_operations_state_check CHECK (state IN ('proposed', 'waiting', 'running', 'sent', 'unknown',
        'applied', 'rejected', 'unclear', 'not_sent')) NOT VALID,
    ADD CONSTRAINT agent_operations_check CHECK (
        (finished_at IS NULL) = (state IN ('proposed', 'waiting', 'running', 'sent', 'unknown'))) NOT VALID;
