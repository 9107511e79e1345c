-- What was sold of each product, by day and by month, is kept in the transaction that writes the order, as other
-- sums are (0033): for reports of what sells best and of what will run out. Of months, products alone: they are added
-- up for a year.
-- compatible-from: 0036
-- transaction: none
-- locks: commerce_orders against writers, for a moment, whatever it holds. The sums of a store that is here already
-- are marked, a moment each, and built anew by the retention sweep; until then its reports count rows, as they did.
CREATE TABLE IF NOT EXISTS commerce_product_sales (
    store_id   text NOT NULL,
    span       text NOT NULL,
    day        date NOT NULL,
    product_id bigint NOT NULL,
    variant_id bigint NOT NULL,
    currency   text NOT NULL,
    units      bigint NOT NULL,
    kept_units bigint NOT NULL,
    sold       numeric NOT NULL,
    PRIMARY KEY (store_id, span, day, product_id, variant_id, currency)
);
COMMENT ON COLUMN commerce_product_sales.span IS 'day, or month: then of all variants together, as variant 0';
COMMENT ON COLUMN commerce_product_sales.day IS 'The first, in UTC';
COMMENT ON COLUMN commerce_product_sales.kept_units IS 'After edits and returns';
COMMENT ON COLUMN commerce_product_sales.sold IS 'Price by units as ordered, less the discount of the line, in whole units of the currency';

CREATE TYPE sold_line AS (
    sign integer, store_id text, order_id bigint, day date, product_id bigint, variant_id bigint, currency text,
    units bigint, kept_units bigint, sold numeric
);

-- What an order's lines count for: nothing when it was cancelled, taken away, or a test, and nothing of a line that
-- is of no product.
CREATE FUNCTION sold_lines(
    sign integer, store_id text, order_id bigint, processed_at timestamptz, currency text, deleted_at timestamptz,
    cancelled_at timestamptz, test boolean, parts jsonb
) RETURNS SETOF sold_line LANGUAGE sql STABLE AS $$
    SELECT $1, $2, $3, ($4 AT TIME ZONE 'UTC')::date, (line->>'productId')::bigint,
        coalesce((line->>'variantId')::bigint, 0), $5, (line->>'quantity')::bigint,
        coalesce((line->>'currentQuantity')::bigint, (line->>'quantity')::bigint),
        coalesce((line->>'price')::numeric, 0) * (line->>'quantity')::bigint
            - coalesce((line->>'discount')::numeric, 0)
    FROM jsonb_array_elements($9->'lines') AS line
    WHERE $4 IS NOT NULL AND $5 IS NOT NULL AND $6 IS NULL AND $7 IS NULL AND NOT $8
      AND line->>'productId' IS NOT NULL AND line->>'quantity' IS NOT NULL
$$;

CREATE FUNCTION count_products(changes sold_line[]) RETURNS void LANGUAGE sql AS $$
    INSERT INTO commerce_product_sales AS kept
    SELECT c.store_id, w.span, date_trunc(w.span, c.day)::date, c.product_id,
        CASE WHEN w.span = 'day' THEN c.variant_id ELSE 0 END, c.currency, sum(c.sign * c.units),
        sum(c.sign * c.kept_units), sum(c.sign * c.sold)
    FROM unnest(changes) AS c CROSS JOIN (VALUES ('day'), ('month')) AS w(span)
    GROUP BY 1, 2, 3, 4, 5, 6
    HAVING sum(c.sign * c.units) <> 0 OR sum(c.sign * c.kept_units) <> 0 OR sum(c.sign * c.sold) <> 0
    ORDER BY 1, 2, 3, 4, 5, 6
    ON CONFLICT (store_id, span, day, product_id, variant_id, currency) DO UPDATE SET
        units = kept.units + excluded.units, kept_units = kept.kept_units + excluded.kept_units,
        sold = kept.sold + excluded.sold
$$;

