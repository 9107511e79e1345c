-- An export looks in every table for the rows of its owner: somebody with six rows waited three seconds for it beside
-- 200,000 listings and 5,000,000 lines of the audit trail, which were read from end to end. And what is on the market
-- is found among listings that mostly are not.
-- compatible-from: 0036
-- transaction: none
-- locks: nothing that keeps others from writing; of a million rows each index takes seconds
CREATE INDEX CONCURRENTLY IF NOT EXISTS listings_every_of_organization ON listings (organization_id, id);
CREATE INDEX CONCURRENTLY IF NOT EXISTS listings_every_of_store ON listings (store_id, id);
CREATE INDEX CONCURRENTLY IF NOT EXISTS listings_created_by ON listings (created_by, id);
CREATE INDEX CONCURRENTLY IF NOT EXISTS listings_on_the_market ON listings (id)
    WHERE deleted_at IS NULL AND asking_price IS NOT NULL;
CREATE INDEX CONCURRENTLY IF NOT EXISTS oauth_grants_every_of_user ON oauth_grants (user_id, id);
CREATE INDEX CONCURRENTLY IF NOT EXISTS oauth_grants_every_of_organization ON oauth_grants (organization_id, id);
CREATE INDEX CONCURRENTLY IF NOT EXISTS oauth_grants_every_of_store ON oauth_grants (store_id, id);
CREATE INDEX CONCURRENTLY IF NOT EXISTS operations_user ON operations (user_id, id);
CREATE INDEX CONCURRENTLY IF NOT EXISTS operations_organization ON operations (organization_id, id);
CREATE INDEX CONCURRENTLY IF NOT EXISTS agent_operations_user ON agent_operations (user_id);
CREATE INDEX CONCURRENTLY IF NOT EXISTS messages_user ON messages (user_id) WHERE user_id IS NOT NULL;
CREATE INDEX CONCURRENTLY IF NOT EXISTS files_created_by ON files (created_by);
CREATE INDEX CONCURRENTLY IF NOT EXISTS revenue_sources_connected_by ON revenue_sources (connected_by);
CREATE INDEX CONCURRENTLY IF NOT EXISTS affiliate_redemptions_user ON affiliate_redemptions (user_id);
CREATE INDEX CONCURRENTLY IF NOT EXISTS affiliate_redemptions_affiliate ON affiliate_redemptions (affiliate_id);
CREATE INDEX CONCURRENTLY IF NOT EXISTS compliance_requests_handled_by ON compliance_requests (handled_by)
    WHERE handled_by IS NOT NULL;
CREATE INDEX CONCURRENTLY IF NOT EXISTS compliance_requests_asked_by ON compliance_requests (asked_by)
    WHERE asked_by IS NOT NULL;
CREATE INDEX CONCURRENTLY IF NOT EXISTS compliance_receipts_store ON compliance_receipts (store_id);
CREATE INDEX CONCURRENTLY IF NOT EXISTS deal_threads_requested_by ON deal_threads (requested_by);
CREATE INDEX CONCURRENTLY IF NOT EXISTS deal_offers_made_by ON deal_offers (made_by);
