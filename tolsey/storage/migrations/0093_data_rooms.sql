-- A deal has a data room: which files are in it, from which level on a buyer reads them, and who looked at what. The
-- bytes are in the object store; what they come to is in the ledger of the deal, too.
-- compatible-from: 0036
-- locks: nothing, the tables are new
CREATE TABLE deal_files (
    id           text PRIMARY KEY,
    deal_id      text NOT NULL,
    side         text NOT NULL CHECK (side IN ('buyer', 'seller')),
    level        bigint NOT NULL CHECK (level IN (1, 2)),
    kind         text NOT NULL,
    name         text NOT NULL,
    content_type text NOT NULL,
    sha256       text NOT NULL,
    size         bigint NOT NULL,
    added_by     text NOT NULL,
    added_at     timestamptz NOT NULL
);
CREATE INDEX deal_files_of_deal ON deal_files (deal_id, id);
CREATE INDEX deal_files_added_by ON deal_files (added_by);
CREATE TRIGGER deal_files_stay BEFORE UPDATE OR DELETE ON deal_files
    FOR EACH ROW EXECUTE FUNCTION refuse_change();

CREATE TABLE deal_views (
    id      text PRIMARY KEY,
    deal_id text NOT NULL,
    role    text NOT NULL,
    user_id text NOT NULL,
    what    text NOT NULL,
    at      timestamptz NOT NULL
);
CREATE INDEX deal_views_of_deal ON deal_views (deal_id, id);
CREATE INDEX deal_views_of_user ON deal_views (user_id);
COMMENT ON COLUMN deal_views.what IS 'listing, or the id of a file';
CREATE TRIGGER deal_views_stay BEFORE UPDATE OR DELETE ON deal_views
    FOR EACH ROW EXECUTE FUNCTION refuse_change();
