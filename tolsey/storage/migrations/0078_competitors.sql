-- A store names the storefronts that it competes with; what is known of those is in the registry. The registry is
-- listed by when a domain was heard of, and told by what it mostly sells.
-- compatible-from: 0036
-- transaction: none
-- locks: stores and storefronts, for a moment each
CREATE TABLE IF NOT EXISTS competitors (
    store_id text NOT NULL,
    domain   text NOT NULL,
    added_by text NOT NULL,
    added_at timestamptz NOT NULL,
    PRIMARY KEY (store_id, domain)
);
CREATE INDEX CONCURRENTLY IF NOT EXISTS competitors_domain ON competitors (domain);
CREATE INDEX CONCURRENTLY IF NOT EXISTS competitors_added_by ON competitors (added_by);
ALTER TABLE storefronts ADD COLUMN IF NOT EXISTS category text;
CREATE INDEX CONCURRENTLY IF NOT EXISTS storefronts_discovered_at ON storefronts (discovered_at, domain);
