-- People whom the service pays: the account of each at the payment processor, as the processor last
-- told of it, the payouts that came back, and the codes by which affiliates bring organizations in.
CREATE TABLE payout_accounts (
    account_id            text PRIMARY KEY,
    user_id               text NOT NULL UNIQUE REFERENCES users (id) ON DELETE CASCADE,
    has_submitted_details boolean NOT NULL,
    can_charge            boolean NOT NULL,
    can_be_paid_out       boolean NOT NULL,
    is_verified           boolean NOT NULL,
    disabled_reason       text,
    currently_due         text[] NOT NULL,
    past_due              text[] NOT NULL,
    eventually_due        text[] NOT NULL,
    pending_verification  text[] NOT NULL,
    created_at            timestamptz NOT NULL,
    -- When the processor made the newest event that was applied; what it is asked has no such time.
    seen_at               timestamptz
);

CREATE TABLE payout_failures (
    payout_id       text PRIMARY KEY,
    account_id      text,
    amount_cents    bigint NOT NULL CHECK (amount_cents >= 0),
    currency        text NOT NULL,
    failure_code    text,
    failure_message text,
    failed_at       timestamptz NOT NULL
);
CREATE INDEX payout_failures_account ON payout_failures (account_id, failed_at);

CREATE TABLE affiliate_codes (
    id         text PRIMARY KEY,
    user_id    text NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    code       text NOT NULL UNIQUE,
    created_at timestamptz NOT NULL
);
CREATE INDEX affiliate_codes_user ON affiliate_codes (user_id, id);

-- Whoever made organization after organization would have a bonus for each: a person redeems once.
CREATE TABLE affiliate_redemptions (
    id              text NOT NULL UNIQUE,
    organization_id text PRIMARY KEY,
    user_id         text NOT NULL UNIQUE,
    code_id         text NOT NULL,
    affiliate_id    text NOT NULL,
    credits         bigint NOT NULL CHECK (credits > 0),
    redeemed_at     timestamptz NOT NULL
);
CREATE INDEX affiliate_redemptions_code ON affiliate_redemptions (code_id);
