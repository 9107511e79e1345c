-- What each buyer spent, by currency, how many of the orders were refunded, and when the first and the last was
-- made, are kept in the commit that writes the order, as their number is (0033): a list of those who buy most
-- read every order of each of them. What an order counts for is said once, in counted_order, for all sums.
-- compatible-from: 0036
-- transaction: none
-- locks: commerce_buyers, for a moment. Then the commits of a store wait while a thousand of its buyers are
-- added up, 50 ms; of a million orders in all a quarter of a minute.
CREATE TABLE commerce_spending (
    store_id    text NOT NULL,
    pseudonym   text NOT NULL,
    currency    text NOT NULL,
    orders      bigint NOT NULL,
    spent_minor bigint NOT NULL,
    PRIMARY KEY (store_id, pseudonym, currency)
);
COMMENT ON COLUMN commerce_spending.orders IS 'Those that say their currency and what they are worth';

ALTER TABLE commerce_buyers ADD COLUMN refunded_orders bigint NOT NULL DEFAULT 0,
    ADD COLUMN first_order_at timestamptz, ADD COLUMN last_order_at timestamptz;

CREATE TYPE counted_order AS (
    sign integer, store_id text, order_id bigint, at timestamptz, source text, currency text,
    total_minor bigint, current_minor bigint, is_priced boolean, is_refunded boolean, buyer text
);

-- What an order counts for in the sums: nothing when it was cancelled, taken away, or a test.
CREATE FUNCTION counted_order(
    sign integer, store_id text, order_id bigint, processed_at timestamptz, source_name text,
    currency text, total_minor bigint, current_total_minor bigint, financial_status text,
    customer_hash text, deleted_at timestamptz, cancelled_at timestamptz, test boolean
) RETURNS counted_order LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN deleted_at IS NULL AND cancelled_at IS NULL AND NOT test THEN
    ROW(sign, store_id, order_id, processed_at, coalesce(source_name, 'unknown'),
        coalesce(currency, ''), coalesce(total_minor, 0),
        coalesce(current_total_minor, total_minor, 0),
        currency IS NOT NULL AND coalesce(current_total_minor, total_minor) IS NOT NULL,
        coalesce(financial_status IN ('refunded', 'partially_refunded'), false),
        CASE WHEN customer_hash LIKE 's1:%' THEN customer_hash END)::counted_order END;

