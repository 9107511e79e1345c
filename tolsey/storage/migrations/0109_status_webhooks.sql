-- Who is told how the service does may be a program, at an address that confirmed it, and may want to hear of some parts alone
-- (an empty text: of all).
-- compatible-from: 0036
-- locks: status_subscribers, for a moment
ALTER TABLE status_subscribers ADD COLUMN components text NOT NULL DEFAULT '';
CREATE TABLE status_webhooks (
    id            text PRIMARY KEY,
    url           text NOT NULL UNIQUE,
    sealed_secret text NOT NULL,
    components    text NOT NULL,
    failures      integer NOT NULL DEFAULT 0,
    confirmed_at  timestamptz NOT NULL
);
