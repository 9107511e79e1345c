-- Providers of mail, code and messages post what happened: each event is kept once, for a week, and a bounce marks its
-- address, which is written to no more.
-- compatible-from: 0036
-- locks: nothing; both tables are new
CREATE TABLE provider_events (
    provider    text NOT NULL,
    event_id    text NOT NULL,
    type        text NOT NULL,
    sealed_body text NOT NULL,
    state       text NOT NULL,
    why         text,
    received_at timestamptz NOT NULL,
    settled_at  timestamptz,
    PRIMARY KEY (provider, event_id)
);
CREATE INDEX provider_events_received ON provider_events (received_at, event_id);
CREATE INDEX provider_events_of_provider ON provider_events (provider, received_at, event_id);
CREATE INDEX provider_events_of_state ON provider_events (state, received_at, event_id);
CREATE TABLE mail_bounces (
    recipient text PRIMARY KEY,
    kind      text NOT NULL,
    why       text NOT NULL,
    since     timestamptz NOT NULL
);
CREATE INDEX mail_bounces_since ON mail_bounces (since, recipient);
