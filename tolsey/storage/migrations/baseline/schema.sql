-- The schema of an empty database. Do not edit it: `python -m tolsey.storage.baseline` writes it.
-- baseline: migration 112, PostgreSQL 18, sha256 9ca283403a30db78acb6e9efe1b7652c3d797d5e90bbd728a3fbbb9c54fdb2de
SET LOCAL check_function_bodies = false;
CREATE EXTENSION IF NOT EXISTS vector WITH SCHEMA public;


CREATE TYPE public.counted_order AS (
	sign integer,
	store_id text,
	order_id bigint,
	at timestamp with time zone,
	source text,
	currency text,
	total_minor bigint,
	current_minor bigint,
	is_priced boolean,
	is_refunded boolean,
	buyer text
);


CREATE TYPE public.sold_line AS (
	sign integer,
	store_id text,
	order_id bigint,
	day date,
	product_id bigint,
	variant_id bigint,
	currency text,
	units bigint,
	kept_units bigint,
	sold numeric
);


CREATE FUNCTION public.amount_range(amount bigint, currency text) RETURNS bigint[]
    LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
    AS $$
DECLARE
    unit bigint := 10 ^ CASE
        WHEN currency IN ('BIF', 'CLP', 'DJF', 'GNF', 'ISK', 'JPY', 'KMF', 'KRW', 'PYG', 'RWF', 'UGX', 'UYI', 'VND',
            'VUV', 'XAF', 'XOF', 'XPF') THEN 0
        WHEN currency IN ('BHD', 'IQD', 'JOD', 'KWD', 'LYD', 'OMR', 'TND') THEN 3
        WHEN currency IN ('CLF', 'UYW') THEN 4
        ELSE 2 END;
    power numeric;
BEGIN
    IF amount < 1000 * unit THEN
        RETURN ARRAY[0, 1000 * unit];
    END IF;
    power := (10::numeric ^ (length((amount / unit)::text) - 1)) * unit;
    RETURN (
        SELECT ARRAY[
            max((step * power)::bigint) FILTER (WHERE step * power <= amount),
            min((step * power)::bigint) FILTER (WHERE step * power > amount)]
        FROM unnest(ARRAY[1, 1.5, 2, 3, 5, 7.5, 10]) AS step);
END $$;


CREATE FUNCTION public.audit_retention(event text, said text) RETURNS text
    LANGUAGE sql IMMUTABLE
    AS $$ SELECT said $$;


CREATE FUNCTION public.build_stock(store text, most integer) RETURNS integer
    LANGUAGE plpgsql
    AS $$
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


CREATE FUNCTION public.build_sums(store text, most integer) RETURNS integer
    LANGUAGE plpgsql
    AS $$
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


CREATE TABLE public.commerce_cohorts (
    store_id text NOT NULL,
    month date NOT NULL,
    currency text NOT NULL,
    buyers bigint NOT NULL,
    returning_buyers bigint NOT NULL,
    orders bigint NOT NULL,
    spent_minor bigint NOT NULL
);


COMMENT ON COLUMN public.commerce_cohorts.currency IS 'Empty for the row that counts; the others say what was spent';


CREATE FUNCTION public.cohorts_of(sign integer, stores text[], buyers text[]) RETURNS SETOF public.commerce_cohorts
    LANGUAGE sql STABLE
    AS $$
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


CREATE FUNCTION public.commerce_sums_lock(store text) RETURNS bigint
    LANGUAGE sql IMMUTABLE
    AS $$ SELECT hashtextextended(store, 33) $$;


CREATE FUNCTION public.count_buyers(changes public.counted_order[]) RETURNS void
    LANGUAGE plpgsql
    AS $$
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


CREATE FUNCTION public.count_orders(changes public.counted_order[]) RETURNS void
    LANGUAGE plpgsql
    AS $$
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


CREATE FUNCTION public.count_products(changes public.sold_line[]) RETURNS void
    LANGUAGE sql
    AS $$
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


CREATE FUNCTION public.count_refunds(stores text[], order_ids bigint[]) RETURNS void
    LANGUAGE plpgsql
    AS $$
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


CREATE FUNCTION public.count_touches(stores text[], order_ids bigint[]) RETURNS void
    LANGUAGE plpgsql
    AS $$
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


CREATE FUNCTION public.counted_order(sign integer, store_id text, order_id bigint, processed_at timestamp with time zone, source_name text, currency text, total_minor bigint, current_total_minor bigint, financial_status text, customer_hash text, deleted_at timestamp with time zone, cancelled_at timestamp with time zone, test boolean) RETURNS public.counted_order
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN CASE WHEN ((deleted_at IS NULL) AND (cancelled_at IS NULL) AND (NOT test)) THEN ROW(sign, store_id, order_id, processed_at, COALESCE(source_name, 'unknown'::text), COALESCE(currency, ''::text), COALESCE(total_minor, (0)::bigint), COALESCE(current_total_minor, total_minor, (0)::bigint), ((currency IS NOT NULL) AND (COALESCE(current_total_minor, total_minor) IS NOT NULL)), COALESCE((financial_status = ANY (ARRAY['refunded'::text, 'partially_refunded'::text])), false), CASE WHEN (customer_hash ~~ 's1:%'::text) THEN customer_hash ELSE NULL::text END)::public.counted_order ELSE NULL::public.counted_order END;


CREATE FUNCTION public.dead_letter_fingerprint(kind text, name text, error text) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    AS $$
    SELECT left(md5(kind || '.' || name || ': ' || regexp_replace(error, '[[:alnum:]_-]*[0-9][[:alnum:]_-]*', '#', 'g')), 16)
$$;


CREATE FUNCTION public.drop_sums(store text, most integer) RETURNS bigint
    LANGUAGE sql
    AS $$
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


CREATE FUNCTION public.end_agents_of_member() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    UPDATE oauth_grants SET ended_at = now(), why = 'member'
    WHERE user_id = OLD.user_id AND organization_id = OLD.organization_id AND ended_at IS NULL;
    RETURN NULL;
END $$;


CREATE FUNCTION public.end_agents_of_store() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    UPDATE oauth_grants SET ended_at = now(), why = 'store'
    WHERE store_id = NEW.id AND ended_at IS NULL;
    RETURN NULL;
END $$;


CREATE FUNCTION public.end_agents_of_user() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    UPDATE oauth_grants SET ended_at = now(),
        why = CASE WHEN NEW.banned THEN 'ban' ELSE 'deletion' END
    WHERE user_id = NEW.id AND ended_at IS NULL;
    RETURN NULL;
END $$;


CREATE FUNCTION public.end_api_keys_of_member() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    UPDATE api_keys SET ended_at = now(), why = 'member'
    WHERE user_id = OLD.user_id AND organization_id = OLD.organization_id AND ended_at IS NULL;
    RETURN NULL;
END $$;


CREATE FUNCTION public.end_api_keys_of_user() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    UPDATE api_keys SET ended_at = now(), why = CASE WHEN NEW.banned THEN 'ban' ELSE 'deletion' END
    WHERE user_id = NEW.id AND ended_at IS NULL;
    RETURN NULL;
END $$;


CREATE FUNCTION public.end_invitations_of_member() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    UPDATE invitations SET ended_at = now(), why = 'inviter'
    WHERE invited_by = OLD.user_id AND organization_id = OLD.organization_id AND ended_at IS NULL
        AND (TG_OP = 'DELETE' OR NEW.role = 'member' OR (role = 'owner' AND NEW.role <> 'owner'));
    RETURN NULL;
END $$;


CREATE FUNCTION public.end_invitations_of_user() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    UPDATE invitations SET ended_at = now(), why = 'inviter'
    WHERE invited_by = NEW.id AND ended_at IS NULL;
    RETURN NULL;
END $$;


CREATE FUNCTION public.folded(said text) RETURNS text
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN CASE WHEN (octet_length(said) = length(said)) THEN lower(said) ELSE replace(replace(replace(translate(regexp_replace(NORMALIZE(lower(said), NFKD), '[\u0300-\u036f]'::text, ''::text, 'g'::text), 'øłđħıŧ'::text, 'oldhit'::text), 'ß'::text, 'ss'::text), 'æ'::text, 'ae'::text), 'œ'::text, 'oe'::text) END;


CREATE FUNCTION public.forget_stock(store text) RETURNS void
    LANGUAGE plpgsql
    AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(commerce_sums_lock(store));
    INSERT INTO commerce_stock_unread VALUES (store, -1)
    ON CONFLICT (store_id) DO UPDATE SET read_through = -1;
END $$;


CREATE FUNCTION public.forget_sums(store text) RETURNS void
    LANGUAGE plpgsql
    AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(commerce_sums_lock(store));
    INSERT INTO commerce_sums VALUES (store, -1)
    ON CONFLICT (store_id) DO UPDATE SET counted_through = -1;
END $$;


CREATE FUNCTION public.keep_attribution() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
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


CREATE FUNCTION public.keep_market_entry(id text) RETURNS void
    LANGUAGE sql
    AS $_$
    WITH sold AS (
        SELECT l.*, coalesce((
            SELECT s.visibility->>'revenue30d' FROM listing_visibility s WHERE s.listing_id = l.id), 'exact') AS shown
        FROM listings l
        WHERE l.id = $1 AND l.deleted_at IS NULL AND l.asking_price IS NOT NULL AND l.currency IS NOT NULL
          AND l.status IN ('ACTIVE', 'UNDER_OFFER', 'PAUSED', 'SOLD')
    ),
    sources AS (
        SELECT v.*,
            CASE v.state
                WHEN 'verified' THEN least(last_ok_at + interval '24 hours', verified_at + interval '7 days')
                WHEN 'pending' THEN CASE WHEN keeps_badge THEN
                    least(since + interval '24 hours', verified_at + interval '24 hours') END
            END AS green_until,
            CASE
                WHEN v.state IN ('verified', 'stale', 'needs_permission', 'token_unavailable')
                    THEN verified_at + interval '7 days'
                WHEN v.state = 'pending' AND keeps_badge
                    THEN least(verified_at + interval '7 days', since + interval '24 hours')
            END AS shown_until
        FROM listing_verifications v
        WHERE v.listing_id = $1 AND v.verified_at IS NOT NULL AND NOT EXISTS (
            SELECT FROM listing_verifications d WHERE d.listing_id = $1 AND d.state = 'suspended')
    ),
    first AS (
        SELECT s.shown_until, r.shop_currency, r.figures
        FROM (SELECT * FROM sources WHERE shown_until IS NOT NULL
            ORDER BY green_until IS NULL, provider <> 'commerce' LIMIT 1) s
        CROSS JOIN LATERAL (
            SELECT * FROM revenue_snapshots r
            WHERE r.listing_id = $1 AND r.source = s.provider AND r.shop_domain = s.shop_domain
            ORDER BY r.window_end DESC LIMIT 1) r
    ),
    earned AS (
        SELECT f.shown_until, c.currency, coalesce((f.figures->c.currency->>'revenue30d')::bigint, 0) AS revenue
        FROM first f CROSS JOIN LATERAL (
            SELECT CASE WHEN f.figures ? f.shop_currency OR f.figures = '{}' THEN f.shop_currency ELSE (
                SELECT name FROM jsonb_each(f.figures) AS one(name, figures)
                ORDER BY (one.figures->>'orders')::bigint DESC, name COLLATE "C" LIMIT 1) END AS currency) c
    ),
    written AS (
        INSERT INTO market_entries AS kept
        SELECT s.id, to_tsvector('simple', folded(concat_ws(' ', s.title, s.teaser, s.category, s.business_model))),
            s.status, folded(s.category), folded(s.business_model), s.country, s.currency, s.asking_price,
            s.financing_offered, (SELECT max(green_until) FROM sources),
            e.shown_until, e.currency,
            CASE s.shown WHEN 'exact' THEN e.revenue WHEN 'bucket' THEN (amount_range(e.revenue, e.currency))[1] END,
            CASE s.shown WHEN 'exact' THEN e.revenue WHEN 'bucket' THEN (amount_range(e.revenue, e.currency))[2] END
        FROM sold s LEFT JOIN earned e ON s.shown <> 'hidden'
        ON CONFLICT (listing_id) DO UPDATE SET words = excluded.words, status = excluded.status,
            category = excluded.category, business_model = excluded.business_model, country = excluded.country,
            currency = excluded.currency, price = excluded.price, financing = excluded.financing,
            verified_until = excluded.verified_until, revenue_until = excluded.revenue_until,
            revenue_currency = excluded.revenue_currency, revenue_low = excluded.revenue_low,
            revenue_high = excluded.revenue_high
    )
    DELETE FROM market_entries WHERE listing_id = $1 AND NOT EXISTS (SELECT FROM sold)
$_$;


CREATE FUNCTION public.keep_order_sums() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
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


CREATE FUNCTION public.keep_product_sums() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
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


CREATE FUNCTION public.keep_refund_reasons() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
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


CREATE FUNCTION public.keep_refund_sums() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
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


CREATE FUNCTION public.keep_stock_of_levels() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
DECLARE
    touched text[];
    items bigint[];
    one record;
BEGIN
    IF TG_OP = 'DELETE' THEN
        SELECT array_agg(store_id), array_agg(inventory_item_id) INTO touched, items FROM old_rows;
    ELSE
        SELECT array_agg(store_id), array_agg(inventory_item_id) INTO touched, items FROM new_rows;
    END IF;
    IF items IS NOT NULL THEN
        PERFORM pg_advisory_xact_lock_shared(commerce_sums_lock(store_id))
        FROM (SELECT DISTINCT unnest(touched) AS store_id ORDER BY 1) AS stores;
        FOR one IN SELECT DISTINCT k.s, k.i FROM unnest(touched, items) AS k(s, i) ORDER BY 1, 2 LOOP
            UPDATE commerce_stock SET (tracked, available) =
                (SELECT * FROM left_of(store_id, item, said_tracked, said_quantity))
            WHERE store_id = one.s AND item = one.i;
        END LOOP;
    END IF;
    RETURN NULL;
END $$;


CREATE FUNCTION public.keep_stock_of_products() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
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


CREATE FUNCTION public.known_zone(zone text) RETURNS text
    LANGUAGE plpgsql STABLE STRICT
    AS $$
BEGIN
    PERFORM now() AT TIME ZONE zone;
    RETURN zone;
EXCEPTION WHEN invalid_parameter_value THEN
    RETURN NULL;
END $$;


CREATE FUNCTION public.left_of(store text, wanted bigint, said_tracked boolean, said_quantity bigint, OUT tracked boolean, OUT available bigint) RETURNS record
    LANGUAGE plpgsql STABLE
    AS $$
DECLARE
    counted boolean;
    total bigint;
BEGIN
    SELECT sum(l.available), bool_or(l.available IS NOT NULL) INTO total, counted
    FROM commerce_inventory_levels l WHERE l.store_id = store AND l.inventory_item_id = wanted;
    tracked := coalesce(said_tracked, counted);
    available := CASE WHEN tracked IS NOT FALSE THEN coalesce(total, said_quantity) END;
END $$;


CREATE FUNCTION public.market_changed() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    PERFORM keep_market_entry(CASE TG_TABLE_NAME WHEN 'listings' THEN to_jsonb(NEW)->>'id' ELSE to_jsonb(NEW)->>'listing_id' END);
    RETURN NULL;
END $$;


CREATE FUNCTION public.note_agent_ended() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    INSERT INTO audit_log (event, subject, organization_id, actor, metadata)
    VALUES ('agent.ended', NEW.id, NEW.organization_id, coalesce(NEW.ended_by, 'system'),
        jsonb_build_object('client', NEW.client_id, 'store', NEW.store_id, 'why', NEW.why));
    RETURN NULL;
END $$;


CREATE FUNCTION public.note_api_key_ended() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    INSERT INTO audit_log (event, subject, organization_id, actor, metadata, retention)
    VALUES ('api_key.ended', NEW.id, NEW.organization_id, coalesce(NEW.ended_by, 'system'),
        jsonb_build_object('why', NEW.why), '180_days');
    RETURN NULL;
END $$;


CREATE FUNCTION public.note_invitation_ended() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    INSERT INTO audit_log (event, subject, organization_id, actor, metadata, retention)
    VALUES ('organization.invitation_ended', NEW.id, NEW.organization_id,
        coalesce(NEW.ended_by, 'system'), jsonb_build_object('why', NEW.why), '180_days');
    RETURN NULL;
END $$;


CREATE FUNCTION public.product_said(title text, handle text, vendor text, product_type text, tags text, variants jsonb) RETURNS text
    LANGUAGE plpgsql IMMUTABLE COST 2000 PARALLEL SAFE
    AS $$
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


CREATE FUNCTION public.product_words(title text, handle text, vendor text, product_type text, tags text, variants jsonb) RETURNS text
    LANGUAGE sql IMMUTABLE COST 2000 PARALLEL SAFE
    RETURN public.folded(public.product_said(title, handle, vendor, product_type, tags, variants));


CREATE FUNCTION public.read_stock(stores text[], products bigint[]) RETURNS void
    LANGUAGE plpgsql
    AS $$
DECLARE
    one record;
BEGIN
    FOR one IN SELECT DISTINCT k.s, k.p FROM unnest(stores, products) AS k(s, p) ORDER BY 1, 2 LOOP
        DELETE FROM commerce_stock WHERE store_id = one.s AND product_id = one.p
            AND place > coalesce((SELECT jsonb_array_length(p.variants) FROM commerce_products p
                WHERE p.store_id = one.s AND p.product_id = one.p AND p.deleted_at IS NULL), 0);
        INSERT INTO commerce_stock AS kept SELECT * FROM stock_of(one.s, one.p)
        ON CONFLICT (store_id, product_id, place) DO UPDATE SET
            variant_id = excluded.variant_id, item = excluded.item, is_listed = excluded.is_listed,
            said_tracked = excluded.said_tracked, said_quantity = excluded.said_quantity,
            tracked = excluded.tracked, available = excluded.available
        WHERE kept IS DISTINCT FROM excluded;
    END LOOP;
END $$;


CREATE FUNCTION public.refuse_change() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    RAISE EXCEPTION 'rows of % are evidence: they are only added', TG_TABLE_NAME;
END
$$;


