-- The newest period of a plan is the one that began last: one that begins on the 31st may end before
-- one that began on the 30th. An account written before this has no beginning; its period is compared
-- by its end until the next one begins.
ALTER TABLE credit_accounts ADD COLUMN period_start timestamptz;

-- So two periods may end at one moment, and each of them is granted once.
ALTER TABLE monthly_resets ADD COLUMN period_start timestamptz NOT NULL DEFAULT '-infinity';
ALTER TABLE monthly_resets ALTER COLUMN period_start DROP DEFAULT,
    DROP CONSTRAINT monthly_resets_pkey,
    ADD PRIMARY KEY (organization_id, period_end, period_start);

-- An allowance ends with its period; while somebody is to renew it, it waits some days for the renewal
-- to be told. What was granted before this carries those days in its end, and nobody here.
ALTER TABLE credit_accounts ADD COLUMN renewed_by text;

-- From when on a subscription owes nothing, as the processor's snapshots of it say: of an invoice that
-- is withdrawn no event is sent here.
ALTER TABLE subscriptions ADD COLUMN settled_at timestamptz;

-- Disputes of what sponsors paid: nothing is granted for that, so nothing is taken back.
CREATE TABLE sponsor_disputes (
    dispute_id  text PRIMARY KEY,
    payment_ref text NOT NULL,
    cents       bigint NOT NULL CHECK (cents >= 0),
    standing    text NOT NULL CHECK (standing IN ('open', 'lost', 'won'))
);
