-- Storefronts of the public web that are looked at for competitor intelligence: one row for each domain, its
-- scans for as long as somebody may ask what became of them, and of a domain that is to be left alone only a
-- hash of its name.
-- compatible-from: 0036
-- locks: nothing, the tables are new
CREATE TABLE storefronts (
    domain            text PRIMARY KEY,
    state             text NOT NULL,
    source            text NOT NULL,
    discovered_at     timestamptz NOT NULL,
    canonical         text,
    platform          text,
    country           text,
    currency          text,
    product_count     bigint,
    velocity          numeric,
    facts             jsonb NOT NULL DEFAULT '{}',
    diagnosis         jsonb NOT NULL DEFAULT '{}',
    scanned_at        timestamptz,
    snapshot_at       timestamptz,
    next_scan_at      timestamptz,
    hold_until        timestamptz,
    hold_seconds      int NOT NULL DEFAULT 0,
    failures          int NOT NULL DEFAULT 0,
    etag              text,
    last_modified     text
);
COMMENT ON COLUMN storefronts.velocity IS 'Units a day of its best seller';
CREATE INDEX storefronts_due ON storefronts (next_scan_at) WHERE next_scan_at IS NOT NULL;
CREATE INDEX storefronts_velocity ON storefronts (velocity) WHERE velocity IS NOT NULL;
CREATE INDEX storefronts_platform ON storefronts (platform, domain);
CREATE INDEX storefronts_country ON storefronts (country, domain);

CREATE TABLE storefront_scans (
    id              text PRIMARY KEY,
    domain          text NOT NULL,
    mode            text NOT NULL CHECK (mode IN ('full', 'light')),
    is_kept         boolean NOT NULL,
    was_restored    boolean NOT NULL,
    source          text NOT NULL,
    organization_id text,
    user_id         text,
    state           text NOT NULL CHECK (state IN ('queued', 'running', 'done', 'failed', 'cancelled')),
    asked_at        timestamptz NOT NULL,
    ended_at        timestamptz,
    report          jsonb
);
CREATE INDEX storefront_scans_open ON storefront_scans (domain) WHERE ended_at IS NULL;
CREATE INDEX storefront_scans_domain ON storefront_scans (domain);
CREATE INDEX storefront_scans_ended_at ON storefront_scans (ended_at);
CREATE INDEX storefront_scans_organization ON storefront_scans (organization_id, id);
CREATE INDEX storefront_scans_user ON storefront_scans (user_id);

CREATE TABLE intelligence_suppressions (
    domain_hash   bytea PRIMARY KEY CHECK (octet_length(domain_hash) = 32),
    suppressed_at timestamptz NOT NULL,
    reason        text NOT NULL,
    source        text NOT NULL,
    lifted_at     timestamptz
);
CREATE INDEX intelligence_suppressions_lifted ON intelligence_suppressions (lifted_at) WHERE lifted_at IS NOT NULL;