CREATE FUNCTION public.remembered_words(said text) RETURNS tsvector
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN to_tsvector('simple'::regconfig, translate(said, '.:/@_-+#&=?<>'::text, '             '::text));


CREATE FUNCTION public.sold_lines(sign integer, store_id text, order_id bigint, processed_at timestamp with time zone, currency text, deleted_at timestamp with time zone, cancelled_at timestamp with time zone, test boolean, parts jsonb) RETURNS SETOF public.sold_line
    LANGUAGE sql STABLE
    AS $_$
    SELECT $1, $2, $3, ($4 AT TIME ZONE 'UTC')::date, (line->>'productId')::bigint,
        coalesce((line->>'variantId')::bigint, 0), $5, (line->>'quantity')::bigint,
        coalesce((line->>'currentQuantity')::bigint, (line->>'quantity')::bigint),
        coalesce((line->>'price')::numeric, 0) * (line->>'quantity')::bigint
            - coalesce((line->>'discount')::numeric, 0)
    FROM jsonb_array_elements($9->'lines') AS line
    WHERE $4 IS NOT NULL AND $5 IS NOT NULL AND $6 IS NULL AND $7 IS NULL AND NOT $8
      AND line->>'productId' IS NOT NULL AND line->>'quantity' IS NOT NULL
$_$;


CREATE TABLE public.commerce_stock (
    store_id text NOT NULL,
    product_id bigint NOT NULL,
    place bigint NOT NULL,
    variant_id bigint,
    item bigint,
    is_listed boolean NOT NULL,
    said_tracked boolean,
    said_quantity bigint,
    tracked boolean,
    available bigint
);


COMMENT ON COLUMN public.commerce_stock.place IS 'Of the variant in its product''s list, from 1';


COMMENT ON COLUMN public.commerce_stock.said_quantity IS 'By the product itself; levels tell more';


CREATE FUNCTION public.stock_of(store text, product bigint) RETURNS SETOF public.commerce_stock
    LANGUAGE sql STABLE
    AS $$
    SELECT p.store_id, p.product_id, place, (v->>'id')::bigint, (v->>'inventoryItemId')::bigint,
        coalesce(p.status = 'active', false), (v->>'tracked')::boolean,
        (v->>'inventoryQuantity')::bigint, n.tracked, n.available
    FROM commerce_products p
    CROSS JOIN LATERAL jsonb_array_elements(p.variants) WITH ORDINALITY AS said(v, place)
    CROSS JOIN LATERAL left_of(p.store_id, (v->>'inventoryItemId')::bigint,
        (v->>'tracked')::boolean, (v->>'inventoryQuantity')::bigint) n
    WHERE p.store_id = store AND p.product_id = product AND p.deleted_at IS NULL
$$;


CREATE FUNCTION public.store_grams(store_id text, said text) RETURNS bigint[]
    LANGUAGE plpgsql IMMUTABLE STRICT COST 10000 PARALLEL SAFE
    AS $$
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


CREATE TABLE public.commerce_counted_touches (
    store_id text NOT NULL,
    order_id bigint NOT NULL,
    day date NOT NULL,
    source text NOT NULL,
    medium text NOT NULL,
    campaign text NOT NULL,
    currency text NOT NULL,
    gross_minor bigint NOT NULL,
    current_minor bigint NOT NULL
);


CREATE FUNCTION public.touches_of(stores text[], order_ids bigint[]) RETURNS SETOF public.commerce_counted_touches
    LANGUAGE sql STABLE
    AS $$
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


CREATE TABLE public.actor_journal (
    kind text NOT NULL,
    key text NOT NULL,
    version bigint NOT NULL,
    message_id text NOT NULL,
    message text NOT NULL,
    epoch bigint NOT NULL,
    committed_at timestamp with time zone DEFAULT now() NOT NULL,
    reply text,
    way_back bytea
);


CREATE TABLE public.actors (
    kind text NOT NULL,
    key text NOT NULL,
    slot integer NOT NULL,
    version bigint NOT NULL
);


CREATE TABLE public.affiliate_codes (
    id text NOT NULL,
    user_id text NOT NULL,
    code text NOT NULL,
    created_at timestamp with time zone NOT NULL
);


CREATE TABLE public.affiliate_redemptions (
    id text NOT NULL,
    organization_id text NOT NULL,
    user_id text NOT NULL,
    code_id text NOT NULL,
    affiliate_id text NOT NULL,
    credits bigint NOT NULL,
    redeemed_at timestamp with time zone NOT NULL,
    CONSTRAINT affiliate_redemptions_credits_check CHECK ((credits > 0))
);


CREATE TABLE public.agent_operations (
    store_id text NOT NULL,
    operation_id text NOT NULL,
    user_id text NOT NULL,
    client_id text NOT NULL,
    tool text NOT NULL,
    subject text NOT NULL,
    digest text NOT NULL,
    state text NOT NULL,
    created_at timestamp with time zone NOT NULL,
    intent text,
    before jsonb,
    after jsonb,
    version text,
    code text,
    detail text,
    sends integer DEFAULT 0 NOT NULL,
    looks integer DEFAULT 0 NOT NULL,
    finished_at timestamp with time zone,
    decided_by text,
    decided_at timestamp with time zone,
    change_set text,
    CONSTRAINT agent_operations_check1 CHECK (((finished_at IS NULL) OR (intent IS NULL)))
);


COMMENT ON COLUMN public.agent_operations.decided_by IS 'The person who confirmed or declined what an agent proposed';


COMMENT ON COLUMN public.agent_operations.change_set IS 'The plan of many changes that this is one of';


CREATE TABLE public.api_keys (
    id text NOT NULL,
    key_hash bytea NOT NULL,
    prefix text NOT NULL,
    organization_id text NOT NULL,
    user_id text NOT NULL,
    name text NOT NULL,
    scopes text[] NOT NULL,
    created_at timestamp with time zone NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    used_at timestamp with time zone,
    ended_at timestamp with time zone,
    why text,
    ended_by text,
    CONSTRAINT api_keys_check CHECK (((ended_at IS NULL) = (why IS NULL))),
    CONSTRAINT api_keys_key_hash_check CHECK ((octet_length(key_hash) = 32)),
    CONSTRAINT api_keys_scopes_check CHECK ((scopes <> '{}'::text[])),
    CONSTRAINT api_keys_why_check CHECK ((why = ANY (ARRAY['user'::text, 'password'::text, 'member'::text, 'ban'::text, 'deletion'::text])))
);


CREATE TABLE public.attribution_touches (
    store_id text NOT NULL,
    order_id bigint NOT NULL,
    updated_at timestamp with time zone NOT NULL,
    deleted_at timestamp with time zone,
    touched_at timestamp with time zone,
    session_id text,
    source text,
    medium text,
    campaign text,
    landing_page text,
    referrer text
);


CREATE TABLE public.audit_log (
    id bigint NOT NULL,
    event text NOT NULL,
    subject text NOT NULL,
    organization_id text,
    actor text NOT NULL,
    metadata jsonb NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    retention text DEFAULT '7_years'::text NOT NULL,
    CONSTRAINT audit_log_retention_check CHECK ((retention = ANY (ARRAY['180_days'::text, '7_years'::text, 'until_erased'::text])))
);


ALTER TABLE public.audit_log ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.audit_log_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);


CREATE TABLE public.calibrating_listings (
    listing_id text NOT NULL,
    domain text NOT NULL,
    agreed_by text NOT NULL,
    agreed_at timestamp with time zone NOT NULL
);


CREATE TABLE public.calibrations (
    fitted_at timestamp with time zone NOT NULL,
    factor numeric NOT NULL,
    spread numeric NOT NULL,
    shops integer NOT NULL,
    median_error numeric NOT NULL
);


CREATE TABLE public.chat_generations (
    id text NOT NULL,
    organization_id text NOT NULL,
    store_id text NOT NULL,
    user_id text NOT NULL,
    claim text NOT NULL,
    model text NOT NULL,
    created_at timestamp with time zone NOT NULL,
    ended_at timestamp with time zone,
    outcome text,
    input_tokens bigint,
    output_tokens bigint,
    estimated boolean,
    cost bigint,
    charged bigint,
    process text,
    CONSTRAINT chat_generations_check CHECK (((charged >= 0) AND (charged <= cost))),
    CONSTRAINT chat_generations_check1 CHECK (((ended_at IS NULL) = (outcome IS NULL))),
    CONSTRAINT chat_generations_check2 CHECK (((ended_at IS NULL) = (charged IS NULL))),
    CONSTRAINT chat_generations_cost_check CHECK ((cost >= 0)),
    CONSTRAINT chat_generations_input_tokens_check CHECK ((input_tokens >= 0)),
    CONSTRAINT chat_generations_outcome_check CHECK ((outcome = ANY (ARRAY['done'::text, 'balance'::text, 'left'::text, 'model_failed'::text, 'stopping'::text, 'unavailable'::text, 'crashed'::text]))),
    CONSTRAINT chat_generations_output_tokens_check CHECK ((output_tokens >= 0))
);


CREATE TABLE public.commerce_attribution (
    store_id text NOT NULL,
    day date NOT NULL,
    source text NOT NULL,
    medium text NOT NULL,
    campaign text NOT NULL,
    currency text NOT NULL,
    orders bigint NOT NULL,
    gross_minor bigint NOT NULL,
    current_minor bigint NOT NULL
);


COMMENT ON COLUMN public.commerce_attribution.source IS 'Empty, as medium and campaign, where it is not known';


CREATE TABLE public.commerce_buyers (
    store_id text NOT NULL,
    pseudonym text NOT NULL,
    orders bigint NOT NULL,
    refunded_orders bigint DEFAULT 0 NOT NULL,
    first_order_at timestamp with time zone,
    last_order_at timestamp with time zone
);


CREATE TABLE public.commerce_counted_refunds (
    store_id text NOT NULL,
    refund_id bigint NOT NULL,
    order_id bigint NOT NULL,
    at timestamp with time zone NOT NULL,
    source text NOT NULL,
    currency text NOT NULL,
    amount_minor bigint NOT NULL,
    is_cancelled boolean DEFAULT false NOT NULL,
    reason text DEFAULT 'unknown'::text NOT NULL
);


COMMENT ON COLUMN public.commerce_counted_refunds.reason IS 'Why the order was cancelled, where it was';


CREATE TABLE public.commerce_customers (
    store_id text NOT NULL,
    customer_id bigint NOT NULL,
    updated_at timestamp with time zone NOT NULL,
    deleted_at timestamp with time zone,
    email_hash text,
    state text,
    verified_email boolean,
    currency text,
    created_at_platform timestamp with time zone
);


CREATE TABLE public.commerce_fulfillments (
    store_id text NOT NULL,
    fulfillment_id bigint NOT NULL,
    order_id bigint NOT NULL,
    updated_at timestamp with time zone NOT NULL,
    status text,
    shipment_status text,
    tracking_company text,
    location_id bigint,
    created_at_platform timestamp with time zone
);


CREATE TABLE public.commerce_inventory_levels (
    store_id text NOT NULL,
    inventory_item_id bigint NOT NULL,
    location_id bigint NOT NULL,
    updated_at timestamp with time zone NOT NULL,
    available bigint
);


CREATE TABLE public.commerce_orders (
    store_id text NOT NULL,
    order_id bigint NOT NULL,
    updated_at timestamp with time zone NOT NULL,
    deleted_at timestamp with time zone,
    name text,
    currency text,
    total_minor bigint,
    current_total_minor bigint,
    financial_status text,
    fulfillment_status text,
    test boolean NOT NULL,
    source_name text,
    customer_hash text,
    metadata jsonb NOT NULL,
    processed_at timestamp with time zone,
    created_at_platform timestamp with time zone,
    cancelled_at timestamp with time zone,
    parts jsonb,
    cancel_reason text
);


CREATE TABLE public.commerce_product_counts (
    store_id text NOT NULL,
    products bigint NOT NULL
);


COMMENT ON TABLE public.commerce_product_counts IS 'How many products a store has; of one in commerce_stock_unread, those that were read';


CREATE TABLE public.commerce_product_sales (
    store_id text NOT NULL,
    span text NOT NULL,
    day date NOT NULL,
    product_id bigint NOT NULL,
    variant_id bigint NOT NULL,
    currency text NOT NULL,
    units bigint NOT NULL,
    kept_units bigint NOT NULL,
    sold numeric NOT NULL
);


COMMENT ON COLUMN public.commerce_product_sales.span IS 'day, or month: then of all variants together, as variant 0';


COMMENT ON COLUMN public.commerce_product_sales.day IS 'The first, in UTC';


COMMENT ON COLUMN public.commerce_product_sales.kept_units IS 'After edits and returns';


COMMENT ON COLUMN public.commerce_product_sales.sold IS 'Price by units as ordered, less the discount of the line, in whole units of the currency';


CREATE TABLE public.commerce_products (
    store_id text NOT NULL,
    product_id bigint NOT NULL,
    updated_at timestamp with time zone NOT NULL,
    deleted_at timestamp with time zone,
    title text,
    handle text,
    vendor text,
    product_type text,
    status text,
    tags text,
    variants jsonb NOT NULL,
    variant_count integer NOT NULL,
    published_at timestamp with time zone,
    created_at_platform timestamp with time zone
);


CREATE TABLE public.commerce_refund_reasons (
    store_id text NOT NULL,
    day date NOT NULL,
    is_cancelled boolean NOT NULL,
    reason text NOT NULL,
    currency text NOT NULL,
    refunds bigint NOT NULL,
    amount_minor bigint NOT NULL
);


COMMENT ON COLUMN public.commerce_refund_reasons.reason IS 'Why the order was cancelled, where it was';


CREATE TABLE public.commerce_refunds (
    store_id text NOT NULL,
    refund_id bigint NOT NULL,
    order_id bigint NOT NULL,
    currency text,
    amount_minor bigint,
    processed_at timestamp with time zone,
    created_at_platform timestamp with time zone,
    reason text
);


CREATE TABLE public.commerce_sales (
    store_id text NOT NULL,
    minutes integer NOT NULL,
    at timestamp with time zone NOT NULL,
    source text NOT NULL,
    currency text NOT NULL,
    orders bigint NOT NULL,
    gross_minor bigint NOT NULL,
    current_minor bigint NOT NULL,
    refunds bigint NOT NULL,
    refunded_minor bigint NOT NULL
);


COMMENT ON COLUMN public.commerce_sales.minutes IS 'How long the row''s time is: 60, and 15 for the days of zones that are half an hour off';


COMMENT ON COLUMN public.commerce_sales.currency IS 'Empty for orders that name none';


CREATE TABLE public.commerce_spending (
    store_id text NOT NULL,
    pseudonym text NOT NULL,
    currency text NOT NULL,
    orders bigint NOT NULL,
    spent_minor bigint NOT NULL
);


COMMENT ON COLUMN public.commerce_spending.orders IS 'Those that say their currency and what they are worth';


CREATE TABLE public.commerce_stock_unread (
    store_id text NOT NULL,
    read_through bigint NOT NULL
);


COMMENT ON TABLE public.commerce_stock_unread IS 'Stores whose products are not all in commerce_stock yet. A store without a row is whole.';


CREATE TABLE public.commerce_sums (
    store_id text NOT NULL,
    counted_through bigint NOT NULL
);


COMMENT ON TABLE public.commerce_sums IS 'Stores whose sums are being built: orders up to this id are in them. A store without a row is whole.';


CREATE TABLE public.commerce_webhook_events (
    store_id text NOT NULL,
    delivery_id text NOT NULL,
    topic text NOT NULL,
    event_id text,
    shop_domain text NOT NULL,
    triggered_at timestamp with time zone,
    created_at timestamp with time zone DEFAULT now() NOT NULL
);


CREATE TABLE public.competitors (
    store_id text NOT NULL,
    domain text NOT NULL,
    added_by text NOT NULL,
    added_at timestamp with time zone NOT NULL
);


CREATE TABLE public.compliance_receipts (
    request_id text NOT NULL,
    store_id text NOT NULL,
    leg text NOT NULL,
    rows_before bigint NOT NULL,
    rows_after bigint NOT NULL,
    at timestamp with time zone NOT NULL,
    query_digest text
);


CREATE TABLE public.compliance_requests (
    id text NOT NULL,
    topic text NOT NULL,
    shop_domain text NOT NULL,
    delivery_id text NOT NULL,
    body_digest text NOT NULL,
    email_hash text,
    stores text[] NOT NULL,
    shop_keys text[] NOT NULL,
    received_at timestamp with time zone NOT NULL,
    pending_steps text[] NOT NULL,
    asked_steps text[] DEFAULT '{}'::text[] NOT NULL,
    completed_at timestamp with time zone,
    handled_at timestamp with time zone,
    handled_by text,
    source text DEFAULT 'platform'::text NOT NULL,
    asked_by text,
    CONSTRAINT compliance_requests_topic_check CHECK ((topic = ANY (ARRAY['shop/redact'::text, 'customers/data_request'::text, 'customers/redact'::text])))
);


COMMENT ON COLUMN public.compliance_requests.body_digest IS 'Keyed by the shop, so that nobody finds an address by it';


COMMENT ON COLUMN public.compliance_requests.shop_keys IS 'What each of the stores kept the shop''s rows under when the request came';


CREATE TABLE public.connection_history (
    store_id text NOT NULL,
    connected_at timestamp with time zone NOT NULL,
    shop_domain text NOT NULL,
    ended_at timestamp with time zone,
    ending text
);


CREATE TABLE public.contracts (
    organization_id text NOT NULL,
    monthly_allowance bigint NOT NULL,
    daily_bonus bigint NOT NULL,
    since timestamp with time zone NOT NULL,
    ended_at timestamp with time zone,
    kyc text,
    signed_contract text,
    CONSTRAINT contracts_daily_bonus_check CHECK ((daily_bonus >= 0)),
    CONSTRAINT contracts_monthly_allowance_check CHECK ((monthly_allowance >= 0))
);


