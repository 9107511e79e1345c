-- What agents asked to have changed in shops: each under the key its agent gave it, so that asking
-- again changes nothing twice, whatever process or network failed in between. The row outlives the
-- answer that was lost; what was asked is sealed, and gone once it is known what became of it.
CREATE TABLE agent_operations (
    store_id     text NOT NULL,
    operation_id text NOT NULL,
    user_id      text NOT NULL,
    client_id    text NOT NULL,
    tool         text NOT NULL,
    subject      text NOT NULL,
    digest       text NOT NULL,
    state        text NOT NULL CHECK (state IN ('waiting', 'running', 'sent', 'unknown',
                                                'applied', 'rejected', 'unclear', 'not_sent')),
    created_at   timestamptz NOT NULL,
    intent       text,
    before       jsonb,
    after        jsonb,
    version      text,
    code         text,
    detail       text,
    sends        integer NOT NULL DEFAULT 0,
    looks        integer NOT NULL DEFAULT 0,
    finished_at  timestamptz,
    PRIMARY KEY (store_id, operation_id),
    CHECK ((finished_at IS NULL) = (state IN ('waiting', 'running', 'sent', 'unknown'))),
    CHECK (finished_at IS NULL OR intent IS NULL)
);
CREATE INDEX agent_operations_open ON agent_operations (store_id, created_at)
    WHERE finished_at IS NULL;
CREATE INDEX agent_operations_finished_at ON agent_operations (finished_at);

-- The audit row that an operation's answer names.
CREATE INDEX audit_log_operation ON audit_log ((metadata->>'operationId'), id)
    WHERE event = 'agent.write';
