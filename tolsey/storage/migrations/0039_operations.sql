-- What people ask for that takes calls to the outside is kept with what became of it: whoever asked and
-- waited for ten seconds looks here, and no crash leaves half of it done. Kept for seven days after its end.
-- compatible-from: 0036
-- locks: nothing that is in use
CREATE TABLE operations (
    id              text PRIMARY KEY,
    organization_id text NOT NULL,
    user_id         text NOT NULL,
    kind            text NOT NULL,
    subject         text NOT NULL,
    state           text NOT NULL,
    wanted          jsonb NOT NULL,
    created_at      timestamptz NOT NULL,
    result          jsonb,
    status          integer,
    code            text,
    detail          text,
    finished_at     timestamptz
);
CREATE INDEX operations_open ON operations (organization_id, created_at) WHERE finished_at IS NULL;
CREATE INDEX operations_finished ON operations (finished_at) WHERE finished_at IS NOT NULL;
COMMENT ON COLUMN operations.subject IS 'What it is about: those of one thing go one after another';
