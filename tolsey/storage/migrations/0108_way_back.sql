-- A line of the journal may keep how to get from the state after its turn to the one before it, so that operators see how
-- an actor was before a message. Nobody has it but kinds that are named in HISTORY_KINDS.
-- compatible-from: 0036
-- locks: actor_journal, for a moment
ALTER TABLE actor_journal ADD COLUMN way_back bytea;