CREATE TABLE public.credit_accounts (
    organization_id text NOT NULL,
    seq bigint NOT NULL,
    hash text NOT NULL,
    debt bigint NOT NULL,
    period_end timestamp with time zone,
    allowance bigint NOT NULL,
    period_start timestamp with time zone,
    renewed_by text,
    CONSTRAINT credit_accounts_allowance_check CHECK ((allowance >= 0)),
    CONSTRAINT credit_accounts_debt_check CHECK ((debt >= 0)),
    CONSTRAINT credit_accounts_seq_check CHECK ((seq >= 0))
)
WITH (fillfactor='50');


CREATE TABLE public.credit_entries (
    organization_id text NOT NULL,
    seq bigint NOT NULL,
    key text NOT NULL,
    kind text NOT NULL,
    reference text,
    at timestamp with time zone NOT NULL,
    hash text NOT NULL,
    CONSTRAINT credit_entries_seq_check CHECK ((seq > 0))
);


CREATE TABLE public.credit_holds (
    organization_id text NOT NULL,
    id text NOT NULL,
    amount bigint NOT NULL,
    lines jsonb NOT NULL,
    used bigint NOT NULL,
    lease_until timestamp with time zone NOT NULL,
    closed_at timestamp with time zone,
    CONSTRAINT credit_holds_amount_check CHECK ((amount > 0)),
    CONSTRAINT credit_holds_used_check CHECK ((used >= 0))
)
WITH (fillfactor='70');


CREATE TABLE public.credit_lots (
    organization_id text NOT NULL,
    id text NOT NULL,
    kind text NOT NULL,
    reference text,
    amount bigint NOT NULL,
    remaining bigint NOT NULL,
    pinned bigint NOT NULL,
    granted_at timestamp with time zone NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    seq bigint NOT NULL,
    spent boolean GENERATED ALWAYS AS ((remaining = 0)) STORED,
    CONSTRAINT credit_lots_amount_check CHECK ((amount > 0)),
    CONSTRAINT credit_lots_check CHECK (((remaining >= 0) AND (remaining <= amount))),
    CONSTRAINT credit_lots_check1 CHECK (((pinned >= 0) AND (pinned <= remaining))),
    CONSTRAINT credit_lots_kind_check CHECK ((kind = ANY (ARRAY['purchase'::text, 'allowance'::text, 'bonus'::text, 'adjustment'::text])))
)
WITH (fillfactor='50');


CREATE TABLE public.credit_postings (
    organization_id text NOT NULL,
    seq bigint NOT NULL,
    n integer NOT NULL,
    debit text NOT NULL,
    credit text NOT NULL,
    amount bigint NOT NULL,
    CONSTRAINT credit_postings_amount_check CHECK ((amount > 0)),
    CONSTRAINT credit_postings_check CHECK ((credit <> debit))
);


CREATE TABLE public.cron_executions (
    id text NOT NULL,
    job text NOT NULL,
    scheduled_at timestamp with time zone NOT NULL,
    trigger text NOT NULL,
    started_at timestamp with time zone NOT NULL,
    finished_at timestamp with time zone,
    status text NOT NULL,
    outcome jsonb,
    error text
);


CREATE TABLE public.customer_redactions (
    request_id text NOT NULL,
    store_id text NOT NULL,
    subject_key text NOT NULL,
    email_hash text NOT NULL,
    redacted_at timestamp with time zone
);


COMMENT ON COLUMN public.customer_redactions.store_id IS 'The key that the rows of the shop are kept under';


CREATE TABLE public.daily_bonuses (
    organization_id text NOT NULL,
    day date NOT NULL,
    plan text NOT NULL,
    amount bigint NOT NULL,
    at timestamp with time zone NOT NULL,
    CONSTRAINT daily_bonuses_amount_check CHECK ((amount > 0))
);


CREATE TABLE public.daily_mails (
    recipient text NOT NULL,
    topic text NOT NULL,
    since timestamp with time zone NOT NULL
);


CREATE TABLE public.dead_letters (
    id text NOT NULL,
    key text NOT NULL,
    slot integer NOT NULL,
    kind text NOT NULL,
    actor_key text NOT NULL,
    name text NOT NULL,
    payload jsonb NOT NULL,
    attempts integer NOT NULL,
    error text NOT NULL,
    request_id text,
    status text DEFAULT 'dead'::text NOT NULL,
    created_at timestamp with time zone NOT NULL,
    died_at timestamp with time zone DEFAULT now() NOT NULL,
    settled_at timestamp with time zone,
    lane text,
    sender text,
    about text DEFAULT ''::text NOT NULL
);


CREATE TABLE public.deal_events (
    deal_id text NOT NULL,
    seq bigint NOT NULL,
    body text NOT NULL,
    hash text NOT NULL,
    at timestamp with time zone NOT NULL
);


CREATE TABLE public.deal_files (
    id text NOT NULL,
    deal_id text NOT NULL,
    side text NOT NULL,
    level bigint NOT NULL,
    kind text NOT NULL,
    name text NOT NULL,
    content_type text NOT NULL,
    sha256 text NOT NULL,
    size bigint NOT NULL,
    added_by text NOT NULL,
    added_at timestamp with time zone NOT NULL,
    CONSTRAINT deal_files_level_check CHECK ((level = ANY (ARRAY[(1)::bigint, (2)::bigint]))),
    CONSTRAINT deal_files_side_check CHECK ((side = ANY (ARRAY['buyer'::text, 'seller'::text])))
);


CREATE TABLE public.deal_metrics (
    signature_id text NOT NULL,
    deal_id text NOT NULL,
    document_type text NOT NULL,
    figures jsonb NOT NULL,
    agreed jsonb,
    percent text,
    moved boolean NOT NULL,
    at timestamp with time zone NOT NULL
);


CREATE TABLE public.deal_offers (
    id text NOT NULL,
    deal_id text NOT NULL,
    parent_id text,
    side text NOT NULL,
    status text NOT NULL,
    amount bigint NOT NULL,
    currency text NOT NULL,
    type text NOT NULL,
    terms jsonb NOT NULL,
    inventory text NOT NULL,
    contingencies jsonb NOT NULL,
    closing_by date,
    proof_of_funds text,
    message text,
    valid_until timestamp with time zone NOT NULL,
    made_by text NOT NULL,
    made_at timestamp with time zone NOT NULL,
    ended_at timestamp with time zone,
    CONSTRAINT deal_offers_amount_check CHECK ((amount > 0))
);


CREATE TABLE public.deal_threads (
    id text NOT NULL,
    listing_id text NOT NULL,
    seller_id text NOT NULL,
    buyer_id text NOT NULL,
    requested_by text NOT NULL,
    stage text NOT NULL,
    entered_at timestamp with time zone NOT NULL,
    created_at timestamp with time zone NOT NULL,
    moved_at timestamp with time zone NOT NULL,
    seq bigint NOT NULL,
    hash text NOT NULL,
    message text,
    reason text,
    nda_signed_at timestamp with time zone,
    loi_signed_at timestamp with time zone,
    apa_signed_at timestamp with time zone,
    escrow_id text,
    escrow_funded_at timestamp with time zone,
    escrow_released_at timestamp with time zone,
    closed_at timestamp with time zone,
    accepted_offer_id text,
    price bigint,
    currency text,
    leads jsonb NOT NULL,
    exclusivity_until timestamp with time zone,
    exclusivity_proposed_by text,
    exclusivity_proposed_until timestamp with time zone,
    fast_track jsonb NOT NULL,
    diligence jsonb NOT NULL,
    apa_terms jsonb,
    apa_terms_sha256 text,
    cancel_proposed_by text,
    cancel_proposed_at timestamp with time zone,
    escrow_evidence text,
    escrow_event_id text,
    funding_confirmed_at timestamp with time zone,
    transfer jsonb NOT NULL,
    inspection_ends_at timestamp with time zone,
    accepted_by_buyer_at timestamp with time zone,
    refund_requested_at timestamp with time zone,
    refund_reason text,
    returns jsonb NOT NULL,
    escalated boolean NOT NULL,
    CONSTRAINT deal_threads_check CHECK (((escrow_funded_at IS NULL) OR ((apa_signed_at IS NOT NULL) AND (escrow_id IS NOT NULL))))
);


CREATE TABLE public.deal_views (
    id text NOT NULL,
    deal_id text NOT NULL,
    role text NOT NULL,
    user_id text NOT NULL,
    what text NOT NULL,
    at timestamp with time zone NOT NULL
);


COMMENT ON COLUMN public.deal_views.what IS 'listing, or the id of a file';


CREATE TABLE public.deployment (
    id uuid DEFAULT gen_random_uuid() NOT NULL,
    one boolean DEFAULT true NOT NULL,
    CONSTRAINT deployment_one_check CHECK (one)
);


CREATE TABLE public.devstore_claims (
    shop_domain text NOT NULL,
    store_id text NOT NULL,
    organization_id text NOT NULL,
    claimed_by text NOT NULL,
    claimed_at timestamp with time zone NOT NULL
);


CREATE TABLE public.devstore_pool (
    shop_domain text NOT NULL,
    client_id text,
    client_secret text NOT NULL,
    access_token text,
    plan_name text,
    refused text,
    registered_by text NOT NULL,
    registered_at timestamp with time zone NOT NULL
);


CREATE TABLE public.devstore_transfers (
    store_id text NOT NULL,
    shop_domain text NOT NULL,
    organization_id text NOT NULL,
    state text NOT NULL,
    email text NOT NULL,
    requested_by text NOT NULL,
    requested_at timestamp with time zone NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    transferred_at timestamp with time zone,
    changed_at timestamp with time zone NOT NULL,
    CONSTRAINT devstore_transfers_state_check CHECK ((state = ANY (ARRAY['CLAIMED'::text, 'TRANSFER_REQUESTED'::text, 'TRANSFERRED'::text])))
);


CREATE TABLE public.encryption_keys (
    key_id text NOT NULL,
    fingerprint bytea,
    known_since timestamp with time zone DEFAULT now() NOT NULL
);


CREATE TABLE public.esign_leaves (
    signature_id text NOT NULL,
    seq bigint NOT NULL,
    deal_id text NOT NULL,
    head text NOT NULL,
    day date NOT NULL,
    way jsonb NOT NULL
);


CREATE TABLE public.esign_roots (
    day date NOT NULL,
    body text NOT NULL,
    signature text NOT NULL,
    key_id text NOT NULL,
    public_key text NOT NULL,
    signed_at timestamp with time zone NOT NULL
);


CREATE TABLE public.facts (
    id text NOT NULL,
    organization_id text NOT NULL,
    store_id text,
    name text NOT NULL,
    value jsonb NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    updated_at timestamp with time zone DEFAULT now() NOT NULL,
    source text DEFAULT 'merchant'::text NOT NULL,
    user_id text,
    deleted_at timestamp with time zone
);


CREATE TABLE public.files (
    id text NOT NULL,
    organization_id text NOT NULL,
    store_id text,
    purpose text NOT NULL,
    name text NOT NULL,
    content_type text NOT NULL,
    sha256 text NOT NULL,
    size bigint NOT NULL,
    created_by text NOT NULL,
    created_at timestamp with time zone NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    CONSTRAINT files_sha256_check CHECK ((sha256 ~ '^[0-9a-f]{64}$'::text)),
    CONSTRAINT files_size_check CHECK ((size >= 0))
);


COMMENT ON TABLE public.files IS 'Rows go with their bytes (retention-sweep, DELETE /api/files/{id})';


CREATE TABLE public.finished_calls (
    key text NOT NULL,
    kind text NOT NULL,
    actor_key text NOT NULL,
    name text NOT NULL,
    lane text NOT NULL,
    attempts integer NOT NULL,
    last_error text,
    request_id text,
    created_at timestamp with time zone NOT NULL,
    finished_at timestamp with time zone DEFAULT now() NOT NULL
);


COMMENT ON TABLE public.finished_calls IS 'Calls whose result took effect; attempts that failed before it';


CREATE TABLE public.idempotency_keys (
    user_id text NOT NULL,
    key text NOT NULL,
    fingerprint bytea NOT NULL,
    request_id_seed text NOT NULL,
    created_at timestamp with time zone NOT NULL,
    locked_until timestamp with time zone,
    answer jsonb
);


CREATE TABLE public.incident_updates (
    id text NOT NULL,
    incident_id text NOT NULL,
    state text NOT NULL,
    body text NOT NULL,
    at timestamp with time zone NOT NULL
);


CREATE TABLE public.incidents (
    id text NOT NULL,
    component text NOT NULL,
    title text NOT NULL,
    impact text NOT NULL,
    state text NOT NULL,
    source text NOT NULL,
    opened_at timestamp with time zone NOT NULL,
    published_at timestamp with time zone,
    resolved_at timestamp with time zone
);


CREATE TABLE public.integration_connections (
    store_id text NOT NULL,
    provider text NOT NULL,
    shop_domain text NOT NULL,
    status text NOT NULL,
    client_id text,
    access_token text,
    token_expires_at timestamp with time zone,
    metadata jsonb DEFAULT '{}'::jsonb NOT NULL,
    refused_at timestamp with time zone,
    connected_at timestamp with time zone NOT NULL,
    uninstalled_at timestamp with time zone,
    secret_hash text,
    mcp_key_hash text,
    pairing_code text,
    created_at timestamp with time zone DEFAULT now() NOT NULL
);


CREATE TABLE public.intelligence_suppressions (
    domain_hash bytea NOT NULL,
    suppressed_at timestamp with time zone NOT NULL,
    reason text NOT NULL,
    source text NOT NULL,
    lifted_at timestamp with time zone,
    CONSTRAINT intelligence_suppressions_domain_hash_check CHECK ((octet_length(domain_hash) = 32))
);


CREATE TABLE public.invitations (
    id text NOT NULL,
    token_hash bytea NOT NULL,
    organization_id text NOT NULL,
    email text NOT NULL,
    role text NOT NULL,
    invited_by text NOT NULL,
    created_at timestamp with time zone NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    ended_at timestamp with time zone,
    why text,
    ended_by text,
    CONSTRAINT invitations_check CHECK (((ended_at IS NULL) = (why IS NULL))),
    CONSTRAINT invitations_email_check CHECK ((email = lower(email))),
    CONSTRAINT invitations_role_check CHECK ((role = ANY (ARRAY['owner'::text, 'admin'::text, 'member'::text]))),
    CONSTRAINT invitations_token_hash_check CHECK ((octet_length(token_hash) = 32)),
    CONSTRAINT invitations_why_check CHECK ((why = ANY (ARRAY['accepted'::text, 'withdrawn'::text, 'replaced'::text, 'inviter'::text])))
);


CREATE TABLE public.launch_attempts (
    store_id text NOT NULL,
    milestone text NOT NULL,
    run integer NOT NULL,
    attempt integer NOT NULL,
    started_at timestamp with time zone NOT NULL,
    changed_at timestamp with time zone NOT NULL,
    outcome text,
    reason text,
    detail text
);


CREATE TABLE public.launch_milestones (
    store_id text NOT NULL,
    milestone text NOT NULL,
    state text NOT NULL,
    changed_at timestamp with time zone NOT NULL,
    run integer NOT NULL,
    attempts integer NOT NULL,
    step integer NOT NULL,
    reason text,
    detail text,
    scope text,
    not_before timestamp with time zone,
    queued_at timestamp with time zone,
    started_at timestamp with time zone,
    finished_at timestamp with time zone,
    decided_by text,
    note text,
    operations text DEFAULT ''::text NOT NULL,
    stop jsonb,
    written jsonb DEFAULT '{}'::jsonb NOT NULL,
    result jsonb,
    is_held boolean DEFAULT false NOT NULL,
    is_hinted boolean DEFAULT false NOT NULL,
    reminders integer DEFAULT 0 NOT NULL,
    CONSTRAINT launch_milestones_state_check CHECK ((state = ANY (ARRAY['pending'::text, 'queued'::text, 'running'::text, 'succeeded'::text, 'approved'::text, 'failed'::text, 'blocked'::text, 'skipped'::text])))
);


COMMENT ON COLUMN public.launch_milestones.written IS 'Which version each thing of the shop had when we wrote it last';


CREATE TABLE public.ledger_checks (
    organization_id text NOT NULL,
    seq bigint NOT NULL,
    hash text NOT NULL,
    accounts jsonb NOT NULL,
    checked_at timestamp with time zone NOT NULL,
    whole_at timestamp with time zone NOT NULL
);


CREATE TABLE public.legal_documents (
    sha256 text NOT NULL,
    deal_id text NOT NULL,
    content text NOT NULL,
    made_at timestamp with time zone NOT NULL
);


CREATE TABLE public.legal_signatures (
    id text NOT NULL,
    deal_id text NOT NULL,
    document_type text NOT NULL,
    provider text NOT NULL,
    status text NOT NULL,
    hosted_url text,
    template_version text NOT NULL,
    document_sha256 text NOT NULL,
    signers jsonb NOT NULL,
    seq bigint NOT NULL,
    audit_hash text NOT NULL,
    requested_by text NOT NULL,
    requested_at timestamp with time zone NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    ended_at timestamp with time zone,
    CONSTRAINT legal_signatures_document_type_check CHECK ((document_type = ANY (ARRAY['NDA'::text, 'LOI'::text, 'APA'::text]))),
    CONSTRAINT legal_signatures_provider_check CHECK ((provider = ANY (ARRAY['PLATFORM'::text, 'EXTERNAL_A'::text, 'EXTERNAL_B'::text])))
);


CREATE TABLE public.listing_details (
    listing_id text NOT NULL,
    private jsonb NOT NULL,
    required_documents jsonb NOT NULL
);


CREATE TABLE public.listing_verifications (
    listing_id text NOT NULL,
    state text NOT NULL,
    since timestamp with time zone,
    generation bigint NOT NULL,
    shop_domain text,
    accepted_at timestamp with time zone,
    last_ok_at timestamp with time zone,
    verified_at timestamp with time zone,
    keeps_badge boolean NOT NULL,
    syncing_since timestamp with time zone,
    missing_permission text,
    last_error text,
    primary_domain text,
    provider text DEFAULT 'commerce'::text NOT NULL,
    suspended_for text,
    redefined jsonb
);


CREATE TABLE public.listing_views (
    listing_id text NOT NULL,
    views bigint NOT NULL
);


