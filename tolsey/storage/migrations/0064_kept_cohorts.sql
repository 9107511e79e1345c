-- How many buyers of each month came back, and what they spent, is kept with each of them, in the transaction that
-- writes the order: a cohort is those whose first order is of the same month, in UTC.
-- compatible-from: 0036
-- transaction: none
-- locks: nothing, functions are replaced. The sums of a store that is here already are marked, a moment each, and
-- built anew by the retention sweep; until then its reports count rows, as they did.
CREATE TABLE IF NOT EXISTS commerce_cohorts (
    store_id         text NOT NULL,
    month            date NOT NULL,
    currency         text NOT NULL,
    buyers           bigint NOT NULL,
    returning_buyers bigint NOT NULL,
    orders           bigint NOT NULL,
    spent_minor      bigint NOT NULL,
    PRIMARY KEY (store_id, month, currency)
);
COMMENT ON COLUMN commerce_cohorts.currency IS 'Empty for the row that counts; the others say what was spent';

-- What buyers make of their cohorts, counted on or off.
CREATE OR REPLACE FUNCTION cohorts_of(sign integer, stores text[], buyers text[])
RETURNS SETOF commerce_cohorts LANGUAGE sql STABLE AS $$
    WITH found AS MATERIALIZED (
        SELECT b.*, date_trunc('month', b.first_order_at AT TIME ZONE 'UTC')::date AS month
        FROM unnest(stores, buyers) AS k(store_id, buyer)
        CROSS JOIN LATERAL (
            SELECT * FROM commerce_buyers f WHERE f.store_id = k.store_id AND f.pseudonym = k.buyer
              AND f.first_order_at IS NOT NULL OFFSET 0) b
    )
    SELECT store_id, month, '', sign, sign * (orders > 1)::integer, sign * orders, 0 FROM found
    UNION ALL
    SELECT found.store_id, found.month, s.currency, 0, 0, 0, sign * s.spent_minor
    FROM found CROSS JOIN LATERAL (
        SELECT * FROM commerce_spending f WHERE f.store_id = found.store_id
          AND f.pseudonym = found.pseudonym OFFSET 0) s
$$;

CREATE OR REPLACE FUNCTION count_orders(changes counted_order[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    stores text[];
    whose text[];
    before commerce_cohorts[];
BEGIN
    INSERT INTO commerce_sales AS kept
    SELECT c.store_id, w.minutes, date_bin(make_interval(mins => w.minutes), c.at, 'epoch'), c.source,
        c.currency, sum(c.sign), sum(c.sign * c.total_minor), sum(c.sign * c.current_minor), 0, 0
    FROM unnest(changes) AS c CROSS JOIN (VALUES (15), (60)) AS w(minutes)
    WHERE c.at IS NOT NULL
    GROUP BY 1, 2, 3, 4, 5
    HAVING sum(c.sign) <> 0 OR sum(c.sign * c.total_minor) <> 0 OR sum(c.sign * c.current_minor) <> 0
    ORDER BY 1, 2, 3, 4, 5
    ON CONFLICT (store_id, minutes, at, source, currency) DO UPDATE SET
        orders = kept.orders + excluded.orders,
        gross_minor = kept.gross_minor + excluded.gross_minor,
        current_minor = kept.current_minor + excluded.current_minor;
    SELECT array_agg(store_id), array_agg(buyer) INTO stores, whose
    FROM (SELECT DISTINCT store_id, buyer FROM unnest(changes) WHERE buyer IS NOT NULL) AS touched;
    IF stores IS NULL THEN
        RETURN;
    END IF;
    before := ARRAY(SELECT p FROM cohorts_of(-1, stores, whose) p);
    PERFORM count_buyers(changes);
    INSERT INTO commerce_cohorts AS kept
    SELECT store_id, month, currency, sum(buyers), sum(returning_buyers), sum(orders), sum(spent_minor)
    FROM (SELECT * FROM unnest(before) UNION ALL SELECT * FROM cohorts_of(1, stores, whose)) AS parts
    GROUP BY 1, 2, 3
    HAVING sum(buyers) <> 0 OR sum(returning_buyers) <> 0 OR sum(orders) <> 0 OR sum(spent_minor) <> 0
    ORDER BY 1, 2, 3
    ON CONFLICT (store_id, month, currency) DO UPDATE SET buyers = kept.buyers + excluded.buyers,
        returning_buyers = kept.returning_buyers + excluded.returning_buyers,
        orders = kept.orders + excluded.orders, spent_minor = kept.spent_minor + excluded.spent_minor;
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
    )
    SELECT (SELECT count(*) FROM sales) + (SELECT count(*) FROM products)
        + (SELECT count(*) FROM cohorts) + (SELECT count(*) FROM buyers)
        + (SELECT count(*) FROM spending) + (SELECT count(*) FROM refunds);
$$;

CREATE FUNCTION forget_sums_of_next(after text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    store text := after;
BEGIN
    FOR n IN 1 .. 500 LOOP
        SELECT min(store_id) INTO store FROM commerce_buyers WHERE store_id > store;
        EXIT WHEN store IS NULL;
        PERFORM forget_sums(store);
    END LOOP;
    RETURN store;
END $$;

-- in batches
SELECT forget_sums_of_next($1);

DROP FUNCTION forget_sums_of_next(text);
