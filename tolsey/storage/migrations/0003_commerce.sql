-- What a store's commerce connection is, and what its deliveries leave behind. There are no
-- foreign keys: these rows are written by the group commit, where each would lock the store's row
-- once per delivery; erasing a store removes them by store_id.
CREATE TABLE integration_connections (
    store_id         text NOT NULL,
    provider         text NOT NULL,
    shop_domain      text NOT NULL,
    status           text NOT NULL,
    client_id        text,
    access_token     text,
    token_expires_at timestamptz,
    metadata         jsonb NOT NULL DEFAULT '{}',
    refused_at       timestamptz,
    connected_at     timestamptz NOT NULL,
    uninstalled_at   timestamptz,
    secret_hash      text,
    mcp_key_hash     text,
    pairing_code     text,
    created_at       timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (store_id, provider)
);
CREATE INDEX integration_connections_shop ON integration_connections (shop_domain, provider);

CREATE TABLE store_shops (
    store_id          text PRIMARY KEY,
    shop_domain       text NOT NULL,
    facts_at          timestamptz NOT NULL,
    shop_id           bigint,
    name              text,
    plan_name         text,
    plan_display_name text,
    partner_development boolean,
    currency          text,
    primary_domain    text,
    timezone          text,
    country           text,
    password_enabled  boolean,
    setup_required    boolean,
    shop_created_at   timestamptz,
    theme_id          bigint,
    theme_name        text,
    theme_at          timestamptz,
    custom_domains    jsonb NOT NULL DEFAULT '[]',
    subscriptions     jsonb NOT NULL DEFAULT '{}',
    subscribed_at     timestamptz,
    bulk_operation    jsonb,
    bulk_at           timestamptz
);

CREATE TABLE commerce_webhook_events (
    store_id     text NOT NULL,
    delivery_id  text NOT NULL,
    topic        text NOT NULL,
    event_id     text,
    shop_domain  text NOT NULL,
    triggered_at timestamptz,
    created_at   timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (store_id, delivery_id)
);
CREATE INDEX commerce_webhook_events_created_at ON commerce_webhook_events (created_at);

CREATE TABLE commerce_orders (
    store_id            text NOT NULL,
    order_id            bigint NOT NULL,
    updated_at          timestamptz NOT NULL,
    deleted_at          timestamptz,
    name                text,
    currency            text,
    total_minor         bigint,
    current_total_minor bigint,
    financial_status    text,
    fulfillment_status  text,
    test                boolean NOT NULL,
    source_name         text,
    customer_hash       text,
    metadata            jsonb NOT NULL,
    processed_at        timestamptz,
    created_at_platform timestamptz,
    cancelled_at        timestamptz,
    PRIMARY KEY (store_id, order_id)
);
CREATE INDEX commerce_orders_customer ON commerce_orders (store_id, customer_hash)
    WHERE customer_hash IS NOT NULL;
CREATE INDEX commerce_orders_processed ON commerce_orders (store_id, processed_at);

CREATE TABLE commerce_refunds (
    store_id            text NOT NULL,
    refund_id           bigint NOT NULL,
    order_id            bigint NOT NULL,
    currency            text,
    amount_minor        bigint,
    processed_at        timestamptz,
    created_at_platform timestamptz,
    PRIMARY KEY (store_id, refund_id)
);
CREATE INDEX commerce_refunds_order ON commerce_refunds (store_id, order_id);

CREATE TABLE commerce_fulfillments (
    store_id            text NOT NULL,
    fulfillment_id      bigint NOT NULL,
    order_id            bigint NOT NULL,
    updated_at          timestamptz NOT NULL,
    status              text,
    shipment_status     text,
    tracking_company    text,
    location_id         bigint,
    created_at_platform timestamptz,
    PRIMARY KEY (store_id, fulfillment_id)
);
CREATE INDEX commerce_fulfillments_order ON commerce_fulfillments (store_id, order_id);

CREATE TABLE commerce_products (
    store_id            text NOT NULL,
    product_id          bigint NOT NULL,
    updated_at          timestamptz NOT NULL,
    deleted_at          timestamptz,
    title               text,
    handle              text,
    vendor              text,
    product_type        text,
    status              text,
    tags                text,
    variants            jsonb NOT NULL,
    variant_count       integer NOT NULL,
    published_at        timestamptz,
    created_at_platform timestamptz,
    PRIMARY KEY (store_id, product_id)
);

CREATE TABLE commerce_customers (
    store_id            text NOT NULL,
    customer_id         bigint NOT NULL,
    updated_at          timestamptz NOT NULL,
    deleted_at          timestamptz,
    email_hash          text,
    state               text,
    verified_email      boolean,
    currency            text,
    created_at_platform timestamptz,
    PRIMARY KEY (store_id, customer_id)
);
CREATE INDEX commerce_customers_email_hash ON commerce_customers (store_id, email_hash)
    WHERE email_hash IS NOT NULL;

CREATE TABLE commerce_inventory_levels (
    store_id          text NOT NULL,
    inventory_item_id bigint NOT NULL,
    location_id       bigint NOT NULL,
    updated_at        timestamptz NOT NULL,
    available         bigint,
    PRIMARY KEY (store_id, inventory_item_id, location_id)
);
