-- What is written to people. A mail is rendered once and waits here, its content sealed because it may hold
-- a link that opens something; with the last try the content goes and the row stays, so that an operator
-- can tell whom the service wrote to, when, and what the server said. One row for each thing and person, so
-- that what is told twice is written once.
-- compatible-from: 0036
-- locks: nothing, both tables are new
CREATE TABLE outbound_mail (
    id              text PRIMARY KEY,
    event           text NOT NULL,
    about           text NOT NULL,
    organization_id text,
    recipient       text NOT NULL,
    subject         text NOT NULL,
    sealed_content  text,
    state           text NOT NULL DEFAULT 'waiting'
                    CHECK (state IN ('waiting', 'kept', 'sent', 'refused', 'given_up')),
    attempts        integer NOT NULL DEFAULT 0,
    next_try_at     timestamptz,
    answer          text,
    created_at      timestamptz NOT NULL,
    ended_at        timestamptz,
    UNIQUE (event, about, recipient)
);
CREATE INDEX outbound_mail_created_at ON outbound_mail (created_at DESC, id DESC);
CREATE INDEX outbound_mail_recipient ON outbound_mail (recipient, created_at DESC);

-- Who wants no more mail of a topic (RFC 8058). What is about security, money or law has no topic.
CREATE TABLE mail_refusals (
    recipient text NOT NULL,
    topic     text NOT NULL,
    since     timestamptz NOT NULL,
    PRIMARY KEY (recipient, topic)
);
