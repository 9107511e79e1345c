-- What was given back is kept by day, in UTC, and by reason, in the statement that counts a refund: a report of a year
-- read each refund of it, 22 ms of 50,000.
-- compatible-from: 0036
-- transaction: none
-- locks: no table; of each store that has refunds its writers of orders and refunds, while those are added up: 1 s of
-- a million
CREATE TABLE IF NOT EXISTS commerce_refund_reasons (
    store_id     text NOT NULL,
    day          date NOT NULL,
    is_cancelled boolean NOT NULL,
    reason       text NOT NULL,
    currency     text NOT NULL,
    refunds      bigint NOT NULL,
    amount_minor bigint NOT NULL,
    PRIMARY KEY (store_id, day, is_cancelled, reason, currency)
);
COMMENT ON COLUMN commerce_refund_reasons.reason IS 'Why the order was cancelled, where it was';

CREATE OR REPLACE FUNCTION count_refunds(stores text[], order_ids bigint[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    WITH asked AS MATERIALIZED (
        SELECT DISTINCT store_id, order_id FROM unnest(stores, order_ids) AS k(store_id, order_id)
    ), wanted AS MATERIALIZED (
        SELECT r.store_id, r.refund_id, r.order_id, r.processed_at AS at,
            coalesce(o.source_name, 'unknown') AS source, r.currency,
            coalesce(r.amount_minor, 0) AS amount_minor, o.cancelled_at IS NOT NULL AS is_cancelled,
            coalesce(CASE WHEN o.cancelled_at IS NULL THEN r.reason ELSE o.cancel_reason END, 'unknown')
                AS reason
        FROM asked
        CROSS JOIN LATERAL (
            SELECT * FROM commerce_refunds f
            WHERE f.store_id = asked.store_id AND f.order_id = asked.order_id
              AND f.processed_at IS NOT NULL AND f.currency IS NOT NULL OFFSET 0) r
        CROSS JOIN LATERAL (
            SELECT source_name, cancelled_at, cancel_reason FROM commerce_orders f
            WHERE f.store_id = asked.store_id AND f.order_id = asked.order_id
              AND f.deleted_at IS NULL AND NOT f.test OFFSET 0) o
    ), known AS MATERIALIZED (
        SELECT c.* FROM asked CROSS JOIN LATERAL (
            SELECT f.ctid AS place, f.* FROM commerce_counted_refunds f
            WHERE f.store_id = asked.store_id AND f.order_id = asked.order_id OFFSET 0) c
    ), dropped AS (
        DELETE FROM commerce_counted_refunds WHERE ctid = ANY (ARRAY(
            SELECT place FROM known
            WHERE (store_id, refund_id) NOT IN (SELECT store_id, refund_id FROM wanted)))
    ), written AS (
        INSERT INTO commerce_counted_refunds AS c
        SELECT * FROM (
            SELECT * FROM wanted EXCEPT
            SELECT store_id, refund_id, order_id, at, source, currency, amount_minor, is_cancelled, reason
            FROM known
        ) AS fresh
        ORDER BY store_id, refund_id
        ON CONFLICT (store_id, refund_id) DO UPDATE SET order_id = excluded.order_id,
            at = excluded.at, source = excluded.source, currency = excluded.currency,
            amount_minor = excluded.amount_minor, is_cancelled = excluded.is_cancelled,
            reason = excluded.reason
    ), changed AS MATERIALIZED (
        SELECT 1 AS sign, store_id, at, source, currency, amount_minor, is_cancelled, reason FROM wanted
        UNION ALL SELECT -1, store_id, at, source, currency, amount_minor, is_cancelled, reason FROM known
    ), reasons AS (
        INSERT INTO commerce_refund_reasons AS kept
        SELECT store_id, (at AT TIME ZONE 'UTC')::date, is_cancelled, reason, currency, sum(sign),
            sum(sign * amount_minor)
        FROM changed
        GROUP BY 1, 2, 3, 4, 5
        HAVING sum(sign) <> 0 OR sum(sign * amount_minor) <> 0
        ORDER BY 1, 2, 3, 4, 5
        ON CONFLICT (store_id, day, is_cancelled, reason, currency) DO UPDATE SET
            refunds = kept.refunds + excluded.refunds,
            amount_minor = kept.amount_minor + excluded.amount_minor
    )
    INSERT INTO commerce_sales AS kept
    SELECT d.store_id, w.minutes, date_bin(make_interval(mins => w.minutes), d.at, 'epoch'), d.source,
        d.currency, 0, 0, 0, sum(d.sign), sum(d.sign * d.amount_minor)
    FROM changed d
    CROSS JOIN (VALUES (15), (60)) AS w(minutes)
    WHERE NOT d.is_cancelled
    GROUP BY 1, 2, 3, 4, 5
    HAVING sum(d.sign) <> 0 OR sum(d.sign * d.amount_minor) <> 0
    ORDER BY 1, 2, 3, 4, 5
    ON CONFLICT (store_id, minutes, at, source, currency) DO UPDATE SET
        refunds = kept.refunds + excluded.refunds,
        refunded_minor = kept.refunded_minor + excluded.refunded_minor;
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
    ), reasons AS (
        DELETE FROM commerce_refund_reasons WHERE ctid = ANY (ARRAY(
            SELECT ctid FROM commerce_refund_reasons WHERE store_id = store LIMIT most)) RETURNING 1
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
        + (SELECT count(*) FROM reasons) + (SELECT count(*) FROM attribution)
        + (SELECT count(*) FROM touches);
$$;

CREATE OR REPLACE FUNCTION add_up_reasons_of_next(after text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    store text;
BEGIN
    SELECT min(store_id) INTO store FROM commerce_counted_refunds WHERE store_id > after;
    IF store IS NOT NULL THEN
        -- Who counted by the function before has ended when this is had, and who comes after counts by the new one.
        PERFORM pg_advisory_xact_lock(commerce_sums_lock(store));
        DELETE FROM commerce_refund_reasons WHERE store_id = store;
        INSERT INTO commerce_refund_reasons
        SELECT store_id, (at AT TIME ZONE 'UTC')::date, is_cancelled, reason, currency, count(*), sum(amount_minor)
        FROM commerce_counted_refunds WHERE store_id = store GROUP BY 1, 2, 3, 4, 5;
    END IF;
    RETURN store;
END $$;

-- in batches
SELECT add_up_reasons_of_next($1);

DROP FUNCTION add_up_reasons_of_next(text);
