-- A document that everybody has signed gets a PDF that bears the service's seal. Its bytes are kept once, under
-- their hash, and so is every certificate that a seal was ever made with: a PDF outlives the key.
-- compatible-from: 0036
-- locks: nothing that others use
CREATE TABLE sealed_documents (
    sha256       text PRIMARY KEY,
    signature_id text NOT NULL UNIQUE,
    deal_id      text NOT NULL,
    key_id       text NOT NULL,
    content      bytea NOT NULL,
    made_at      timestamptz NOT NULL
);
CREATE INDEX sealed_documents_of_deal ON sealed_documents (deal_id);
CREATE TRIGGER sealed_documents_stay BEFORE UPDATE OR DELETE ON sealed_documents
    FOR EACH ROW EXECUTE FUNCTION refuse_change();

CREATE TABLE seal_certificates (
    key_id      text PRIMARY KEY,
    certificate text NOT NULL,
    made_at     timestamptz NOT NULL
);
CREATE TRIGGER seal_certificates_stay BEFORE UPDATE OR DELETE ON seal_certificates
    FOR EACH ROW EXECUTE FUNCTION refuse_change();
