-- Agents and what people let them do: every secret is kept as its SHA-256 only, so that whoever reads
-- these tables can use none of them, and what is used once is used up in one statement.
CREATE TABLE oauth_clients (
    id           text PRIMARY KEY,
    name         text NOT NULL,
    redirect_uris text[] NOT NULL,
    auth_method  text NOT NULL
                 CHECK (auth_method IN ('none', 'client_secret_basic', 'client_secret_post')),
    secret_hash  bytea CHECK (octet_length(secret_hash) = 32),
    created_at   timestamptz NOT NULL,
    used_at      timestamptz NOT NULL,
    CHECK ((auth_method = 'none') = (secret_hash IS NULL))
);
CREATE INDEX oauth_clients_used_at ON oauth_clients (used_at);

-- A request that waits for its user: what was asked is kept here, so that no form can change it.
CREATE TABLE oauth_requests (
    id_hash        bytea PRIMARY KEY CHECK (octet_length(id_hash) = 32),
    client_id      text NOT NULL,
    client_name    text NOT NULL,
    redirect_uri   text NOT NULL,
    state          text,
    code_challenge text NOT NULL,
    resource       text NOT NULL,
    store_id       text NOT NULL,
    scopes         text[] NOT NULL,
    expires_at     timestamptz NOT NULL,
    used_at        timestamptz
);
CREATE INDEX oauth_requests_expires_at ON oauth_requests (expires_at);

-- What a user let one client do with one store; its codes and tokens live and die with it.
CREATE TABLE oauth_grants (
    id              text PRIMARY KEY,
    user_id         text NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    client_id       text NOT NULL,
    client_name     text NOT NULL,
    redirect_uri    text NOT NULL,
    organization_id text NOT NULL,
    store_id        text NOT NULL,
    resource        text NOT NULL,
    scopes          text[] NOT NULL,
    created_at      timestamptz NOT NULL,
    used_at         timestamptz,
    ended_at        timestamptz,
    why             text,
    CHECK ((ended_at IS NULL) = (why IS NULL))
);
CREATE INDEX oauth_grants_user_id ON oauth_grants (user_id) WHERE ended_at IS NULL;
CREATE INDEX oauth_grants_ended_at ON oauth_grants (ended_at) WHERE ended_at IS NOT NULL;

CREATE TABLE oauth_codes (
    code_hash      bytea PRIMARY KEY CHECK (octet_length(code_hash) = 32),
    grant_id       text NOT NULL REFERENCES oauth_grants (id) ON DELETE CASCADE,
    code_challenge text NOT NULL,
    expires_at     timestamptz NOT NULL,
    used_at        timestamptz
);
CREATE INDEX oauth_codes_grant_id ON oauth_codes (grant_id);

CREATE TABLE oauth_tokens (
    token_hash bytea PRIMARY KEY CHECK (octet_length(token_hash) = 32),
    grant_id   text NOT NULL REFERENCES oauth_grants (id) ON DELETE CASCADE,
    kind       text NOT NULL CHECK (kind IN ('access', 'refresh')),
    scopes     text[] NOT NULL,
    expires_at timestamptz NOT NULL,
    used_at    timestamptz
);
CREATE INDEX oauth_tokens_grant_id ON oauth_tokens (grant_id);
CREATE INDEX oauth_tokens_expires_at ON oauth_tokens (expires_at);
