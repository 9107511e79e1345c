-- Where the buyer of each order came from, as its delivery says: which source, campaign and page bring sales was
-- known to the platform alone. The buyer is the store's pseudonym. Of the address only the path is kept and of
-- the referrer only the host, for both may name a person. A row goes with its order: deleted_at as there.
-- compatible-from: 0036
-- locks: nothing, the table is new
CREATE TABLE attribution_touches (
    store_id     text NOT NULL,
    order_id     bigint NOT NULL,
    updated_at   timestamptz NOT NULL,
    deleted_at   timestamptz,
    touched_at   timestamptz,
    session_id   text,
    source       text,
    medium       text,
    campaign     text,
    landing_page text,
    referrer     text,
    PRIMARY KEY (store_id, order_id)
);
CREATE INDEX attribution_touches_session ON attribution_touches (store_id, session_id)
    WHERE session_id IS NOT NULL;
CREATE INDEX attribution_touches_touched ON attribution_touches (store_id, touched_at);
