-- A buyer asks to see more of a listing, offers, and buys. Each thread is a row; its offers and its ledger are
-- others. The ledger is evidence: its lines are only ever added. What organizations are party to is found by an
-- index of either side.
-- compatible-from: 0036
-- locks: nothing that others use
CREATE TABLE deal_threads (
    id                         text PRIMARY KEY,
    listing_id                 text NOT NULL,
    seller_id                  text NOT NULL,
    buyer_id                   text NOT NULL,
    requested_by               text NOT NULL,
    stage                      text NOT NULL,
    entered_at                 timestamptz NOT NULL,
    created_at                 timestamptz NOT NULL,
    moved_at                   timestamptz NOT NULL,
    seq                        bigint NOT NULL,
    hash                       text NOT NULL,
    message                    text,
    reason                     text,
    nda_signed_at              timestamptz,
    loi_signed_at              timestamptz,
    apa_signed_at              timestamptz,
    escrow_id                  text,
    escrow_funded_at           timestamptz,
    escrow_released_at         timestamptz,
    closed_at                  timestamptz,
    accepted_offer_id          text,
    price                      bigint,
    currency                   text,
    leads                      jsonb NOT NULL,
    exclusivity_until          timestamptz,
    exclusivity_proposed_by    text,
    exclusivity_proposed_until timestamptz,
    fast_track                 jsonb NOT NULL,
    diligence                  jsonb NOT NULL,
    apa_terms                  jsonb,
    apa_terms_sha256           text,
    cancel_proposed_by         text,
    cancel_proposed_at         timestamptz,
    escrow_evidence            text,
    escrow_event_id            text,
    funding_confirmed_at       timestamptz,
    transfer                   jsonb NOT NULL,
    inspection_ends_at         timestamptz,
    accepted_by_buyer_at       timestamptz,
    refund_requested_at        timestamptz,
    refund_reason              text,
    returns                    jsonb NOT NULL,
    escalated                  boolean NOT NULL,
    CHECK (escrow_funded_at IS NULL OR (apa_signed_at IS NOT NULL AND escrow_id IS NOT NULL))
);
CREATE INDEX deal_threads_of_listing ON deal_threads (listing_id);
CREATE INDEX deal_threads_of_seller ON deal_threads (seller_id, id);
CREATE INDEX deal_threads_of_buyer ON deal_threads (buyer_id, id);
-- The listing decides it; this holds it.
CREATE UNIQUE INDEX deal_threads_one_buyer ON deal_threads (listing_id)
    WHERE stage IN ('UNDER_OFFER', 'LOI_SIGNED', 'DUE_DILIGENCE', 'APA_SIGNED', 'ESCROW_FUNDED', 'TRANSFERRING', 'DISPUTED');

CREATE TABLE deal_offers (
    id             text PRIMARY KEY,
    deal_id        text NOT NULL,
    parent_id      text,
    side           text NOT NULL,
    status         text NOT NULL,
    amount         bigint NOT NULL CHECK (amount > 0),
    currency       text NOT NULL,
    type           text NOT NULL,
    terms          jsonb NOT NULL,
    inventory      text NOT NULL,
    contingencies  jsonb NOT NULL,
    closing_by     date,
    proof_of_funds text,
    message        text,
    valid_until    timestamptz NOT NULL,
    made_by        text NOT NULL,
    made_at        timestamptz NOT NULL,
    ended_at       timestamptz
);
CREATE INDEX deal_offers_of_deal ON deal_offers (deal_id, id);

CREATE TABLE deal_events (
    deal_id text NOT NULL,
    seq     bigint NOT NULL,
    body    text NOT NULL,
    hash    text NOT NULL,
    at      timestamptz NOT NULL,
    PRIMARY KEY (deal_id, seq)
);
CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'rows of % are evidence: they are only added', TG_TABLE_NAME;
END
$$;
CREATE TRIGGER deal_events_stay BEFORE UPDATE OR DELETE ON deal_events
    FOR EACH ROW EXECUTE FUNCTION refuse_change();
