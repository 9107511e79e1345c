-- What still grew with a store or with all organizations: the number of products was counted for each summary, the
-- words of a product took 23 us to put together (now 4, which each write and each search pays), credits that lapsed
-- were read again for each page of the job, and the sums of a store were forgotten in one statement.
-- compatible-from: 0036
-- transaction: none
-- locks: commerce_products against writers, for a moment; the commits of a store wait while its products are
-- counted, 20 ms of a hundred thousand. Of a million lots the index takes seconds and keeps nobody from writing.

-- As it was, but for letters of ASCII, of which nothing is left to fold.
CREATE OR REPLACE FUNCTION folded(said text) RETURNS text LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN CASE WHEN octet_length(said) = length(said) THEN lower(said)
ELSE replace(replace(replace(translate(
    regexp_replace(normalize(lower(said), NFKD), '[\u0300-\u036f]', '', 'g'),
    'øłđħıŧ', 'oldhit'), 'ß', 'ss'), 'æ', 'ae'), 'œ', 'oe')
END;

-- The same words as before: a loop, for a query inside a function costs more than all else of it. It names nothing
-- of ours, for an index is built and analyzed where our names are not found.
CREATE OR REPLACE FUNCTION product_said(
    title text, handle text, vendor text, product_type text, tags text, variants jsonb
) RETURNS text LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE COST 2000 AS $$
DECLARE
    -- Put together anew, so that a long list is unpacked once.
    listed jsonb := coalesce(variants, '[]') || '[]'::jsonb;
    words text := concat_ws(' ', title, handle, vendor, product_type, tags);
BEGIN
    FOR n IN 0 .. jsonb_array_length(listed) - 1 LOOP
        words := concat_ws(' ', words, listed->n->>'title', listed->n->>'sku');
    END LOOP;
    RETURN words;
END $$;
CREATE OR REPLACE FUNCTION product_words(
    title text, handle text, vendor text, product_type text, tags text, variants jsonb
) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE COST 2000
RETURN folded(product_said(title, handle, vendor, product_type, tags, variants));

-- By organization and then by time: who has something that lapsed is found in one step for each.
CREATE INDEX CONCURRENTLY IF NOT EXISTS credit_lots_lapsing
    ON credit_lots (organization_id, expires_at) WHERE NOT spent;
DROP INDEX CONCURRENTLY IF EXISTS credit_lots_open;
DROP INDEX CONCURRENTLY IF EXISTS credit_lots_expiring;
DROP INDEX CONCURRENTLY IF EXISTS credit_holds_leased;

CREATE TABLE IF NOT EXISTS commerce_product_counts (
    store_id text PRIMARY KEY,
    products bigint NOT NULL
);
COMMENT ON TABLE commerce_product_counts IS
    'How many products a store has; of one in commerce_stock_unread, those that were read';

CREATE OR REPLACE TRIGGER commerce_products_updated AFTER UPDATE ON commerce_products
    REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows
    FOR EACH STATEMENT EXECUTE FUNCTION keep_stock_of_products();

CREATE OR REPLACE FUNCTION keep_stock_of_products() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    touched text[];
    ids bigint[];
    signs integer[] := '{}';
    of_signs text[] := '{}';
    numbers bigint[] := '{}';
BEGIN
    IF TG_OP <> 'INSERT' THEN
        SELECT array_agg(store_id), array_agg(product_id) INTO touched, ids FROM old_rows;
        SELECT coalesce(array_agg(-1), '{}'), coalesce(array_agg(store_id), '{}'),
            coalesce(array_agg(product_id), '{}') INTO signs, of_signs, numbers
        FROM old_rows WHERE deleted_at IS NULL;
    END IF;
    IF TG_OP <> 'DELETE' THEN
        SELECT array_agg(store_id), array_agg(product_id) INTO touched, ids FROM new_rows;
        SELECT signs || coalesce(array_agg(1), '{}'), of_signs || coalesce(array_agg(store_id), '{}'),
            numbers || coalesce(array_agg(product_id), '{}') INTO signs, of_signs, numbers
        FROM new_rows WHERE deleted_at IS NULL;
    END IF;
    IF ids IS NOT NULL THEN
        PERFORM pg_advisory_xact_lock_shared(commerce_sums_lock(store_id))
        FROM (SELECT DISTINCT unnest(touched) AS store_id ORDER BY 1) AS stores;
        INSERT INTO commerce_product_counts AS kept
        SELECT c.store_id, sum(c.sign) FROM unnest(signs, of_signs, numbers) AS c(sign, store_id, id)
        LEFT JOIN commerce_stock_unread u ON u.store_id = c.store_id
        WHERE u.store_id IS NULL OR c.id <= u.read_through
        GROUP BY 1 HAVING sum(c.sign) <> 0 ORDER BY 1
        ON CONFLICT (store_id) DO UPDATE SET products = kept.products + excluded.products;
        DELETE FROM commerce_product_counts WHERE store_id = ANY (touched) AND products = 0;
        PERFORM read_stock(touched, ids);
    END IF;
    RETURN NULL;
END $$;

-- What was kept of a store that was forgotten is dropped a batch at a time before the first product is read.
CREATE OR REPLACE FUNCTION build_stock(store text, most integer) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    through bigint;
    dropped integer;
    ids bigint[];
