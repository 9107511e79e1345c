-- The newest listings that show a revenue, or have their badge, are found by an index of those: all that show one were
-- read and sorted for a page (18 ms of 4,000), and few badges were looked for in the whole market.
-- compatible-from: 0036
-- transaction: none
-- locks: nothing that keeps others from writing; of a million rows each index takes seconds
CREATE INDEX CONCURRENTLY IF NOT EXISTS market_entries_with_revenue ON market_entries (revenue_currency, listing_id)
    WHERE revenue_low IS NOT NULL;
CREATE INDEX CONCURRENTLY IF NOT EXISTS market_entries_verified ON market_entries (listing_id)
    WHERE verified_until IS NOT NULL;
