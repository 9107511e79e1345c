-- What feeds the registry takes what is due in its order from an index, however many storefronts it holds: those that
-- were never looked at by when they were heard of, and those that somebody competes with by when they were seen last.
-- compatible-from: 0036
-- transaction: none
-- locks: nothing that others use
CREATE INDEX CONCURRENTLY IF NOT EXISTS storefronts_unseen ON storefronts (discovered_at) WHERE scanned_at IS NULL;
CREATE INDEX CONCURRENTLY IF NOT EXISTS storefronts_seen_at
    ON storefronts (coalesce(scanned_at, '-infinity'::timestamptz), domain)
    WHERE state IN ('discovered', 'active') AND hold_until IS NULL;
CREATE INDEX CONCURRENTLY IF NOT EXISTS storefronts_kept_at
    ON storefronts (coalesce(snapshot_at, '-infinity'::timestamptz), domain)
    WHERE state IN ('discovered', 'active') AND hold_until IS NULL;
