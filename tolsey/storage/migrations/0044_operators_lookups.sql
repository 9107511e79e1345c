-- What an operator knows of whoever asks for help (the name of a shop, of a store or of an organization)
-- finds the rows, and the lists of audit rows and deliveries are read for one of them alone. Deliveries write
-- most audit rows and none into these indexes: they are looked for by their store.
-- compatible-from: 0036
-- transaction: none
-- locks: nothing that keeps others from writing; of a million rows each index takes seconds
CREATE INDEX CONCURRENTLY IF NOT EXISTS organizations_name
    ON organizations (folded(name) text_pattern_ops);
CREATE INDEX CONCURRENTLY IF NOT EXISTS stores_name ON stores (folded(name) text_pattern_ops);
CREATE INDEX CONCURRENTLY IF NOT EXISTS store_shops_name
    ON store_shops (folded(name) text_pattern_ops);
CREATE INDEX CONCURRENTLY IF NOT EXISTS integration_connections_begins
    ON integration_connections (shop_domain text_pattern_ops);
CREATE INDEX CONCURRENTLY IF NOT EXISTS revenue_sources_begins
    ON revenue_sources (shop_domain text_pattern_ops);
CREATE INDEX CONCURRENTLY IF NOT EXISTS listings_of_store ON listings (store_id, id)
    WHERE deleted_at IS NULL;

CREATE INDEX CONCURRENTLY IF NOT EXISTS audit_log_acts_in_organization
    ON audit_log (organization_id, id) WHERE event NOT LIKE 'commerce.webhook.%';
CREATE INDEX CONCURRENTLY IF NOT EXISTS audit_log_acts_by
    ON audit_log (actor, id) WHERE event NOT LIKE 'commerce.webhook.%';
CREATE INDEX CONCURRENTLY IF NOT EXISTS audit_log_acts
    ON audit_log (event, id) WHERE event NOT LIKE 'commerce.webhook.%';
CREATE INDEX CONCURRENTLY IF NOT EXISTS commerce_webhook_events_topic
    ON commerce_webhook_events (store_id, topic, created_at DESC, delivery_id DESC);

-- An organization that wakes up reads all of its stores, deleted ones too.
CREATE INDEX CONCURRENTLY IF NOT EXISTS stores_of_organization ON stores (organization_id);
