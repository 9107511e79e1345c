-- Estimates of what storefronts sell are corrected by shops whose revenue is verified here, of those sellers who agreed
-- to it; what is kept of all of them is a factor, how far apart they lie, and the median error, which is published.
-- compatible-from: 0036
-- locks: nothing, the tables are new
CREATE TABLE calibrating_listings (
    listing_id text PRIMARY KEY,
    domain     text NOT NULL,
    agreed_by  text NOT NULL,
    agreed_at  timestamptz NOT NULL
);
CREATE INDEX calibrating_listings_domain ON calibrating_listings (domain);
CREATE INDEX calibrating_listings_agreed_by ON calibrating_listings (agreed_by);
CREATE TABLE calibrations (
    fitted_at    timestamptz PRIMARY KEY,
    factor       numeric NOT NULL,
    spread       numeric NOT NULL,
    shops        int NOT NULL,
    median_error numeric NOT NULL
);
