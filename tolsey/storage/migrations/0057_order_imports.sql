-- What a shop sold before it was connected is imported: one row of each shop of a store says from when on its
-- orders are read, how far the platform's bulk export is read, and what became of it. read_bytes and orders move
-- in the commits that write the orders, so an import that was cut off goes on where it was.
-- compatible-from: 0036
-- locks: nothing, the table is new
CREATE TABLE order_imports (
    store_id    text NOT NULL,
    shop_domain text NOT NULL,
    begun_at    timestamptz NOT NULL,
    run         integer NOT NULL,
    state       text NOT NULL,
    changed_at  timestamptz NOT NULL,
    begun_by    text,
    since       timestamptz,
    bulk_export text,
    exported_at timestamptz,
    exports     integer NOT NULL,
    expected    bigint,
    read_bytes  bigint NOT NULL,
    orders      bigint NOT NULL,
    unread      bigint NOT NULL,
    code        text,
    finished_at timestamptz,
    known_since timestamptz,
    knows_all   boolean NOT NULL,
    PRIMARY KEY (store_id, shop_domain)
);
COMMENT ON COLUMN order_imports.since IS 'NULL: the whole history';
COMMENT ON COLUMN order_imports.known_since IS 'From when on the last import that was done had all orders';
