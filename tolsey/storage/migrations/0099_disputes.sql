-- Operators read what they have to decide: deals in dispute and payments that are disputed; sellers page through their
-- buyers. Few rows of large tables are in dispute, so each has an index of those alone.
-- compatible-from: 0036
-- locks: nothing, indexes are built beside the traffic
-- transaction: none
CREATE INDEX CONCURRENTLY IF NOT EXISTS deal_threads_page_of_listing ON deal_threads (listing_id, id);
CREATE INDEX CONCURRENTLY IF NOT EXISTS deal_threads_disputed ON deal_threads (entered_at, id)
    WHERE stage = 'DISPUTED' OR stage = 'REFUND_REQUESTED' AND escalated;
CREATE INDEX CONCURRENTLY IF NOT EXISTS payment_facts_disputed ON payment_facts (payment_ref, organization_id)
    WHERE disputes @? '$[*][2] ? (@ == "open")';
