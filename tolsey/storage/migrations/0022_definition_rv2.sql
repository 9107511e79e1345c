-- Revenue is defined anew (rv2). A sync names the gateways and sources of the orders that nothing
-- proves, so that a seller can see why they do not count; a listing keeps what the change of the
-- definition did to its numbers, for its owner; and a verification says why it is suspended when it
-- is the shop's plan, not a person's doubt. Snapshots made under rv1 stay as they are.
-- compatible-from: 0022 (code before reads a verification's row whole and knows no new columns)
-- locks: revenue_snapshots and listing_verifications, for a moment however many rows
ALTER TABLE revenue_snapshots ADD COLUMN unproven jsonb NOT NULL DEFAULT '[]';
ALTER TABLE listing_verifications
    ADD COLUMN suspended_for text,
    ADD COLUMN redefined jsonb;
