-- A picture of a storefront over time is drawn from its snapshots: what the catalogue cost and held then, and how fast
-- its best seller sold with the interval that was told, so that no page goes through sixty days of changes.
-- compatible-from: 0036
-- locks: storefront_snapshots, for a moment however many rows
ALTER TABLE storefront_snapshots
    ADD COLUMN median_price numeric,
    ADD COLUMN units bigint,
    ADD COLUMN velocity numeric,
    ADD COLUMN velocity_low numeric,
    ADD COLUMN velocity_high numeric;
