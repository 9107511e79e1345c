-- Stores of the platform that we made beforehand are handed out to merchants who have none: which there are, with the
-- keys of their apps sealed, who has which, and how far its transfer to the merchant is. A shop is handed out once
-- ever, which the key of a claim makes sure of.
-- compatible-from: 0036
-- locks: nothing; the tables are new
CREATE TABLE devstore_pool (
    shop_domain   text PRIMARY KEY,
    client_id     text,
    client_secret text NOT NULL,
    access_token  text,
    plan_name     text,
    refused       text,
    registered_by text NOT NULL,
    registered_at timestamptz NOT NULL
);
CREATE INDEX devstore_pool_registered ON devstore_pool (registered_at, shop_domain);
CREATE INDEX devstore_pool_registered_by ON devstore_pool (registered_by);

CREATE TABLE devstore_claims (
    shop_domain     text PRIMARY KEY,
    store_id        text NOT NULL UNIQUE,
    organization_id text NOT NULL,
    claimed_by      text NOT NULL,
    claimed_at      timestamptz NOT NULL
);
CREATE INDEX devstore_claims_organization ON devstore_claims (organization_id);
CREATE INDEX devstore_claims_claimed_by ON devstore_claims (claimed_by);

CREATE TABLE devstore_transfers (
    store_id        text PRIMARY KEY,
    shop_domain     text NOT NULL,
    organization_id text NOT NULL,
    state           text NOT NULL CHECK (state IN ('CLAIMED', 'TRANSFER_REQUESTED', 'TRANSFERRED')),
    email           text NOT NULL,
    requested_by    text NOT NULL,
    requested_at    timestamptz NOT NULL,
    expires_at      timestamptz NOT NULL,
    transferred_at  timestamptz,
    changed_at      timestamptz NOT NULL
);
CREATE INDEX devstore_transfers_organization ON devstore_transfers (organization_id);
CREATE INDEX devstore_transfers_requested_by ON devstore_transfers (requested_by);
CREATE INDEX devstore_transfers_awaited ON devstore_transfers (store_id) WHERE state = 'TRANSFER_REQUESTED';
