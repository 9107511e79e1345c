-- Credits that come with time and limits that a plan sets: each day's bonus once, contracts, how
-- many workflows run at once, and how far each ledger was replayed and found right.
CREATE TABLE daily_bonuses (
    organization_id text NOT NULL,
    day             date NOT NULL,
    plan            text NOT NULL,
    amount          bigint NOT NULL CHECK (amount > 0),
    at              timestamptz NOT NULL,
    PRIMARY KEY (organization_id, day)
);

-- How many stores a contract includes is organizations.stores_contracted.
CREATE TABLE contracts (
    organization_id   text PRIMARY KEY,
    monthly_allowance bigint NOT NULL CHECK (monthly_allowance >= 0),
    daily_bonus       bigint NOT NULL CHECK (daily_bonus >= 0),
    since             timestamptz NOT NULL,
    ended_at          timestamptz
);

CREATE TABLE workflow_claims (
    organization_id text NOT NULL,
    id              text NOT NULL,
    kind            text NOT NULL,
    started_at      timestamptz NOT NULL,
    lease_until     timestamptz NOT NULL,
    ended_at        timestamptz,
    PRIMARY KEY (organization_id, id)
) WITH (fillfactor = 70);
CREATE INDEX workflow_claims_running ON workflow_claims (organization_id) WHERE ended_at IS NULL;

-- The entry up to which a ledger was right, its hash, and what each account came to there.
CREATE TABLE ledger_checks (
    organization_id text PRIMARY KEY,
    seq             bigint NOT NULL,
    hash            text NOT NULL,
    accounts        jsonb NOT NULL,
    checked_at      timestamptz NOT NULL,
    whole_at        timestamptz NOT NULL
);

-- A spending moves neither moment, so both leave it the update that touches no index.
CREATE INDEX credit_lots_expiring ON credit_lots (expires_at) WHERE NOT spent;
CREATE INDEX credit_holds_leased ON credit_holds (lease_until) WHERE closed_at IS NULL;
