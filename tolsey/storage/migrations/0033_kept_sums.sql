-- What a store sold and how often each buyer bought is kept in the transaction that writes the order or the
-- refund, so that a report reads hours and not two million orders. Triggers do it, for a group commit writes
-- rows of many stores in one statement: each is run once for a statement, over all rows that it changed.
-- A store that is here already is counted order by order by a job; what it has not come to is not kept yet.
-- compatible-from: 0031
-- transaction: none
-- locks: commerce_orders and commerce_refunds against writers, for a moment, whatever they hold
CREATE TABLE commerce_sums (
    store_id        text PRIMARY KEY,
    counted_through bigint NOT NULL
);
COMMENT ON TABLE commerce_sums IS
    'Stores whose sums are being built: orders up to this id are in them. A store without a row is whole.';

CREATE TABLE commerce_sales (
    store_id       text NOT NULL,
    minutes        integer NOT NULL,
    at             timestamptz NOT NULL,
    source         text NOT NULL,
    currency       text NOT NULL,
    orders         bigint NOT NULL,
    gross_minor    bigint NOT NULL,
    current_minor  bigint NOT NULL,
    refunds        bigint NOT NULL,
    refunded_minor bigint NOT NULL,
    PRIMARY KEY (store_id, minutes, at, source, currency)
);
COMMENT ON COLUMN commerce_sales.minutes IS
    'How long the row''s time is: 60, and 15 for the days of zones that are half an hour off';
COMMENT ON COLUMN commerce_sales.currency IS 'Empty for orders that name none';

CREATE TABLE commerce_buyers (
    store_id  text NOT NULL,
    pseudonym text NOT NULL,
    orders    bigint NOT NULL,
    PRIMARY KEY (store_id, pseudonym)
);
CREATE INDEX commerce_buyers_busiest ON commerce_buyers (store_id, orders DESC, pseudonym);

-- What of each refund is in the sums: an order and its refund may come in any order, or at once.
CREATE TABLE commerce_counted_refunds (
    store_id     text NOT NULL,
    refund_id    bigint NOT NULL,
    order_id     bigint NOT NULL,
    at           timestamptz NOT NULL,
    source       text NOT NULL,
    currency     text NOT NULL,
    amount_minor bigint NOT NULL,
    PRIMARY KEY (store_id, refund_id)
);
CREATE INDEX commerce_counted_refunds_order ON commerce_counted_refunds (store_id, order_id);
CREATE INDEX commerce_counted_refunds_at ON commerce_counted_refunds (store_id, at);

CREATE TYPE order_change AS (
    sign integer, store_id text, order_id bigint, at timestamptz, source text, currency text,
    total_minor bigint, current_minor bigint, buyer text
);

-- Writers of a store's rows share its lock; who builds its sums has it alone, for one batch.
CREATE FUNCTION commerce_sums_lock(store text) RETURNS bigint LANGUAGE sql IMMUTABLE AS
$$ SELECT hashtextextended(store, 33) $$;

CREATE FUNCTION count_orders(changes order_change[]) RETURNS void LANGUAGE plpgsql AS $$
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
    INSERT INTO commerce_buyers AS kept
    SELECT c.store_id, c.buyer, sum(c.sign) FROM unnest(changes) AS c
    WHERE c.buyer LIKE 's1:%'
    GROUP BY 1, 2 HAVING sum(c.sign) <> 0 ORDER BY 1, 2
    ON CONFLICT (store_id, pseudonym) DO UPDATE SET orders = kept.orders + excluded.orders;
    -- A buyer who is erased leaves no row. OFFSET 0 keeps a look at an index from becoming a join, which
    -- would be planned while the table is empty.
    DELETE FROM commerce_buyers WHERE ctid = ANY (ARRAY(
        SELECT b.ctid FROM unnest(changes) AS c CROSS JOIN LATERAL (
            SELECT f.ctid FROM commerce_buyers f
            WHERE f.store_id = c.store_id AND f.pseudonym = c.buyer AND f.orders = 0 OFFSET 0) b
        WHERE c.sign < 0));
