-- Why money was given back is kept of each refund, as the shop told it, and why an order was cancelled: for a report
-- of refunds by their reasons. The refunds that are kept for sums hold the reason, and those of cancelled orders,
-- too, which count in no sales.
-- compatible-from: 0036
-- transaction: none
-- locks: commerce_refunds, commerce_orders and commerce_counted_refunds, for a moment, whatever they hold. The sums
-- of a store that is here already are marked, a moment each, and built anew by the retention sweep.
ALTER TABLE commerce_refunds ADD COLUMN IF NOT EXISTS reason text;
ALTER TABLE commerce_orders ADD COLUMN IF NOT EXISTS cancel_reason text;
ALTER TABLE commerce_counted_refunds ADD COLUMN IF NOT EXISTS is_cancelled boolean NOT NULL DEFAULT false,
    ADD COLUMN IF NOT EXISTS reason text NOT NULL DEFAULT 'unknown';
COMMENT ON COLUMN commerce_counted_refunds.reason IS 'Why the order was cancelled, where it was';

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
    )
    INSERT INTO commerce_sales AS kept
    SELECT d.store_id, w.minutes, date_bin(make_interval(mins => w.minutes), d.at, 'epoch'), d.source,
        d.currency, 0, 0, 0, sum(d.sign), sum(d.sign * d.amount_minor)
    FROM (
        SELECT 1 AS sign, store_id, at, source, currency, amount_minor FROM wanted WHERE NOT is_cancelled
        UNION ALL SELECT -1, store_id, at, source, currency, amount_minor FROM known
        WHERE NOT is_cancelled
    ) AS d
    CROSS JOIN (VALUES (15), (60)) AS w(minutes)
    GROUP BY 1, 2, 3, 4, 5
    HAVING sum(d.sign) <> 0 OR sum(d.sign * d.amount_minor) <> 0
    ORDER BY 1, 2, 3, 4, 5
    ON CONFLICT (store_id, minutes, at, source, currency) DO UPDATE SET
        refunds = kept.refunds + excluded.refunds,
        refunded_minor = kept.refunded_minor + excluded.refunded_minor;
END $$;

-- What of an order changes how its refunds count, also where the order itself counts in nothing.
CREATE OR REPLACE FUNCTION keep_refund_reasons() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    touched text[];
    ids bigint[];
BEGIN
    SELECT array_agg(n.store_id), array_agg(n.order_id) INTO touched, ids
    FROM old_rows o JOIN new_rows n USING (store_id, order_id)
    WHERE (o.deleted_at, o.cancelled_at, o.cancel_reason, o.test)
        IS DISTINCT FROM (n.deleted_at, n.cancelled_at, n.cancel_reason, n.test);
    IF ids IS NOT NULL THEN
        PERFORM pg_advisory_xact_lock_shared(commerce_sums_lock(store_id))
        FROM (SELECT DISTINCT unnest(touched) AS store_id ORDER BY 1) AS stores;
        PERFORM count_refunds(array_agg(k.store_id), array_agg(k.order_id))
        FROM unnest(touched, ids) AS k(store_id, order_id)
        LEFT JOIN commerce_sums s ON s.store_id = k.store_id
        WHERE s.store_id IS NULL OR k.order_id <= s.counted_through;
    END IF;
    RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER commerce_orders_refunds_updated AFTER UPDATE ON commerce_orders
    REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows
    FOR EACH STATEMENT EXECUTE FUNCTION keep_refund_reasons();

CREATE FUNCTION forget_sums_of_next(after text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    store text := after;
BEGIN
    FOR n IN 1 .. 500 LOOP
        SELECT min(store_id) INTO store FROM commerce_refunds WHERE store_id > store;
        EXIT WHEN store IS NULL;
        PERFORM forget_sums(store);
    END LOOP;
    RETURN store;
END $$;

-- in batches
SELECT forget_sums_of_next($1);

DROP FUNCTION forget_sums_of_next(text);