CREATE TABLE public.listing_visibility (
    listing_id text NOT NULL,
    visibility jsonb NOT NULL
);


CREATE TABLE public.listing_watchers (
    listing_id text NOT NULL,
    user_id text NOT NULL,
    since timestamp with time zone NOT NULL
);


CREATE TABLE public.listings (
    title text NOT NULL,
    teaser text,
    anonymous boolean NOT NULL,
    category text,
    business_model text,
    founded_at date,
    country text,
    asking_price bigint,
    currency text,
    min_offer bigint,
    reason_for_sale text,
    included_assets jsonb NOT NULL,
    excluded_assets jsonb NOT NULL,
    domain text,
    self_reported jsonb NOT NULL,
    auto_approve_access boolean NOT NULL,
    financing_offered boolean NOT NULL,
    id text NOT NULL,
    organization_id text NOT NULL,
    store_id text,
    slug text NOT NULL,
    status text NOT NULL,
    status_reason text,
    created_by text NOT NULL,
    created_at timestamp with time zone NOT NULL,
    seller_active_at timestamp with time zone NOT NULL,
    published_at timestamp with time zone,
    deleted_at timestamp with time zone,
    CONSTRAINT listings_asking_price_check CHECK ((asking_price > 0)),
    CONSTRAINT listings_min_offer_check CHECK ((min_offer > 0))
);


CREATE TABLE public.mail_bounces (
    recipient text NOT NULL,
    kind text NOT NULL,
    why text NOT NULL,
    since timestamp with time zone NOT NULL
);


CREATE TABLE public.mail_refusals (
    recipient text NOT NULL,
    topic text NOT NULL,
    since timestamp with time zone NOT NULL
);


CREATE TABLE public.market_entries (
    listing_id text NOT NULL,
    words tsvector NOT NULL,
    status text NOT NULL,
    category text,
    business_model text,
    country text,
    currency text NOT NULL,
    price bigint NOT NULL,
    financing boolean NOT NULL,
    verified_until timestamp with time zone,
    revenue_until timestamp with time zone,
    revenue_currency text,
    revenue_low bigint,
    revenue_high bigint
);


COMMENT ON COLUMN public.market_entries.verified_until IS 'The badge is green before';


COMMENT ON COLUMN public.market_entries.revenue_until IS 'The revenue is shown before';


CREATE TABLE public.members (
    organization_id text NOT NULL,
    user_id text NOT NULL,
    role text NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT members_role_check CHECK ((role = ANY (ARRAY['owner'::text, 'admin'::text, 'member'::text])))
);


CREATE TABLE public.messages (
    id text NOT NULL,
    organization_id text NOT NULL,
    store_id text,
    role text NOT NULL,
    text text NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    source text DEFAULT 'merchant'::text NOT NULL,
    user_id text,
    updated_at timestamp with time zone DEFAULT now() NOT NULL,
    deleted_at timestamp with time zone
);


CREATE TABLE public.monthly_resets (
    organization_id text NOT NULL,
    period_end timestamp with time zone NOT NULL,
    plan text NOT NULL,
    at timestamp with time zone NOT NULL,
    period_start timestamp with time zone NOT NULL
);


CREATE TABLE public.oauth_clients (
    id text NOT NULL,
    name text NOT NULL,
    redirect_uris text[] NOT NULL,
    auth_method text NOT NULL,
    secret_hash bytea,
    created_at timestamp with time zone NOT NULL,
    used_at timestamp with time zone NOT NULL,
    CONSTRAINT oauth_clients_auth_method_check CHECK ((auth_method = ANY (ARRAY['none'::text, 'client_secret_basic'::text, 'client_secret_post'::text]))),
    CONSTRAINT oauth_clients_check CHECK (((auth_method = 'none'::text) = (secret_hash IS NULL))),
    CONSTRAINT oauth_clients_secret_hash_check CHECK ((octet_length(secret_hash) = 32))
);


CREATE TABLE public.oauth_codes (
    code_hash bytea NOT NULL,
    grant_id text NOT NULL,
    code_challenge text NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    used_at timestamp with time zone,
    CONSTRAINT oauth_codes_code_hash_check CHECK ((octet_length(code_hash) = 32))
);


CREATE TABLE public.oauth_grants (
    id text NOT NULL,
    user_id text NOT NULL,
    client_id text NOT NULL,
    client_name text NOT NULL,
    redirect_uri text NOT NULL,
    organization_id text NOT NULL,
    store_id text NOT NULL,
    resource text NOT NULL,
    scopes text[] NOT NULL,
    created_at timestamp with time zone NOT NULL,
    used_at timestamp with time zone,
    ended_at timestamp with time zone,
    why text,
    ended_by text,
    review_at timestamp with time zone DEFAULT (now() + '30 days'::interval) NOT NULL,
    CONSTRAINT oauth_grants_check CHECK (((ended_at IS NULL) = (why IS NULL)))
);


CREATE TABLE public.oauth_requests (
    id_hash bytea NOT NULL,
    client_id text NOT NULL,
    client_name text NOT NULL,
    redirect_uri text NOT NULL,
    state text,
    code_challenge text NOT NULL,
    resource text NOT NULL,
    store_id text NOT NULL,
    scopes text[] NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    used_at timestamp with time zone,
    refusal text,
    CONSTRAINT oauth_requests_id_hash_check CHECK ((octet_length(id_hash) = 32))
);


CREATE TABLE public.oauth_tokens (
    token_hash bytea NOT NULL,
    grant_id text NOT NULL,
    kind text NOT NULL,
    scopes text[] NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    used_at timestamp with time zone,
    successor_salt bytea,
    CONSTRAINT oauth_tokens_kind_check CHECK ((kind = ANY (ARRAY['access'::text, 'refresh'::text]))),
    CONSTRAINT oauth_tokens_token_hash_check CHECK ((octet_length(token_hash) = 32))
);


CREATE TABLE public.offer_drafts (
    offer_id text NOT NULL,
    deal_id text NOT NULL,
    side text NOT NULL,
    organization_id text NOT NULL,
    reply text NOT NULL,
    counter jsonb,
    note text,
    drafted_by text NOT NULL,
    drafted_at timestamp with time zone NOT NULL,
    discarded_at timestamp with time zone
);


CREATE TABLE public.operations (
    id text NOT NULL,
    organization_id text NOT NULL,
    user_id text NOT NULL,
    kind text NOT NULL,
    subject text NOT NULL,
    state text NOT NULL,
    wanted jsonb NOT NULL,
    created_at timestamp with time zone NOT NULL,
    result jsonb,
    status integer,
    code text,
    detail text,
    finished_at timestamp with time zone
);


COMMENT ON COLUMN public.operations.subject IS 'What it is about: those of one thing go one after another';


CREATE TABLE public.order_imports (
    store_id text NOT NULL,
    shop_domain text NOT NULL,
    begun_at timestamp with time zone NOT NULL,
    run integer NOT NULL,
    state text NOT NULL,
    changed_at timestamp with time zone NOT NULL,
    begun_by text,
    since timestamp with time zone,
    bulk_export text,
    exported_at timestamp with time zone,
    exports integer NOT NULL,
    expected bigint,
    read_bytes bigint NOT NULL,
    orders bigint NOT NULL,
    unread bigint NOT NULL,
    code text,
    finished_at timestamp with time zone,
    known_since timestamp with time zone,
    knows_all boolean NOT NULL
);


COMMENT ON COLUMN public.order_imports.since IS 'NULL: the whole history';


COMMENT ON COLUMN public.order_imports.known_since IS 'From when on the last import that was done had all orders';


CREATE TABLE public.organizations (
    id text NOT NULL,
    name text NOT NULL,
    plan text DEFAULT 'free'::text NOT NULL,
    stores_contracted integer,
    rules jsonb DEFAULT '{}'::jsonb NOT NULL,
    is_administrators boolean DEFAULT false NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    deleted_at timestamp with time zone,
    CONSTRAINT organizations_plan_check CHECK ((plan = ANY (ARRAY['free'::text, 'pro'::text, 'max_5x'::text, 'max_20x'::text, 'custom'::text]))),
    CONSTRAINT organizations_rules_check CHECK ((jsonb_typeof(rules) = 'object'::text)),
    CONSTRAINT organizations_stores_contracted_check CHECK ((stores_contracted >= 0))
);


CREATE TABLE public.outbound_mail (
    id text NOT NULL,
    event text NOT NULL,
    about text NOT NULL,
    organization_id text,
    recipient text NOT NULL,
    subject text NOT NULL,
    sealed_content text,
    state text DEFAULT 'waiting'::text NOT NULL,
    attempts integer DEFAULT 0 NOT NULL,
    next_try_at timestamp with time zone,
    answer text,
    created_at timestamp with time zone NOT NULL,
    ended_at timestamp with time zone,
    digest_on date,
    CONSTRAINT outbound_mail_state_check CHECK ((state = ANY (ARRAY['waiting'::text, 'kept'::text, 'sent'::text, 'refused'::text, 'given_up'::text])))
);


CREATE TABLE public.outbox (
    key text NOT NULL,
    slot integer NOT NULL,
    kind text NOT NULL,
    actor_key text NOT NULL,
    name text NOT NULL,
    payload jsonb NOT NULL,
    due_at timestamp with time zone DEFAULT now() NOT NULL,
    attempts integer DEFAULT 0 NOT NULL,
    last_error text,
    request_id text,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    interruptions integer DEFAULT 0 NOT NULL,
    sender text,
    lane text,
    state text DEFAULT 'waiting'::text NOT NULL,
    about text DEFAULT ''::text NOT NULL,
    held_by text
);


CREATE TABLE public.password_resets (
    token_hash bytea NOT NULL,
    user_id text NOT NULL,
    created_at timestamp with time zone NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    CONSTRAINT password_resets_token_hash_check CHECK ((octet_length(token_hash) = 32))
);


CREATE TABLE public.payment_events (
    event_id text NOT NULL,
    type text NOT NULL,
    object_id text,
    account text,
    api_version text,
    livemode boolean NOT NULL,
    created_at timestamp with time zone NOT NULL,
    facts jsonb,
    links text[] DEFAULT '{}'::text[] NOT NULL,
    claimed_by text,
    organization_id text,
    state text NOT NULL,
    why text,
    tries integer DEFAULT 1 NOT NULL,
    received_at timestamp with time zone DEFAULT now() NOT NULL,
    settled_at timestamp with time zone,
    attempts integer DEFAULT 0 NOT NULL,
    due_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT payment_events_state_check CHECK ((state = ANY (ARRAY['new'::text, 'applied'::text, 'ignored'::text, 'parked'::text, 'failed'::text])))
);


CREATE TABLE public.payment_facts (
    organization_id text NOT NULL,
    payment_ref text NOT NULL,
    kind text,
    granted bigint NOT NULL,
    granted_at timestamp with time zone,
    expires_at timestamp with time zone,
    credits bigint NOT NULL,
    total bigint NOT NULL,
    refunded bigint NOT NULL,
    disputes jsonb NOT NULL,
    refund_removed bigint NOT NULL,
    dispute_removed bigint NOT NULL,
    refund_asked_at timestamp with time zone,
    parts jsonb DEFAULT '[]'::jsonb NOT NULL,
    CONSTRAINT payment_facts_check CHECK (((refund_removed + dispute_removed) <= granted)),
    CONSTRAINT payment_facts_dispute_removed_check CHECK ((dispute_removed >= 0)),
    CONSTRAINT payment_facts_granted_check CHECK ((granted >= 0)),
    CONSTRAINT payment_facts_refund_removed_check CHECK ((refund_removed >= 0))
);


CREATE TABLE public.payment_links (
    reference text NOT NULL,
    organization_id text NOT NULL,
    event_id text NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL
);


CREATE TABLE public.payout_accounts (
    account_id text NOT NULL,
    user_id text NOT NULL,
    has_submitted_details boolean NOT NULL,
    can_charge boolean NOT NULL,
    can_be_paid_out boolean NOT NULL,
    is_verified boolean NOT NULL,
    disabled_reason text,
    currently_due text[] NOT NULL,
    past_due text[] NOT NULL,
    eventually_due text[] NOT NULL,
    pending_verification text[] NOT NULL,
    created_at timestamp with time zone NOT NULL,
    seen_at timestamp with time zone
);


CREATE TABLE public.payout_failures (
    payout_id text NOT NULL,
    account_id text,
    amount_cents bigint NOT NULL,
    currency text NOT NULL,
    failure_code text,
    failure_message text,
    failed_at timestamp with time zone NOT NULL,
    CONSTRAINT payout_failures_amount_cents_check CHECK ((amount_cents >= 0))
);


CREATE TABLE public.plan_checkouts (
    organization_id text NOT NULL,
    session_id text NOT NULL,
    created_at timestamp with time zone NOT NULL
);


CREATE TABLE public.platform_activity (
    launch_id text NOT NULL,
    milestone text NOT NULL,
    store_id text NOT NULL,
    organization_id text NOT NULL,
    section text NOT NULL,
    title text NOT NULL,
    created_at timestamp with time zone NOT NULL
);


CREATE TABLE public.process_beats (
    process text NOT NULL,
    beat bigint NOT NULL,
    beaten_at timestamp with time zone DEFAULT now() NOT NULL
);


CREATE TABLE public.provider_events (
    provider text NOT NULL,
    event_id text NOT NULL,
    type text NOT NULL,
    sealed_body text NOT NULL,
    state text NOT NULL,
    why text,
    received_at timestamp with time zone NOT NULL,
    settled_at timestamp with time zone
);


CREATE TABLE public.raised_alerts (
    name text NOT NULL,
    since timestamp with time zone NOT NULL,
    told_at timestamp with time zone NOT NULL
);


CREATE TABLE public.revenue_snapshots (
    listing_id text NOT NULL,
    window_end timestamp with time zone NOT NULL,
    window_start timestamp with time zone NOT NULL,
    source text NOT NULL,
    shop_domain text NOT NULL,
    definition text NOT NULL,
    shop_currency text NOT NULL,
    verified boolean NOT NULL,
    figures jsonb NOT NULL,
    orders integer NOT NULL,
    skipped jsonb NOT NULL,
    flags jsonb NOT NULL,
    unproven jsonb DEFAULT '[]'::jsonb NOT NULL
);


CREATE TABLE public.revenue_sources (
    listing_id text NOT NULL,
    organization_id text NOT NULL,
    provider text NOT NULL,
    shop_domain text NOT NULL,
    client_id text NOT NULL,
    sealed_secret text,
    connected_by text NOT NULL,
    connected_at timestamp with time zone NOT NULL,
    revoked_at timestamp with time zone
);


CREATE TABLE public.schema_migration_progress (
    number integer NOT NULL,
    statements integer NOT NULL,
    last_key text NOT NULL
);


CREATE TABLE public.schema_migrations (
    number integer NOT NULL,
    name text NOT NULL,
    applied_at timestamp with time zone DEFAULT now() NOT NULL,
    compatible_from integer
);


CREATE TABLE public.seal_certificates (
    key_id text NOT NULL,
    certificate text NOT NULL,
    made_at timestamp with time zone NOT NULL
);


CREATE TABLE public.sealed_documents (
    sha256 text NOT NULL,
    signature_id text NOT NULL,
    deal_id text NOT NULL,
    key_id text NOT NULL,
    content bytea NOT NULL,
    made_at timestamp with time zone NOT NULL
);


CREATE TABLE public.sessions (
    token_hash bytea NOT NULL,
    user_id text NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    used_at timestamp with time zone,
    device text,
    place text,
    CONSTRAINT sessions_token_hash_check CHECK ((octet_length(token_hash) = 32))
);


CREATE TABLE public.shops_of_stores (
    store_id text NOT NULL,
    shop_domain text NOT NULL,
    shop_key text NOT NULL,
    sealed_salt text,
    first_connected_at timestamp with time zone NOT NULL
);


COMMENT ON COLUMN public.shops_of_stores.shop_key IS 'What commerce_*.store_id says of the rows of this shop';


COMMENT ON COLUMN public.shops_of_stores.sealed_salt IS 'Of the pseudonyms of this shop''s buyers; that of the shop whose key is the store''s id is in stores';


CREATE TABLE public.signature_events (
    signature_id text NOT NULL,
    deal_id text NOT NULL,
    seq bigint NOT NULL,
    body text NOT NULL,
    hash text NOT NULL,
    at timestamp with time zone NOT NULL
);


CREATE TABLE public.signature_shares (
    token_hash bytea NOT NULL,
    signature_id text NOT NULL,
    deal_id text NOT NULL,
    created_by text NOT NULL,
    created_at timestamp with time zone NOT NULL,
    expires_at timestamp with time zone NOT NULL
);


CREATE TABLE public.slot_epochs (
    slot integer NOT NULL,
    epoch bigint DEFAULT 0 NOT NULL,
    owner text,
    claimed_at timestamp with time zone,
    pinned_to text,
    CONSTRAINT slot_epochs_slot_check CHECK (((slot >= 0) AND (slot <= 1023)))
);


CREATE TABLE public.sponsor_disputes (
    dispute_id text NOT NULL,
    payment_ref text NOT NULL,
    cents bigint NOT NULL,
    standing text NOT NULL,
    CONSTRAINT sponsor_disputes_cents_check CHECK ((cents >= 0)),
    CONSTRAINT sponsor_disputes_standing_check CHECK ((standing = ANY (ARRAY['open'::text, 'lost'::text, 'won'::text])))
);


CREATE TABLE public.sponsorships (
    payment_ref text NOT NULL,
    organization_id text,
    paid_cents bigint DEFAULT 0 NOT NULL,
    refunded_cents bigint DEFAULT 0 NOT NULL,
    currency text NOT NULL,
    event_id text NOT NULL,
    created_at timestamp with time zone NOT NULL,
    CONSTRAINT sponsorships_paid_cents_check CHECK ((paid_cents >= 0)),
    CONSTRAINT sponsorships_refunded_cents_check CHECK ((refunded_cents >= 0))
);


CREATE TABLE public.status_components (
    component text NOT NULL,
    state text NOT NULL,
    why text NOT NULL,
    bad_times integer NOT NULL,
    checked_at timestamp with time zone NOT NULL
);


