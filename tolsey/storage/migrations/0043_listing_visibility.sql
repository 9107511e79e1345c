-- A seller says of each verified metric how it is shown: as it is, as a range, or not at all. JSON, by the
-- metric's name; what is not named is shown as it is, so that listings of before stay as they were. A table of
-- its own: the release before reads every column of listings, and fails on one that it does not know.
-- compatible-from: 0036
-- locks: nothing, the table is new
CREATE TABLE listing_visibility (
    listing_id text PRIMARY KEY,
    visibility jsonb NOT NULL
);
