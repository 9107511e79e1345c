-- A shop's platform asks for a person's data, or to forget a person or a whole shop. Each request is kept from
-- the moment it is taken until an operator closes it, with what was done about it for each store of the shop. Of
-- a person only pseudonyms are kept: one of the shop's, and those that its stores know them by. What of a deleted
-- store is to go is found by an index, and so are the stores that a shop was ever connected to.
-- compatible-from: 0036
-- transaction: none
-- locks: nothing; each index is built beside the traffic, in a moment
CREATE TABLE compliance_requests (
    id            text PRIMARY KEY,
    topic         text NOT NULL CHECK (topic IN ('shop/redact', 'customers/data_request', 'customers/redact')),
    shop_domain   text NOT NULL,
    delivery_id   text NOT NULL,
    body_digest   text NOT NULL,
    email_hash    text,
    stores        text[] NOT NULL,
    shop_keys     text[] NOT NULL,
    received_at   timestamptz NOT NULL,
    pending_steps text[] NOT NULL,
    asked_steps   text[] NOT NULL DEFAULT '{}',
    completed_at  timestamptz,
    handled_at    timestamptz,
    handled_by    text,
    UNIQUE (shop_domain, topic, delivery_id)
);
COMMENT ON COLUMN compliance_requests.shop_keys IS
    'What each of the stores kept the shop''s rows under when the request came';
COMMENT ON COLUMN compliance_requests.body_digest IS 'Keyed by the shop, so that nobody finds an address by it';
-- A body that comes again under another id while the first is worked on asks for nothing new.
CREATE UNIQUE INDEX CONCURRENTLY IF NOT EXISTS compliance_requests_body
    ON compliance_requests (shop_domain, topic, body_digest) WHERE completed_at IS NULL;
CREATE INDEX CONCURRENTLY IF NOT EXISTS compliance_requests_open
    ON compliance_requests (received_at) WHERE handled_at IS NULL;
CREATE INDEX CONCURRENTLY IF NOT EXISTS compliance_requests_stores
    ON compliance_requests USING gin (stores);

CREATE TABLE compliance_receipts (
    request_id  text NOT NULL REFERENCES compliance_requests (id),
    store_id    text NOT NULL,
    leg         text NOT NULL,
    rows_before bigint NOT NULL,
    rows_after  bigint NOT NULL,
    at          timestamptz NOT NULL,
    PRIMARY KEY (request_id, store_id, leg)
);

CREATE TABLE customer_redactions (
    request_id  text NOT NULL REFERENCES compliance_requests (id),
    store_id    text NOT NULL,
    subject_key text NOT NULL,
    email_hash  text NOT NULL,
    redacted_at timestamptz,
    PRIMARY KEY (request_id, store_id, subject_key)
);
COMMENT ON COLUMN customer_redactions.store_id IS 'The key that the rows of the shop are kept under';

CREATE INDEX CONCURRENTLY IF NOT EXISTS shops_of_stores_domain ON shops_of_stores (shop_domain);
CREATE INDEX CONCURRENTLY IF NOT EXISTS stores_to_erase ON stores (deleted_at)
    WHERE deleted_at IS NOT NULL AND sealed_salt <> '';
