-- What buyers look for among listings on the market is kept beside them, so that a search, a range of prices and every
-- order is an index: by triggers, so that what the release before writes is found, too. Of verified revenue it holds
-- what the seller shows, and until when: a hidden metric cannot be guessed by asking for ranges. And a listing gets
-- what a buyer sees after the NDA, the documents its data room has to have, who watches it, and how often it was seen.
-- compatible-from: 0036
-- transaction: none
-- locks: listings, listing_visibility, listing_verifications and revenue_snapshots against writers, for a moment each
CREATE TABLE IF NOT EXISTS listing_details (
    listing_id         text PRIMARY KEY,
    private            jsonb NOT NULL,
    required_documents jsonb NOT NULL
);
CREATE TABLE IF NOT EXISTS listing_watchers (
    listing_id text NOT NULL,
    user_id    text NOT NULL,
    since      timestamptz NOT NULL,
    PRIMARY KEY (listing_id, user_id)
);
CREATE INDEX CONCURRENTLY IF NOT EXISTS listing_watchers_of_user ON listing_watchers (user_id, listing_id);
CREATE TABLE IF NOT EXISTS listing_views (
    listing_id text PRIMARY KEY,
    views      bigint NOT NULL
);
CREATE TABLE IF NOT EXISTS market_entries (
    listing_id       text PRIMARY KEY,
    words            tsvector NOT NULL,
    status           text NOT NULL,
    category         text,
    business_model   text,
    country          text,
    currency         text NOT NULL,
    price            bigint NOT NULL,
    financing        boolean NOT NULL,
    verified_until   timestamptz,
    revenue_until    timestamptz,
    revenue_currency text,
    revenue_low      bigint,
    revenue_high     bigint
);
COMMENT ON COLUMN market_entries.verified_until IS 'The badge is green before';
COMMENT ON COLUMN market_entries.revenue_until IS 'The revenue is shown before';
CREATE INDEX CONCURRENTLY IF NOT EXISTS market_entries_words ON market_entries USING gin (words)
    WITH (fastupdate = off);
CREATE INDEX CONCURRENTLY IF NOT EXISTS market_entries_price ON market_entries (currency, price, listing_id);
CREATE INDEX CONCURRENTLY IF NOT EXISTS market_entries_revenue
    ON market_entries (revenue_currency, revenue_low, listing_id) WHERE revenue_low IS NOT NULL;
CREATE INDEX CONCURRENTLY IF NOT EXISTS market_entries_category ON market_entries (category, listing_id);

-- The range that an amount lies in: the steps of tolsey/actors/listing/ranges.py, which a test holds this against.
CREATE OR REPLACE FUNCTION amount_range(amount bigint, currency text) RETURNS bigint[]
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
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

CREATE OR REPLACE FUNCTION keep_market_entry(id text) RETURNS void LANGUAGE sql AS $$
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
$$;

CREATE OR REPLACE FUNCTION market_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM keep_market_entry(CASE TG_TABLE_NAME WHEN 'listings' THEN to_jsonb(NEW)->>'id' ELSE to_jsonb(NEW)->>'listing_id' END);
    RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER listings_on_market AFTER INSERT OR UPDATE ON listings
    FOR EACH ROW EXECUTE FUNCTION market_changed();
CREATE OR REPLACE TRIGGER listing_visibility_on_market AFTER INSERT OR UPDATE ON listing_visibility
    FOR EACH ROW EXECUTE FUNCTION market_changed();
CREATE OR REPLACE TRIGGER listing_verifications_on_market AFTER INSERT OR UPDATE ON listing_verifications
    FOR EACH ROW EXECUTE FUNCTION market_changed();
CREATE OR REPLACE TRIGGER revenue_snapshots_on_market AFTER INSERT ON revenue_snapshots
    FOR EACH ROW EXECUTE FUNCTION market_changed();

SELECT keep_market_entry(id) FROM listings WHERE deleted_at IS NULL AND asking_price IS NOT NULL;
