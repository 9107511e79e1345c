-- Who uses the service: people, the organizations they belong to, and the stores these own; and
-- what a store's memory is made of, so that it can be counted, exported and purged.
CREATE EXTENSION IF NOT EXISTS vector;

CREATE TABLE users (
    id                    text PRIMARY KEY,
    email                 text NOT NULL,
    password_hash         text NOT NULL,
    banned                boolean NOT NULL DEFAULT false,
    deletion_requested_at timestamptz,
    created_at            timestamptz NOT NULL DEFAULT now(),
    CHECK (email = lower(email))
);
CREATE UNIQUE INDEX users_email ON users (email);

CREATE TABLE sessions (
    token_hash bytea PRIMARY KEY CHECK (octet_length(token_hash) = 32),
    user_id    text NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    created_at timestamptz NOT NULL DEFAULT now(),
    expires_at timestamptz NOT NULL
);
CREATE INDEX sessions_user_id ON sessions (user_id);
CREATE INDEX sessions_expires_at ON sessions (expires_at);

CREATE TABLE organizations (
    id                text PRIMARY KEY,
    name              text NOT NULL,
    plan              text NOT NULL DEFAULT 'free'
                      CHECK (plan IN ('free', 'pro', 'max_5x', 'max_20x', 'custom')),
    stores_contracted integer CHECK (stores_contracted >= 0),
    rules             jsonb NOT NULL DEFAULT '{}' CHECK (jsonb_typeof(rules) = 'object'),
    is_administrators boolean NOT NULL DEFAULT false,
    created_at        timestamptz NOT NULL DEFAULT now()
);
CREATE UNIQUE INDEX organizations_administrators ON organizations (is_administrators)
    WHERE is_administrators;

CREATE TABLE members (
    organization_id text NOT NULL REFERENCES organizations (id) ON DELETE CASCADE,
    user_id         text NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    role            text NOT NULL CHECK (role IN ('owner', 'admin', 'member')),
    created_at      timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (organization_id, user_id)
);
CREATE INDEX members_user_id ON members (user_id);

CREATE TABLE stores (
    id              text PRIMARY KEY,
    organization_id text NOT NULL REFERENCES organizations (id),
    name            text NOT NULL,
    sealed_salt     text NOT NULL,
    created_at      timestamptz NOT NULL,
    deleted_at      timestamptz
);
CREATE INDEX stores_organization_id ON stores (organization_id, id) WHERE deleted_at IS NULL;

CREATE TABLE idempotency_keys (
    user_id         text NOT NULL,
    key             text NOT NULL,
    fingerprint     bytea NOT NULL,
    request_id_seed text NOT NULL,
    created_at      timestamptz NOT NULL,
    locked_until    timestamptz,
    answer          jsonb,
    PRIMARY KEY (user_id, key)
);
CREATE INDEX idempotency_keys_created_at ON idempotency_keys (created_at);

CREATE TABLE vectors (
    namespace text NOT NULL,
    id        text NOT NULL,
    embedding vector NOT NULL,
    text      text,
    metadata  jsonb NOT NULL DEFAULT '{}',
    PRIMARY KEY (namespace, id)
);

CREATE TABLE facts (
    id              text PRIMARY KEY,
    organization_id text NOT NULL REFERENCES organizations (id),
    store_id        text REFERENCES stores (id),
    name            text NOT NULL,
    value           jsonb NOT NULL,
    created_at      timestamptz NOT NULL DEFAULT now(),
    updated_at      timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX facts_organization_id ON facts (organization_id);
CREATE UNIQUE INDEX facts_name ON facts (organization_id, store_id, name) NULLS NOT DISTINCT;

CREATE TABLE messages (
    id              text PRIMARY KEY,
    organization_id text NOT NULL REFERENCES organizations (id),
    store_id        text REFERENCES stores (id),
    role            text NOT NULL,
    text            text NOT NULL,
    created_at      timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX messages_organization_id ON messages (organization_id);
CREATE INDEX messages_store_id ON messages (store_id);
