-- Up to 100 changes of a shop may be planned together: each stays an operation of its own, and they bear the name of
-- what they were planned as. Those that are not begun may be stopped, and go on when they are resumed.
-- compatible-from: 0036
-- locks: agent_operations, for a moment: what stands there kept a narrower rule and is not read again
ALTER TABLE agent_operations ADD COLUMN change_set text;
COMMENT ON COLUMN agent_operations.change_set IS 'The plan of many changes that this is one of';

-- As they were, and `stopped`.
ALTER TABLE agent_operations
    DROP CONSTRAINT agent_operations_state_check,
    DROP CONSTRAINT agent_operations_check,
    ADD CONSTRAINT agent_operations_state_check CHECK (state IN ('proposed', 'waiting', 'stopped', 'running', 'sent',
        'unknown', 'applied', 'rejected', 'unclear', 'not_sent')) NOT VALID,
    ADD CONSTRAINT agent_operations_check CHECK ((finished_at IS NULL) = (state IN ('proposed', 'waiting', 'stopped',
        'running', 'sent', 'unknown'))) NOT VALID;
