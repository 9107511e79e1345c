-- What is asked of the outside is told from messages by its lane, and says how far it is: a call that must
-- not be made twice is looked up once it may have been sent. One that is done leaves the outbox and is
-- shown for a day. A row of a version before this one has no lane, and is shown nowhere when it is done.
-- compatible-from: 0036
-- transaction: none
-- locks: outbox and dead_letters, for a moment; their indexes are built beside the traffic, in a second
ALTER TABLE outbox ADD COLUMN lane text, ADD COLUMN state text NOT NULL DEFAULT 'waiting';
ALTER TABLE dead_letters ADD COLUMN lane text;
CREATE INDEX CONCURRENTLY IF NOT EXISTS outbox_calls ON outbox (kind, actor_key, due_at)
    WHERE lane IS NOT NULL;
CREATE INDEX CONCURRENTLY IF NOT EXISTS dead_letters_calls ON dead_letters (kind, actor_key, died_at)
    WHERE lane IS NOT NULL AND status = 'dead';

CREATE TABLE finished_calls (
    key         text NOT NULL,
    kind        text NOT NULL,
    actor_key   text NOT NULL,
    name        text NOT NULL,
    lane        text NOT NULL,
    attempts    integer NOT NULL,
    last_error  text,
    request_id  text,
    created_at  timestamptz NOT NULL,
    finished_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX finished_calls_actor ON finished_calls (kind, actor_key, finished_at);
CREATE INDEX finished_calls_finished_at ON finished_calls (finished_at);
COMMENT ON TABLE finished_calls IS 'Calls whose result took effect; attempts that failed before it';