-- When an order goes that was its buyer's first or last, the next one is looked for among those that are counted.
CREATE FUNCTION count_buyers(changes counted_order[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO commerce_buyers AS kept
    SELECT c.store_id, c.buyer, sum(c.sign), sum(c.sign * c.is_refunded::integer),
        min(c.at) FILTER (WHERE c.sign > 0), max(c.at) FILTER (WHERE c.sign > 0)
    FROM unnest(changes) AS c WHERE c.buyer IS NOT NULL
    GROUP BY 1, 2
    HAVING sum(c.sign) <> 0 OR sum(c.sign * c.is_refunded::integer) <> 0
        OR min(c.at) FILTER (WHERE c.sign > 0) IS DISTINCT FROM min(c.at) FILTER (WHERE c.sign < 0)
        OR max(c.at) FILTER (WHERE c.sign > 0) IS DISTINCT FROM max(c.at) FILTER (WHERE c.sign < 0)
    ORDER BY 1, 2
    ON CONFLICT (store_id, pseudonym) DO UPDATE SET orders = kept.orders + excluded.orders,
        refunded_orders = kept.refunded_orders + excluded.refunded_orders,
        first_order_at = least(kept.first_order_at, excluded.first_order_at),
        last_order_at = greatest(kept.last_order_at, excluded.last_order_at);
    INSERT INTO commerce_spending AS kept
    SELECT c.store_id, c.buyer, c.currency, sum(c.sign), sum(c.sign * c.current_minor)
    FROM unnest(changes) AS c WHERE c.buyer IS NOT NULL AND c.is_priced
    GROUP BY 1, 2, 3 HAVING sum(c.sign) <> 0 OR sum(c.sign * c.current_minor) <> 0
    ORDER BY 1, 2, 3
    ON CONFLICT (store_id, pseudonym, currency) DO UPDATE SET
        orders = kept.orders + excluded.orders, spent_minor = kept.spent_minor + excluded.spent_minor;
    IF NOT EXISTS (SELECT FROM unnest(changes) AS c WHERE c.sign < 0 AND c.buyer IS NOT NULL) THEN
        RETURN;
    END IF;
    -- A buyer who is erased leaves no row. OFFSET 0 keeps a look at an index from becoming a join, which
    -- would be planned while the table is empty.
    DELETE FROM commerce_buyers WHERE ctid = ANY (ARRAY(
        SELECT b.ctid FROM unnest(changes) AS c CROSS JOIN LATERAL (
            SELECT f.ctid FROM commerce_buyers f
            WHERE f.store_id = c.store_id AND f.pseudonym = c.buyer AND f.orders = 0 OFFSET 0) b
        WHERE c.sign < 0));
    DELETE FROM commerce_spending WHERE ctid = ANY (ARRAY(
        SELECT b.ctid FROM unnest(changes) AS c CROSS JOIN LATERAL (
            SELECT f.ctid FROM commerce_spending f WHERE f.store_id = c.store_id
              AND f.pseudonym = c.buyer AND f.currency = c.currency AND f.orders = 0 OFFSET 0) b
        WHERE c.sign < 0));
    -- Another OFFSET 0 keeps the first of a store's orders from being looked through for this buyer.
    UPDATE commerce_buyers b SET (first_order_at, last_order_at) = (
        SELECT min(at), max(at) FROM (
            SELECT o.processed_at AS at FROM commerce_orders o
            WHERE o.store_id = b.store_id AND o.customer_hash = b.pseudonym
              AND o.deleted_at IS NULL AND o.cancelled_at IS NULL AND NOT o.test
              AND o.order_id <= coalesce((SELECT counted_through FROM commerce_sums s
                WHERE s.store_id = b.store_id), o.order_id) OFFSET 0) AS left_over)
    WHERE ctid = ANY (ARRAY(
        SELECT k.place FROM (
            SELECT store_id, buyer, at FROM unnest(changes)
            WHERE buyer IS NOT NULL GROUP BY 1, 2, 3 HAVING sum(sign) < 0
        ) AS gone
        CROSS JOIN LATERAL (
            SELECT f.ctid AS place FROM commerce_buyers f
            WHERE f.store_id = gone.store_id AND f.pseudonym = gone.buyer
              AND gone.at IN (f.first_order_at, f.last_order_at) OFFSET 0) k));
END $$;

CREATE FUNCTION count_orders(changes counted_order[]) RETURNS void LANGUAGE plpgsql AS $$
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
    PERFORM count_buyers(changes);
END $$;

-- What changes nothing that is added up, a parcel, a tag, an address, is not counted off and on again; refunds
-- are looked at where the order's part in them changes.
CREATE OR REPLACE FUNCTION keep_order_sums() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    changes counted_order[] := '{}';
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
            SELECT counted_order(1, store_id, order_id, processed_at, source_name, currency, total_minor,
                current_total_minor, financial_status, customer_hash, deleted_at, cancelled_at, test)
            FROM new_rows WHERE deleted_at IS NULL AND cancelled_at IS NULL AND NOT test);
    ELSIF TG_OP = 'DELETE' THEN
        SELECT array_agg(store_id), array_agg(order_id) INTO touched, ids FROM old_rows;
        refunds_of := touched;
        refunded := ids;
        changes := ARRAY(
            SELECT counted_order(-1, store_id, order_id, processed_at, source_name, currency, total_minor,
                current_total_minor, financial_status, customer_hash, deleted_at, cancelled_at, test)
            FROM old_rows WHERE deleted_at IS NULL AND cancelled_at IS NULL AND NOT test);
    ELSE
        WITH was AS MATERIALIZED (
            SELECT store_id, order_id, counted_order(-1, store_id, order_id, processed_at, source_name,
                currency, total_minor, current_total_minor, financial_status, customer_hash, deleted_at,
                cancelled_at, test) AS counted
            FROM old_rows
        ), becomes AS MATERIALIZED (
            SELECT store_id, order_id, counted_order(1, store_id, order_id, processed_at, source_name,
                currency, total_minor, current_total_minor, financial_status, customer_hash, deleted_at,
                cancelled_at, test) AS counted
            FROM new_rows
        ), differing AS (
            SELECT store_id, order_id, was.counted AS before, becomes.counted AS after,
                (was.counted).source IS DISTINCT FROM (becomes.counted).source AS moves_refunds
            FROM was FULL JOIN becomes USING (store_id, order_id)
            WHERE ((was.counted).at, (was.counted).source, (was.counted).currency,
                    (was.counted).total_minor, (was.counted).current_minor, (was.counted).is_priced,
                    (was.counted).is_refunded, (was.counted).buyer)
                IS DISTINCT FROM
                ((becomes.counted).at, (becomes.counted).source, (becomes.counted).currency,
                    (becomes.counted).total_minor, (becomes.counted).current_minor,
                    (becomes.counted).is_priced, (becomes.counted).is_refunded, (becomes.counted).buyer)
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

CREATE OR REPLACE FUNCTION build_sums(store text, most integer) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    through bigint;
    ids bigint[];
BEGIN
    PERFORM pg_advisory_xact_lock(commerce_sums_lock(store));
    SELECT counted_through INTO through FROM commerce_sums WHERE store_id = store;
    IF through IS NULL THEN
        RETURN 0;
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

CREATE OR REPLACE FUNCTION forget_sums(store text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(commerce_sums_lock(store));
    DELETE FROM commerce_sales WHERE store_id = store;
    DELETE FROM commerce_buyers WHERE store_id = store;
    DELETE FROM commerce_spending WHERE store_id = store;
    DELETE FROM commerce_counted_refunds WHERE store_id = store;
    INSERT INTO commerce_sums VALUES (store, 0)
    ON CONFLICT (store_id) DO UPDATE SET counted_through = 0;
END $$;

-- Adds up what the next buyers spent, over what was kept of it since the functions above: answers the last of them.
-- Each is set, not added to, with the store's writers waiting, so that it is right however often it is done.
CREATE FUNCTION fill_spending(after text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    stores text[];
    buyers text[];
    counted counted_order[];
BEGIN
    SELECT array_agg(store_id), array_agg(pseudonym) INTO stores, buyers FROM (
        SELECT store_id, pseudonym, sum(orders) OVER (ORDER BY store_id, pseudonym) - orders AS before
        FROM (
            SELECT store_id, pseudonym, orders FROM commerce_buyers
            WHERE (store_id, pseudonym) > (split_part(after, ' ', 1), split_part(after, ' ', 2))
            ORDER BY store_id, pseudonym LIMIT 1000) AS next) AS part
    WHERE before < 20000;
    IF stores IS NULL THEN
        RETURN NULL;
    END IF;
    PERFORM pg_advisory_xact_lock(commerce_sums_lock(store_id))
    FROM (SELECT DISTINCT unnest(stores) AS store_id ORDER BY 1) AS each_once;
    counted := ARRAY(
        SELECT counted_order(1, o.store_id, o.order_id, o.processed_at, o.source_name, o.currency,
            o.total_minor, o.current_total_minor, o.financial_status, o.customer_hash, o.deleted_at,
            o.cancelled_at, o.test)
        FROM unnest(stores, buyers) AS k(store_id, buyer)
        CROSS JOIN LATERAL (
            SELECT * FROM commerce_orders f WHERE f.store_id = k.store_id AND f.customer_hash = k.buyer
              AND f.deleted_at IS NULL AND f.cancelled_at IS NULL AND NOT f.test
              AND f.order_id <= coalesce((SELECT counted_through FROM commerce_sums s
                WHERE s.store_id = k.store_id), f.order_id) OFFSET 0) o);
    UPDATE commerce_buyers b SET refunded_orders = c.refunded, first_order_at = c.first_at,
        last_order_at = c.last_at
    FROM (
        SELECT store_id, buyer, count(*) FILTER (WHERE is_refunded) AS refunded, min(at) AS first_at,
            max(at) AS last_at
        FROM unnest(counted) GROUP BY 1, 2) AS c
    WHERE b.store_id = c.store_id AND b.pseudonym = c.buyer;
    DELETE FROM commerce_spending WHERE (store_id, pseudonym) IN (SELECT * FROM unnest(stores, buyers));
    INSERT INTO commerce_spending
    SELECT store_id, buyer, currency, count(*), sum(current_minor) FROM unnest(counted)
    WHERE is_priced
    GROUP BY 1, 2, 3;
    RETURN stores[cardinality(stores)] || ' ' || buyers[cardinality(buyers)];
END $$;

-- in batches
SELECT fill_spending($1);

DROP FUNCTION fill_spending(text);
DROP FUNCTION count_orders(order_change[]);
DROP TYPE order_change;
