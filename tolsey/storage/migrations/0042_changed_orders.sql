-- Most of what is told of an order changes nothing that is added up: a parcel, a tag, an address. Such a write
-- was counted off the sums and on again, and every write looked for refunds: half of what a delivery cost the
-- database. Now only what differs is counted, and refunds are looked at where the order's part in them changes.
-- compatible-from: 0036
-- locks: nothing, a function is replaced
CREATE OR REPLACE FUNCTION keep_order_sums() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    changes order_change[] := '{}';
    touched text[] := '{}';
    ids bigint[] := '{}';
    -- Orders whose refunds count from now on, no more, or elsewhere.
    refunds_of text[] := '{}';
    refunded bigint[] := '{}';
BEGIN
    IF TG_OP = 'INSERT' THEN
        SELECT array_agg(store_id), array_agg(order_id) INTO touched, ids FROM new_rows;
        SELECT array_agg(n.store_id), array_agg(n.order_id) INTO refunds_of, refunded
        FROM new_rows n CROSS JOIN LATERAL (
            SELECT FROM commerce_refunds f
            WHERE f.store_id = n.store_id AND f.order_id = n.order_id LIMIT 1) r;
        changes := ARRAY(
            SELECT (1, store_id, order_id, processed_at, coalesce(source_name, 'unknown'),
                coalesce(currency, ''), coalesce(total_minor, 0),
                coalesce(current_total_minor, total_minor, 0), customer_hash)::order_change
            FROM new_rows WHERE deleted_at IS NULL AND cancelled_at IS NULL AND NOT test);
    ELSIF TG_OP = 'DELETE' THEN
        SELECT array_agg(store_id), array_agg(order_id) INTO touched, ids FROM old_rows;
        refunds_of := touched;
        refunded := ids;
        changes := ARRAY(
            SELECT (-1, store_id, order_id, processed_at, coalesce(source_name, 'unknown'),
                coalesce(currency, ''), coalesce(total_minor, 0),
                coalesce(current_total_minor, total_minor, 0), customer_hash)::order_change
            FROM old_rows WHERE deleted_at IS NULL AND cancelled_at IS NULL AND NOT test);
    ELSE
        WITH was AS (
            SELECT store_id, order_id, CASE WHEN deleted_at IS NULL AND cancelled_at IS NULL AND NOT test
                THEN (-1, store_id, order_id, processed_at, coalesce(source_name, 'unknown'),
                    coalesce(currency, ''), coalesce(total_minor, 0),
                    coalesce(current_total_minor, total_minor, 0), customer_hash)::order_change
                END AS counted
            FROM old_rows
        ), becomes AS (
            SELECT store_id, order_id, CASE WHEN deleted_at IS NULL AND cancelled_at IS NULL AND NOT test
                THEN (1, store_id, order_id, processed_at, coalesce(source_name, 'unknown'),
                    coalesce(currency, ''), coalesce(total_minor, 0),
                    coalesce(current_total_minor, total_minor, 0), customer_hash)::order_change
                END AS counted
            FROM new_rows
        ), differing AS (
            SELECT store_id, order_id, was.counted AS before, becomes.counted AS after,
                (was.counted).source IS DISTINCT FROM (becomes.counted).source AS moves_refunds
            FROM was FULL JOIN becomes USING (store_id, order_id)
            WHERE ((was.counted).at, (was.counted).source, (was.counted).currency,
                    (was.counted).total_minor, (was.counted).current_minor, (was.counted).buyer)
                IS DISTINCT FROM
                ((becomes.counted).at, (becomes.counted).source, (becomes.counted).currency,
                    (becomes.counted).total_minor, (becomes.counted).current_minor,
                    (becomes.counted).buyer)
        )
        SELECT array_agg(store_id), array_agg(order_id),
            array_agg(store_id) FILTER (WHERE moves_refunds),
            array_agg(order_id) FILTER (WHERE moves_refunds),
            coalesce(array_agg(before) FILTER (WHERE (before).store_id IS NOT NULL), '{}')
                || coalesce(array_agg(after) FILTER (WHERE (after).store_id IS NOT NULL), '{}')
        INTO touched, ids, refunds_of, refunded, changes FROM differing;
    END IF;
    IF coalesce(cardinality(ids), 0) > 0 THEN
        PERFORM pg_advisory_xact_lock_shared(commerce_sums_lock(store_id))
        FROM (SELECT DISTINCT unnest(touched) AS store_id ORDER BY 1) AS stores;
        PERFORM count_orders(ARRAY(
            SELECT c FROM unnest(changes) AS c LEFT JOIN commerce_sums s ON s.store_id = c.store_id
            WHERE s.store_id IS NULL OR c.order_id <= s.counted_through));
    END IF;
    IF coalesce(cardinality(refunded), 0) > 0 THEN
        PERFORM count_refunds(array_agg(k.store_id), array_agg(k.order_id))
        FROM unnest(refunds_of, refunded) AS k(store_id, order_id)
        LEFT JOIN commerce_sums s ON s.store_id = k.store_id
        WHERE s.store_id IS NULL OR k.order_id <= s.counted_through;
    END IF;
    RETURN NULL;
END $$;
