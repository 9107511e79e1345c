-- People see where they are signed in and end what they do not know: a session says from where and by what it
-- was begun and when it was used last, and ends when it was not for 14 days. Who forgot a password gets a
-- link; its token is kept as a hash, works once and for an hour.
-- compatible-from: 0036
-- locks: sessions, for a moment; the index is built beside the traffic, in seconds
-- transaction: none
ALTER TABLE sessions
    ADD COLUMN IF NOT EXISTS used_at timestamptz,
    ADD COLUMN IF NOT EXISTS device text,
    ADD COLUMN IF NOT EXISTS place text;

-- It serves all that the one of users alone did.
CREATE INDEX CONCURRENTLY IF NOT EXISTS sessions_of_user ON sessions (user_id, created_at DESC);
DROP INDEX CONCURRENTLY IF EXISTS sessions_user_id;

CREATE TABLE password_resets (
    token_hash bytea PRIMARY KEY CHECK (octet_length(token_hash) = 32),
    user_id    text NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    created_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL
);
CREATE INDEX password_resets_user_id ON password_resets (user_id, created_at);
CREATE INDEX password_resets_expires_at ON password_resets (expires_at);
