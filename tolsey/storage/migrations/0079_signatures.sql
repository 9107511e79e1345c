-- Both parties of a deal sign its documents. The exact text is kept once under its hash; what happens to a
-- signature is a chain of lines that are only ever added.
-- compatible-from: 0036
-- locks: nothing that others use
CREATE TABLE legal_documents (
    sha256  text PRIMARY KEY,
    deal_id text NOT NULL,
    content text NOT NULL,
    made_at timestamptz NOT NULL
);
CREATE INDEX legal_documents_of_deal ON legal_documents (deal_id);
CREATE TRIGGER legal_documents_stay BEFORE UPDATE OR DELETE ON legal_documents
    FOR EACH ROW EXECUTE FUNCTION refuse_change();

CREATE TABLE legal_signatures (
    id               text PRIMARY KEY,
    deal_id          text NOT NULL,
    document_type    text NOT NULL CHECK (document_type IN ('NDA', 'LOI', 'APA')),
    provider         text NOT NULL CHECK (provider IN ('PLATFORM', 'EXTERNAL_A', 'EXTERNAL_B')),
    status           text NOT NULL,
    hosted_url       text,
    template_version text NOT NULL,
    document_sha256  text NOT NULL,
    signers          jsonb NOT NULL,
    seq              bigint NOT NULL,
    audit_hash       text NOT NULL,
    requested_by     text NOT NULL,
    requested_at     timestamptz NOT NULL,
    expires_at       timestamptz NOT NULL,
    ended_at         timestamptz
);
CREATE INDEX legal_signatures_of_deal ON legal_signatures (deal_id, id);

CREATE TABLE signature_events (
    signature_id text NOT NULL,
    deal_id      text NOT NULL,
    seq          bigint NOT NULL,
    body         text NOT NULL,
    hash         text NOT NULL,
    at           timestamptz NOT NULL,
    PRIMARY KEY (signature_id, seq)
);
CREATE INDEX signature_events_of_deal ON signature_events (deal_id);
CREATE TRIGGER signature_events_stay BEFORE UPDATE OR DELETE ON signature_events
    FOR EACH ROW EXECUTE FUNCTION refuse_change();
