-- Rows that still hold the older global digest of a buyer's address are found without a look at the others, a store
-- and a digest after the other: the move to pseudonyms of each store asks for them, and so does every erasure. Once
-- they are moved the indexes are empty, and cost a new row nothing but the look at its first three characters.
-- compatible-from: 0036
-- transaction: none
-- locks: nothing; each index is built beside the traffic, in half a second for a million rows
CREATE INDEX CONCURRENTLY IF NOT EXISTS commerce_orders_older_identity
    ON commerce_orders (store_id, customer_hash) WHERE customer_hash NOT LIKE 's1:%';
CREATE INDEX CONCURRENTLY IF NOT EXISTS commerce_customers_older_identity
    ON commerce_customers (store_id, email_hash) WHERE email_hash NOT LIKE 's1:%';
CREATE INDEX CONCURRENTLY IF NOT EXISTS attribution_touches_older_identity
    ON attribution_touches (store_id, session_id) WHERE session_id NOT LIKE 's1:%';
CREATE INDEX CONCURRENTLY IF NOT EXISTS customer_redactions_older_identity
    ON customer_redactions (store_id, email_hash) WHERE email_hash NOT LIKE 's1:%';
