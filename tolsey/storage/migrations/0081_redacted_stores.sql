-- A store whose first shop was forgotten has no salt any more, and was never erased when it was deleted: what there is
-- to erase is told by its name, which goes last in the same sweep.
-- compatible-from: 0036
-- transaction: none
-- locks: stores, for a moment; the index is built beside the traffic, in a moment
CREATE INDEX CONCURRENTLY IF NOT EXISTS stores_deleted_at ON stores (deleted_at)
    WHERE deleted_at IS NOT NULL AND name <> '';
DROP INDEX CONCURRENTLY IF EXISTS stores_to_erase;
