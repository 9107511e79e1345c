-- A listing's revenue may be proven by the shop's platform and by the payment processor at once,
-- side by side: each source has its own machine, credentials and history.
ALTER TABLE listing_verifications
    ADD COLUMN provider text NOT NULL DEFAULT 'commerce',
    DROP CONSTRAINT listing_verifications_pkey,
    ADD PRIMARY KEY (listing_id, provider);

ALTER TABLE revenue_sources
    DROP CONSTRAINT revenue_sources_pkey,
    ADD PRIMARY KEY (listing_id, provider);

ALTER TABLE revenue_snapshots
    DROP CONSTRAINT revenue_snapshots_pkey,
    ADD PRIMARY KEY (listing_id, source, window_end);
