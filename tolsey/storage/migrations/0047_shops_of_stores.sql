-- What is kept of a shop belongs to a store and that shop: a store that was pointed at another shop listed the
-- former one's orders as the new one's. Rows of commerce_* are filed under a key that names both. That of a
-- store's first shop is the store's own id, so nothing is rewritten and no index or sum changes; that of each
-- later one is "store@shop". The column is called store_id until no release that conflicts on it runs any more:
-- with a column of its own beside it, two shops' rows of the same number could not stand side by side before then.
-- compatible-from: 0036
-- transaction: none
-- locks: of stores that had several shops, the rows of the earlier ones, 50,000 at a time: nobody writes them any
-- more, and no commit waits. A million audit rows are read in seconds; of a million rows of one store that had
-- several shops, once for each part: a quarter of an hour.
CREATE TABLE shops_of_stores (
    store_id           text NOT NULL,
    shop_domain        text NOT NULL,
    shop_key           text NOT NULL UNIQUE,
    sealed_salt        text,
    first_connected_at timestamptz NOT NULL,
    PRIMARY KEY (store_id, shop_domain)
);
COMMENT ON COLUMN shops_of_stores.shop_key IS 'What commerce_*.store_id says of the rows of this shop';
COMMENT ON COLUMN shops_of_stores.sealed_salt IS
    'Of the pseudonyms of this shop''s buyers; that of the shop whose key is the store''s id is in stores';

CREATE TABLE connection_history (
    store_id     text NOT NULL,
    connected_at timestamptz NOT NULL,
    shop_domain  text NOT NULL,
    ended_at     timestamptz,
    ending       text,
    PRIMARY KEY (store_id, connected_at)
);

-- in batches
WITH part AS MATERIALIZED (
    SELECT * FROM integration_connections WHERE provider = 'commerce' AND store_id > $1
    ORDER BY store_id LIMIT 500
), filed AS (
    INSERT INTO shops_of_stores
    SELECT store_id, shop_domain, store_id, NULL, connected_at FROM part ON CONFLICT DO NOTHING
), told AS (
    SELECT a.subject, a.event, a.created_at, a.metadata->>'shopDomain' AS shop_domain,
        lead(a.created_at) OVER later AS ended_at, lead(a.event) OVER later AS next
    FROM part JOIN audit_log a ON a.subject = part.store_id
        AND a.event COLLATE "C" IN ('commerce.connected', 'commerce.disconnected')
    WINDOW later AS (PARTITION BY a.subject ORDER BY a.id)
), earlier AS (
    INSERT INTO connection_history
    SELECT subject, created_at, shop_domain, ended_at,
        CASE next WHEN 'commerce.connected' THEN 'replaced' ELSE 'disconnected' END
    FROM told WHERE event = 'commerce.connected' AND EXISTS (
        SELECT FROM told AS again WHERE again.subject = told.subject
            AND again.event = 'commerce.connected' AND again.created_at > told.created_at)
    ON CONFLICT DO NOTHING
), present AS (
    INSERT INTO connection_history
    SELECT store_id, connected_at, shop_domain,
        CASE status WHEN 'revoked' THEN uninstalled_at WHEN 'disconnected' THEN coalesce((
            SELECT max(created_at) FROM told
            WHERE subject = store_id AND event = 'commerce.disconnected'), now()) END,
        CASE status WHEN 'revoked' THEN 'uninstalled' WHEN 'disconnected' THEN 'disconnected' END
    FROM part ON CONFLICT DO NOTHING
)
SELECT max(store_id) FROM part;

-- Of which shop each thing of a store was told last, as its audit trail has it.
CREATE FUNCTION told_of_shops(store text) RETURNS TABLE (thing text, id bigint, shop text)
LANGUAGE sql STABLE AS $$
    SELECT DISTINCT ON (1, 2) said.thing, said.id, said.shop
    FROM (
        SELECT audit_log.id AS place, metadata->>'shopDomain' AS shop,
            CASE WHEN split_part(event, '.', 3) IN ('refunds', 'fulfillments') THEN 'orders'
                ELSE split_part(event, '.', 3) END AS thing,
            CASE WHEN number ~ '^\d{1,19}$' THEN number::bigint END AS id
        FROM audit_log CROSS JOIN LATERAL (SELECT coalesce(metadata->'payload'->>'orderId',
            metadata->'payload'->>'inventoryItemId', metadata->'payload'->>'id') AS number) AS n
        WHERE subject = store AND event COLLATE "C" >= 'commerce.webhook.'
          AND event COLLATE "C" < 'commerce.webhook/' AND NOT metadata ? 'ignored'
    ) AS said
    WHERE said.id IS NOT NULL
    ORDER BY 1, 2, said.place DESC
$$;

