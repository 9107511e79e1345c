-- A seller says of each verified metric how it is shown: as it is, as a range, or not at all. JSON, by the
-- metric's name; what is not named is shown as it is, so that listings of before stay as they were.
-- compatible-from: 0036
-- locks: listings for a moment; a constant default rewrites no row
ALTER TABLE listings ADD COLUMN visibility jsonb NOT NULL DEFAULT '{}';
