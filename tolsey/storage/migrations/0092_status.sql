-- The status page tells how each part of the service does, over 90 days, and what was wrong when; who subscribed is
-- told. Alerts remember that they were raised, so that an operator is written to once.
-- compatible-from: 0036
-- locks: payment_events, for a moment: an index of what is counted
-- transaction: none
CREATE TABLE IF NOT EXISTS status_components (
    component  text PRIMARY KEY,
    state      text NOT NULL,
    why        text NOT NULL,
    bad_times  integer NOT NULL,
    checked_at timestamptz NOT NULL
);
CREATE TABLE IF NOT EXISTS status_days (
    component text NOT NULL,
    day       timestamptz NOT NULL,
    samples   integer NOT NULL,
    slow      integer NOT NULL,
    down      integer NOT NULL,
    PRIMARY KEY (component, day)
);
CREATE INDEX CONCURRENTLY IF NOT EXISTS status_days_day ON status_days (day);
CREATE TABLE IF NOT EXISTS incidents (
    id           text PRIMARY KEY,
    component    text NOT NULL,
    title        text NOT NULL,
    impact       text NOT NULL,
    state        text NOT NULL,
    source       text NOT NULL,
    opened_at    timestamptz NOT NULL,
    published_at timestamptz,
    resolved_at  timestamptz
);
CREATE INDEX CONCURRENTLY IF NOT EXISTS incidents_opened_at ON incidents (opened_at, id);
CREATE UNIQUE INDEX CONCURRENTLY IF NOT EXISTS incidents_open
    ON incidents (component) WHERE source = 'system' AND resolved_at IS NULL;
CREATE TABLE IF NOT EXISTS incident_updates (
    id          text PRIMARY KEY,
    incident_id text NOT NULL,
    state       text NOT NULL,
    body        text NOT NULL,
    at          timestamptz NOT NULL
);
CREATE INDEX CONCURRENTLY IF NOT EXISTS incident_updates_incident ON incident_updates (incident_id, at);
CREATE INDEX CONCURRENTLY IF NOT EXISTS incident_updates_at ON incident_updates (at, id);
CREATE TABLE IF NOT EXISTS status_subscribers (
    email        text PRIMARY KEY,
    confirmed_at timestamptz NOT NULL
);
CREATE TABLE IF NOT EXISTS raised_alerts (
    name     text PRIMARY KEY,
    since    timestamptz NOT NULL,
    told_at  timestamptz NOT NULL
);
CREATE INDEX CONCURRENTLY IF NOT EXISTS payment_events_counted ON payment_events (type, created_at)
    WHERE type IN ('charge.dispute.created', 'payment_intent.succeeded');