-- Stores that were told of by another shop than the one they are connected to now.
CREATE TABLE shops_to_file (store_id text PRIMARY KEY, present text NOT NULL);

-- in batches
WITH part AS MATERIALIZED (
    SELECT store_id, shop_domain FROM integration_connections
    WHERE provider = 'commerce' AND store_id > $1 ORDER BY store_id LIMIT 50
), others AS MATERIALIZED (
    SELECT DISTINCT store_id, part.shop_domain AS present, metadata->>'shopDomain' AS shop_domain
    FROM part JOIN audit_log ON subject = store_id
    WHERE event COLLATE "C" >= 'commerce.' AND event COLLATE "C" < 'commerce/'
      AND metadata->>'shopDomain' <> part.shop_domain
), noted AS (
    INSERT INTO shops_to_file SELECT DISTINCT store_id, present FROM others
), named AS (
    INSERT INTO shops_of_stores
    SELECT o.store_id, o.shop_domain, o.store_id || '@' || o.shop_domain, NULL, coalesce((
        SELECT min(h.connected_at) FROM connection_history h
        WHERE h.store_id = o.store_id AND h.shop_domain = o.shop_domain), now())
    FROM (TABLE others UNION SELECT store_id, present, 'unknown' FROM others) o
    ON CONFLICT DO NOTHING
)
SELECT max(store_id) FROM part;

-- Files the next of what a store has of shops before the one it is connected to, under their own keys; what no
-- audit row tells of, under that of a shop which is unknown. Row and audit row come with one commit, so they are
-- read in one statement. Its sums are forgotten first, to be counted anew, so that no delivery waits for them.
-- Nobody can tell the planner how many rows were told of: it would look through all of them for each row.
CREATE FUNCTION file_next(after text) RETURNS text LANGUAGE plpgsql SET enable_nestloop = off AS $$
DECLARE
    store text := split_part(after, ' ', 1);
    step integer := split_part('0' || after, ' ', 2)::integer;
    last bigint := split_part(after, ' ', 3)::bigint;
    until bigint;
    found bigint;
    most CONSTANT bigint := 50000;
    names text[] := ARRAY['commerce_inventory_levels', 'commerce_products', 'commerce_customers',
        'commerce_fulfillments', 'commerce_refunds', 'commerce_orders'];
    keys text[] := ARRAY['inventory_item_id', 'product_id', 'customer_id', 'fulfillment_id',
        'refund_id', 'order_id'];
    ids text[] := ARRAY['inventory_item_id', 'product_id', 'customer_id', 'order_id', 'order_id',
        'order_id'];
    things text[] := ARRAY['inventory_levels', 'products', 'customers', 'orders', 'orders', 'orders'];
BEGIN
    IF step = 0 THEN
        PERFORM forget_sums(shop_key), forget_stock(shop_key) FROM shops_of_stores WHERE store_id = store;
    ELSIF step > cardinality(names) THEN
        PERFORM forget_stock(store);
        RETURN (SELECT min(store_id) || ' 0 0' FROM shops_to_file WHERE store_id > store);
    ELSE
        EXECUTE format('SELECT max(id), count(*) FROM (SELECT %2$I AS id FROM %1$I WHERE store_id = $1'
            ' AND %2$I > $2 ORDER BY 1 LIMIT $3) AS part', names[step], keys[step])
            INTO until, found USING store, last, most;
    END IF;
    IF until IS NULL THEN
        RETURN store || ' ' || step + 1 || ' -1';
    END IF;
    EXECUTE format($sql$
        WITH told AS MATERIALIZED (SELECT id, shop FROM told_of_shops($1) WHERE thing = $2)
        UPDATE %1$I SET store_id = $1 || '@' || others.shop
        FROM (
            SELECT DISTINCT kept.%2$I AS id, coalesce(told.shop, 'unknown') AS shop
            FROM %1$I kept LEFT JOIN told ON told.id = kept.%3$I
            WHERE kept.store_id = $1 AND kept.%2$I > $3 AND kept.%2$I <= $4
              AND told.shop IS DISTINCT FROM (SELECT present FROM shops_to_file WHERE store_id = $1)
        ) AS others
        WHERE store_id = $1 AND %2$I > $3 AND %2$I <= $4 AND %2$I = others.id
    $sql$, names[step], keys[step], ids[step]) USING store, things[step], last, until;
    -- Behind the last part stands only what is told meanwhile, which is of the present shop.
    RETURN store || ' ' || CASE WHEN found = most THEN step || ' ' || until ELSE step + 1 || ' -1' END;
END $$;

-- in batches
SELECT CASE WHEN $1 <> '' THEN file_next($1)
    ELSE (SELECT min(store_id) || ' 0 0' FROM shops_to_file) END;

DROP FUNCTION file_next(text);
DROP FUNCTION told_of_shops(text);
DROP TABLE shops_to_file;
