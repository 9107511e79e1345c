-- What is kept of a shop belongs to a store and that shop: a store that was pointed at another shop listed the
-- former one's orders as the new one's. Rows of commerce_* are filed under a key that names both. That of a
-- store's first shop is the store's own id, so nothing is rewritten and no index or sum changes; that of each
-- later one is "store@shop". The column is called store_id until no release that conflicts on it runs any more:
-- with a column of its own beside it, two shops' rows of the same number could not stand side by side before then.
-- compatible-from: 0036
-- transaction: none
-- locks: of stores that had several shops, the rows of the earlier ones: nobody writes them any more. Of a million
-- audit rows seconds to read, of a million rows of earlier shops some minutes to file.
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

-- Files what a store has of shops before the one it is connected to under their own keys; what no audit row
-- tells of, under that of a shop which is unknown. What is kept of their sums is counted anew.
CREATE FUNCTION file_earlier_shops(store text, present text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    one record;
BEGIN
    IF NOT EXISTS (
        SELECT FROM audit_log
        WHERE subject = store AND event COLLATE "C" >= 'commerce.' AND event COLLATE "C" < 'commerce/'
          AND metadata->>'shopDomain' <> present
    ) THEN
        RETURN;
    END IF;
    FOR one IN SELECT * FROM (VALUES
        ('commerce_inventory_levels', 'inventory_item_id', 'inventory_levels'),
        ('commerce_products', 'product_id', 'products'),
        ('commerce_customers', 'customer_id', 'customers'),
        ('commerce_fulfillments', 'order_id', 'orders'),
        ('commerce_refunds', 'order_id', 'orders'),
        ('commerce_orders', 'order_id', 'orders')) AS t(name, id, thing)
    LOOP
        EXECUTE format($sql$
            WITH told AS MATERIALIZED (SELECT id, shop FROM told_of_shops($1) WHERE thing = $3),
            others AS MATERIALIZED (
                SELECT kept.ctid AS place, coalesce(told.shop, 'unknown') AS shop
                FROM %1$I kept LEFT JOIN told ON told.id = kept.%2$I
                WHERE kept.store_id = $1 AND told.shop IS DISTINCT FROM $2
            ), named AS (
                INSERT INTO shops_of_stores
                SELECT DISTINCT $1, shop, $1 || '@' || shop, NULL, '-infinity'::timestamptz FROM others
                ON CONFLICT DO NOTHING
            )
            UPDATE %1$I SET store_id = $1 || '@' || others.shop FROM others WHERE ctid = others.place
        $sql$, one.name, one.id) USING store, present, one.thing;
    END LOOP;
    UPDATE shops_of_stores s SET first_connected_at = coalesce((
        SELECT min(h.connected_at) FROM connection_history h
        WHERE h.store_id = s.store_id AND h.shop_domain = s.shop_domain), now())
    WHERE s.store_id = store AND s.first_connected_at = '-infinity';
    PERFORM forget_sums(shop_key), forget_stock(shop_key) FROM shops_of_stores WHERE store_id = store;
END $$;

-- in batches
WITH part AS MATERIALIZED (
    SELECT store_id, shop_domain FROM integration_connections
    WHERE provider = 'commerce' AND store_id > $1 ORDER BY store_id LIMIT 50
), done AS MATERIALIZED (SELECT file_earlier_shops(store_id, shop_domain) FROM part)
SELECT max(store_id) FROM part WHERE (SELECT count(*) FROM done) > 0;

DROP FUNCTION file_earlier_shops(text, text);
DROP FUNCTION told_of_shops(text);