CREATE TABLE public.status_days (
    component text NOT NULL,
    day timestamp with time zone NOT NULL,
    samples integer NOT NULL,
    slow integer NOT NULL,
    down integer NOT NULL
);


CREATE TABLE public.status_subscribers (
    email text NOT NULL,
    confirmed_at timestamp with time zone NOT NULL,
    components text DEFAULT ''::text NOT NULL
);


CREATE TABLE public.status_webhooks (
    id text NOT NULL,
    url text NOT NULL,
    sealed_secret text NOT NULL,
    components text NOT NULL,
    failures integer DEFAULT 0 NOT NULL,
    confirmed_at timestamp with time zone NOT NULL
);


CREATE TABLE public.store_contexts (
    store_id text NOT NULL,
    organization_id text NOT NULL,
    module text NOT NULL,
    value jsonb NOT NULL,
    changed_at timestamp with time zone NOT NULL
);


CREATE TABLE public.store_launches (
    store_id text NOT NULL,
    launch_id text NOT NULL,
    organization_id text NOT NULL,
    playbook text NOT NULL,
    digest text NOT NULL,
    begun_by text,
    begun_at timestamp with time zone NOT NULL,
    changed_at timestamp with time zone NOT NULL,
    shop_domain text,
    reason text,
    claimed_until timestamp with time zone,
    draft_hash text,
    approved_hash text,
    probed_at timestamp with time zone,
    unprobed text DEFAULT ''::text NOT NULL,
    has_work boolean DEFAULT false NOT NULL,
    is_looking boolean DEFAULT false NOT NULL,
    alarms text DEFAULT ''::text NOT NULL,
    tax_lines integer,
    taxed_at timestamp with time zone,
    finished_at timestamp with time zone,
    storefront_password text
);


CREATE TABLE public.store_shops (
    store_id text NOT NULL,
    shop_domain text NOT NULL,
    facts_at timestamp with time zone NOT NULL,
    shop_id bigint,
    name text,
    plan_name text,
    plan_display_name text,
    partner_development boolean,
    currency text,
    primary_domain text,
    timezone text,
    country text,
    password_enabled boolean,
    setup_required boolean,
    shop_created_at timestamp with time zone,
    theme_id bigint,
    theme_name text,
    theme_at timestamp with time zone,
    custom_domains jsonb DEFAULT '[]'::jsonb NOT NULL,
    subscriptions jsonb DEFAULT '{}'::jsonb NOT NULL,
    subscribed_at timestamp with time zone,
    bulk_operation jsonb,
    bulk_at timestamp with time zone
);


CREATE TABLE public.storefront_changes (
    domain text NOT NULL,
    at timestamp with time zone NOT NULL,
    variant_id bigint NOT NULL,
    kind text NOT NULL,
    product_id bigint NOT NULL,
    before text,
    after text
);


CREATE TABLE public.storefront_products (
    domain text NOT NULL,
    product_id bigint NOT NULL,
    title text NOT NULL,
    handle text NOT NULL,
    vendor text NOT NULL,
    product_type text NOT NULL,
    published_at timestamp with time zone,
    first_seen_at timestamp with time zone NOT NULL,
    changed_at timestamp with time zone NOT NULL,
    gone_at timestamp with time zone
);


CREATE TABLE public.storefront_scans (
    id text NOT NULL,
    domain text NOT NULL,
    mode text NOT NULL,
    is_kept boolean NOT NULL,
    was_restored boolean NOT NULL,
    source text NOT NULL,
    organization_id text,
    user_id text,
    state text NOT NULL,
    asked_at timestamp with time zone NOT NULL,
    ended_at timestamp with time zone,
    report jsonb,
    CONSTRAINT storefront_scans_mode_check CHECK ((mode = ANY (ARRAY['full'::text, 'light'::text]))),
    CONSTRAINT storefront_scans_state_check CHECK ((state = ANY (ARRAY['queued'::text, 'running'::text, 'done'::text, 'failed'::text, 'cancelled'::text])))
);


CREATE TABLE public.storefront_snapshots (
    domain text NOT NULL,
    taken_at timestamp with time zone NOT NULL,
    scan_id text NOT NULL,
    product_count bigint NOT NULL,
    variant_count bigint NOT NULL,
    changed bigint NOT NULL,
    median_price numeric,
    units bigint,
    velocity numeric,
    velocity_low numeric,
    velocity_high numeric
);


CREATE TABLE public.storefront_variants (
    domain text NOT NULL,
    variant_id bigint NOT NULL,
    product_id bigint NOT NULL,
    title text NOT NULL,
    sku text NOT NULL,
    price numeric,
    compare_at_price numeric,
    available boolean,
    quantity bigint,
    changed_at timestamp with time zone NOT NULL,
    gone_at timestamp with time zone
);


CREATE TABLE public.storefronts (
    domain text NOT NULL,
    state text NOT NULL,
    source text NOT NULL,
    discovered_at timestamp with time zone NOT NULL,
    canonical text,
    platform text,
    country text,
    currency text,
    product_count bigint,
    velocity numeric,
    facts jsonb DEFAULT '{}'::jsonb NOT NULL,
    diagnosis jsonb DEFAULT '{}'::jsonb NOT NULL,
    scanned_at timestamp with time zone,
    snapshot_at timestamp with time zone,
    next_scan_at timestamp with time zone,
    hold_until timestamp with time zone,
    hold_seconds integer DEFAULT 0 NOT NULL,
    failures integer DEFAULT 0 NOT NULL,
    etag text,
    last_modified text,
    category text
);


COMMENT ON COLUMN public.storefronts.velocity IS 'Units a day of its best seller';


CREATE TABLE public.stores (
    id text NOT NULL,
    organization_id text NOT NULL,
    name text NOT NULL,
    sealed_salt text NOT NULL,
    created_at timestamp with time zone NOT NULL,
    deleted_at timestamp with time zone
);


CREATE TABLE public.subscriptions (
    organization_id text NOT NULL,
    customer_id text,
    subscription_id text,
    item_id text,
    price_id text,
    status text,
    plan text DEFAULT 'free'::text NOT NULL,
    cadence text,
    subscribed_plan text,
    subscribed_cadence text,
    period_start timestamp with time zone,
    period_end timestamp with time zone,
    cancel_at_period_end boolean DEFAULT false NOT NULL,
    schedule_id text,
    next_schedule_id text,
    next_plan text,
    next_cadence text,
    seen_at timestamp with time zone,
    paid_plan text,
    paid_cadence text,
    paid_from timestamp with time zone,
    paid_until timestamp with time zone,
    paid_at timestamp with time zone,
    paid_invoice_id text,
    dunning_since timestamp with time zone,
    dunning_at timestamp with time zone,
    dunning_invoice_id text,
    dunning_url text,
    refused_changes integer DEFAULT 0 NOT NULL,
    settled_at timestamp with time zone,
    aside_plan text,
    aside_cadence text,
    aside_price_id text,
    aside_until timestamp with time zone,
    CONSTRAINT subscriptions_cadence_check CHECK ((cadence = ANY (ARRAY['monthly'::text, 'yearly'::text]))),
    CONSTRAINT subscriptions_refused_changes_check CHECK ((refused_changes >= 0))
);


CREATE TABLE public.users (
    id text NOT NULL,
    email text NOT NULL,
    password_hash text NOT NULL,
    banned boolean DEFAULT false NOT NULL,
    deletion_requested_at timestamp with time zone,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    language text,
    inbox_seen_at timestamp with time zone,
    CONSTRAINT users_email_check CHECK ((email = lower(email)))
);


CREATE TABLE public.vectors (
    namespace text NOT NULL,
    id text NOT NULL,
    embedding public.vector NOT NULL,
    text text,
    metadata jsonb DEFAULT '{}'::jsonb NOT NULL,
    model text,
    digest text
);


CREATE TABLE public.workflow_claims (
    organization_id text NOT NULL,
    id text NOT NULL,
    kind text NOT NULL,
    started_at timestamp with time zone NOT NULL,
    lease_until timestamp with time zone NOT NULL,
    ended_at timestamp with time zone
)
WITH (fillfactor='70');


ALTER TABLE ONLY public.actor_journal
    ADD CONSTRAINT actor_journal_pkey PRIMARY KEY (kind, key, version);


ALTER TABLE ONLY public.actors
    ADD CONSTRAINT actors_pkey PRIMARY KEY (kind, key);


ALTER TABLE ONLY public.affiliate_codes
    ADD CONSTRAINT affiliate_codes_code_key UNIQUE (code);


ALTER TABLE ONLY public.affiliate_codes
    ADD CONSTRAINT affiliate_codes_pkey PRIMARY KEY (id);


ALTER TABLE ONLY public.affiliate_redemptions
    ADD CONSTRAINT affiliate_redemptions_id_key UNIQUE (id);


ALTER TABLE ONLY public.affiliate_redemptions
    ADD CONSTRAINT affiliate_redemptions_pkey PRIMARY KEY (organization_id);


ALTER TABLE ONLY public.affiliate_redemptions
    ADD CONSTRAINT affiliate_redemptions_user_id_key UNIQUE (user_id);


ALTER TABLE public.agent_operations
    ADD CONSTRAINT agent_operations_check CHECK (((finished_at IS NULL) = (state = ANY (ARRAY['proposed'::text, 'waiting'::text, 'stopped'::text, 'running'::text, 'sent'::text, 'unknown'::text])))) NOT VALID;


ALTER TABLE ONLY public.agent_operations
    ADD CONSTRAINT agent_operations_pkey PRIMARY KEY (store_id, operation_id);


ALTER TABLE public.agent_operations
    ADD CONSTRAINT agent_operations_state_check CHECK ((state = ANY (ARRAY['proposed'::text, 'waiting'::text, 'stopped'::text, 'running'::text, 'sent'::text, 'unknown'::text, 'applied'::text, 'rejected'::text, 'unclear'::text, 'not_sent'::text]))) NOT VALID;


ALTER TABLE ONLY public.api_keys
    ADD CONSTRAINT api_keys_key_hash_key UNIQUE (key_hash);


ALTER TABLE ONLY public.api_keys
    ADD CONSTRAINT api_keys_pkey PRIMARY KEY (id);


ALTER TABLE ONLY public.attribution_touches
    ADD CONSTRAINT attribution_touches_pkey PRIMARY KEY (store_id, order_id);


ALTER TABLE ONLY public.audit_log
    ADD CONSTRAINT audit_log_pkey PRIMARY KEY (id);


ALTER TABLE ONLY public.calibrating_listings
    ADD CONSTRAINT calibrating_listings_pkey PRIMARY KEY (listing_id);


ALTER TABLE ONLY public.calibrations
    ADD CONSTRAINT calibrations_pkey PRIMARY KEY (fitted_at);


ALTER TABLE ONLY public.chat_generations
    ADD CONSTRAINT chat_generations_pkey PRIMARY KEY (id);


ALTER TABLE ONLY public.commerce_attribution
    ADD CONSTRAINT commerce_attribution_pkey PRIMARY KEY (store_id, day, source, medium, campaign, currency);


ALTER TABLE ONLY public.commerce_buyers
    ADD CONSTRAINT commerce_buyers_pkey PRIMARY KEY (store_id, pseudonym);


ALTER TABLE ONLY public.commerce_cohorts
    ADD CONSTRAINT commerce_cohorts_pkey PRIMARY KEY (store_id, month, currency);


ALTER TABLE ONLY public.commerce_counted_refunds
    ADD CONSTRAINT commerce_counted_refunds_pkey PRIMARY KEY (store_id, refund_id);


ALTER TABLE ONLY public.commerce_counted_touches
    ADD CONSTRAINT commerce_counted_touches_pkey PRIMARY KEY (store_id, order_id);


ALTER TABLE ONLY public.commerce_customers
    ADD CONSTRAINT commerce_customers_pkey PRIMARY KEY (store_id, customer_id);


ALTER TABLE ONLY public.commerce_fulfillments
    ADD CONSTRAINT commerce_fulfillments_pkey PRIMARY KEY (store_id, fulfillment_id);


ALTER TABLE ONLY public.commerce_inventory_levels
    ADD CONSTRAINT commerce_inventory_levels_pkey PRIMARY KEY (store_id, inventory_item_id, location_id);


ALTER TABLE ONLY public.commerce_orders
    ADD CONSTRAINT commerce_orders_pkey PRIMARY KEY (store_id, order_id);


ALTER TABLE ONLY public.commerce_product_counts
    ADD CONSTRAINT commerce_product_counts_pkey PRIMARY KEY (store_id);


ALTER TABLE ONLY public.commerce_product_sales
    ADD CONSTRAINT commerce_product_sales_pkey PRIMARY KEY (store_id, span, day, product_id, variant_id, currency);


ALTER TABLE ONLY public.commerce_products
    ADD CONSTRAINT commerce_products_pkey PRIMARY KEY (store_id, product_id);


ALTER TABLE ONLY public.commerce_refund_reasons
    ADD CONSTRAINT commerce_refund_reasons_pkey PRIMARY KEY (store_id, day, is_cancelled, reason, currency);


ALTER TABLE ONLY public.commerce_refunds
    ADD CONSTRAINT commerce_refunds_pkey PRIMARY KEY (store_id, refund_id);


ALTER TABLE ONLY public.commerce_sales
    ADD CONSTRAINT commerce_sales_pkey PRIMARY KEY (store_id, minutes, at, source, currency);


ALTER TABLE ONLY public.commerce_spending
    ADD CONSTRAINT commerce_spending_pkey PRIMARY KEY (store_id, pseudonym, currency);


ALTER TABLE ONLY public.commerce_stock
    ADD CONSTRAINT commerce_stock_pkey PRIMARY KEY (store_id, product_id, place);


ALTER TABLE ONLY public.commerce_stock_unread
    ADD CONSTRAINT commerce_stock_unread_pkey PRIMARY KEY (store_id);


ALTER TABLE ONLY public.commerce_sums
    ADD CONSTRAINT commerce_sums_pkey PRIMARY KEY (store_id);


ALTER TABLE ONLY public.commerce_webhook_events
    ADD CONSTRAINT commerce_webhook_events_pkey PRIMARY KEY (store_id, delivery_id);


ALTER TABLE ONLY public.competitors
    ADD CONSTRAINT competitors_pkey PRIMARY KEY (store_id, domain);


ALTER TABLE ONLY public.compliance_receipts
    ADD CONSTRAINT compliance_receipts_pkey PRIMARY KEY (request_id, store_id, leg);


ALTER TABLE ONLY public.compliance_requests
    ADD CONSTRAINT compliance_requests_pkey PRIMARY KEY (id);


ALTER TABLE ONLY public.compliance_requests
    ADD CONSTRAINT compliance_requests_shop_domain_topic_delivery_id_key UNIQUE (shop_domain, topic, delivery_id);


ALTER TABLE ONLY public.connection_history
    ADD CONSTRAINT connection_history_pkey PRIMARY KEY (store_id, connected_at);


ALTER TABLE ONLY public.contracts
    ADD CONSTRAINT contracts_pkey PRIMARY KEY (organization_id);


ALTER TABLE ONLY public.credit_accounts
    ADD CONSTRAINT credit_accounts_pkey PRIMARY KEY (organization_id);


ALTER TABLE ONLY public.credit_entries
    ADD CONSTRAINT credit_entries_pkey PRIMARY KEY (organization_id, seq);


ALTER TABLE ONLY public.credit_holds
    ADD CONSTRAINT credit_holds_pkey PRIMARY KEY (organization_id, id);


ALTER TABLE ONLY public.credit_lots
    ADD CONSTRAINT credit_lots_pkey PRIMARY KEY (organization_id, id);


ALTER TABLE ONLY public.credit_postings
    ADD CONSTRAINT credit_postings_pkey PRIMARY KEY (organization_id, seq, n);


ALTER TABLE ONLY public.cron_executions
    ADD CONSTRAINT cron_executions_job_scheduled_at_key UNIQUE (job, scheduled_at);


ALTER TABLE ONLY public.cron_executions
    ADD CONSTRAINT cron_executions_pkey PRIMARY KEY (id);


ALTER TABLE ONLY public.customer_redactions
    ADD CONSTRAINT customer_redactions_pkey PRIMARY KEY (request_id, store_id, subject_key);


ALTER TABLE ONLY public.daily_bonuses
    ADD CONSTRAINT daily_bonuses_pkey PRIMARY KEY (organization_id, day);


ALTER TABLE ONLY public.daily_mails
    ADD CONSTRAINT daily_mails_pkey PRIMARY KEY (recipient, topic);


ALTER TABLE ONLY public.dead_letters
    ADD CONSTRAINT dead_letters_pkey PRIMARY KEY (id);


ALTER TABLE ONLY public.deal_events
    ADD CONSTRAINT deal_events_pkey PRIMARY KEY (deal_id, seq);


ALTER TABLE ONLY public.deal_files
    ADD CONSTRAINT deal_files_pkey PRIMARY KEY (id);


ALTER TABLE ONLY public.deal_metrics
    ADD CONSTRAINT deal_metrics_pkey PRIMARY KEY (signature_id);


ALTER TABLE ONLY public.deal_offers
    ADD CONSTRAINT deal_offers_pkey PRIMARY KEY (id);


ALTER TABLE ONLY public.deal_threads
    ADD CONSTRAINT deal_threads_pkey PRIMARY KEY (id);


ALTER TABLE ONLY public.deal_views
    ADD CONSTRAINT deal_views_pkey PRIMARY KEY (id);


ALTER TABLE ONLY public.deployment
    ADD CONSTRAINT deployment_pkey PRIMARY KEY (one);


ALTER TABLE ONLY public.devstore_claims
    ADD CONSTRAINT devstore_claims_pkey PRIMARY KEY (shop_domain);


ALTER TABLE ONLY public.devstore_claims
    ADD CONSTRAINT devstore_claims_store_id_key UNIQUE (store_id);


ALTER TABLE ONLY public.devstore_pool
    ADD CONSTRAINT devstore_pool_pkey PRIMARY KEY (shop_domain);


ALTER TABLE ONLY public.devstore_transfers
    ADD CONSTRAINT devstore_transfers_pkey PRIMARY KEY (store_id);


