-- What storefronts sell, and what of it changed when: products and variants in rows that are written only when
-- they change, so that a snapshot of a catalogue in which little moved writes little.
-- compatible-from: 0036
-- locks: nothing, the tables are new
CREATE TABLE IF NOT EXISTS storefront_snapshots (
    domain        text NOT NULL,
    taken_at      timestamptz NOT NULL,
    scan_id       text NOT NULL UNIQUE,
    product_count bigint NOT NULL,
    variant_count bigint NOT NULL,
    changed       bigint NOT NULL,
    PRIMARY KEY (domain, taken_at)
);
CREATE INDEX IF NOT EXISTS storefront_snapshots_taken_at ON storefront_snapshots (taken_at);
CREATE TABLE IF NOT EXISTS storefront_products (
    domain        text NOT NULL,
    product_id    bigint NOT NULL,
    title         text NOT NULL,
    handle        text NOT NULL,
    vendor        text NOT NULL,
    product_type  text NOT NULL,
    published_at  timestamptz,
    first_seen_at timestamptz NOT NULL,
    changed_at    timestamptz NOT NULL,
    gone_at       timestamptz,
    PRIMARY KEY (domain, product_id)
);
CREATE TABLE IF NOT EXISTS storefront_variants (
    domain           text NOT NULL,
    variant_id       bigint NOT NULL,
    product_id       bigint NOT NULL,
    title            text NOT NULL,
    sku              text NOT NULL,
    price            numeric,
    compare_at_price numeric,
    available        boolean,
    quantity         bigint,
    changed_at       timestamptz NOT NULL,
    gone_at          timestamptz,
    PRIMARY KEY (domain, variant_id)
);
CREATE INDEX IF NOT EXISTS storefront_variants_product ON storefront_variants (domain, product_id);
CREATE TABLE IF NOT EXISTS storefront_changes (
    domain     text NOT NULL,
    at         timestamptz NOT NULL,
    variant_id bigint NOT NULL,
    kind       text NOT NULL,
    product_id bigint NOT NULL,
    before     text,
    after      text,
    PRIMARY KEY (domain, at, variant_id, kind)
);
CREATE INDEX IF NOT EXISTS storefront_changes_product ON storefront_changes (domain, product_id, at);
CREATE INDEX IF NOT EXISTS storefront_changes_at ON storefront_changes (at);
