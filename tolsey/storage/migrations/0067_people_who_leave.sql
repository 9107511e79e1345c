-- Who deletes their account is gone after 30 days, and with them the organizations that nobody else is in. What is
-- kept of such an organization for a while longer is found by when it was deleted.
-- compatible-from: 0036
-- transaction: none
-- locks: organizations, for a moment; each index is built beside the traffic, in a moment
ALTER TABLE organizations ADD COLUMN IF NOT EXISTS deleted_at timestamptz;
CREATE INDEX CONCURRENTLY IF NOT EXISTS organizations_deleted_at ON organizations (deleted_at)
    WHERE deleted_at IS NOT NULL AND name <> '';
CREATE INDEX CONCURRENTLY IF NOT EXISTS users_deletion_requested_at ON users (deletion_requested_at)
    WHERE deletion_requested_at IS NOT NULL AND password_hash <> '';