-- Most of what is told of an order changes none of its lines: then nothing is counted off and on again.
CREATE FUNCTION keep_product_sums() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    changes sold_line[] := '{}';
BEGIN
    IF TG_OP = 'INSERT' THEN
        changes := ARRAY(
            SELECT l FROM new_rows o CROSS JOIN LATERAL sold_lines(1, o.store_id, o.order_id,
                o.processed_at, o.currency, o.deleted_at, o.cancelled_at, o.test, o.parts) l);
    ELSIF TG_OP = 'DELETE' THEN
        changes := ARRAY(
            SELECT l FROM old_rows o CROSS JOIN LATERAL sold_lines(-1, o.store_id, o.order_id,
                o.processed_at, o.currency, o.deleted_at, o.cancelled_at, o.test, o.parts) l);
    ELSE
        changes := ARRAY(
            SELECT l FROM old_rows o JOIN new_rows n USING (store_id, order_id)
            CROSS JOIN LATERAL (
                SELECT f FROM sold_lines(-1, o.store_id, o.order_id, o.processed_at, o.currency,
                    o.deleted_at, o.cancelled_at, o.test, o.parts) f
                UNION ALL
                SELECT f FROM sold_lines(1, n.store_id, n.order_id, n.processed_at, n.currency,
                    n.deleted_at, n.cancelled_at, n.test, n.parts) f) AS each(l)
            WHERE (o.processed_at, o.currency, o.deleted_at, o.cancelled_at, o.test, o.parts->'lines')
                IS DISTINCT FROM
                (n.processed_at, n.currency, n.deleted_at, n.cancelled_at, n.test, n.parts->'lines'));
    END IF;
    IF cardinality(changes) > 0 THEN
        PERFORM pg_advisory_xact_lock_shared(commerce_sums_lock(store_id))
        FROM (SELECT DISTINCT store_id FROM unnest(changes) ORDER BY 1) AS stores;
        PERFORM count_products(ARRAY(
            SELECT c FROM unnest(changes) AS c LEFT JOIN commerce_sums s ON s.store_id = c.store_id
            WHERE s.store_id IS NULL OR c.order_id <= s.counted_through));
    END IF;
    RETURN NULL;
END $$;

CREATE OR REPLACE FUNCTION drop_sums(store text, most integer) RETURNS bigint LANGUAGE sql AS $$
    WITH sales AS (
        DELETE FROM commerce_sales WHERE ctid = ANY (ARRAY(
            SELECT ctid FROM commerce_sales WHERE store_id = store LIMIT most)) RETURNING 1
    ), products AS (
        DELETE FROM commerce_product_sales WHERE ctid = ANY (ARRAY(
            SELECT ctid FROM commerce_product_sales WHERE store_id = store LIMIT most)) RETURNING 1
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
    SELECT (SELECT count(*) FROM sales) + (SELECT count(*) FROM products) + (SELECT count(*) FROM buyers)
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
    PERFORM count_products(ARRAY(
        SELECT l FROM commerce_orders o CROSS JOIN LATERAL sold_lines(1, o.store_id, o.order_id,
            o.processed_at, o.currency, o.deleted_at, o.cancelled_at, o.test, o.parts) l
        WHERE o.store_id = store AND o.order_id > through AND o.order_id <= ids[cardinality(ids)]));
    PERFORM count_refunds(array_fill(store, ARRAY[cardinality(ids)]), ids);
    IF cardinality(ids) < most THEN
        DELETE FROM commerce_sums WHERE store_id = store;
    ELSE
        UPDATE commerce_sums SET counted_through = ids[most] WHERE store_id = store;
    END IF;
    RETURN cardinality(ids);
END $$;

CREATE OR REPLACE TRIGGER commerce_orders_products_inserted AFTER INSERT ON commerce_orders
    REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION keep_product_sums();
CREATE OR REPLACE TRIGGER commerce_orders_products_updated AFTER UPDATE ON commerce_orders
    REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows
    FOR EACH STATEMENT EXECUTE FUNCTION keep_product_sums();
CREATE OR REPLACE TRIGGER commerce_orders_products_removed AFTER DELETE ON commerce_orders
    REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT EXECUTE FUNCTION keep_product_sums();

-- Marks the next stores whose orders have lines: their sums are to be dropped and built.
CREATE FUNCTION forget_sums_of_next(after text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    store text := after;
BEGIN
    FOR n IN 1 .. 500 LOOP
        SELECT min(store_id) INTO store FROM commerce_orders WHERE store_id > store;
        EXIT WHEN store IS NULL;
        PERFORM forget_sums(store);
    END LOOP;
    RETURN store;
END $$;

-- in batches
SELECT forget_sums_of_next($1);

DROP FUNCTION forget_sums_of_next(text);