END $$;

CREATE FUNCTION count_refunds(stores text[], order_ids bigint[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    WITH asked AS MATERIALIZED (
        SELECT DISTINCT store_id, order_id FROM unnest(stores, order_ids) AS k(store_id, order_id)
    ), wanted AS MATERIALIZED (
        SELECT r.store_id, r.refund_id, r.order_id, r.processed_at AS at,
            coalesce(o.source_name, 'unknown') AS source, r.currency,
            coalesce(r.amount_minor, 0) AS amount_minor
        FROM asked
        CROSS JOIN LATERAL (
            SELECT * FROM commerce_refunds f
            WHERE f.store_id = asked.store_id AND f.order_id = asked.order_id
              AND f.processed_at IS NOT NULL AND f.currency IS NOT NULL OFFSET 0) r
        CROSS JOIN LATERAL (
            SELECT source_name FROM commerce_orders f
            WHERE f.store_id = asked.store_id AND f.order_id = asked.order_id
              AND f.deleted_at IS NULL AND f.cancelled_at IS NULL AND NOT f.test OFFSET 0) o
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
            SELECT store_id, refund_id, order_id, at, source, currency, amount_minor FROM known
        ) AS fresh
        ORDER BY store_id, refund_id
        ON CONFLICT (store_id, refund_id) DO UPDATE SET order_id = excluded.order_id,
            at = excluded.at, source = excluded.source, currency = excluded.currency,
            amount_minor = excluded.amount_minor
    )
    INSERT INTO commerce_sales AS kept
    SELECT d.store_id, w.minutes, date_bin(make_interval(mins => w.minutes), d.at, 'epoch'), d.source,
        d.currency, 0, 0, 0, sum(d.sign), sum(d.sign * d.amount_minor)
    FROM (
        SELECT 1 AS sign, store_id, at, source, currency, amount_minor FROM wanted
        UNION ALL SELECT -1, store_id, at, source, currency, amount_minor FROM known
    ) AS d
    CROSS JOIN (VALUES (15), (60)) AS w(minutes)
    GROUP BY 1, 2, 3, 4, 5
    HAVING sum(d.sign) <> 0 OR sum(d.sign * d.amount_minor) <> 0
    ORDER BY 1, 2, 3, 4, 5
    ON CONFLICT (store_id, minutes, at, source, currency) DO UPDATE SET
        refunds = kept.refunds + excluded.refunds,
        refunded_minor = kept.refunded_minor + excluded.refunded_minor;
END $$;

CREATE FUNCTION keep_order_sums() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    changes order_change[] := '{}';
    touched text[] := '{}';
    ids bigint[] := '{}';
BEGIN
    IF TG_OP <> 'INSERT' THEN
        SELECT array_agg(store_id), array_agg(order_id) INTO touched, ids FROM old_rows;
        changes := ARRAY(
            SELECT (-1, store_id, order_id, processed_at, coalesce(source_name, 'unknown'),
                coalesce(currency, ''), coalesce(total_minor, 0),
                coalesce(current_total_minor, total_minor, 0), customer_hash)::order_change
            FROM old_rows WHERE deleted_at IS NULL AND cancelled_at IS NULL AND NOT test);
    END IF;
    IF TG_OP <> 'DELETE' THEN
        SELECT touched || array_agg(store_id), ids || array_agg(order_id) INTO touched, ids
        FROM new_rows;
        changes := changes || ARRAY(
            SELECT (1, store_id, order_id, processed_at, coalesce(source_name, 'unknown'),
                coalesce(currency, ''), coalesce(total_minor, 0),
                coalesce(current_total_minor, total_minor, 0), customer_hash)::order_change
            FROM new_rows WHERE deleted_at IS NULL AND cancelled_at IS NULL AND NOT test);
    END IF;
    IF coalesce(cardinality(ids), 0) > 0 THEN
        PERFORM pg_advisory_xact_lock_shared(commerce_sums_lock(store_id))
        FROM (SELECT DISTINCT unnest(touched) AS store_id ORDER BY 1) AS stores;
        PERFORM count_orders(ARRAY(
            SELECT c FROM unnest(changes) AS c LEFT JOIN commerce_sums s ON s.store_id = c.store_id
            WHERE s.store_id IS NULL OR c.order_id <= s.counted_through));
        PERFORM count_refunds(array_agg(k.store_id), array_agg(k.order_id))
        FROM unnest(touched, ids) AS k(store_id, order_id)
        LEFT JOIN commerce_sums s ON s.store_id = k.store_id
        WHERE s.store_id IS NULL OR k.order_id <= s.counted_through;
    END IF;
    RETURN NULL;
END $$;

CREATE FUNCTION keep_refund_sums() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    touched text[] := '{}';
    ids bigint[] := '{}';
BEGIN
    IF TG_OP = 'DELETE' THEN
        SELECT array_agg(store_id), array_agg(order_id) INTO touched, ids FROM old_rows;
    ELSE
        SELECT array_agg(store_id), array_agg(order_id) INTO touched, ids FROM new_rows;
    END IF;
    IF coalesce(cardinality(ids), 0) > 0 THEN
        PERFORM pg_advisory_xact_lock_shared(commerce_sums_lock(store_id))
        FROM (SELECT DISTINCT unnest(touched) AS store_id ORDER BY 1) AS stores;
        PERFORM count_refunds(array_agg(k.store_id), array_agg(k.order_id))
        FROM unnest(touched, ids) AS k(store_id, order_id)
        LEFT JOIN commerce_sums s ON s.store_id = k.store_id
        WHERE s.store_id IS NULL OR k.order_id <= s.counted_through;
    END IF;
    RETURN NULL;
END $$;

-- Counts the next orders of a store that is being built; answers how many: fewer than asked when all are.
CREATE FUNCTION build_sums(store text, most integer) RETURNS integer LANGUAGE plpgsql AS $$
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
        SELECT (1, store_id, order_id, processed_at, coalesce(source_name, 'unknown'),
            coalesce(currency, ''), coalesce(total_minor, 0),
            coalesce(current_total_minor, total_minor, 0), customer_hash)::order_change
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

-- Forgets a store's sums, to be built anew.
CREATE FUNCTION forget_sums(store text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(commerce_sums_lock(store));
    DELETE FROM commerce_sales WHERE store_id = store;
    DELETE FROM commerce_buyers WHERE store_id = store;
    DELETE FROM commerce_counted_refunds WHERE store_id = store;
    INSERT INTO commerce_sums VALUES (store, 0)
    ON CONFLICT (store_id) DO UPDATE SET counted_through = 0;
END $$;

CREATE TRIGGER commerce_orders_inserted AFTER INSERT ON commerce_orders
    REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION keep_order_sums();
CREATE TRIGGER commerce_orders_updated AFTER UPDATE ON commerce_orders
    REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows
    FOR EACH STATEMENT EXECUTE FUNCTION keep_order_sums();
CREATE TRIGGER commerce_orders_removed AFTER DELETE ON commerce_orders
    REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT EXECUTE FUNCTION keep_order_sums();
CREATE TRIGGER commerce_refunds_inserted AFTER INSERT ON commerce_refunds
    REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION keep_refund_sums();
CREATE TRIGGER commerce_refunds_updated AFTER UPDATE ON commerce_refunds
    REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION keep_refund_sums();
CREATE TRIGGER commerce_refunds_removed AFTER DELETE ON commerce_refunds
    REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT EXECUTE FUNCTION keep_refund_sums();

-- After the triggers: what they kept of a store that is here already is begun anew with the rest.
-- in batches
WITH part AS MATERIALIZED (SELECT id FROM stores WHERE id > $1 ORDER BY id LIMIT 500),
done AS MATERIALIZED (SELECT forget_sums(id) FROM part)
SELECT max(id) FROM part WHERE (SELECT count(*) FROM done) > 0;
