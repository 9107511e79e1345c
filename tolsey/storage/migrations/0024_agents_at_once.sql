-- Two windows of one agent refresh at the same moment: for ten seconds the second gets what the first
-- got. Both tokens follow from the refresh token, of which only the hash is kept, and from this salt:
-- so neither who reads this table nor who finds an old token can make them.
-- compatible-from: 0022
-- locks: oauth_tokens, for a moment; the indexes are built beside the traffic, in a second each
-- transaction: none
ALTER TABLE oauth_tokens ADD COLUMN successor_salt bytea;

-- Clients that never came back with a code, the oldest first: of those only so many are kept.
CREATE INDEX CONCURRENTLY IF NOT EXISTS oauth_clients_unused ON oauth_clients (created_at) WHERE used_at = created_at;

-- What a client of the revisions without `resource` was allowed before.
CREATE INDEX CONCURRENTLY IF NOT EXISTS oauth_grants_client_id ON oauth_grants (client_id) WHERE ended_at IS NULL;
