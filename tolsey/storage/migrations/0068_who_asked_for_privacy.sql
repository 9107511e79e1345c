-- Not the platform alone asks to tell or to forget: a shop's own app does, its merchant, and an uninstall that
-- nobody took back. A request says which of them asked, and a receipt by which queries its rows were counted.
-- compatible-from: 0036
-- locks: compliance_requests and compliance_receipts, for a moment
ALTER TABLE compliance_requests ADD COLUMN source text NOT NULL DEFAULT 'platform', ADD COLUMN asked_by text;
ALTER TABLE compliance_receipts ADD COLUMN query_digest text;
