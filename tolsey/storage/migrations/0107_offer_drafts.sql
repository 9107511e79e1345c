-- What an agent prepared as a party's answer to an offer waits here until a person of that party sends or discards it.
-- compatible-from: 0036
-- locks: nothing, the table is new
CREATE TABLE offer_drafts (
    offer_id        text NOT NULL,
    deal_id         text NOT NULL,
    side            text NOT NULL,
    organization_id text NOT NULL,
    reply           text NOT NULL,
    counter         jsonb,
    note            text,
    drafted_by      text NOT NULL,
    drafted_at      timestamptz NOT NULL,
    discarded_at    timestamptz,
    PRIMARY KEY (offer_id, side)
);
CREATE INDEX offer_drafts_of_organization ON offer_drafts (organization_id);
CREATE INDEX offer_drafts_of_user ON offer_drafts (drafted_by);
