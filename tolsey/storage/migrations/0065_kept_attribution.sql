-- What each source, medium and campaign sold is kept by day, in UTC, in the transaction that writes an order or
-- where its buyer came from (0055). What of each order is in the sums is kept beside them, as of refunds (0033):
-- the two come in any order, or at once.
-- compatible-from: 0036
-- transaction: none
-- locks: commerce_orders and attribution_touches against writers, for a moment, whatever they hold. The sums of a
-- store that has such rows already are marked, a moment each, and built anew by the retention sweep.
CREATE TABLE IF NOT EXISTS commerce_attribution (
    store_id      text NOT NULL,
    day           date NOT NULL,
    source        text NOT NULL,
    medium        text NOT NULL,
    campaign      text NOT NULL,
    currency      text NOT NULL,
    orders        bigint NOT NULL,
    gross_minor   bigint NOT NULL,
    current_minor bigint NOT NULL,
    PRIMARY KEY (store_id, day, source, medium, campaign, currency)
);
COMMENT ON COLUMN commerce_attribution.source IS 'Empty, as medium and campaign, where it is not known';

CREATE TABLE IF NOT EXISTS commerce_counted_touches (
    store_id      text NOT NULL,
    order_id      bigint NOT NULL,
    day           date NOT NULL,
    source        text NOT NULL,
    medium        text NOT NULL,
    campaign      text NOT NULL,
    currency      text NOT NULL,
    gross_minor   bigint NOT NULL,
    current_minor bigint NOT NULL,
    PRIMARY KEY (store_id, order_id)
);

CREATE OR REPLACE FUNCTION touches_of(stores text[], order_ids bigint[])
RETURNS SETOF commerce_counted_touches LANGUAGE sql STABLE AS $$
    SELECT o.store_id, o.order_id, (o.processed_at AT TIME ZONE 'UTC')::date, coalesce(t.source, ''),
        coalesce(t.medium, ''), coalesce(t.campaign, ''), o.currency, coalesce(o.total_minor, 0),
        coalesce(o.current_total_minor, o.total_minor, 0)
    FROM (SELECT DISTINCT store_id, order_id FROM unnest(stores, order_ids) AS k(store_id, order_id)) AS asked
    CROSS JOIN LATERAL (
        SELECT * FROM attribution_touches f WHERE f.store_id = asked.store_id
          AND f.order_id = asked.order_id AND f.deleted_at IS NULL OFFSET 0) t
    CROSS JOIN LATERAL (
        SELECT * FROM commerce_orders f
        WHERE f.store_id = asked.store_id AND f.order_id = asked.order_id AND f.deleted_at IS NULL
          AND f.cancelled_at IS NULL AND NOT f.test AND f.processed_at IS NOT NULL
          AND f.currency IS NOT NULL OFFSET 0) o
$$;

