-- How many of each variant are left is kept in the transaction that writes the product or a level, so that
-- what runs out is read from an index and not from the text of every product. A store that is here already is
-- read by the retention sweep; until then its report reads the products, as it did.
-- compatible-from: 0033
-- transaction: none
-- locks: commerce_products and commerce_inventory_levels against writers, for a moment, whatever they hold
CREATE TABLE commerce_stock (
    store_id      text NOT NULL,
    product_id    bigint NOT NULL,
    place         bigint NOT NULL,
    variant_id    bigint,
    item          bigint,
    is_listed     boolean NOT NULL,
    said_tracked  boolean,
    said_quantity bigint,
    tracked       boolean,
    available     bigint,
    PRIMARY KEY (store_id, product_id, place)
);
CREATE INDEX commerce_stock_low ON commerce_stock (store_id, available, variant_id);
CREATE INDEX commerce_stock_item ON commerce_stock (store_id, item);
COMMENT ON COLUMN commerce_stock.place IS 'Of the variant in its product''s list, from 1';
COMMENT ON COLUMN commerce_stock.said_quantity IS 'By the product itself; levels tell more';

CREATE TABLE commerce_stock_unread (store_id text PRIMARY KEY, read_through bigint NOT NULL);
COMMENT ON TABLE commerce_stock_unread IS
    'Stores whose products are not all in commerce_stock yet. A store without a row is whole.';

-- Levels tell more than the product's own quantity: they came later, and from every location. One without
-- a quantity is of an item that is not tracked, unless the product says that it is.
CREATE FUNCTION left_of(store text, wanted bigint, said_tracked boolean, said_quantity bigint,
    OUT tracked boolean, OUT available bigint) LANGUAGE plpgsql STABLE AS $$
DECLARE
    counted boolean;
    total bigint;
BEGIN
    SELECT sum(l.available), bool_or(l.available IS NOT NULL) INTO total, counted
    FROM commerce_inventory_levels l WHERE l.store_id = store AND l.inventory_item_id = wanted;
    tracked := coalesce(said_tracked, counted);
    available := CASE WHEN tracked IS NOT FALSE THEN coalesce(total, said_quantity) END;
END $$;

CREATE FUNCTION stock_of(store text, product bigint) RETURNS SETOF commerce_stock
LANGUAGE sql STABLE AS $$
    SELECT p.store_id, p.product_id, place, (v->>'id')::bigint, (v->>'inventoryItemId')::bigint,
        coalesce(p.status = 'active', false), (v->>'tracked')::boolean,
        (v->>'inventoryQuantity')::bigint, n.tracked, n.available
    FROM commerce_products p
    CROSS JOIN LATERAL jsonb_array_elements(p.variants) WITH ORDINALITY AS said(v, place)
    CROSS JOIN LATERAL left_of(p.store_id, (v->>'inventoryItemId')::bigint,
        (v->>'tracked')::boolean, (v->>'inventoryQuantity')::bigint) n
    WHERE p.store_id = store AND p.product_id = product AND p.deleted_at IS NULL
$$;

CREATE FUNCTION read_stock(stores text[], products bigint[]) RETURNS void LANGUAGE plpgsql AS $$
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

CREATE FUNCTION keep_stock_of_products() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    touched text[];
    ids bigint[];
BEGIN
    IF TG_OP = 'DELETE' THEN
        SELECT array_agg(store_id), array_agg(product_id) INTO touched, ids FROM old_rows;
    ELSE
        SELECT array_agg(store_id), array_agg(product_id) INTO touched, ids FROM new_rows;
    END IF;
    IF ids IS NOT NULL THEN
        PERFORM pg_advisory_xact_lock_shared(commerce_sums_lock(store_id))
        FROM (SELECT DISTINCT unnest(touched) AS store_id ORDER BY 1) AS stores;
        PERFORM read_stock(touched, ids);
    END IF;
    RETURN NULL;
END $$;

CREATE FUNCTION keep_stock_of_levels() RETURNS trigger LANGUAGE plpgsql AS $$
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

-- Reads the next products of a store that is not whole; answers how many: fewer than asked when all are.
CREATE FUNCTION build_stock(store text, most integer) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    through bigint;
    ids bigint[];
BEGIN
    PERFORM pg_advisory_xact_lock(commerce_sums_lock(store));
    SELECT read_through INTO through FROM commerce_stock_unread WHERE store_id = store;
    IF through IS NULL THEN
        RETURN 0;
    END IF;
    ids := ARRAY(SELECT product_id FROM commerce_products
        WHERE store_id = store AND product_id > through ORDER BY product_id LIMIT most);
    PERFORM read_stock(array_fill(store, ARRAY[cardinality(ids)]), ids);
    IF cardinality(ids) < most THEN
        DELETE FROM commerce_stock_unread WHERE store_id = store;
    ELSE
        UPDATE commerce_stock_unread SET read_through = ids[most] WHERE store_id = store;
    END IF;
    RETURN cardinality(ids);
END $$;

-- Forgets what is kept of a store's stock, to be read anew.
CREATE FUNCTION forget_stock(store text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(commerce_sums_lock(store));
    DELETE FROM commerce_stock WHERE store_id = store;
    INSERT INTO commerce_stock_unread VALUES (store, 0)
    ON CONFLICT (store_id) DO UPDATE SET read_through = 0;
END $$;

CREATE TRIGGER commerce_products_inserted AFTER INSERT ON commerce_products
    REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION keep_stock_of_products();
CREATE TRIGGER commerce_products_updated AFTER UPDATE ON commerce_products
    REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION keep_stock_of_products();
CREATE TRIGGER commerce_products_removed AFTER DELETE ON commerce_products
    REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT EXECUTE FUNCTION keep_stock_of_products();
CREATE TRIGGER commerce_levels_inserted AFTER INSERT ON commerce_inventory_levels
    REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION keep_stock_of_levels();
CREATE TRIGGER commerce_levels_updated AFTER UPDATE ON commerce_inventory_levels
    REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION keep_stock_of_levels();
CREATE TRIGGER commerce_levels_removed AFTER DELETE ON commerce_inventory_levels
    REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT EXECUTE FUNCTION keep_stock_of_levels();

-- After the triggers: what they kept of a store that is here already is begun anew with the rest.
-- in batches
WITH part AS MATERIALIZED (SELECT id FROM stores WHERE id > $1 ORDER BY id LIMIT 500),
done AS MATERIALIZED (SELECT forget_stock(id) FROM part)
SELECT max(id) FROM part WHERE (SELECT count(*) FROM done) > 0;
