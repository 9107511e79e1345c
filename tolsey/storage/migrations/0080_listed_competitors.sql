-- A store of a plan without a bound may compete with thousands, and the registry is listed by what shops sell: a page
-- of either is read from an index in its order.
-- compatible-from: 0036
-- transaction: none
-- locks: nothing that others use
CREATE INDEX CONCURRENTLY IF NOT EXISTS competitors_added_at ON competitors (store_id, added_at, domain);
CREATE INDEX CONCURRENTLY IF NOT EXISTS storefronts_category ON storefronts (category, discovered_at, domain);
