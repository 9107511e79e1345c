-- Indexes for what is looked for in tables that grow: orders by name and open ones, products by their
-- words, audit rows by event, flagged revenue, dead letters by what became of them, and what waits in the
-- outbox for the actors of a slot.
-- compatible-from: 0031
-- transaction: none
-- locks: nothing that keeps others from writing; of a million rows each index takes seconds, and that of
-- products' words ten minutes.

-- All that a product can be found by, as people look for it. Says no expression of its own volatility:
-- concat_ws is only stable because of types whose output may change, and these are texts.
CREATE OR REPLACE FUNCTION product_words(
    title text, handle text, vendor text, product_type text, tags text, variants jsonb
) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN folded(concat_ws(' ', title, handle, vendor, product_type, tags, (
    SELECT string_agg(concat_ws(' ', v->>'title', v->>'sku'), ' ')
    FROM jsonb_path_query(variants, '$[*]') AS v)));

-- Every two and three letters in a row of a text, and the store itself, as numbers of this store: what has
-- all of a word's may hold the word, wherever it stands. pg_trgm is not everywhere, and knows no stores.
-- A loop, for each product is written through it: as one SELECT it takes three times as long.
CREATE OR REPLACE FUNCTION store_grams(store_id text, said text) RETURNS bigint[]
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
DECLARE
    grams bigint[] := ARRAY[hashtextextended(store_id, 0)];
    before_last text;
    last text;
    letter text;
BEGIN
    FOREACH letter IN ARRAY string_to_array(said, NULL) LOOP
        IF last IS NOT NULL THEN
            grams := grams || hashtextextended(store_id || ' ' || last || letter, 0);
        END IF;
        IF before_last IS NOT NULL THEN
            grams := grams || hashtextextended(store_id || ' ' || before_last || last || letter, 0);
        END IF;
        before_last := last;
        last := letter;
    END LOOP;
    RETURN grams;
END $$;

CREATE INDEX CONCURRENTLY IF NOT EXISTS commerce_products_words
    ON commerce_products USING gin (
    store_grams(store_id, product_words(title, handle, vendor, product_type, tags, variants)))
    -- What is not in the tree yet is read through by each search.
    WITH (gin_pending_list_limit = 512) WHERE deleted_at IS NULL;
CREATE INDEX CONCURRENTLY IF NOT EXISTS commerce_products_vendor
    ON commerce_products (store_id, folded(vendor), product_id)
    WHERE deleted_at IS NULL;
CREATE INDEX CONCURRENTLY IF NOT EXISTS commerce_products_type
    ON commerce_products (store_id, folded(product_type), product_id)
    WHERE deleted_at IS NULL;

CREATE INDEX CONCURRENTLY IF NOT EXISTS commerce_orders_name
    ON commerce_orders (store_id, lower(ltrim(name, '#')) text_pattern_ops, order_id)
    WHERE deleted_at IS NULL;
CREATE INDEX CONCURRENTLY IF NOT EXISTS commerce_orders_open
    ON commerce_orders (store_id, coalesce(fulfillment_status, 'unfulfilled'), order_id)
    WHERE deleted_at IS NULL AND coalesce(fulfillment_status, 'unfulfilled') <> 'fulfilled';
CREATE INDEX CONCURRENTLY IF NOT EXISTS commerce_orders_unpaid
    ON commerce_orders (store_id, financial_status, order_id)
    WHERE deleted_at IS NULL AND financial_status <> 'paid';

CREATE INDEX CONCURRENTLY IF NOT EXISTS audit_log_event
    ON audit_log (subject, event COLLATE "C", id);

CREATE INDEX CONCURRENTLY IF NOT EXISTS revenue_snapshots_flagged
    ON revenue_snapshots (listing_id) WHERE flags <> '[]';

CREATE INDEX CONCURRENTLY IF NOT EXISTS dead_letters_status
    ON dead_letters (status, id);

CREATE INDEX CONCURRENTLY IF NOT EXISTS outbox_slot
    ON outbox (slot, due_at);
