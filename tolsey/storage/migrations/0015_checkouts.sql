-- The last checkout page that an organization was shown: the next one closes it first, so that two
-- pages in two tabs never sell two subscriptions.
CREATE TABLE plan_checkouts (
    organization_id text PRIMARY KEY,
    session_id      text NOT NULL,
    created_at      timestamptz NOT NULL
);