ALTER TABLE ONLY public.encryption_keys
    ADD CONSTRAINT encryption_keys_pkey PRIMARY KEY (key_id);


ALTER TABLE ONLY public.esign_leaves
    ADD CONSTRAINT esign_leaves_pkey PRIMARY KEY (signature_id, seq);


ALTER TABLE ONLY public.esign_roots
    ADD CONSTRAINT esign_roots_pkey PRIMARY KEY (day);


ALTER TABLE ONLY public.facts
    ADD CONSTRAINT facts_pkey PRIMARY KEY (id);


ALTER TABLE ONLY public.files
    ADD CONSTRAINT files_pkey PRIMARY KEY (id);


ALTER TABLE ONLY public.idempotency_keys
    ADD CONSTRAINT idempotency_keys_pkey PRIMARY KEY (user_id, key);


ALTER TABLE ONLY public.incident_updates
    ADD CONSTRAINT incident_updates_pkey PRIMARY KEY (id);


ALTER TABLE ONLY public.incidents
    ADD CONSTRAINT incidents_pkey PRIMARY KEY (id);


ALTER TABLE ONLY public.integration_connections
    ADD CONSTRAINT integration_connections_pkey PRIMARY KEY (store_id, provider);


ALTER TABLE ONLY public.intelligence_suppressions
    ADD CONSTRAINT intelligence_suppressions_pkey PRIMARY KEY (domain_hash);


ALTER TABLE ONLY public.invitations
    ADD CONSTRAINT invitations_pkey PRIMARY KEY (id);


ALTER TABLE ONLY public.invitations
    ADD CONSTRAINT invitations_token_hash_key UNIQUE (token_hash);


ALTER TABLE ONLY public.launch_attempts
    ADD CONSTRAINT launch_attempts_pkey PRIMARY KEY (store_id, milestone, run, attempt);


ALTER TABLE ONLY public.launch_milestones
    ADD CONSTRAINT launch_milestones_pkey PRIMARY KEY (store_id, milestone);


ALTER TABLE ONLY public.ledger_checks
    ADD CONSTRAINT ledger_checks_pkey PRIMARY KEY (organization_id);


ALTER TABLE ONLY public.legal_documents
    ADD CONSTRAINT legal_documents_pkey PRIMARY KEY (sha256);


ALTER TABLE ONLY public.legal_signatures
    ADD CONSTRAINT legal_signatures_pkey PRIMARY KEY (id);


ALTER TABLE ONLY public.listing_details
    ADD CONSTRAINT listing_details_pkey PRIMARY KEY (listing_id);


ALTER TABLE ONLY public.listing_verifications
    ADD CONSTRAINT listing_verifications_pkey PRIMARY KEY (listing_id, provider);


ALTER TABLE ONLY public.listing_views
    ADD CONSTRAINT listing_views_pkey PRIMARY KEY (listing_id);


ALTER TABLE ONLY public.listing_visibility
    ADD CONSTRAINT listing_visibility_pkey PRIMARY KEY (listing_id);


ALTER TABLE ONLY public.listing_watchers
    ADD CONSTRAINT listing_watchers_pkey PRIMARY KEY (listing_id, user_id);


ALTER TABLE ONLY public.listings
    ADD CONSTRAINT listings_pkey PRIMARY KEY (id);


ALTER TABLE ONLY public.listings
    ADD CONSTRAINT listings_slug_key UNIQUE (slug);


ALTER TABLE ONLY public.mail_bounces
    ADD CONSTRAINT mail_bounces_pkey PRIMARY KEY (recipient);


ALTER TABLE ONLY public.mail_refusals
    ADD CONSTRAINT mail_refusals_pkey PRIMARY KEY (recipient, topic);


ALTER TABLE ONLY public.market_entries
    ADD CONSTRAINT market_entries_pkey PRIMARY KEY (listing_id);


ALTER TABLE ONLY public.members
    ADD CONSTRAINT members_pkey PRIMARY KEY (organization_id, user_id);


ALTER TABLE ONLY public.messages
    ADD CONSTRAINT messages_pkey PRIMARY KEY (id);


ALTER TABLE ONLY public.monthly_resets
    ADD CONSTRAINT monthly_resets_pkey PRIMARY KEY (organization_id, period_end, period_start);


ALTER TABLE ONLY public.oauth_clients
    ADD CONSTRAINT oauth_clients_pkey PRIMARY KEY (id);


ALTER TABLE ONLY public.oauth_codes
    ADD CONSTRAINT oauth_codes_pkey PRIMARY KEY (code_hash);


ALTER TABLE ONLY public.oauth_grants
    ADD CONSTRAINT oauth_grants_pkey PRIMARY KEY (id);


ALTER TABLE ONLY public.oauth_requests
    ADD CONSTRAINT oauth_requests_pkey PRIMARY KEY (id_hash);


ALTER TABLE ONLY public.oauth_tokens
    ADD CONSTRAINT oauth_tokens_pkey PRIMARY KEY (token_hash);


ALTER TABLE ONLY public.offer_drafts
    ADD CONSTRAINT offer_drafts_pkey PRIMARY KEY (offer_id, side);


ALTER TABLE ONLY public.operations
    ADD CONSTRAINT operations_pkey PRIMARY KEY (id);


ALTER TABLE ONLY public.order_imports
    ADD CONSTRAINT order_imports_pkey PRIMARY KEY (store_id, shop_domain);


ALTER TABLE ONLY public.organizations
    ADD CONSTRAINT organizations_pkey PRIMARY KEY (id);


ALTER TABLE ONLY public.outbound_mail
    ADD CONSTRAINT outbound_mail_event_about_recipient_key UNIQUE (event, about, recipient);


ALTER TABLE ONLY public.outbound_mail
    ADD CONSTRAINT outbound_mail_pkey PRIMARY KEY (id);


ALTER TABLE ONLY public.outbox
    ADD CONSTRAINT outbox_pkey PRIMARY KEY (key);


ALTER TABLE ONLY public.password_resets
    ADD CONSTRAINT password_resets_pkey PRIMARY KEY (token_hash);


ALTER TABLE ONLY public.payment_events
    ADD CONSTRAINT payment_events_pkey PRIMARY KEY (event_id);


ALTER TABLE ONLY public.payment_facts
    ADD CONSTRAINT payment_facts_pkey PRIMARY KEY (organization_id, payment_ref);


ALTER TABLE ONLY public.payment_links
    ADD CONSTRAINT payment_links_pkey PRIMARY KEY (reference);


ALTER TABLE ONLY public.payout_accounts
    ADD CONSTRAINT payout_accounts_pkey PRIMARY KEY (account_id);


ALTER TABLE ONLY public.payout_accounts
    ADD CONSTRAINT payout_accounts_user_id_key UNIQUE (user_id);


ALTER TABLE ONLY public.payout_failures
    ADD CONSTRAINT payout_failures_pkey PRIMARY KEY (payout_id);


ALTER TABLE ONLY public.plan_checkouts
    ADD CONSTRAINT plan_checkouts_pkey PRIMARY KEY (organization_id);


ALTER TABLE ONLY public.platform_activity
    ADD CONSTRAINT platform_activity_pkey PRIMARY KEY (launch_id, milestone);


ALTER TABLE ONLY public.process_beats
    ADD CONSTRAINT process_beats_pkey PRIMARY KEY (process);


ALTER TABLE ONLY public.provider_events
    ADD CONSTRAINT provider_events_pkey PRIMARY KEY (provider, event_id);


ALTER TABLE ONLY public.raised_alerts
    ADD CONSTRAINT raised_alerts_pkey PRIMARY KEY (name);


ALTER TABLE ONLY public.revenue_snapshots
    ADD CONSTRAINT revenue_snapshots_pkey PRIMARY KEY (listing_id, source, window_end);


ALTER TABLE ONLY public.revenue_sources
    ADD CONSTRAINT revenue_sources_pkey PRIMARY KEY (listing_id, provider);


ALTER TABLE ONLY public.schema_migration_progress
    ADD CONSTRAINT schema_migration_progress_pkey PRIMARY KEY (number);


ALTER TABLE ONLY public.schema_migrations
    ADD CONSTRAINT schema_migrations_pkey PRIMARY KEY (number);


ALTER TABLE ONLY public.seal_certificates
    ADD CONSTRAINT seal_certificates_pkey PRIMARY KEY (key_id);


ALTER TABLE ONLY public.sealed_documents
    ADD CONSTRAINT sealed_documents_pkey PRIMARY KEY (sha256);


ALTER TABLE ONLY public.sealed_documents
    ADD CONSTRAINT sealed_documents_signature_id_key UNIQUE (signature_id);


ALTER TABLE ONLY public.sessions
    ADD CONSTRAINT sessions_pkey PRIMARY KEY (token_hash);


ALTER TABLE ONLY public.shops_of_stores
    ADD CONSTRAINT shops_of_stores_pkey PRIMARY KEY (store_id, shop_domain);


ALTER TABLE ONLY public.shops_of_stores
    ADD CONSTRAINT shops_of_stores_shop_key_key UNIQUE (shop_key);


ALTER TABLE ONLY public.signature_events
    ADD CONSTRAINT signature_events_pkey PRIMARY KEY (signature_id, seq);


ALTER TABLE ONLY public.signature_shares
    ADD CONSTRAINT signature_shares_pkey PRIMARY KEY (token_hash);


ALTER TABLE ONLY public.slot_epochs
    ADD CONSTRAINT slot_epochs_pkey PRIMARY KEY (slot);


ALTER TABLE ONLY public.sponsor_disputes
    ADD CONSTRAINT sponsor_disputes_pkey PRIMARY KEY (dispute_id);


ALTER TABLE ONLY public.sponsorships
    ADD CONSTRAINT sponsorships_pkey PRIMARY KEY (payment_ref);


ALTER TABLE ONLY public.status_components
    ADD CONSTRAINT status_components_pkey PRIMARY KEY (component);


ALTER TABLE ONLY public.status_days
    ADD CONSTRAINT status_days_pkey PRIMARY KEY (component, day);


ALTER TABLE ONLY public.status_subscribers
    ADD CONSTRAINT status_subscribers_pkey PRIMARY KEY (email);


ALTER TABLE ONLY public.status_webhooks
    ADD CONSTRAINT status_webhooks_pkey PRIMARY KEY (id);


ALTER TABLE ONLY public.status_webhooks
    ADD CONSTRAINT status_webhooks_url_key UNIQUE (url);


ALTER TABLE ONLY public.store_contexts
    ADD CONSTRAINT store_contexts_pkey PRIMARY KEY (store_id, module);


ALTER TABLE ONLY public.store_launches
    ADD CONSTRAINT store_launches_pkey PRIMARY KEY (store_id);


ALTER TABLE ONLY public.store_shops
    ADD CONSTRAINT store_shops_pkey PRIMARY KEY (store_id);


ALTER TABLE ONLY public.storefront_changes
    ADD CONSTRAINT storefront_changes_pkey PRIMARY KEY (domain, at, variant_id, kind);


ALTER TABLE ONLY public.storefront_products
    ADD CONSTRAINT storefront_products_pkey PRIMARY KEY (domain, product_id);


ALTER TABLE ONLY public.storefront_scans
    ADD CONSTRAINT storefront_scans_pkey PRIMARY KEY (id);


ALTER TABLE ONLY public.storefront_snapshots
    ADD CONSTRAINT storefront_snapshots_pkey PRIMARY KEY (domain, taken_at);


ALTER TABLE ONLY public.storefront_snapshots
    ADD CONSTRAINT storefront_snapshots_scan_id_key UNIQUE (scan_id);


ALTER TABLE ONLY public.storefront_variants
    ADD CONSTRAINT storefront_variants_pkey PRIMARY KEY (domain, variant_id);


ALTER TABLE ONLY public.storefronts
    ADD CONSTRAINT storefronts_pkey PRIMARY KEY (domain);


ALTER TABLE ONLY public.stores
    ADD CONSTRAINT stores_pkey PRIMARY KEY (id);


ALTER TABLE ONLY public.subscriptions
    ADD CONSTRAINT subscriptions_pkey PRIMARY KEY (organization_id);


ALTER TABLE ONLY public.users
    ADD CONSTRAINT users_pkey PRIMARY KEY (id);


ALTER TABLE ONLY public.vectors
    ADD CONSTRAINT vectors_pkey PRIMARY KEY (namespace, id);


ALTER TABLE ONLY public.workflow_claims
    ADD CONSTRAINT workflow_claims_pkey PRIMARY KEY (organization_id, id);


CREATE INDEX actor_journal_committed_at ON public.actor_journal USING brin (committed_at);


CREATE INDEX actor_journal_reply ON public.actor_journal USING btree (message_id) WHERE (reply IS NOT NULL);


CREATE INDEX affiliate_codes_user ON public.affiliate_codes USING btree (user_id, id);


CREATE INDEX affiliate_redemptions_affiliate ON public.affiliate_redemptions USING btree (affiliate_id);


CREATE INDEX affiliate_redemptions_code ON public.affiliate_redemptions USING btree (code_id);


CREATE INDEX affiliate_redemptions_user ON public.affiliate_redemptions USING btree (user_id);


CREATE INDEX agent_operations_acts ON public.agent_operations USING btree (store_id, created_at DESC, operation_id DESC);


CREATE INDEX agent_operations_change_set ON public.agent_operations USING btree (change_set, operation_id) WHERE (change_set IS NOT NULL);


CREATE INDEX agent_operations_change_sets ON public.agent_operations USING btree (store_id, created_at) WHERE (change_set IS NOT NULL);


CREATE INDEX agent_operations_finished_at ON public.agent_operations USING btree (finished_at);


CREATE INDEX agent_operations_id ON public.agent_operations USING btree (operation_id);


CREATE INDEX agent_operations_open ON public.agent_operations USING btree (store_id, created_at) WHERE (finished_at IS NULL);


CREATE INDEX agent_operations_taken_back ON public.agent_operations USING btree (client_id) WHERE (client_id ~~ 'undo:%'::text);


CREATE INDEX agent_operations_user ON public.agent_operations USING btree (user_id);


CREATE INDEX api_keys_ended_at ON public.api_keys USING btree (ended_at) WHERE (ended_at IS NOT NULL);


CREATE INDEX api_keys_expires_at ON public.api_keys USING btree (expires_at);


CREATE INDEX api_keys_of_user ON public.api_keys USING btree (user_id, id DESC) WHERE (ended_at IS NULL);


CREATE INDEX api_keys_organization_id ON public.api_keys USING btree (organization_id);


CREATE INDEX attribution_touches_older_identity ON public.attribution_touches USING btree (store_id, session_id) WHERE (session_id !~~ 's1:%'::text);


CREATE INDEX attribution_touches_session ON public.attribution_touches USING btree (store_id, session_id) WHERE (session_id IS NOT NULL);


CREATE INDEX attribution_touches_touched ON public.attribution_touches USING btree (store_id, touched_at);


CREATE INDEX audit_log_180_days ON public.audit_log USING btree (created_at) WHERE (public.audit_retention(event, retention) = '180_days'::text);


CREATE INDEX audit_log_7_years ON public.audit_log USING btree (created_at) WHERE (public.audit_retention(event, retention) = '7_years'::text);


CREATE INDEX audit_log_acts ON public.audit_log USING btree (event, id) WHERE (event !~~ 'commerce.webhook.%'::text);


CREATE INDEX audit_log_acts_by ON public.audit_log USING btree (actor, id) WHERE (event !~~ 'commerce.webhook.%'::text);


CREATE INDEX audit_log_acts_in_organization ON public.audit_log USING btree (organization_id, id) WHERE (event !~~ 'commerce.webhook.%'::text);


CREATE INDEX audit_log_created_at ON public.audit_log USING btree (created_at);


CREATE INDEX audit_log_event ON public.audit_log USING btree (subject, event COLLATE "C", id);


CREATE INDEX audit_log_operation ON public.audit_log USING btree (((metadata ->> 'operationId'::text)), id) WHERE (event = 'agent.write'::text);


CREATE INDEX audit_log_plan ON public.audit_log USING btree (((metadata ->> 'operationId'::text)), id) WHERE (event = 'agent.write.planned'::text);


CREATE INDEX audit_log_subject ON public.audit_log USING btree (subject, id);


CREATE INDEX calibrating_listings_agreed_by ON public.calibrating_listings USING btree (agreed_by);


CREATE INDEX calibrating_listings_domain ON public.calibrating_listings USING btree (domain);


CREATE UNIQUE INDEX chat_generations_claim ON public.chat_generations USING btree (claim);


CREATE INDEX chat_generations_open ON public.chat_generations USING btree (created_at) WHERE (ended_at IS NULL);


CREATE INDEX chat_generations_organization ON public.chat_generations USING btree (organization_id, created_at);


CREATE INDEX commerce_buyers_busiest ON public.commerce_buyers USING btree (store_id, orders DESC, pseudonym);


CREATE INDEX commerce_counted_refunds_at ON public.commerce_counted_refunds USING btree (store_id, at);


CREATE INDEX commerce_counted_refunds_order ON public.commerce_counted_refunds USING btree (store_id, order_id);


CREATE INDEX commerce_customers_email_hash ON public.commerce_customers USING btree (store_id, email_hash) WHERE (email_hash IS NOT NULL);


CREATE INDEX commerce_customers_older_identity ON public.commerce_customers USING btree (store_id, email_hash) WHERE (email_hash !~~ 's1:%'::text);


CREATE INDEX commerce_fulfillments_order ON public.commerce_fulfillments USING btree (store_id, order_id);


CREATE INDEX commerce_orders_name ON public.commerce_orders USING btree (store_id, lower(ltrim(name, '#'::text)) text_pattern_ops, order_id) WHERE (deleted_at IS NULL);


CREATE INDEX commerce_orders_of_customer ON public.commerce_orders USING btree (store_id, customer_hash, order_id) WHERE (customer_hash IS NOT NULL);


CREATE INDEX commerce_orders_older_identity ON public.commerce_orders USING btree (store_id, customer_hash) WHERE (customer_hash !~~ 's1:%'::text);


CREATE INDEX commerce_orders_open ON public.commerce_orders USING btree (store_id, COALESCE(fulfillment_status, 'unfulfilled'::text), order_id) WHERE ((deleted_at IS NULL) AND (COALESCE(fulfillment_status, 'unfulfilled'::text) <> 'fulfilled'::text));


