-- Events of the payment processor, once each for good: the row is what makes a repeat a repeat, it
-- is on disk before the answer, and it holds the facts that were read, never the body with its names,
-- addresses and cards. Links say whose the processor's ids are: a dispute names a payment and nobody.
CREATE TABLE payment_events (
    event_id        text PRIMARY KEY,
    type            text NOT NULL,
    object_id       text,
    account         text,
    api_version     text,
    livemode        boolean NOT NULL,
    created_at      timestamptz NOT NULL,
    facts           jsonb,
    links           text[] NOT NULL DEFAULT '{}',
    claimed_by      text,
    organization_id text,
    state           text NOT NULL CHECK (state IN ('new', 'applied', 'ignored', 'parked', 'failed')),
    why             text,
    tries           integer NOT NULL DEFAULT 1,
    received_at     timestamptz NOT NULL DEFAULT now(),
    settled_at      timestamptz
);
CREATE INDEX payment_events_waiting ON payment_events (received_at, event_id) WHERE state = 'new';
CREATE INDEX payment_events_parked ON payment_events USING gin (links) WHERE state = 'parked';
CREATE INDEX payment_events_failed ON payment_events (received_at) WHERE state = 'failed';
CREATE INDEX payment_events_received_at ON payment_events (received_at);
CREATE INDEX payment_events_organization ON payment_events (organization_id, received_at);

CREATE TABLE payment_links (
    reference       text PRIMARY KEY,
    organization_id text NOT NULL,
    event_id        text NOT NULL,
    created_at      timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX payment_links_organization ON payment_links (organization_id);
