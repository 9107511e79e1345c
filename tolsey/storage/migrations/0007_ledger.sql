-- Credits: every micro-dollar an organization was granted, used, held or lost can be told from
-- entries that are only ever appended, and what the organization has now is kept beside them.
CREATE TABLE credit_accounts (
    organization_id text PRIMARY KEY,
    seq             bigint NOT NULL CHECK (seq >= 0),
    hash            text NOT NULL,
    debt            bigint NOT NULL CHECK (debt >= 0),
    period_end      timestamptz,
    allowance       bigint NOT NULL CHECK (allowance >= 0)
) WITH (fillfactor = 50);

-- The primary key keeps the sequence a sequence; the business key makes each entry happen once.
CREATE TABLE credit_entries (
    organization_id text NOT NULL,
    seq             bigint NOT NULL CHECK (seq > 0),
    key             text NOT NULL,
    kind            text NOT NULL,
    reference       text,
    at              timestamptz NOT NULL,
    hash            text NOT NULL,
    PRIMARY KEY (organization_id, seq)
);
CREATE UNIQUE INDEX credit_entries_key ON credit_entries (organization_id, key);

CREATE TABLE credit_postings (
    organization_id text NOT NULL,
    seq             bigint NOT NULL,
    n               integer NOT NULL,
    debit           text NOT NULL,
    credit          text NOT NULL CHECK (credit <> debit),
    amount          bigint NOT NULL CHECK (amount > 0),
    PRIMARY KEY (organization_id, seq, n)
);

CREATE TABLE credit_lots (
    organization_id text NOT NULL,
    id              text NOT NULL,
    kind            text NOT NULL CHECK (kind IN ('purchase', 'allowance', 'bonus', 'adjustment')),
    reference       text,
    amount          bigint NOT NULL CHECK (amount > 0),
    remaining       bigint NOT NULL CHECK (remaining BETWEEN 0 AND amount),
    pinned          bigint NOT NULL CHECK (pinned BETWEEN 0 AND remaining),
    granted_at      timestamptz NOT NULL,
    expires_at      timestamptz NOT NULL,
    seq             bigint NOT NULL,
    spent           boolean GENERATED ALWAYS AS (remaining = 0) STORED,
    PRIMARY KEY (organization_id, id)
) WITH (fillfactor = 50);
-- On `spent` and not on `remaining`, so that a spending leaves every index as it is.
CREATE INDEX credit_lots_open ON credit_lots (organization_id) WHERE NOT spent;

CREATE TABLE credit_holds (
    organization_id text NOT NULL,
    id              text NOT NULL,
    amount          bigint NOT NULL CHECK (amount > 0),
    lines           jsonb NOT NULL,
    used            bigint NOT NULL CHECK (used >= 0),
    lease_until     timestamptz NOT NULL,
    closed_at       timestamptz,
    PRIMARY KEY (organization_id, id)
) WITH (fillfactor = 70);
CREATE INDEX credit_holds_live ON credit_holds (organization_id) WHERE closed_at IS NULL;

-- What the payment processor said of each payment, in whatever order it said it.
CREATE TABLE payment_facts (
    organization_id text NOT NULL,
    payment_ref     text NOT NULL,
    kind            text,
    granted         bigint NOT NULL CHECK (granted >= 0),
    granted_at      timestamptz,
    expires_at      timestamptz,
    credits         bigint NOT NULL,
    total           bigint NOT NULL,
    refunded        bigint NOT NULL,
    disputes        jsonb NOT NULL,
    refund_removed  bigint NOT NULL CHECK (refund_removed >= 0),
    dispute_removed bigint NOT NULL CHECK (dispute_removed >= 0),
    CHECK (refund_removed + dispute_removed <= granted),
    PRIMARY KEY (organization_id, payment_ref)
);
CREATE INDEX payment_facts_waiting ON payment_facts (organization_id) WHERE granted = 0;

CREATE TABLE monthly_resets (
    organization_id text NOT NULL,
    period_end      timestamptz NOT NULL,
    plan            text NOT NULL,
    at              timestamptz NOT NULL,
    PRIMARY KEY (organization_id, period_end)
);
