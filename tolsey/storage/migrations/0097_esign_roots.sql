-- Who holds the database could write the whole of a signature anew, chain and all. A signed root a day over every
-- head that is under none yet, published, shows that: roots are only ever added. Links let a stranger check a
-- signature until they expire; of their tokens only hashes are kept.
-- compatible-from: 0036
-- locks: nothing that others use
CREATE TABLE esign_roots (
    day        date PRIMARY KEY,
    body       text NOT NULL,
    signature  text NOT NULL,
    key_id     text NOT NULL,
    public_key text NOT NULL,
    signed_at  timestamptz NOT NULL
);
CREATE TRIGGER esign_roots_stay BEFORE UPDATE OR DELETE ON esign_roots
    FOR EACH ROW EXECUTE FUNCTION refuse_change();

CREATE TABLE esign_leaves (
    signature_id text NOT NULL,
    seq          bigint NOT NULL,
    deal_id      text NOT NULL,
    head         text NOT NULL,
    day          date NOT NULL,
    way          jsonb NOT NULL,
    PRIMARY KEY (signature_id, seq)
);
CREATE INDEX esign_leaves_of_deal ON esign_leaves (deal_id);
CREATE TRIGGER esign_leaves_stay BEFORE UPDATE OR DELETE ON esign_leaves
    FOR EACH ROW EXECUTE FUNCTION refuse_change();

CREATE TABLE signature_shares (
    token_hash   bytea PRIMARY KEY,
    signature_id text NOT NULL,
    deal_id      text NOT NULL,
    created_by   text NOT NULL,
    created_at   timestamptz NOT NULL,
    expires_at   timestamptz NOT NULL
);
CREATE INDEX signature_shares_of_deal ON signature_shares (deal_id);
CREATE INDEX signature_shares_of_user ON signature_shares (created_by);
CREATE INDEX signature_shares_by_end ON signature_shares (expires_at);