CREATE OR REPLACE FUNCTION count_touches(stores text[], order_ids bigint[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    WITH asked AS MATERIALIZED (
        SELECT DISTINCT store_id, order_id FROM unnest(stores, order_ids) AS k(store_id, order_id)
    ), wanted AS MATERIALIZED (
        SELECT * FROM touches_of(stores, order_ids)
    ), known AS MATERIALIZED (
        SELECT c.* FROM asked CROSS JOIN LATERAL (
            SELECT f.ctid AS place, f.* FROM commerce_counted_touches f
            WHERE f.store_id = asked.store_id AND f.order_id = asked.order_id OFFSET 0) c
    ), dropped AS (
        DELETE FROM commerce_counted_touches WHERE ctid = ANY (ARRAY(
            SELECT place FROM known
            WHERE (store_id, order_id) NOT IN (SELECT store_id, order_id FROM wanted)))
    ), written AS (
        INSERT INTO commerce_counted_touches AS c
        SELECT * FROM (
            SELECT * FROM wanted EXCEPT
            SELECT store_id, order_id, day, source, medium, campaign, currency, gross_minor, current_minor
            FROM known
        ) AS fresh
        ORDER BY store_id, order_id
        ON CONFLICT (store_id, order_id) DO UPDATE SET day = excluded.day, source = excluded.source,
            medium = excluded.medium, campaign = excluded.campaign, currency = excluded.currency,
            gross_minor = excluded.gross_minor, current_minor = excluded.current_minor
    )
    INSERT INTO commerce_attribution AS kept
    SELECT store_id, day, source, medium, campaign, currency, sum(sign), sum(sign * gross_minor),
        sum(sign * current_minor)
    FROM (
        SELECT 1 AS sign, store_id, day, source, medium, campaign, currency, gross_minor, current_minor
        FROM wanted
        UNION ALL
        SELECT -1, store_id, day, source, medium, campaign, currency, gross_minor, current_minor
        FROM known
    ) AS d
    GROUP BY 1, 2, 3, 4, 5, 6
    HAVING sum(sign) <> 0 OR sum(sign * gross_minor) <> 0 OR sum(sign * current_minor) <> 0
    ORDER BY 1, 2, 3, 4, 5, 6
    ON CONFLICT (store_id, day, source, medium, campaign, currency) DO UPDATE SET
        orders = kept.orders + excluded.orders, gross_minor = kept.gross_minor + excluded.gross_minor,
        current_minor = kept.current_minor + excluded.current_minor;
END $$;

-- Of orders and of touches alike: what changed neither the order's part nor where its buyer came from finds nothing
-- to write.
CREATE OR REPLACE FUNCTION keep_attribution() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    touched text[];
    ids bigint[];
BEGIN
    IF TG_OP = 'DELETE' THEN
        SELECT array_agg(store_id), array_agg(order_id) INTO touched, ids FROM old_rows;
    ELSIF TG_OP = 'UPDATE' AND TG_TABLE_NAME = 'commerce_orders' THEN
        SELECT array_agg(n.store_id), array_agg(n.order_id) INTO touched, ids
        FROM old_rows o JOIN new_rows n USING (store_id, order_id)
        WHERE (o.processed_at, o.currency, o.total_minor, o.current_total_minor, o.deleted_at,
                o.cancelled_at, o.test)
            IS DISTINCT FROM (n.processed_at, n.currency, n.total_minor, n.current_total_minor,
                n.deleted_at, n.cancelled_at, n.test);
    ELSE
        SELECT array_agg(store_id), array_agg(order_id) INTO touched, ids FROM new_rows;
    END IF;
    IF ids IS NOT NULL THEN
        PERFORM pg_advisory_xact_lock_shared(commerce_sums_lock(store_id))
        FROM (SELECT DISTINCT unnest(touched) AS store_id ORDER BY 1) AS stores;
        PERFORM count_touches(array_agg(k.store_id), array_agg(k.order_id))
        FROM unnest(touched, ids) AS k(store_id, order_id)
        LEFT JOIN commerce_sums s ON s.store_id = k.store_id
        WHERE s.store_id IS NULL OR k.order_id <= s.counted_through;
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
    ), cohorts AS (
        DELETE FROM commerce_cohorts WHERE ctid = ANY (ARRAY(
            SELECT ctid FROM commerce_cohorts WHERE store_id = store LIMIT most)) RETURNING 1
    ), buyers AS (
        DELETE FROM commerce_buyers WHERE ctid = ANY (ARRAY(
            SELECT ctid FROM commerce_buyers WHERE store_id = store LIMIT most)) RETURNING 1
    ), spending AS (
        DELETE FROM commerce_spending WHERE ctid = ANY (ARRAY(
            SELECT ctid FROM commerce_spending WHERE store_id = store LIMIT most)) RETURNING 1
    ), refunds AS (
        DELETE FROM commerce_counted_refunds WHERE ctid = ANY (ARRAY(
            SELECT ctid FROM commerce_counted_refunds WHERE store_id = store LIMIT most)) RETURNING 1
    ), attribution AS (
        DELETE FROM commerce_attribution WHERE ctid = ANY (ARRAY(
            SELECT ctid FROM commerce_attribution WHERE store_id = store LIMIT most)) RETURNING 1
    ), touches AS (
        DELETE FROM commerce_counted_touches WHERE ctid = ANY (ARRAY(
            SELECT ctid FROM commerce_counted_touches WHERE store_id = store LIMIT most)) RETURNING 1
    )
    SELECT (SELECT count(*) FROM sales) + (SELECT count(*) FROM products)
        + (SELECT count(*) FROM cohorts) + (SELECT count(*) FROM buyers)
        + (SELECT count(*) FROM spending) + (SELECT count(*) FROM refunds)
        + (SELECT count(*) FROM attribution) + (SELECT count(*) FROM touches);
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
    PERFORM count_touches(array_fill(store, ARRAY[cardinality(ids)]), ids);
    IF cardinality(ids) < most THEN
        DELETE FROM commerce_sums WHERE store_id = store;
    ELSE
        UPDATE commerce_sums SET counted_through = ids[most] WHERE store_id = store;
    END IF;
    RETURN cardinality(ids);
END $$;

CREATE OR REPLACE TRIGGER commerce_orders_touches_inserted AFTER INSERT ON commerce_orders
    REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION keep_attribution();
CREATE OR REPLACE TRIGGER commerce_orders_touches_updated AFTER UPDATE ON commerce_orders
    REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows
    FOR EACH STATEMENT EXECUTE FUNCTION keep_attribution();
CREATE OR REPLACE TRIGGER commerce_orders_touches_removed AFTER DELETE ON commerce_orders
    REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT EXECUTE FUNCTION keep_attribution();
CREATE OR REPLACE TRIGGER attribution_touches_inserted AFTER INSERT ON attribution_touches
    REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION keep_attribution();
CREATE OR REPLACE TRIGGER attribution_touches_updated AFTER UPDATE ON attribution_touches
    REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION keep_attribution();
CREATE OR REPLACE TRIGGER attribution_touches_removed AFTER DELETE ON attribution_touches
    REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT EXECUTE FUNCTION keep_attribution();

CREATE FUNCTION forget_sums_of_next(after text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    store text := after;
BEGIN
    FOR n IN 1 .. 500 LOOP
        SELECT min(store_id) INTO store FROM attribution_touches WHERE store_id > store;
        EXIT WHEN store IS NULL;
        PERFORM forget_sums(store);
    END LOOP;
    RETURN store;
END $$;

-- in batches
SELECT forget_sums_of_next($1);

DROP FUNCTION forget_sums_of_next(text);
