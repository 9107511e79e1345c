-- The verified figures of a business are written into the letter of intent and compared when the purchase agreement is
-- asked for. What each document said of them is kept beside its signature, and only ever added.
-- compatible-from: 0036
-- locks: nothing, the table is new
CREATE TABLE deal_metrics (
    signature_id  text PRIMARY KEY,
    deal_id       text NOT NULL,
    document_type text NOT NULL,
    figures       jsonb NOT NULL,
    agreed        jsonb,
    percent       text,
    moved         boolean NOT NULL,
    at            timestamptz NOT NULL
);
CREATE INDEX deal_metrics_of_deal ON deal_metrics (deal_id, signature_id);
CREATE TRIGGER deal_metrics_stay BEFORE UPDATE OR DELETE ON deal_metrics
    FOR EACH ROW EXECUTE FUNCTION refuse_change();
