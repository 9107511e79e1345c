-- Files that the service keeps for an organization: which there are, whose, and until when. Their bytes are
-- in the object store under what they come to (sha256), apart for each organization; two files of the same
-- bytes share them, and they go with the last of both.
-- compatible-from: 0036
-- locks: nothing
CREATE TABLE files (
    id              text PRIMARY KEY,
    organization_id text NOT NULL,
    store_id        text,
    purpose         text NOT NULL,
    name            text NOT NULL,
    content_type    text NOT NULL,
    sha256          text NOT NULL CHECK (sha256 ~ '^[0-9a-f]{64}$'),
    size            bigint NOT NULL CHECK (size >= 0),
    created_by      text NOT NULL,
    created_at      timestamptz NOT NULL,
    expires_at      timestamptz NOT NULL
);
CREATE INDEX files_content ON files (organization_id, sha256);
CREATE INDEX files_of_store ON files (store_id, purpose, id DESC);
CREATE INDEX files_expires_at ON files (expires_at);
COMMENT ON TABLE files IS 'Rows go with their bytes (retention-sweep, DELETE /api/files/{id})';
