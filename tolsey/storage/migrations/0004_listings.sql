-- A seller lists a business, gives the service a place to read its revenue, and buyers see
-- numbers that nobody could have typed in.
CREATE TABLE listings (
    title               text NOT NULL,
    teaser              text,
    anonymous           boolean NOT NULL,
    category            text,
    business_model      text,
    founded_at          date,
    country             text,
    asking_price        bigint CHECK (asking_price > 0),
    currency            text,
    min_offer           bigint CHECK (min_offer > 0),
    reason_for_sale     text,
    included_assets     jsonb NOT NULL,
    excluded_assets     jsonb NOT NULL,
    domain              text,
    self_reported       jsonb NOT NULL,
    auto_approve_access boolean NOT NULL,
    financing_offered   boolean NOT NULL,
    id                  text PRIMARY KEY,
    organization_id     text NOT NULL,
    store_id            text,
    slug                text NOT NULL UNIQUE,
    status              text NOT NULL,
    status_reason       text,
    created_by          text NOT NULL,
    created_at          timestamptz NOT NULL,
    seller_active_at    timestamptz NOT NULL,
    published_at        timestamptz,
    deleted_at          timestamptz
);
CREATE INDEX listings_of_organization ON listings (organization_id, id)
    WHERE deleted_at IS NULL;
CREATE INDEX listings_in_public ON listings (id)
    WHERE deleted_at IS NULL AND status IN ('ACTIVE', 'UNDER_OFFER', 'PAUSED', 'SOLD');
CREATE INDEX listings_left_alone ON listings (seller_active_at)
    WHERE deleted_at IS NULL AND status = 'ACTIVE';

CREATE TABLE listing_verifications (
    listing_id         text PRIMARY KEY,
    state              text NOT NULL,
    since              timestamptz,
    generation         bigint NOT NULL,
    shop_domain        text,
    accepted_at        timestamptz,
    last_ok_at         timestamptz,
    verified_at        timestamptz,
    keeps_badge        boolean NOT NULL,
    syncing_since      timestamptz,
    missing_permission text,
    last_error         text,
    primary_domain     text
);
CREATE INDEX listing_verifications_wanting_sync ON listing_verifications (listing_id)
    WHERE state NOT IN ('none', 'failed', 'suspended', 'revoked');

-- One shop backs one listing at a time; credentials are sealed, and erased when the seller, the
-- platform or a sale ends the connection.
CREATE TABLE revenue_sources (
    listing_id      text PRIMARY KEY,
    organization_id text NOT NULL,
    provider        text NOT NULL,
    shop_domain     text NOT NULL,
    client_id       text NOT NULL,
    sealed_secret   text,
    connected_by    text NOT NULL,
    connected_at    timestamptz NOT NULL,
    revoked_at      timestamptz
);
CREATE UNIQUE INDEX revenue_sources_in_use ON revenue_sources (provider, shop_domain)
    WHERE revoked_at IS NULL;

-- The history buyers read: good syncs only, never written again.
CREATE TABLE revenue_snapshots (
    listing_id    text NOT NULL,
    window_end    timestamptz NOT NULL,
    window_start  timestamptz NOT NULL,
    source        text NOT NULL,
    shop_domain   text NOT NULL,
    definition    text NOT NULL,
    shop_currency text NOT NULL,
    verified      boolean NOT NULL,
    figures       jsonb NOT NULL,
    orders        integer NOT NULL,
    skipped       jsonb NOT NULL,
    flags         jsonb NOT NULL,
    PRIMARY KEY (listing_id, window_end)
);
