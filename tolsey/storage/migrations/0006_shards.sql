-- Many processes share the slots: where an operator pinned one, a name for the keys this deployment
-- has in Redis, and the answers to asks that came from another process, so that an ask that is sent
-- again after its owner died gets the answer of the turn that it had caused.
ALTER TABLE slot_epochs ADD COLUMN pinned_to text;

CREATE TABLE deployment (
    id  uuid NOT NULL DEFAULT gen_random_uuid(),
    one boolean PRIMARY KEY DEFAULT true CHECK (one)
);
INSERT INTO deployment DEFAULT VALUES;

ALTER TABLE actor_journal ADD COLUMN reply text;
CREATE INDEX actor_journal_reply ON actor_journal (message_id) WHERE reply IS NOT NULL;