BEGIN
    PERFORM pg_advisory_xact_lock(commerce_sums_lock(store));
    SELECT read_through INTO through FROM commerce_stock_unread WHERE store_id = store;
    IF through IS NULL THEN
        RETURN 0;
    ELSIF through < 0 THEN
        DELETE FROM commerce_product_counts WHERE store_id = store;
        DELETE FROM commerce_stock WHERE ctid = ANY (ARRAY(
            SELECT ctid FROM commerce_stock WHERE store_id = store LIMIT most));
        GET DIAGNOSTICS dropped = ROW_COUNT;
        IF dropped < most THEN
            UPDATE commerce_stock_unread SET read_through = 0 WHERE store_id = store;
        END IF;
        RETURN most;
    END IF;
    ids := ARRAY(SELECT product_id FROM commerce_products
        WHERE store_id = store AND product_id > through ORDER BY product_id LIMIT most);
    PERFORM read_stock(array_fill(store, ARRAY[cardinality(ids)]), ids);
    INSERT INTO commerce_product_counts AS kept
    SELECT store, count(*) FROM commerce_products
    WHERE store_id = store AND product_id = ANY (ids) AND deleted_at IS NULL HAVING count(*) > 0
    ON CONFLICT (store_id) DO UPDATE SET products = kept.products + excluded.products;
    IF cardinality(ids) < most THEN
        DELETE FROM commerce_stock_unread WHERE store_id = store;
    ELSE
        UPDATE commerce_stock_unread SET read_through = ids[most] WHERE store_id = store;
    END IF;
    RETURN cardinality(ids);
END $$;

CREATE OR REPLACE FUNCTION forget_stock(store text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(commerce_sums_lock(store));
    INSERT INTO commerce_stock_unread VALUES (store, -1)
    ON CONFLICT (store_id) DO UPDATE SET read_through = -1;
END $$;

CREATE FUNCTION drop_sums(store text, most integer) RETURNS bigint LANGUAGE sql AS $$
    WITH sales AS (
        DELETE FROM commerce_sales WHERE ctid = ANY (ARRAY(
            SELECT ctid FROM commerce_sales WHERE store_id = store LIMIT most)) RETURNING 1
    ), buyers AS (
        DELETE FROM commerce_buyers WHERE ctid = ANY (ARRAY(
            SELECT ctid FROM commerce_buyers WHERE store_id = store LIMIT most)) RETURNING 1
    ), spending AS (
        DELETE FROM commerce_spending WHERE ctid = ANY (ARRAY(
            SELECT ctid FROM commerce_spending WHERE store_id = store LIMIT most)) RETURNING 1
    ), refunds AS (
        DELETE FROM commerce_counted_refunds WHERE ctid = ANY (ARRAY(
            SELECT ctid FROM commerce_counted_refunds WHERE store_id = store LIMIT most)) RETURNING 1
    )
    SELECT (SELECT count(*) FROM sales) + (SELECT count(*) FROM buyers)
        + (SELECT count(*) FROM spending) + (SELECT count(*) FROM refunds);
$$;

CREATE OR REPLACE FUNCTION build_sums(store text, most integer) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    through bigint;
    ids bigint[];
BEGIN
    PERFORM pg_advisory_xact_lock(commerce_sums_lock(store));
    SELECT counted_through INTO through FROM commerce_sums WHERE store_id = store;
    IF through IS NULL THEN
        RETURN 0;
    ELSIF through < 0 THEN
        IF drop_sums(store, most) < most THEN
            UPDATE commerce_sums SET counted_through = 0 WHERE store_id = store;
        END IF;
        RETURN most;
    END IF;
    ids := ARRAY(SELECT order_id FROM commerce_orders
        WHERE store_id = store AND order_id > through ORDER BY order_id LIMIT most);
    PERFORM count_orders(ARRAY(
        SELECT counted_order(1, store_id, order_id, processed_at, source_name, currency, total_minor,
            current_total_minor, financial_status, customer_hash, deleted_at, cancelled_at, test)
        FROM commerce_orders
        WHERE store_id = store AND order_id > through AND order_id <= ids[cardinality(ids)]
          AND deleted_at IS NULL AND cancelled_at IS NULL AND NOT test));
    PERFORM count_refunds(array_fill(store, ARRAY[cardinality(ids)]), ids);
    IF cardinality(ids) < most THEN
        DELETE FROM commerce_sums WHERE store_id = store;
    ELSE
        UPDATE commerce_sums SET counted_through = ids[most] WHERE store_id = store;
    END IF;
    RETURN cardinality(ids);
END $$;

-- A negative number stands for a store of which no order is counted and whose sums are to be dropped first.
CREATE OR REPLACE FUNCTION forget_sums(store text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(commerce_sums_lock(store));
    INSERT INTO commerce_sums VALUES (store, -1)
    ON CONFLICT (store_id) DO UPDATE SET counted_through = -1;
END $$;

-- Counts the products of the next stores; each is set, not added to, with its writers waiting.
CREATE FUNCTION fill_product_counts(after text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    store text := after;
BEGIN
    FOR n IN 1 .. 100 LOOP
        SELECT min(store_id) INTO store FROM commerce_products WHERE store_id > store;
        EXIT WHEN store IS NULL;
        PERFORM pg_advisory_xact_lock(commerce_sums_lock(store));
        DELETE FROM commerce_product_counts WHERE store_id = store;
        INSERT INTO commerce_product_counts
        SELECT store, count(*) FROM commerce_products
        WHERE store_id = store AND deleted_at IS NULL AND product_id <= coalesce(
            (SELECT read_through FROM commerce_stock_unread WHERE store_id = store), product_id)
        HAVING count(*) > 0;
    END LOOP;
    RETURN store;
END $$;

-- in batches
SELECT fill_product_counts($1);

DROP FUNCTION fill_product_counts(text);