CREATE INDEX commerce_orders_processed ON public.commerce_orders USING btree (store_id, processed_at);


CREATE INDEX commerce_orders_unpaid ON public.commerce_orders USING btree (store_id, financial_status, order_id) WHERE ((deleted_at IS NULL) AND (financial_status <> 'paid'::text));


CREATE INDEX commerce_product_sales_below_nothing ON public.commerce_product_sales USING btree (store_id) WHERE ((span = 'day'::text) AND ((units < 0) OR (sold < (0)::numeric)));


CREATE INDEX commerce_product_sales_by_sold ON public.commerce_product_sales USING btree (store_id, day, currency, sold DESC) WHERE (span = 'month'::text);


CREATE INDEX commerce_product_sales_by_units ON public.commerce_product_sales USING btree (store_id, day, currency, units DESC) WHERE (span = 'month'::text);


CREATE INDEX commerce_products_type ON public.commerce_products USING btree (store_id, public.folded(product_type), product_id) WHERE (deleted_at IS NULL);


CREATE INDEX commerce_products_vendor ON public.commerce_products USING btree (store_id, public.folded(vendor), product_id) WHERE (deleted_at IS NULL);


CREATE INDEX commerce_products_words ON public.commerce_products USING gin (public.store_grams(store_id, public.product_words(title, handle, vendor, product_type, tags, variants))) WITH (gin_pending_list_limit='512') WHERE (deleted_at IS NULL);


CREATE INDEX commerce_refunds_order ON public.commerce_refunds USING btree (store_id, order_id);


CREATE INDEX commerce_stock_item ON public.commerce_stock USING btree (store_id, item);


CREATE INDEX commerce_stock_low ON public.commerce_stock USING btree (store_id, available, variant_id);


CREATE INDEX commerce_webhook_events_created_at ON public.commerce_webhook_events USING btree (created_at);


CREATE INDEX commerce_webhook_events_topic ON public.commerce_webhook_events USING btree (store_id, topic, created_at DESC, delivery_id DESC);


CREATE INDEX competitors_added_at ON public.competitors USING btree (store_id, added_at, domain);


CREATE INDEX competitors_added_by ON public.competitors USING btree (added_by);


CREATE INDEX competitors_domain ON public.competitors USING btree (domain);


CREATE INDEX compliance_receipts_store ON public.compliance_receipts USING btree (store_id);


CREATE INDEX compliance_requests_asked_by ON public.compliance_requests USING btree (asked_by) WHERE (asked_by IS NOT NULL);


CREATE UNIQUE INDEX compliance_requests_body ON public.compliance_requests USING btree (shop_domain, topic, body_digest) WHERE (completed_at IS NULL);


CREATE INDEX compliance_requests_handled_by ON public.compliance_requests USING btree (handled_by) WHERE (handled_by IS NOT NULL);


CREATE INDEX compliance_requests_open ON public.compliance_requests USING btree (received_at) WHERE (handled_at IS NULL);


CREATE INDEX compliance_requests_stores ON public.compliance_requests USING gin (stores);


CREATE INDEX connection_history_uninstalled ON public.connection_history USING btree (ended_at) WHERE (ending = 'uninstalled'::text);


CREATE UNIQUE INDEX credit_entries_key ON public.credit_entries USING btree (organization_id, key);


CREATE INDEX credit_holds_live ON public.credit_holds USING btree (organization_id) WHERE (closed_at IS NULL);


CREATE INDEX credit_lots_lapsing ON public.credit_lots USING btree (organization_id, expires_at) WHERE (NOT spent);


CREATE INDEX cron_executions_finished_at ON public.cron_executions USING btree (finished_at) WHERE (finished_at IS NOT NULL);


CREATE INDEX cron_executions_running ON public.cron_executions USING btree (job, started_at) WHERE (status = 'running'::text);


CREATE INDEX customer_redactions_older_identity ON public.customer_redactions USING btree (store_id, email_hash) WHERE (email_hash !~~ 's1:%'::text);


CREATE INDEX dead_letters_about ON public.dead_letters USING btree (sender, about, created_at, key) WHERE ((status = 'dead'::text) AND (sender IS NOT NULL));


CREATE INDEX dead_letters_actor ON public.dead_letters USING btree (kind, actor_key, died_at) WHERE (status = 'dead'::text);


CREATE INDEX dead_letters_died_at ON public.dead_letters USING btree (died_at);


CREATE INDEX dead_letters_fingerprint ON public.dead_letters USING btree (status, public.dead_letter_fingerprint(kind, name, error), id);


CREATE INDEX dead_letters_settled_at ON public.dead_letters USING btree (settled_at) WHERE (settled_at IS NOT NULL);


CREATE INDEX dead_letters_status ON public.dead_letters USING btree (status, id);


CREATE INDEX deal_files_added_by ON public.deal_files USING btree (added_by);


CREATE INDEX deal_files_of_deal ON public.deal_files USING btree (deal_id, id);


CREATE INDEX deal_metrics_of_deal ON public.deal_metrics USING btree (deal_id, signature_id);


CREATE INDEX deal_offers_made_by ON public.deal_offers USING btree (made_by);


CREATE INDEX deal_offers_of_deal ON public.deal_offers USING btree (deal_id, id);


CREATE INDEX deal_threads_disputed ON public.deal_threads USING btree (entered_at, id) WHERE ((stage = 'DISPUTED'::text) OR ((stage = 'REFUND_REQUESTED'::text) AND escalated));


CREATE INDEX deal_threads_of_buyer ON public.deal_threads USING btree (buyer_id, id);


CREATE INDEX deal_threads_of_escrow ON public.deal_threads USING btree (escrow_id) WHERE (escrow_id IS NOT NULL);


CREATE INDEX deal_threads_of_listing ON public.deal_threads USING btree (listing_id);


CREATE INDEX deal_threads_of_seller ON public.deal_threads USING btree (seller_id, id);


CREATE UNIQUE INDEX deal_threads_one_buyer ON public.deal_threads USING btree (listing_id) WHERE (stage = ANY (ARRAY['UNDER_OFFER'::text, 'LOI_SIGNED'::text, 'DUE_DILIGENCE'::text, 'APA_SIGNED'::text, 'ESCROW_FUNDED'::text, 'TRANSFERRING'::text, 'DISPUTED'::text]));


CREATE INDEX deal_threads_page_of_listing ON public.deal_threads USING btree (listing_id, id);


CREATE INDEX deal_threads_requested_by ON public.deal_threads USING btree (requested_by);


CREATE INDEX deal_views_of_deal ON public.deal_views USING btree (deal_id, id);


CREATE INDEX deal_views_of_user ON public.deal_views USING btree (user_id);


CREATE INDEX devstore_claims_claimed_by ON public.devstore_claims USING btree (claimed_by);


CREATE INDEX devstore_claims_organization ON public.devstore_claims USING btree (organization_id);


CREATE INDEX devstore_pool_registered ON public.devstore_pool USING btree (registered_at, shop_domain);


CREATE INDEX devstore_pool_registered_by ON public.devstore_pool USING btree (registered_by);


CREATE INDEX devstore_transfers_awaited ON public.devstore_transfers USING btree (store_id) WHERE (state = 'TRANSFER_REQUESTED'::text);


CREATE INDEX devstore_transfers_organization ON public.devstore_transfers USING btree (organization_id);


CREATE INDEX devstore_transfers_requested_by ON public.devstore_transfers USING btree (requested_by);


CREATE INDEX esign_leaves_of_deal ON public.esign_leaves USING btree (deal_id);


CREATE INDEX facts_deleted ON public.facts USING btree (deleted_at) WHERE (deleted_at IS NOT NULL);


CREATE UNIQUE INDEX facts_name ON public.facts USING btree (organization_id, store_id, name) NULLS NOT DISTINCT;


CREATE INDEX facts_organization_id ON public.facts USING btree (organization_id);


