-- What the runtime itself keeps: who owns a slot, how far each actor is, which turns happened,
-- what still has to follow them, and what failed for good.
CREATE TABLE slot_epochs (
    slot       integer PRIMARY KEY CHECK (slot BETWEEN 0 AND 1023),
    epoch      bigint NOT NULL DEFAULT 0,
    owner      text,
    claimed_at timestamptz
);
INSERT INTO slot_epochs (slot) SELECT generate_series(0, 1023);

CREATE TABLE actors (
    kind    text NOT NULL,
    key     text NOT NULL,
    slot    integer NOT NULL,
    version bigint NOT NULL,
    PRIMARY KEY (kind, key)
);

CREATE TABLE actor_journal (
    kind         text NOT NULL,
    key          text NOT NULL,
    version      bigint NOT NULL,
    message_id   text NOT NULL,
    message      text NOT NULL,
    epoch        bigint NOT NULL,
    committed_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (kind, key, version)
);
CREATE INDEX actor_journal_committed_at ON actor_journal USING brin (committed_at);

CREATE TABLE outbox (
    key        text PRIMARY KEY,
    slot       integer NOT NULL,
    kind       text NOT NULL,
    actor_key  text NOT NULL,
    name       text NOT NULL,
    payload    jsonb NOT NULL,
    due_at     timestamptz NOT NULL DEFAULT now(),
    attempts   integer NOT NULL DEFAULT 0,
    last_error text,
    request_id text,
    created_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX outbox_due ON outbox (due_at);

CREATE TABLE dead_letters (
    id         text PRIMARY KEY,
    key        text NOT NULL,
    slot       integer NOT NULL,
    kind       text NOT NULL,
    actor_key  text NOT NULL,
    name       text NOT NULL,
    payload    jsonb NOT NULL,
    attempts   integer NOT NULL,
    error      text NOT NULL,
    request_id text,
    status     text NOT NULL DEFAULT 'dead',
    created_at timestamptz NOT NULL,
    died_at    timestamptz NOT NULL DEFAULT now(),
    settled_at timestamptz
);
CREATE INDEX dead_letters_died_at ON dead_letters (died_at);

CREATE TABLE audit_log (
    id              bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    event           text NOT NULL,
    subject         text NOT NULL,
    organization_id text,
    actor           text NOT NULL,
    metadata        jsonb NOT NULL,
    created_at      timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX audit_log_created_at ON audit_log (created_at);
CREATE INDEX audit_log_subject ON audit_log (subject, id);