CREATE INDEX facts_remembered ON public.facts USING gin (public.remembered_words(((name || ' '::text) || (value #>> '{}'::text[]))));


CREATE INDEX files_content ON public.files USING btree (organization_id, sha256);


CREATE INDEX files_created_by ON public.files USING btree (created_by);


CREATE INDEX files_expires_at ON public.files USING btree (expires_at);


CREATE INDEX files_of_store ON public.files USING btree (store_id, purpose, id DESC);


CREATE INDEX finished_calls_actor ON public.finished_calls USING btree (kind, actor_key, finished_at);


CREATE INDEX finished_calls_finished_at ON public.finished_calls USING btree (finished_at);


CREATE INDEX idempotency_keys_created_at ON public.idempotency_keys USING btree (created_at);


CREATE INDEX incident_updates_at ON public.incident_updates USING btree (at, id);


CREATE INDEX incident_updates_incident ON public.incident_updates USING btree (incident_id, at);


CREATE UNIQUE INDEX incidents_open ON public.incidents USING btree (component) WHERE ((source = 'system'::text) AND (resolved_at IS NULL));


CREATE INDEX incidents_opened_at ON public.incidents USING btree (opened_at, id);


CREATE INDEX integration_connections_begins ON public.integration_connections USING btree (shop_domain text_pattern_ops);


CREATE INDEX integration_connections_shop ON public.integration_connections USING btree (shop_domain, provider);


CREATE INDEX intelligence_suppressions_lifted ON public.intelligence_suppressions USING btree (lifted_at) WHERE (lifted_at IS NOT NULL);


CREATE INDEX invitations_expires_at ON public.invitations USING btree (expires_at);


CREATE INDEX invitations_invited_by ON public.invitations USING btree (invited_by) WHERE (ended_at IS NULL);


CREATE INDEX invitations_of_organization ON public.invitations USING btree (organization_id, id DESC) WHERE (ended_at IS NULL);


CREATE UNIQUE INDEX invitations_open ON public.invitations USING btree (organization_id, email) WHERE (ended_at IS NULL);


CREATE INDEX launch_milestones_done ON public.launch_milestones USING btree (milestone, finished_at DESC) WHERE (state = ANY (ARRAY['succeeded'::text, 'approved'::text]));


CREATE INDEX legal_documents_of_deal ON public.legal_documents USING btree (deal_id);


CREATE INDEX legal_signatures_of_deal ON public.legal_signatures USING btree (deal_id, id);


CREATE INDEX listing_verifications_wanting_sync ON public.listing_verifications USING btree (listing_id) WHERE (state <> ALL (ARRAY['none'::text, 'failed'::text, 'suspended'::text, 'revoked'::text]));


CREATE INDEX listing_watchers_of_user ON public.listing_watchers USING btree (user_id, listing_id);


CREATE INDEX listings_created_by ON public.listings USING btree (created_by, id);


CREATE INDEX listings_every_of_organization ON public.listings USING btree (organization_id, id);


CREATE INDEX listings_every_of_store ON public.listings USING btree (store_id, id);


CREATE INDEX listings_in_public ON public.listings USING btree (id) WHERE ((deleted_at IS NULL) AND (status = ANY (ARRAY['ACTIVE'::text, 'UNDER_OFFER'::text, 'PAUSED'::text, 'SOLD'::text])));


CREATE INDEX listings_left_alone ON public.listings USING btree (seller_active_at) WHERE ((deleted_at IS NULL) AND (status = 'ACTIVE'::text));


CREATE INDEX listings_of_organization ON public.listings USING btree (organization_id, id) WHERE (deleted_at IS NULL);


CREATE INDEX listings_of_store ON public.listings USING btree (store_id, id) WHERE (deleted_at IS NULL);


CREATE INDEX listings_on_the_market ON public.listings USING btree (id) WHERE ((deleted_at IS NULL) AND (asking_price IS NOT NULL));


CREATE INDEX listings_published ON public.listings USING btree (organization_id) WHERE (published_at IS NOT NULL);


CREATE INDEX mail_bounces_since ON public.mail_bounces USING btree (since, recipient);


CREATE INDEX market_entries_business_model ON public.market_entries USING btree (business_model, listing_id);


CREATE INDEX market_entries_category ON public.market_entries USING btree (category, listing_id);


CREATE INDEX market_entries_country ON public.market_entries USING btree (country, listing_id);


CREATE INDEX market_entries_financing ON public.market_entries USING btree (listing_id) WHERE financing;


CREATE INDEX market_entries_price ON public.market_entries USING btree (currency, price, listing_id);


CREATE INDEX market_entries_revenue ON public.market_entries USING btree (revenue_currency, revenue_low, listing_id) WHERE (revenue_low IS NOT NULL);


CREATE INDEX market_entries_status ON public.market_entries USING btree (status, listing_id);


CREATE INDEX market_entries_verified ON public.market_entries USING btree (listing_id) WHERE (verified_until IS NOT NULL);


CREATE INDEX market_entries_with_revenue ON public.market_entries USING btree (revenue_currency, listing_id) WHERE (revenue_low IS NOT NULL);


CREATE INDEX market_entries_words ON public.market_entries USING gin (words) WITH (fastupdate=off);


CREATE INDEX members_user_id ON public.members USING btree (user_id);


CREATE INDEX messages_deleted ON public.messages USING btree (deleted_at) WHERE (deleted_at IS NOT NULL);


CREATE INDEX messages_organization_id ON public.messages USING btree (organization_id);


CREATE INDEX messages_remembered ON public.messages USING gin (public.remembered_words("left"(text, 20000)));


CREATE INDEX messages_store_id ON public.messages USING btree (store_id);


CREATE INDEX messages_user ON public.messages USING btree (user_id) WHERE (user_id IS NOT NULL);


CREATE INDEX oauth_clients_unused ON public.oauth_clients USING btree (created_at) WHERE (used_at = created_at);


CREATE INDEX oauth_clients_used_at ON public.oauth_clients USING btree (used_at);


CREATE INDEX oauth_codes_expires_at ON public.oauth_codes USING btree (expires_at);


CREATE INDEX oauth_codes_grant_id ON public.oauth_codes USING btree (grant_id);


CREATE INDEX oauth_grants_client_id ON public.oauth_grants USING btree (client_id) WHERE (ended_at IS NULL);


CREATE INDEX oauth_grants_ended_at ON public.oauth_grants USING btree (ended_at) WHERE (ended_at IS NOT NULL);


CREATE INDEX oauth_grants_every_of_organization ON public.oauth_grants USING btree (organization_id, id);


CREATE INDEX oauth_grants_every_of_store ON public.oauth_grants USING btree (store_id, id);


CREATE INDEX oauth_grants_every_of_user ON public.oauth_grants USING btree (user_id, id);


CREATE INDEX oauth_grants_review_at ON public.oauth_grants USING btree (review_at) WHERE (ended_at IS NULL);


CREATE INDEX oauth_grants_store_id ON public.oauth_grants USING btree (store_id) WHERE (ended_at IS NULL);


CREATE INDEX oauth_grants_user_id ON public.oauth_grants USING btree (user_id) WHERE (ended_at IS NULL);


CREATE INDEX oauth_requests_expires_at ON public.oauth_requests USING btree (expires_at);


CREATE INDEX oauth_tokens_expires_at ON public.oauth_tokens USING btree (expires_at);


CREATE INDEX oauth_tokens_grant_id ON public.oauth_tokens USING btree (grant_id);


CREATE INDEX offer_drafts_of_organization ON public.offer_drafts USING btree (organization_id);


CREATE INDEX offer_drafts_of_user ON public.offer_drafts USING btree (drafted_by);


CREATE INDEX operations_finished ON public.operations USING btree (finished_at) WHERE (finished_at IS NOT NULL);


CREATE INDEX operations_open ON public.operations USING btree (organization_id, created_at) WHERE (finished_at IS NULL);


CREATE INDEX operations_organization ON public.operations USING btree (organization_id, id);


CREATE INDEX operations_user ON public.operations USING btree (user_id, id);


CREATE UNIQUE INDEX organizations_administrators ON public.organizations USING btree (is_administrators) WHERE is_administrators;


CREATE INDEX organizations_deleted_at ON public.organizations USING btree (deleted_at) WHERE ((deleted_at IS NOT NULL) AND (name <> ''::text));


CREATE INDEX organizations_name ON public.organizations USING btree (public.folded(name) text_pattern_ops);


CREATE INDEX organizations_paying ON public.organizations USING btree (id) WHERE (plan <> 'free'::text);


CREATE INDEX outbound_mail_created_at ON public.outbound_mail USING btree (created_at DESC, id DESC);


CREATE INDEX outbound_mail_recipient ON public.outbound_mail USING btree (recipient, created_at DESC);


CREATE INDEX outbox_calls ON public.outbox USING btree (kind, actor_key, due_at) WHERE (lane IS NOT NULL);


CREATE INDEX outbox_calls_due ON public.outbox USING btree (due_at, key) WHERE (lane IS NOT NULL);


CREATE INDEX outbox_due ON public.outbox USING btree (due_at);


CREATE INDEX outbox_held ON public.outbox USING btree (held_by, created_at, key) WHERE (held_by IS NOT NULL);


CREATE INDEX outbox_sender_about ON public.outbox USING btree (sender, about, created_at, key) WHERE (sender IS NOT NULL);


CREATE INDEX outbox_slot ON public.outbox USING btree (slot, due_at);


CREATE INDEX password_resets_expires_at ON public.password_resets USING btree (expires_at);


CREATE INDEX password_resets_user_id ON public.password_resets USING btree (user_id, created_at);


CREATE INDEX payment_events_counted ON public.payment_events USING btree (type, created_at) WHERE (type = ANY (ARRAY['charge.dispute.created'::text, 'payment_intent.succeeded'::text]));


CREATE INDEX payment_events_organization ON public.payment_events USING btree (organization_id, received_at);


CREATE INDEX payment_events_parked ON public.payment_events USING gin (links) WHERE (state = 'parked'::text);


CREATE INDEX payment_events_received_at ON public.payment_events USING btree (received_at);


CREATE INDEX payment_events_state ON public.payment_events USING btree (state, received_at, event_id) WHERE (state <> 'applied'::text);


CREATE INDEX payment_events_waiting ON public.payment_events USING btree (due_at, received_at) WHERE (state = 'new'::text);


CREATE INDEX payment_facts_disputed ON public.payment_facts USING btree (payment_ref, organization_id) WHERE (disputes @? '$[*][2]?(@ == "open")'::jsonpath);


CREATE INDEX payment_facts_waiting ON public.payment_facts USING btree (organization_id) WHERE (granted = 0);


CREATE INDEX payment_links_organization ON public.payment_links USING btree (organization_id);


CREATE INDEX payout_failures_account ON public.payout_failures USING btree (account_id, failed_at);


CREATE INDEX platform_activity_organization ON public.platform_activity USING btree (organization_id);


CREATE INDEX platform_activity_store ON public.platform_activity USING btree (store_id, created_at);


CREATE INDEX provider_events_of_provider ON public.provider_events USING btree (provider, received_at, event_id);


CREATE INDEX provider_events_of_state ON public.provider_events USING btree (state, received_at, event_id);


CREATE INDEX provider_events_received ON public.provider_events USING btree (received_at, event_id);


CREATE INDEX revenue_snapshots_flagged ON public.revenue_snapshots USING btree (listing_id) WHERE (flags <> '[]'::jsonb);


CREATE INDEX revenue_sources_begins ON public.revenue_sources USING btree (shop_domain text_pattern_ops);


CREATE INDEX revenue_sources_connected_by ON public.revenue_sources USING btree (connected_by);


CREATE UNIQUE INDEX revenue_sources_in_use ON public.revenue_sources USING btree (provider, shop_domain) WHERE (revoked_at IS NULL);


CREATE INDEX sealed_documents_of_deal ON public.sealed_documents USING btree (deal_id);


CREATE INDEX sessions_expires_at ON public.sessions USING btree (expires_at);


CREATE INDEX sessions_of_user ON public.sessions USING btree (user_id, created_at DESC);


CREATE INDEX shops_of_stores_domain ON public.shops_of_stores USING btree (shop_domain);


CREATE INDEX signature_events_of_deal ON public.signature_events USING btree (deal_id);


CREATE INDEX signature_shares_by_end ON public.signature_shares USING btree (expires_at);


CREATE INDEX signature_shares_of_deal ON public.signature_shares USING btree (deal_id);


CREATE INDEX signature_shares_of_user ON public.signature_shares USING btree (created_by);


CREATE INDEX sponsorships_organization ON public.sponsorships USING btree (organization_id);


CREATE INDEX status_days_day ON public.status_days USING btree (day);


CREATE INDEX store_contexts_organization ON public.store_contexts USING btree (organization_id);


CREATE INDEX store_launches_organization ON public.store_launches USING btree (organization_id);


CREATE INDEX store_launches_waiting ON public.store_launches USING btree (store_id) WHERE (has_work OR is_looking);


CREATE INDEX store_shops_name ON public.store_shops USING btree (public.folded(name) text_pattern_ops);


CREATE INDEX storefront_changes_at ON public.storefront_changes USING btree (at);


CREATE INDEX storefront_changes_product ON public.storefront_changes USING btree (domain, product_id, at);


CREATE INDEX storefront_scans_domain ON public.storefront_scans USING btree (domain);


CREATE INDEX storefront_scans_ended_at ON public.storefront_scans USING btree (ended_at);


CREATE INDEX storefront_scans_open ON public.storefront_scans USING btree (domain) WHERE (ended_at IS NULL);


CREATE INDEX storefront_scans_organization ON public.storefront_scans USING btree (organization_id, id);


CREATE INDEX storefront_scans_user ON public.storefront_scans USING btree (user_id);


CREATE INDEX storefront_snapshots_taken_at ON public.storefront_snapshots USING btree (taken_at);


CREATE INDEX storefront_variants_product ON public.storefront_variants USING btree (domain, product_id);


CREATE INDEX storefronts_category ON public.storefronts USING btree (category, discovered_at, domain);


CREATE INDEX storefronts_country ON public.storefronts USING btree (country, domain);


CREATE INDEX storefronts_discovered_at ON public.storefronts USING btree (discovered_at, domain);


CREATE INDEX storefronts_due ON public.storefronts USING btree (next_scan_at) WHERE (next_scan_at IS NOT NULL);


CREATE INDEX storefronts_kept_at ON public.storefronts USING btree (COALESCE(snapshot_at, '-infinity'::timestamp with time zone), domain) WHERE ((state = ANY (ARRAY['discovered'::text, 'active'::text])) AND (hold_until IS NULL));


CREATE INDEX storefronts_platform ON public.storefronts USING btree (platform, domain);


CREATE INDEX storefronts_seen_at ON public.storefronts USING btree (COALESCE(scanned_at, '-infinity'::timestamp with time zone), domain) WHERE ((state = ANY (ARRAY['discovered'::text, 'active'::text])) AND (hold_until IS NULL));


CREATE INDEX storefronts_unseen ON public.storefronts USING btree (discovered_at) WHERE (scanned_at IS NULL);


CREATE INDEX storefronts_velocity ON public.storefronts USING btree (velocity) WHERE (velocity IS NOT NULL);


CREATE INDEX stores_deleted_at ON public.stores USING btree (deleted_at) WHERE ((deleted_at IS NOT NULL) AND (name <> ''::text));


CREATE INDEX stores_name ON public.stores USING btree (public.folded(name) text_pattern_ops);


CREATE INDEX stores_of_organization ON public.stores USING btree (organization_id);


CREATE INDEX stores_organization_id ON public.stores USING btree (organization_id, id) WHERE (deleted_at IS NULL);


CREATE INDEX subscriptions_aside ON public.subscriptions USING btree (aside_until) WHERE (aside_until IS NOT NULL);


CREATE INDEX subscriptions_paid_until ON public.subscriptions USING btree (paid_until) WHERE (cadence = 'yearly'::text);


CREATE INDEX subscriptions_subscription ON public.subscriptions USING btree (subscription_id);


CREATE INDEX users_deletion_requested_at ON public.users USING btree (deletion_requested_at) WHERE ((deletion_requested_at IS NOT NULL) AND (password_hash <> ''::text));


CREATE UNIQUE INDEX users_email ON public.users USING btree (email);


CREATE INDEX vectors_text ON public.vectors USING gin (to_tsvector('simple'::regconfig, "left"(text, 20000))) WHERE (text IS NOT NULL);


CREATE INDEX workflow_claims_lease_until ON public.workflow_claims USING btree (lease_until);


CREATE INDEX workflow_claims_running ON public.workflow_claims USING btree (organization_id) WHERE (ended_at IS NULL);


CREATE TRIGGER api_keys_ended AFTER UPDATE OF ended_at ON public.api_keys FOR EACH ROW WHEN (((old.ended_at IS NULL) AND (new.ended_at IS NOT NULL))) EXECUTE FUNCTION public.note_api_key_ended();


CREATE TRIGGER attribution_touches_inserted AFTER INSERT ON public.attribution_touches REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION public.keep_attribution();


CREATE TRIGGER attribution_touches_removed AFTER DELETE ON public.attribution_touches REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT EXECUTE FUNCTION public.keep_attribution();


CREATE TRIGGER attribution_touches_updated AFTER UPDATE ON public.attribution_touches REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION public.keep_attribution();


CREATE TRIGGER commerce_levels_inserted AFTER INSERT ON public.commerce_inventory_levels REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION public.keep_stock_of_levels();


CREATE TRIGGER commerce_levels_removed AFTER DELETE ON public.commerce_inventory_levels REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT EXECUTE FUNCTION public.keep_stock_of_levels();


CREATE TRIGGER commerce_levels_updated AFTER UPDATE ON public.commerce_inventory_levels REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION public.keep_stock_of_levels();


CREATE TRIGGER commerce_orders_inserted AFTER INSERT ON public.commerce_orders REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION public.keep_order_sums();


CREATE TRIGGER commerce_orders_products_inserted AFTER INSERT ON public.commerce_orders REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION public.keep_product_sums();


CREATE TRIGGER commerce_orders_products_removed AFTER DELETE ON public.commerce_orders REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT EXECUTE FUNCTION public.keep_product_sums();


CREATE TRIGGER commerce_orders_products_updated AFTER UPDATE ON public.commerce_orders REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION public.keep_product_sums();


CREATE TRIGGER commerce_orders_refunds_updated AFTER UPDATE ON public.commerce_orders REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION public.keep_refund_reasons();


CREATE TRIGGER commerce_orders_removed AFTER DELETE ON public.commerce_orders REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT EXECUTE FUNCTION public.keep_order_sums();


CREATE TRIGGER commerce_orders_touches_inserted AFTER INSERT ON public.commerce_orders REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION public.keep_attribution();


CREATE TRIGGER commerce_orders_touches_removed AFTER DELETE ON public.commerce_orders REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT EXECUTE FUNCTION public.keep_attribution();


CREATE TRIGGER commerce_orders_touches_updated AFTER UPDATE ON public.commerce_orders REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION public.keep_attribution();


CREATE TRIGGER commerce_orders_updated AFTER UPDATE ON public.commerce_orders REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION public.keep_order_sums();


CREATE TRIGGER commerce_products_inserted AFTER INSERT ON public.commerce_products REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION public.keep_stock_of_products();


CREATE TRIGGER commerce_products_removed AFTER DELETE ON public.commerce_products REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT EXECUTE FUNCTION public.keep_stock_of_products();


CREATE TRIGGER commerce_products_updated AFTER UPDATE ON public.commerce_products REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION public.keep_stock_of_products();


CREATE TRIGGER commerce_refunds_inserted AFTER INSERT ON public.commerce_refunds REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION public.keep_refund_sums();


CREATE TRIGGER commerce_refunds_removed AFTER DELETE ON public.commerce_refunds REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT EXECUTE FUNCTION public.keep_refund_sums();


CREATE TRIGGER commerce_refunds_updated AFTER UPDATE ON public.commerce_refunds REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION public.keep_refund_sums();


CREATE TRIGGER deal_events_stay BEFORE DELETE OR UPDATE ON public.deal_events FOR EACH ROW EXECUTE FUNCTION public.refuse_change();


CREATE TRIGGER deal_files_stay BEFORE DELETE OR UPDATE ON public.deal_files FOR EACH ROW EXECUTE FUNCTION public.refuse_change();


CREATE TRIGGER deal_metrics_stay BEFORE DELETE OR UPDATE ON public.deal_metrics FOR EACH ROW EXECUTE FUNCTION public.refuse_change();


CREATE TRIGGER deal_views_stay BEFORE DELETE OR UPDATE ON public.deal_views FOR EACH ROW EXECUTE FUNCTION public.refuse_change();


CREATE TRIGGER esign_leaves_stay BEFORE DELETE OR UPDATE ON public.esign_leaves FOR EACH ROW EXECUTE FUNCTION public.refuse_change();


CREATE TRIGGER esign_roots_stay BEFORE DELETE OR UPDATE ON public.esign_roots FOR EACH ROW EXECUTE FUNCTION public.refuse_change();


CREATE TRIGGER invitations_ended AFTER UPDATE OF ended_at ON public.invitations FOR EACH ROW WHEN (((old.ended_at IS NULL) AND (new.ended_at IS NOT NULL))) EXECUTE FUNCTION public.note_invitation_ended();


CREATE TRIGGER legal_documents_stay BEFORE DELETE OR UPDATE ON public.legal_documents FOR EACH ROW EXECUTE FUNCTION public.refuse_change();


CREATE TRIGGER listing_verifications_on_market AFTER INSERT OR UPDATE ON public.listing_verifications FOR EACH ROW EXECUTE FUNCTION public.market_changed();


CREATE TRIGGER listing_visibility_on_market AFTER INSERT OR UPDATE ON public.listing_visibility FOR EACH ROW EXECUTE FUNCTION public.market_changed();


CREATE TRIGGER listings_on_market AFTER INSERT OR UPDATE ON public.listings FOR EACH ROW EXECUTE FUNCTION public.market_changed();


CREATE TRIGGER members_end_agents AFTER DELETE ON public.members FOR EACH ROW EXECUTE FUNCTION public.end_agents_of_member();


CREATE TRIGGER members_end_api_keys AFTER DELETE ON public.members FOR EACH ROW EXECUTE FUNCTION public.end_api_keys_of_member();


CREATE TRIGGER members_end_invitations AFTER DELETE OR UPDATE OF role ON public.members FOR EACH ROW EXECUTE FUNCTION public.end_invitations_of_member();


CREATE TRIGGER oauth_grants_ended AFTER UPDATE OF ended_at ON public.oauth_grants FOR EACH ROW WHEN (((old.ended_at IS NULL) AND (new.ended_at IS NOT NULL))) EXECUTE FUNCTION public.note_agent_ended();


CREATE TRIGGER revenue_snapshots_on_market AFTER INSERT ON public.revenue_snapshots FOR EACH ROW EXECUTE FUNCTION public.market_changed();


CREATE TRIGGER seal_certificates_stay BEFORE DELETE OR UPDATE ON public.seal_certificates FOR EACH ROW EXECUTE FUNCTION public.refuse_change();


CREATE TRIGGER sealed_documents_stay BEFORE DELETE OR UPDATE ON public.sealed_documents FOR EACH ROW EXECUTE FUNCTION public.refuse_change();


CREATE TRIGGER signature_events_stay BEFORE DELETE OR UPDATE ON public.signature_events FOR EACH ROW EXECUTE FUNCTION public.refuse_change();


CREATE TRIGGER stores_end_agents AFTER UPDATE OF deleted_at ON public.stores FOR EACH ROW WHEN (((old.deleted_at IS NULL) AND (new.deleted_at IS NOT NULL))) EXECUTE FUNCTION public.end_agents_of_store();


CREATE TRIGGER users_end_agents AFTER UPDATE OF banned, deletion_requested_at ON public.users FOR EACH ROW WHEN ((new.banned OR (new.deletion_requested_at IS NOT NULL))) EXECUTE FUNCTION public.end_agents_of_user();


CREATE TRIGGER users_end_api_keys AFTER UPDATE OF banned, deletion_requested_at ON public.users FOR EACH ROW WHEN ((new.banned OR (new.deletion_requested_at IS NOT NULL))) EXECUTE FUNCTION public.end_api_keys_of_user();


CREATE TRIGGER users_end_invitations AFTER UPDATE OF banned, deletion_requested_at ON public.users FOR EACH ROW WHEN ((new.banned OR (new.deletion_requested_at IS NOT NULL))) EXECUTE FUNCTION public.end_invitations_of_user();


ALTER TABLE ONLY public.affiliate_codes
    ADD CONSTRAINT affiliate_codes_user_id_fkey FOREIGN KEY (user_id) REFERENCES public.users(id) ON DELETE CASCADE;


ALTER TABLE ONLY public.api_keys
    ADD CONSTRAINT api_keys_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES public.organizations(id) ON DELETE CASCADE;


ALTER TABLE ONLY public.api_keys
    ADD CONSTRAINT api_keys_user_id_fkey FOREIGN KEY (user_id) REFERENCES public.users(id) ON DELETE CASCADE;


ALTER TABLE ONLY public.compliance_receipts
    ADD CONSTRAINT compliance_receipts_request_id_fkey FOREIGN KEY (request_id) REFERENCES public.compliance_requests(id);


ALTER TABLE ONLY public.customer_redactions
    ADD CONSTRAINT customer_redactions_request_id_fkey FOREIGN KEY (request_id) REFERENCES public.compliance_requests(id);


ALTER TABLE ONLY public.facts
    ADD CONSTRAINT facts_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES public.organizations(id);


ALTER TABLE ONLY public.facts
    ADD CONSTRAINT facts_store_id_fkey FOREIGN KEY (store_id) REFERENCES public.stores(id);


ALTER TABLE ONLY public.invitations
    ADD CONSTRAINT invitations_invited_by_fkey FOREIGN KEY (invited_by) REFERENCES public.users(id) ON DELETE CASCADE;


ALTER TABLE ONLY public.invitations
    ADD CONSTRAINT invitations_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES public.organizations(id) ON DELETE CASCADE;


ALTER TABLE ONLY public.members
    ADD CONSTRAINT members_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES public.organizations(id) ON DELETE CASCADE;


ALTER TABLE ONLY public.members
    ADD CONSTRAINT members_user_id_fkey FOREIGN KEY (user_id) REFERENCES public.users(id) ON DELETE CASCADE;


ALTER TABLE ONLY public.messages
    ADD CONSTRAINT messages_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES public.organizations(id);


ALTER TABLE ONLY public.messages
    ADD CONSTRAINT messages_store_id_fkey FOREIGN KEY (store_id) REFERENCES public.stores(id);


ALTER TABLE ONLY public.oauth_codes
    ADD CONSTRAINT oauth_codes_grant_id_fkey FOREIGN KEY (grant_id) REFERENCES public.oauth_grants(id) ON DELETE CASCADE;


ALTER TABLE ONLY public.oauth_grants
    ADD CONSTRAINT oauth_grants_user_id_fkey FOREIGN KEY (user_id) REFERENCES public.users(id) ON DELETE CASCADE;


ALTER TABLE ONLY public.oauth_tokens
    ADD CONSTRAINT oauth_tokens_grant_id_fkey FOREIGN KEY (grant_id) REFERENCES public.oauth_grants(id) ON DELETE CASCADE;


ALTER TABLE ONLY public.password_resets
    ADD CONSTRAINT password_resets_user_id_fkey FOREIGN KEY (user_id) REFERENCES public.users(id) ON DELETE CASCADE;


ALTER TABLE ONLY public.payout_accounts
    ADD CONSTRAINT payout_accounts_user_id_fkey FOREIGN KEY (user_id) REFERENCES public.users(id) ON DELETE CASCADE;


ALTER TABLE ONLY public.sessions
    ADD CONSTRAINT sessions_user_id_fkey FOREIGN KEY (user_id) REFERENCES public.users(id) ON DELETE CASCADE;


ALTER TABLE ONLY public.stores
    ADD CONSTRAINT stores_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES public.organizations(id);



INSERT INTO slot_epochs (slot) SELECT generate_series(0, 1023);
INSERT INTO deployment DEFAULT VALUES;
